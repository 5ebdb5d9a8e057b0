"""The whole path on an estate that shares no name with the sample: plan, approve, apply, verify, attest."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.app.intake.request_states import show_request
from pii_tracer.app.settings import Settings
from pii_tracer.cli.main import run
from pii_tracer.config.estate_file import file_digest
from pii_tracer.intake.request_databases.sqlite import SqliteFile
from pii_tracer.intake.request_store import RequestStore
from pii_tracer.intake.requests import RequestState
from pii_tracer.model.errors import UsageError
from pii_tracer.review.plan_file import load_plan
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from pii_tracer.run.journal import parse
from tests.e2e import clinic
from tests.leaks import leaks
from tests.run.history import violations

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


@dataclass(frozen=True)
class Done:
    """What the run left."""

    base: Path
    state: Path
    plan: dict[str, Any]
    result: dict[str, Any]
    before: dict[str, list[str]]
    after: dict[str, list[str]]
    naive_survives: bool
    codes: dict[str, int]


def cli(base: Path, *words: str) -> int:
    return run([*words, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")])


@pytest.fixture(scope="module")
def done(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Done:
    base = tmp_path_factory.mktemp("clinic")
    state, file = base / "state", base / "clinic.plan.json"
    clinic.build(base, spark)
    before = clinic.others(base, spark)
    codes = {}
    words = ["--retention", "immediate", "--reason", "test: no writer, no reader", "--out", str(file)]
    codes["take in"] = cli(base, "requests", "add", str(base / "request.yaml"))
    codes["plan"] = cli(base, "plan", "--requests", "--format", "json", *words)
    codes["apply without approval"] = cli(base, "apply", str(file))
    public = generate(base / "approver.pem")
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "privacy officer", public_pem(public).decode())]))
    signed = ["--approver", "Dr. Sen", "--role", "privacy officer", "--reason", "right", "--key"]
    codes["approve"] = cli(base, "approve", str(file), *signed, str(base / "approver.pem"))
    naive = any(clinic.EMAIL.encode() in p.read_bytes() for p in (base / "warehouse").rglob("*") if p.is_file())
    trusted = ["--trusted", str(base / "approvers.yaml"), "--result", str(base / "result.json")]
    codes["apply"] = cli(base, "apply", str(file), *trusted)
    codes["verify"] = cli(base, "verify", str(file))
    attestation = Path(json.loads((base / "result.json").read_text())["attestation"])
    first = attestation.read_bytes()
    codes["apply again"] = cli(base, "apply", str(file), *trusted)
    assert attestation.read_bytes() == first
    result = json.loads((base / "result.json").read_text())
    return Done(base, state, json.loads(file.read_text()), result, before, clinic.others(base, spark), naive, codes)


def test_every_command_ends_as_it_should(done: Done) -> None:
    assert done.codes == {
        "take in": 0,
        "plan": 0,
        "apply without approval": 5,
        "approve": 0,
        "apply": 0,
        "verify": 0,
        "apply again": 0,  # the same run, complete: nothing is done a second time
    }


def test_the_request_is_erased_with_its_proof_and_the_store_knows_nobody(done: Done) -> None:
    settings = Settings(done.base / "pii-tracer.yaml", done.state)
    shown = show_request(settings, "CLINIC-1")
    assert (shown.request.state, shown.request.plan) == (RequestState.ERASED, done.plan["plan_id"])
    assert [change.state for change in shown.changes][-1] == RequestState.ERASED
    proof, digest = str(shown.request.proof).split(" ")
    assert file_digest(done.state / proof) == digest
    assert leaks(clinic.PERSON, [done.state / "requests.sqlite"]) == []
    with pytest.raises(UsageError, match="has ended"):
        RequestStore(SqliteFile(done.state / "requests.sqlite"), settings.key()).key_of("CLINIC-1")


def test_the_plan_finds_each_way_of_carrying(done: Done) -> None:
    found = {c["table"] or c["location"].rsplit("/", 1)[1]: (c["kind"], c["carries"]) for c in done.plan["copies"]}
    assert found == {
        "med.core.visits": ("SOURCE", "key"),
        "med.core.mailing": ("DERIVED", "identifiers"),
        "care.charts": ("DERIVED", "key"),
        "extract": ("DERIVED", "key"),
        "monthly": ("DERIVED", "key"),
        "feed": ("DERIVED", "key"),
        "med.core.ward_costs": ("DERIVED", "aggregate"),
    }
    assert done.plan["complete"]
    assert not done.plan["gaps"]


def test_the_result_claims_what_happened(done: Done) -> None:
    assert done.result["state"] == "complete"
    assert (done.result["copies_total"], done.result["copies_erased"]) == (7, 7)
    assert done.result["residue"] == []
    assert done.result["bystander_rows_lost"] == 0
    assert done.result["rows_erased"] == 12


def test_the_journal_keeps_every_promise_and_the_events_tell_it(done: Done) -> None:
    folder = Path(done.result["attestation"]).parent
    records, _ = parse((folder / "journal.jsonl").read_bytes())
    assert violations(records, load_plan(done.base / "clinic.plan.json").plan) == []
    events = [json.loads(line) for line in (folder / "events.ndjson").read_text().splitlines()]
    assert done.result["lineage_events"]["told"] == len(events) == 2 * (1 + 21)  # a START and a COMPLETE each
    assert {e["eventType"] for e in events} == {"START", "COMPLETE"}


def test_nobody_else_lost_a_row(done: Done) -> None:
    assert done.after == done.before
    assert all(done.before.values())


def test_aggregates_are_those_without_the_patient(done: Done, spark: Any) -> None:
    rows = spark.sql("SELECT ward, total FROM med.core.ward_costs ORDER BY ward").collect()
    assert [(r[0], r[1]) for r in rows] == [("north", 4), ("south", 8)]


def test_no_byte_of_the_patient_is_left(done: Done) -> None:
    assert done.naive_survives
    for folder in ("warehouse", "tables"):
        for path in (done.base / folder).rglob("*"):
            if path.is_file():
                data = _plain(path)
                assert not _forms_in(data), path
                assert not NUMBER.search(data), path


NUMBER = re.compile(clinic.PATIENT.encode() + rb"(?!0)")
"""The patient's number, and not the longer one of somebody else."""

