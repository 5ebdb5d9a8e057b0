"""A person's word in the evidence: the very bytes that the run took, about this plan and step, by somebody known."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG_EXPIRE_SNAPSHOTS
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import CopyKind, Strategy
from pii_tracer.model.plan import Copy, Step, digest_of
from pii_tracer.proof.attestation_verifier import Given, verify_attestation
from pii_tracer.proof.findings import Check
from pii_tracer.review.manual_step_confirmation import Confirmation, confirm
from pii_tracer.run.executor_protocol import Outcome
from tests.proof import test_attestation as attestations
from tests.proof.attested import attest
from tests.proof.test_attestation import APPROVER, KEY, nonces, proven
from tests.review.plans import NOW, copy, plan, step
from tests.run.fakes import FakeExecutor

PLAN = plan(
    copies=[copy("c1", kind=CopyKind.BACKUP, strategy=Strategy.CONFIRM)],
    steps=[
        step("c1/1", action=ICEBERG_EXPIRE_SNAPSHOTS),
        step("c1/2", after=["c1/1"], action=Action.BACKUP_CONFIRM),
    ],
)


def word(of_step: str = "c1/2", plan_digest: str | None = None) -> bytes:
    said = Confirmation(
        plan_id=PLAN.plan_id,
        step=of_step,
        by="ops",
        role="owner",
        said="the tapes are gone",
        evidence_size=1,
        evidence_sha256="a" * 64,
        confirmed_at=NOW,
    )
    return confirm(plan_digest or digest_of(PLAN.to_bytes()), said, APPROVER)


@dataclass
class Asking(FakeExecutor):
    """Takes a word for the step that is asked."""

    words: dict[str, bytes] = field(default_factory=dict)

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        outcome = super().run(step, copy)
        said = self.words.get(step.id)
        return Outcome({"confirmation": digest_of(said)}) if said else outcome


def attested(folder: Path, said: bytes, monkeypatch: pytest.MonkeyPatch) -> bytes:
    monkeypatch.setattr(attestations, "FakeExecutor", lambda *a, **k: Asking(*a, words={"c1/2": said}, **k))
    made = attest(replace(proven(folder, PLAN), confirmations=[said]), KEY, nonce=nonces())
    made.write_evidence(folder / "evidence")
    return made.envelope


def check(envelope: bytes, folder: Path, approver: bool = True) -> list[Check]:
    keys = [APPROVER.public_key() if approver else KEY.public_key()]
    given = Given(approvers=keys)
    return [f.check for f in verify_attestation(envelope, folder / "evidence", [KEY.public_key()], given).findings]


def test_a_word_that_was_taken_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    envelope = attested(tmp_path, word(), monkeypatch)
    assert check(envelope, tmp_path) == []
    assert check(envelope, tmp_path, approver=False) == [Check.APPROVAL, Check.CONFIRMATION]


def test_a_word_that_is_missing_or_changed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    envelope = attested(tmp_path, word(), monkeypatch)
    file = tmp_path / "evidence" / "confirmations" / "000.json"
    file.write_bytes(file.read_bytes() + b"\n")
    assert check(envelope, tmp_path) == [Check.CONFIRMATION]
    file.unlink()
    assert check(envelope, tmp_path) == [Check.MISSING]


def test_a_word_that_no_step_took_is_no_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attestations, "FakeExecutor", lambda *a, **k: Asking(*a, words={"c1/2": word()}, **k))
    made = attest(replace(proven(tmp_path, PLAN), confirmations=[word("c1/1"), word()]), KEY, nonce=nonces())
    made.write_evidence(tmp_path / "evidence")
    assert [name for name in made.evidence if name.startswith("confirmations/")] == ["confirmations/000.json"]
    assert check(made.envelope, tmp_path) == []


@pytest.mark.parametrize("said", [word("c1/1"), word(plan_digest="sha256:" + "0" * 64), b"a letter"])
def test_a_word_about_something_else_is_found(tmp_path: Path, said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(attested(tmp_path, said, monkeypatch), tmp_path) == [Check.CONFIRMATION]
