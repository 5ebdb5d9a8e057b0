"""Files that people and other systems write begin with a byte order mark, or have another encoding: that changes nothing,
or is refused."""

from __future__ import annotations

import io
import json
import sys
from datetime import datetime, timezone
from pathlib import Path

import pytest

from pii_tracer.cli.main import run
from pii_tracer.model.errors import ExitCode
from pii_tracer.review.sealed_person_values import load_estate_key
from pii_tracer.review.trusted_keys import load_trusted
from pii_tracer.run.suppression_list import FILE, SuppressionList
from tests.cli.test_bad_input import ESTATE

PERSON = "Jörg-5510278"
NOW = datetime(2026, 11, 22, tzinfo=timezone.utc)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pii-tracer.yaml").write_text(ESTATE)
    key = load_estate_key(tmp_path / "state" / "keys" / "estate.key", create=True)
    SuppressionList(tmp_path / "state" / FILE, key).extended(
        [("user.uid", "subj_1", PERSON)], plan_id="plan-1", since=NOW, recheck_on=NOW
    )
    return tmp_path


def asked(folder: Path, data: bytes) -> int:
    (folder / "values.txt").write_bytes(data)
    return called(folder, str(folder / "values.txt"))


def called(folder: Path, file: str) -> int:
    words = ["--estate", str(folder / "pii-tracer.yaml"), "--state", str(folder / "state")]
    return run(["suppressed", file, "--subject", "user", *words])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_the_first_of_a_file_is_known_behind_a_mark(
    folder: Path, capsys: pytest.CaptureFixture[str], encoding: str, ending: str
) -> None:
    assert asked(folder, f"{PERSON}{ending}Q-1{ending}".encode(encoding)) == ExitCode.RESIDUE
    assert capsys.readouterr().out.split() == ["suppressed", "free"]


def test_standard_input_as_well(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{PERSON}\n".encode("utf-8-sig"))))
    assert called(folder, "-") == ExitCode.RESIDUE


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "latin-1"])
def test_another_encoding_is_refused_and_never_free(
    folder: Path, capsys: pytest.CaptureFixture[str], encoding: str
) -> None:
    assert asked(folder, f"{PERSON}\n".encode(encoding)) == ExitCode.USAGE
    told = capsys.readouterr()
    assert "is not UTF-8" in told.err
    assert "save it as UTF-8" in told.err
    assert "5510278" not in told.err
    assert "free" not in told.out


def test_letters_alone_in_two_bytes_each_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each byte of these is a character of UTF-8, too."""
    assert asked(folder, "P-5510278\n".encode("utf-16-le")) == ExitCode.USAGE
    assert "free" not in capsys.readouterr().out


def test_sql_behind_a_mark_is_parsed_as_without(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.SQL").write_text("SELECT a.b AS c FROM a", encoding="utf-8-sig")
    assert run(["parse", str(tmp_path / "q.SQL")]) == ExitCode.DONE
    answer = json.loads(capsys.readouterr().out)
    assert [e["from"] for e in answer["edges"]] == ["a.b"]
    assert answer["error"] is None


def test_the_first_trusted_name_is_the_same_behind_a_mark(tmp_path: Path) -> None:
    line = "asha ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIuOuBgDCsm3iFq5a2nTnLFRJHzxWJyFQIQ+ZCEGAYjW dpo\n"
    (tmp_path / "allowed_signers").write_text(line, encoding="utf-8-sig")
    assert [a.name for a in load_trusted(tmp_path / "allowed_signers")] == ["asha"]
