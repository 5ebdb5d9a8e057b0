"""`init`: what is there stays, what is missing is made, and no key is made that earlier plans do not open with."""

from __future__ import annotations

from pathlib import Path

import pytest

from pii_tracer.cli.main import run as cli
from pii_tracer.model.errors import ExitCode

NAMES = ("pii-tracer.yaml", "policy.yaml", "state/keys/estate.key")


def init(folder: Path) -> int:
    return cli(["init", str(folder), "--state", str(folder / "state")])


def test_all_is_made_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(tmp_path) == ExitCode.DONE
    made = {name: (tmp_path / name).read_bytes() for name in NAMES}
    assert init(tmp_path) == ExitCode.USAGE
    assert "already exist; nothing was written" in capsys.readouterr().err
    assert {name: (tmp_path / name).read_bytes() for name in NAMES} == made


@pytest.mark.parametrize("missing", NAMES)
def test_what_is_missing_is_made_and_the_rest_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    """Whoever wrote the estate file by hand was sent to `init` for the key, and refused there."""
    assert init(tmp_path) == ExitCode.DONE
    (tmp_path / missing).unlink()
    others = {name: (tmp_path / name).read_bytes() for name in NAMES if name != missing}
    assert init(tmp_path) == ExitCode.DONE
    assert (tmp_path / missing).exists()
    assert {name: (tmp_path / name).read_bytes() for name in others} == others
    assert "stays as it is" in capsys.readouterr().out


def test_no_new_key_where_runs_are_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(tmp_path) == ExitCode.DONE
    (tmp_path / "state/runs/plan-1").mkdir(parents=True)
    key = tmp_path / "state/keys/estate.key"
    key.unlink()
    (tmp_path / "policy.yaml").unlink()
    assert init(tmp_path) == ExitCode.USAGE
    assert "put the key back" in capsys.readouterr().err
    assert not key.exists()
    assert not (tmp_path / "policy.yaml").exists()
