"""Bad input on the command line: a message with place and way out, the exit code of the contract, nothing written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pii_tracer.cli.main import COMMANDS, run

ESTATE = """\
version: 1
estate: t
environment: local
catalogs: {}
roots: [data]
lineage: {sql: [jobs.sql]}
subjects: [{name: user, source: lake.users, key: uid}]
"""
REQUEST = "id: R1\nlaw: GDPR\nreceived: 2026-11-01T00:00:00Z\nsubject: {type: user, key: '1'}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pii-tracer.yaml").write_text(ESTATE)
    (tmp_path / "policy.yaml").write_text("version: 1\n")
    (tmp_path / "request.yaml").write_text(REQUEST)
    (tmp_path / "jobs.sql").write_text("SELECT 1")
    (tmp_path / "data").mkdir()
    return tmp_path


def plan(folder: Path, request: str = "request.yaml") -> int:
    words = ["--estate", str(folder / "pii-tracer.yaml"), "--state", str(folder / "state")]
    return run(["plan", str(folder / request), *words])


CASES = [
    ("an unknown key", "pii-tracer.yaml", ESTATE + "colour: red\n", "colour"),
    ("a key twice", "pii-tracer.yaml", ESTATE + "estate: u\n", "stands twice"),
    ("not YAML", "pii-tracer.yaml", "a: [", "not YAML"),
    ("empty estate", "pii-tracer.yaml", "", "empty"),
    ("no subject", "pii-tracer.yaml", ESTATE.replace("[{name: user, source: lake.users, key: uid}]", "[]"), "subject"),
    ("negative price", "pii-tracer.yaml", ESTATE + "prices: {restore_gb: -1}\n", "prices.restore_gb"),
    ("empty request", "request.yaml", "", "empty"),
    ("no time zone", "request.yaml", REQUEST.replace("T00:00:00Z", "T00:00:00"), "time zone"),
    ("unknown subject", "request.yaml", REQUEST.replace("type: user", "type: alien"), "no subject `alien`"),
    ("empty key", "request.yaml", REQUEST.replace("'1'", "''"), "subject.key"),
    ("unknown law", "request.yaml", REQUEST.replace("GDPR", "LEX"), "law of the request is not known"),
    ("missing source", "request.yaml", REQUEST, "lake.users"),
    ("broken policy", "policy.yaml", "version: 2\n", "version"),
]


@pytest.mark.parametrize(("name", "text", "said"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_wrong_file_is_named_and_nothing_is_written(
    folder: Path, name: str, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / name).write_text(text)
    assert plan(folder) == 1
    told = capsys.readouterr().err
    assert said in told
    assert "next:" in told
    assert not list(folder.rglob("*.plan.json"))


def test_a_missing_file_and_a_wrong_time(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(folder, "absent.yaml") == 1
    assert "absent.yaml" in capsys.readouterr().err
    words = ["--estate", str(folder / "pii-tracer.yaml"), "--as-of", "tomorrow"]
    assert run(["plan", str(folder / "request.yaml"), *words]) == 2


def test_a_file_that_is_no_plan(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "x.plan.json"
    file.write_text('{"format_version": 1, "format_version": 1}')
    assert run(["show", str(file)]) == 1
    assert str(file) in capsys.readouterr().err


def test_nothing_to_resume(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["resume", "--state", str(folder / "state")]) == 2
    assert "no run" in capsys.readouterr().err


def test_help_and_commands_without_spark_import_no_pyspark() -> None:
    code = (
        "import sys\n"
        "from pii_tracer.cli.main import run\n"
        "run(['--help'])\n"
        f"[run([name, '--help']) for name in {list(COMMANDS)!r}]\n"
        "sys.exit('pyspark' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_an_engine_that_quotes_data_is_not_repeated(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("could not parse 'ABCPK1234F'")

    monkeypatch.setattr("pii_tracer.cli.planning.take_inventory", broken)
    assert plan(folder) == 1
    told = capsys.readouterr().err
    assert "unexpected ValueError" in told
    assert "ABCPK1234F" not in told
