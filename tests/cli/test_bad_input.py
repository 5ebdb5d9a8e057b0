"""Bad input on the command line: a message with place and way out, the exit code of the contract, nothing written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pii_tracer.cli.main import COMMANDS, run
from pii_tracer.config.estate_file import file_digest, load_estate, load_request
from pii_tracer.model.errors import ConfigError
from tests.review.plans import plan as made_plan

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


HOLD = """\
  - {{id: {id}, kind: retention_duty, datasets: [prod.a], basis: PMLA 2002, citation: s. 12, approver: Meera Iyer,
     from: 2026-01-01T00:00:00+05:30, until: {until}}}
"""
FIRST = HOLD.format(id="H1", until="2031-01-01T00:00:00+05:30")
OTHER_END = HOLD.format(id="H2", until="2032-01-01T00:00:00+05:30")

CASES = [
    ("an unknown key", "pii-tracer.yaml", ESTATE + "colour: red\n", "colour"),
    ("a key twice", "pii-tracer.yaml", ESTATE + "estate: u\n", "appears twice"),
    ("not YAML", "pii-tracer.yaml", "a: [", "not YAML"),
    ("empty estate", "pii-tracer.yaml", "", "empty"),
    ("no subject", "pii-tracer.yaml", ESTATE.replace("[{name: user, source: lake.users, key: uid}]", "[]"), "subject"),
    ("negative price", "pii-tracer.yaml", ESTATE + "prices: {restore_gb: -1}\n", "prices.restore_gb"),
    ("endless price", "pii-tracer.yaml", ESTATE + "prices: {spark_hour: .inf}\n", "prices.spark_hour"),
    ("price that is none", "pii-tracer.yaml", ESTATE + "prices: {spark_hour: .nan}\n", "prices.spark_hour"),
    ("holds with two ends", "pii-tracer.yaml", f"{ESTATE}holds:\n{FIRST}{OTHER_END}", "end on different days"),
    ("a hold twice", "pii-tracer.yaml", f"{ESTATE}holds:\n{FIRST}{FIRST}", "two holds have the id H1"),
    ("no such window", "pii-tracer.yaml", ESTATE + "windows: {weekly: [sat 22-06 UTC]}\n", "windows.weekly.0"),
    ("no such zone", "pii-tracer.yaml", ESTATE + "windows: {weekly: ['sat 22:00-06:00 Mars/Base']}\n", "Mars/Base"),
    ("empty request", "request.yaml", "", "empty"),
    ("no time zone", "request.yaml", REQUEST.replace("T00:00:00Z", "T00:00:00"), "time zone"),
    ("unknown subject", "request.yaml", REQUEST.replace("type: user", "type: alien"), "no subject of the request's"),
    (
        "a number as date",
        "request.yaml",
        REQUEST.replace("2026-11-01T00:00:00Z", "20261101"),
        "2026-11-21T10:00:00+05:30",
    ),
    ("digits as date", "request.yaml", REQUEST.replace("2026-11-01T00:00:00Z", "'2026'"), "2026-11-21T10:00:00+05:30"),
    (
        "hold to a number",
        "pii-tracer.yaml",
        f"{ESTATE}holds:\n{HOLD.format(id='H', until=20310331)}",
        "not a date: write it as",
    ),
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


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (REQUEST.replace("R1", "R2").replace("GDPR", "CCPA"), "concern the same person, under GDPR and CCPA"),
        (REQUEST.replace("'1'", "'2'"), "two requests have the id R1"),
    ],
)
def test_requests_that_contradict_each_other(
    folder: Path, second: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "second.yaml").write_text(second)
    words = ["--estate", str(folder / "pii-tracer.yaml"), "--state", str(folder / "state")]
    assert run(["plan", str(folder / "request.yaml"), str(folder / "second.yaml"), *words]) == 1
    assert said in capsys.readouterr().err
    assert not list(folder.rglob("*.plan.json"))


def test_an_estate_file_that_changed_since_the_plan_stops_the_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    estate, file = folder / "pii-tracer.yaml", folder / "x.plan.json"
    file.write_bytes(made_plan(estate_digest=file_digest(estate)).to_bytes())
    words = ["apply", str(file), "--estate", str(estate), "--state", str(folder / "state")]
    assert run(words) == 5  # the same file: it gets as far as the missing approval
    capsys.readouterr()
    estate.write_text(ESTATE + "prices: {spark_hour: 1}\n")
    assert run(words) == 6
    assert "has changed since the plan was made" in capsys.readouterr().err
    assert not (folder / "state" / "runs").exists()


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
    assert "no unfinished run" in capsys.readouterr().err


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

    monkeypatch.setattr("pii_tracer.app.planning.plan_creation.take_inventory", broken)
    assert plan(folder) == 1
    told = capsys.readouterr().err
    assert "unexpected ValueError" in told
    assert "ABCPK1234F" not in told


def test_a_key_that_yaml_read_as_a_number_says_what_to_do(tmp_path: Path) -> None:
    """`key: 0071` would have become 57."""
    file = tmp_path / "request.yaml"
    file.write_text("id: R-1\nlaw: GDPR\nreceived: 2026-11-01T09:00:00Z\nsubject: {type: customer, key: 0071}\n")
    with pytest.raises(ConfigError, match="put the key in quotes"):
        load_request(file)


@pytest.mark.parametrize("currency", ["INR**\n\n## Approved", "a b", "ABCDEFGHI", "", "<b>", "1"])
def test_a_currency_is_letters_or_a_sign(folder: Path, capsys: pytest.CaptureFixture[str], currency: str) -> None:
    (folder / "pii-tracer.yaml").write_text(ESTATE + f"prices: {{currency: {json.dumps(currency)}}}\n")
    assert plan(folder) == 1
    assert "prices.currency" in capsys.readouterr().err


@pytest.mark.parametrize("currency", ["INR", "€", "Rs", "R$"])
def test_currencies_that_there_are(folder: Path, currency: str) -> None:
    (folder / "pii-tracer.yaml").write_text(ESTATE + f"prices: {{currency: {currency}}}\n")
    assert load_estate(folder / "pii-tracer.yaml").prices.currency == currency


def test_a_key_in_the_place_of_the_type_is_not_repeated(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "request.yaml").write_text(REQUEST.replace("type: user, key: '1'", "type: 'mira@x.example', key: user"))
    assert plan(folder) == 1
    told = capsys.readouterr().err
    assert "mira" not in told
    assert "use one of: user" in told


@pytest.mark.parametrize("subject", ["{type: user, mira@x.example}", "{key: '1', mira@x.example, mira@x.example}"])
def test_a_value_in_the_place_of_a_key_of_the_file_is_not_repeated(
    folder: Path, capsys: pytest.CaptureFixture[str], subject: str
) -> None:
    (folder / "request.yaml").write_text(REQUEST.replace("{type: user, key: '1'}", subject))
    assert plan(folder) == 1
    told = capsys.readouterr().err
    assert "mira" not in told
    assert "request.yaml" in told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--budget", "nan"), "budget"),
        (("--budget", "inf"), "budget"),
        (("--budget", "5", "--retention", "immediate", "--reason", "x"), "budget"),
        (("--as-of", "9999-12-31T23:00:00Z"), "is not a time that can be planned for"),
        (("--as-of", "0001-01-01T00:00:00+05:30"), "is not a time that can be planned for"),
    ],
)
def test_numbers_and_times_without_sense_are_told(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    options = ["--estate", str(folder / "pii-tracer.yaml"), "--state", str(folder / "state")]
    assert run(["plan", str(folder / "request.yaml"), *words, *options]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "unexpected" not in told


def test_a_price_beyond_all_sums_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "pii-tracer.yaml").write_text(ESTATE + "prices: {spark_hour: 1.0e+308}\n")
    assert plan(folder) == 1
    assert "prices.spark_hour" in capsys.readouterr().err
