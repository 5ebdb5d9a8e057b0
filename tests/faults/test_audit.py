"""The audit of what the program brings along: it passes here, and notices what it is there to notice."""

from __future__ import annotations

import base64
import hashlib
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from tests import audit


def test_everything_that_is_installed_is_pinned_whole_and_of_a_known_licence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert audit.main() == 0, capsys.readouterr().err
    listed = capsys.readouterr().out.splitlines()
    assert {"pyspark", "boto3", "confluent-kafka", "rfc3161-client"} <= {line.partition("==")[0] for line in listed}
    # what only development needs is not brought along
    assert "pymerkle" not in {line.partition("==")[0] for line in listed}


def made(folder: Path, metadata: str = "License-Expression: MIT\n") -> Distribution:
    """A distribution `thing` 1.0 with one file."""
    (folder / "thing.py").write_bytes(b"x = 1\n")
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"x = 1\n").digest()).decode().rstrip("=")
    info = folder / "thing-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: thing\nVersion: 1.0\n{metadata}")
    (info / "RECORD").write_text(f"thing.py,sha256={digest},6\nthing-1.0.dist-info/RECORD,,\n")
    return Distribution.at(info)


def test_a_distribution_as_it_should_be(tmp_path: Path) -> None:
    assert audit.look(made(tmp_path), {"thing": "1.0"}).findings == ()


@pytest.mark.parametrize(
    ("metadata", "pinned", "words"),
    [
        ("License-Expression: MIT\n", {}, "pinned nothing"),
        ("License-Expression: MIT\n", {"thing": "1.1"}, "pinned 1.1"),
        ("", {"thing": "1.0"}, "not told"),
        ("License-Expression: AGPL-3.0-or-later\n", {"thing": "1.0"}, "AGPL"),
        ("Classifier: License :: OSI Approved :: GNU General Public License v3 (GPLv3)\n", {"thing": "1.0"}, "GPL"),
    ],
)
def test_pins_and_licences(tmp_path: Path, metadata: str, pinned: dict[str, str], words: str) -> None:
    (finding,) = audit.look(made(tmp_path, metadata), pinned).findings
    assert words in finding


def test_a_file_that_was_changed_or_taken_away(tmp_path: Path) -> None:
    part = made(tmp_path)
    (tmp_path / "thing.py").write_bytes(b"x = 2\n")
    assert audit.look(part, {"thing": "1.0"}).findings == ("thing.py was changed",)
    (tmp_path / "thing.py").unlink()
    assert audit.look(part, {"thing": "1.0"}).findings == ("thing.py is gone",)
    (tmp_path / "thing-1.0.dist-info" / "RECORD").unlink()
    assert audit.look(part, {"thing": "1.0"}).findings == ("it brings no list of its files",)


def test_pins_of_other_pythons_do_not_count() -> None:
    text = "# made\na==1 ; python_version < '3'\na==2 ; python_version >= '3'\nB_c==3\n"
    assert audit.pins(text) == {"a": "2", "b-c": "3"}
