"""A plan that answers several requests: one attestation for each, none of which tells another's name for it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pii_tracer.app.execution.attesting import attest_run
from pii_tracer.app.execution.plan_run import Ran
from pii_tracer.app.execution.run_folder import RunFolder, RunInfo, evidence_of
from pii_tracer.cli.main import run as command
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.model.planned_requests import PlannedRequest
from pii_tracer.proof import attestation, merkle_tree
from pii_tracer.proof.attestation_verifier import Given, requests_of, verify_attestation
from pii_tracer.proof.findings import Check
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


def test_each_request_has_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = ran(tmp_path, several("REQ-1", "REQ-2"))
    whole = attest_run(done, CLEAN, ())
    assert whole == done.folder.attestation
    assert requests_of(whole.read_bytes()) == ("REQ-1", "REQ-2")
    key = str(tmp_path / "state" / "keys" / "attest.pem.pub")
    log = str(tmp_path / "state" / "attestations.jsonl")
    assert len(Path(log).read_bytes().splitlines()) == 3
    for request, other in (("REQ-1", "REQ-2"), ("REQ-2", "REQ-1")):
        envelope = done.folder.attestation_of(request)
        assert requests_of(envelope.read_bytes()) == (request,)
        assert other.encode() not in dsse.unseal(envelope.read_bytes(), ()).payload
        assert command(["attest", "verify", str(envelope), "--key", key, "--log", log]) == 0
        told = capsys.readouterr().out
        assert "before this one" not in told, "the one before was found beside"
    asked = ["attest", "certificate", "plan-1", "--state", str(tmp_path / "state")]
    assert command([*asked, "--request", "REQ-2"]) == 0
    page = Path(capsys.readouterr().out.strip())
    assert page.parent == done.folder.attestation_of("REQ-2").parent
    assert ("subj_REQ-2" in page.read_text(), "REQ-1" in page.read_text()) == (True, False)
    assert command([*asked, "--request", "../REQ-2"]) == 2
    assert "name one of: REQ-1, REQ-2" in capsys.readouterr().err


def test_another_requests_attestation_is_no_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It holds in itself, and an operator can hand it to an auditor who asked about somebody else."""
    done = ran(tmp_path, several("REQ-1", "REQ-2"))
    attest_run(done, CLEAN, ())
    envelope = done.folder.attestation_of("REQ-2")
    words = ["attest", "verify", str(envelope), "--key", str(tmp_path / "state" / "keys" / "attest.pem.pub")]
    capsys.readouterr()
    assert command([*words, "--request", "REQ-2"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "about REQ-2 (person subj_REQ-2, dpdp)"
    assert ("searched 2026-" in shown[1], shown[2]) == (True, "  exceptions: none")
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


def test_a_run_that_is_looked_at_again_keeps_them_and_a_crash_in_between_is_mended(tmp_path: Path) -> None:
    done = ran(tmp_path, several("REQ-1", "REQ-2"))
    attest_run(done, CLEAN, ())
    before = files(tmp_path / "state")
    attest_run(done, CLEAN, ())
    assert files(tmp_path / "state") == before
    last = done.folder.attestation_of("REQ-2")
    last.unlink()  # as if it had died before this one
    log = tmp_path / "state" / "attestations.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:2]))
    attest_run(done, CLEAN, ())
    assert last.exists()
    assert {n: d for n, d in files(tmp_path / "state").items() if "REQ-1" in n} == {
        n: d for n, d in before.items() if "REQ-1" in n
    }


def counted(function: Callable[..., Any], name: str, calls: Counter[str]) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        calls[name] += 1
        return function(*given)

    return call


def test_a_plan_of_many_writes_its_evidence_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request costs an envelope: neither the plan again, nor the log read and hashed again, nor the journal."""
    calls: Counter[str] = Counter()
    for place, name in ((merkle_tree, "node_hash"), (attestation, "evidence_leaves"), (PurePath, "__eq__")):
        monkeypatch.setattr(place, name, counted(getattr(place, name), name, calls))
    many = tuple(f"REQ-{n}" for n in range(64))
    done = ran(tmp_path, several(*many))
    attest_run(done, CLEAN, ())
    written = [p for p in done.folder.path.rglob("*") if p.is_file() and p.parent.name != "proven"]
    assert sum(p.name == "plan.json" for p in written) == 1
    assert sum(p.name == "attestation.json" for p in written) == 65
    assert calls["evidence_leaves"] == 1
    assert calls["node_hash"] < 65 * 10, "a tree is built again for each"
    assert calls["__eq__"] < 65 * 10, "each place is compared with all others"
    log = (tmp_path / "state" / "attestations.jsonl").read_bytes()
    key = load_private(tmp_path / "state" / "keys" / "attest.pem").public_key()
    for name in ("REQ-0", "REQ-40", "REQ-63"):
        envelope = done.folder.attestation_of(name)
        given = Given(log=log)
        assert verify_attestation(envelope.read_bytes(), evidence_of(envelope), [key], given).findings == ()


def test_one_request_has_one(tmp_path: Path) -> None:
    done = ran(tmp_path, several("REQ-1"))
    attest_run(done, CLEAN, ())
    assert not (done.folder.path / "requests").exists()


def test_a_request_that_the_plan_does_not_answer_is_found(tmp_path: Path) -> None:
    done = ran(tmp_path, several("REQ-1", "REQ-2"))
    attest_run(done, CLEAN, ())
    private = load_private(tmp_path / "state" / "keys" / "attest.pem")
    payload = dsse.unseal(done.folder.attestation_of("REQ-2").read_bytes(), ()).payload
    changed = dsse.seal(payload.replace(b'"id":"REQ-2"', b'"id":"REQ-9"'), private)
    found = verify_attestation(changed, done.folder.evidence, [private.public_key()])
    assert [f.check for f in found.findings] == [Check.PLAN]