FORMS = [
    clinic.EMAIL.encode(),
    clinic.EMAIL.lower().encode(),
    hashlib.sha256(clinic.EMAIL.lower().encode()).hexdigest().encode(),
    base64.b64encode(clinic.EMAIL.encode()),
    clinic.EMAIL.encode().hex().encode(),
]


def _forms_in(data: bytes) -> list[int]:
    return [n for n, form in enumerate(FORMS) if form in data]


def _plain(path: Path) -> bytes:
    """A crude look of our own: Parquet as rows, Avro as records, the rest as it is."""
    data = path.read_bytes()
    if data[:4] == b"PAR1":
        import pyarrow.parquet as pq

        return str(pq.read_table(path).to_pylist()).encode() + data
    if data[:4] == b"Obj\x01":
        import io

        import fastavro

        return str(list(fastavro.reader(io.BytesIO(data)))).encode() + data
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def test_an_auditor_checks_the_proof_alone(done: Done) -> None:
    attestation = done.result["attestation"]
    key = str(done.state / "keys" / "attest.pem.pub")
    assert run(["attest", "verify", attestation, "--key", key]) == 0
    leaves = Path(attestation).parent / "evidence" / "leaves.jsonl"
    leaves.write_bytes(leaves.read_bytes().replace(b"erased", b"erasde", 1))
    assert run(["attest", "verify", attestation, "--key", key]) == 1


def test_nothing_that_the_run_left_names_the_patient(done: Done) -> None:
    assert len([path for path in done.state.rglob("*") if path.is_file()]) > 10
    assert leaks(clinic.PERSON, [done.state, *done.base.glob("clinic.*"), done.base / "result.json"]) == []


def test_a_changed_plan_is_refused(done: Done, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "clinic.plan.json"
    file.write_bytes((done.base / "clinic.plan.json").read_bytes().replace(b'"rows": 2', b'"rows": 3', 1))
    for beside in done.base.glob("clinic.approval-*"):
        (tmp_path / beside.name).write_bytes(beside.read_bytes())
    (tmp_path / "clinic.subjects.sealed").write_bytes((done.base / "clinic.subjects.sealed").read_bytes())
    trusted = ["--trusted", str(done.base / "approvers.yaml"), "--state", str(tmp_path / "state")]
    code = run(["apply", str(file), "--estate", str(done.base / "pii-tracer.yaml"), *trusted])
    assert code == 5
    assert "a different version" in capsys.readouterr().err
