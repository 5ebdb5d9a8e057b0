"""A plan that answers several requests: one attestation, which names none, and a proof for each, which names no other."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pii_tracer.app.execution.attesting import attest_run
from pii_tracer.app.execution.plan_run import Ran
from pii_tracer.app.execution.run_folder import RunFolder, RunInfo
from pii_tracer.app.proof.attestation_checks import proof_of_request
from pii_tracer.app.proof.own_attestation import attestation_findings
from pii_tracer.cli.main import run as command
from pii_tracer.model.canonical_json import canonical
from pii_tracer.model.errors import ProofError
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.model.planned_requests import PlannedRequest
from pii_tracer.proof import attestation, merkle_tree
from pii_tracer.proof.attestation_verifier import Given, verify_attestation
from pii_tracer.proof.findings import Check
from pii_tracer.proof.requests_tree.request_leaves import said_of
from pii_tracer.review import dsse
from pii_tracer.review.trusted_keys import load_private
from pii_tracer.run.journal import Journal
from pii_tracer.run.run_state import State
from pii_tracer.verify.verdicts import (
    ByteVerdict,
    CopyVerdict,
    RunVerdict,
    ScannedFile,
)
from tests.proof.attested import requests_of
from tests.proof.test_attestation import proven
from tests.review.plans import DEADLINE, NOW, plan
from tests.run.fakes import Ticking
from tests.run.placed import put_journal

SCOPE = (ScannedFile(path="a.parquet", size=9, sha256="a" * 64, decoded_as="parquet"),)
CLEAN = RunVerdict(copies=(CopyVerdict(copy_id="c1", bytes=ByteVerdict(copy_id="c1", root="/", files=SCOPE)),))


def several(*ids: str) -> ErasurePlan:
    return plan(
        requests=tuple(
            PlannedRequest(id=i, subject=f"subj_{i}", law="dpdp", citation="s", received=NOW, deadline=DEADLINE)
            for i in ids
        )
    )


def ran(folder: Path, made: ErasurePlan, notes: Mapping[str, Any] | None = None) -> Ran:
    """A finished run of a plan, as far as attesting looks at it."""
    state = folder / "state"
    place = RunFolder(state / "runs" / made.plan_id)
    place.path.mkdir(parents=True)
    given = proven(place.path, made, notes)
    (folder / "approval.json").write_bytes(given.approvals[0])
    put_journal(place.journal, given.journal)
    info = RunInfo(
        plan_id=made.plan_id,
        plan_digest=given.loaded.digest,
        plan_file="p",
        estate_file=str(folder / "e.yaml"),
        policy_file="q",
        approvals=(str(folder / "approval.json"),),
        trusted=None,
        state=str(state),
    )
    place.write_info(info)
    place.result.write_text('{"state": "complete", "residue": []}')
    estate = SimpleNamespace(timestamp_authority=None, attestation_key=None, environment="local")
    fields: dict[str, Any] = {
        "folder": place,
        "info": info,
        "loaded": given.loaded,
        "state": SimpleNamespace(state=State.COMPLETE),
        "records": Journal.open(place.journal, Ticking()).records,
        "verification": SimpleNamespace(estate=estate, patterns=None),
    }
    return cast(Ran, SimpleNamespace(**fields))


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def public_key(folder: Path) -> str:
    return str(folder / "state" / "keys" / "attest.pem.pub")


def test_the_run_is_signed_once_and_names_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = ran(tmp_path, several("REQ-1", "REQ-2"))
    whole = attest_run(done, CLEAN, ())
    assert whole == done.folder.attestation
    assert requests_of(whole) == ("REQ-1", "REQ-2")
    assert b"REQ-" not in dsse.unseal(whole.read_bytes(), ()).payload
    log = tmp_path / "state" / "attestations.jsonl"
    assert len(log.read_bytes().splitlines()) == 1
    assert [p.name for p in done.folder.path.rglob("*") if p.name.startswith("attestation")] == [whole.name]
    assert command(["attest", "verify", str(whole), "--key", public_key(tmp_path), "--log", str(log)]) == 0
    about = capsys.readouterr().out.splitlines()[0]
    assert about == "about REQ-1 (person subj_REQ-1, dpdp), REQ-2 (person subj_REQ-2, dpdp)"


def test_each_request_is_proved_and_certified_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = ran(tmp_path, several("REQ-1", "REQ-2"))
    attest_run(done, CLEAN, ())
    asked = ["plan-1", "--state", str(tmp_path / "state")]
    for request, other in (("REQ-1", "REQ-2"), ("REQ-2", "REQ-1")):
        assert command(["attest", "prove", *asked, "--request", request]) == 0
        file = Path(capsys.readouterr().out.strip())
        assert file == done.folder.proof_of(request)
        assert other.encode() not in file.read_bytes()
        log = str(tmp_path / "state" / "attestations.jsonl")
        words = ["attest", "verify", str(file), "--key", public_key(tmp_path), "--log", log]
        assert command(words) == 0
        told = capsys.readouterr().out
        assert told.startswith(f"about {request} (person subj_{request}, dpdp)\n")
        assert other not in told
        assert "not checked: plan, approvals, journal, leaves and scope (the evidence was not given)" in told
        assert command([*words, "--evidence", str(done.folder.evidence)]) == 0
        told = capsys.readouterr().out
        assert ("evidence was not given" in told, other in told) == (False, False)
    assert command(["attest", "certificate", *asked, "--request", "REQ-2"]) == 0
    page = Path(capsys.readouterr().out.strip())
    assert page == done.folder.proof_of("REQ-2").with_suffix(".html")
    assert ("subj_REQ-2" in page.read_text(), "REQ-1" in page.read_text()) == (True, False)
    assert "attest verify request-REQ-2.json" in page.read_text()
    assert command(["attest", "certificate", *asked]) == 0
    assert "subj_REQ-1" in Path(capsys.readouterr().out.strip()).read_text()
    for what in ("certificate", "prove"):
        assert command(["attest", what, *asked, "--request", "../REQ-2"]) == 2
        assert "the run answered no request `../REQ-2`" in capsys.readouterr().err


def test_another_requests_proof_is_no_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It holds in itself, and an operator can hand it to an auditor who asked about somebody else."""
    done = ran(tmp_path, several("REQ-1", "REQ-2"))
    attest_run(done, CLEAN, ())
    file = tmp_path / "proof.json"
    file.write_bytes(proof_of_request(done.folder, "REQ-2").to_bytes())
    words = ["attest", "verify", str(file), "--key", public_key(tmp_path)]
    capsys.readouterr()
    assert command([*words, "--request", "REQ-2"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "about REQ-2 (person subj_REQ-2, dpdp)"
    assert re.search(r"searched \d{4}-", shown[1])
    assert shown[2] == "  exceptions: none"
    assert "no request was given" not in "".join(shown)
    assert command(words) == 0
    assert "no request was given" in capsys.readouterr().out
    assert command([*words, "--request", "REQ-1"]) == 1
    assert "request: the attestation is not about REQ-1; it is about REQ-2" in capsys.readouterr().out
    words[2] = str(done.folder.attestation)
    assert command([*words, "--request", "REQ-1"]) == 1
    assert "about more requests than you asked about" in capsys.readouterr().out
    assert command([*words, "--request", "REQ-1", "--request", "REQ-2", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["about"]["plan"] == done.loaded.plan.plan_id


def test_a_run_that_is_looked_at_again_keeps_it_and_a_request_keeps_its_salt(tmp_path: Path) -> None:
    done = ran(tmp_path, several("REQ-1", "REQ-2"))
    attest_run(done, CLEAN, ())
    before = files(tmp_path / "state")
    attest_run(done, CLEAN, ())
    assert files(tmp_path / "state") == before
    (done.folder.evidence / "leaves.jsonl").unlink()
    attest_run(done, CLEAN, ())
    after = files(tmp_path / "state")
    name = "runs/plan-1/evidence/requests.jsonl"
    assert after[name] == before[name]
    assert after["runs/plan-1/attestation.json"] != before["runs/plan-1/attestation.json"]
    (done.folder.evidence / "requests.jsonl").write_bytes(after[name].replace(b"REQ-1", b"REQ-9"))
    attest_run(done, CLEAN, ())
    assert requests_of(done.folder.attestation) == ("REQ-1", "REQ-2")


def counted(function: Callable[..., Any], name: str, calls: Counter[str]) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        calls[name] += 1
        return function(*given)

    return call


def test_a_plan_of_many_is_signed_once_and_costs_a_line_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Counter[str] = Counter()
    for place, name in ((merkle_tree, "node_hash"), (attestation, "evidence_leaves"), (dsse, "seal")):
        monkeypatch.setattr(place, name, counted(getattr(place, name), name, calls))
    many = tuple(f"REQ-{n}" for n in range(64))
    done = ran(tmp_path, several(*many))
    calls.clear()
    there = files(tmp_path)
    attest_run(done, CLEAN, ())
    assert calls["evidence_leaves"] == calls["seal"] == 1
    written = {name: data for name, data in files(tmp_path).items() if name not in there}
    of_all = len(done.loaded.raw) + len(done.folder.journal.read_bytes())
    assert sum(map(len, written.values())) < of_all + 64 * 200 + 10_000
    key = load_private(tmp_path / "state" / "keys" / "attest.pem").public_key()
    given = Given(log=(tmp_path / "state" / "attestations.jsonl").read_bytes())
    for name in ("REQ-0", "REQ-40", "REQ-63"):
        of = proof_of_request(done.folder, name)
        assert len(of.path) == 6
        assert verify_attestation(of.envelope, done.folder.evidence, [key], given, of).findings == ()


def test_two_requests_of_one_id_are_not_attested(tmp_path: Path) -> None:
    with pytest.raises(ProofError, match="two requests of the plan have the same id"):
        attest_run(ran(tmp_path, several("REQ-1", "REQ-1")), CLEAN, ())


def test_the_attestation_before_is_found_beside_a_proof_in_its_runs_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("plan-1", "plan-2"):
        done = ran(tmp_path, several("REQ-1", "REQ-2").model_copy(update={"plan_id": name}))
        attest_run(done, CLEAN, ())
    prove = ["attest", "prove", "plan-2", "--state", str(tmp_path / "state"), "--request", "REQ-1"]
    assert command(prove) == 0
    file = Path(capsys.readouterr().out.strip())
    assert command(["attest", "verify", str(file), "--key", public_key(tmp_path)]) == 0
    assert "the previous attestation" not in capsys.readouterr().out
    before = tmp_path / "state" / "runs" / "plan-1" / "attestation.json"
    before.write_bytes(before.read_bytes() + b"\n")
    assert command(["attest", "verify", str(file), "--key", public_key(tmp_path)]) == 1
    assert "✘ consistency" in capsys.readouterr().out
    file.rename(tmp_path / "alone.json")
    assert command(["attest", "verify", str(tmp_path / "alone.json"), "--key", public_key(tmp_path)]) == 0
    assert "not checked: the previous attestation" in capsys.readouterr().out


def test_one_request_has_a_tree_of_one(tmp_path: Path) -> None:
    done = ran(tmp_path, several("REQ-1"))
    attest_run(done, CLEAN, ())
    of = proof_of_request(done.folder, "REQ-1")
    assert (of.path, of.index) == ((), 0)
    assert dsse.unseal(of.envelope, ()).statement["predicate"]["requests"] == {
        "count": 1,
        "root": merkle_tree.leaf_hash(of.request.line()).hex(),
    }


def test_a_request_that_the_plan_does_not_answer_is_found(tmp_path: Path) -> None:
    done = ran(tmp_path, several("REQ-1", "REQ-2"))
    attest_run(done, CLEAN, ())
    private = load_private(tmp_path / "state" / "keys" / "attest.pem")
    file = done.folder.evidence / "requests.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"id":"REQ-2"', b'"id":"REQ-9"'))
    statement = json.loads(dsse.unseal(done.folder.attestation.read_bytes(), ()).payload)
    statement["predicate"]["requests"] = said_of(file.read_bytes().splitlines())
    changed = dsse.seal(canonical(statement), private)
    found = verify_attestation(changed, done.folder.evidence, [private.public_key()])
    assert [f.check for f in found.findings] == [Check.PLAN, Check.OPEN]


@pytest.mark.parametrize("name", ["scope.jsonl", "plan.json", "leaves.jsonl", "requests.jsonl", "approvals/000.json"])
def test_evidence_that_was_damaged_is_written_again(tmp_path: Path, name: str) -> None:
    done = ran(tmp_path, several("REQ-1", "REQ-2"))
    attest_run(done, CLEAN, ())
    file = done.folder.evidence / name
    file.write_bytes(file.read_bytes() + b"\n")
    assert attestation_findings(done.folder)
    attest_run(done, CLEAN, ())
    assert attestation_findings(done.folder, with_log=True) == ()
    before = files(done.folder.path)
    attest_run(done, CLEAN, ())
    assert files(done.folder.path) == before
