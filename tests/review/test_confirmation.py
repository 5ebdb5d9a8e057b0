"""A person's word counts only when it is signed, by somebody trusted, under their own name, about this very step."""

from __future__ import annotations

import base64
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from executors.manual_steps import PeopleExecutor
from pii_tracer.model.actions import COMPUTES, Action
from pii_tracer.model.errors import NotApproved, ReviewError, RunError
from pii_tracer.model.plan import Step
from pii_tracer.review import dsse
from pii_tracer.review.manual_step_confirmation import (
    Confirmation,
    confirm,
    confirmation_file,
    read_confirmation,
)
from pii_tracer.review.trusted_keys import (
    Approver,
    generate,
    load_private,
    public_pem,
)
from tests.review import plans

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=timezone.utc)
DIGEST, STEP = "sha256:" + "ab" * 32, "c-backup-nightly/01-backup-confirm"
WORD = Confirmation(
    plan_id="plan-1",
    step=STEP,
    by="Meera Iyer",
    role="database owner",
    said="recovery points deleted",
    evidence_size=3,
    evidence_sha256="cd" * 32,
    confirmed_at=NOW,
)


@pytest.fixture
def signer(tmp_path: Path) -> tuple[dsse.PrivateKey, Approver]:
    public = generate(tmp_path / "key.pem")
    who = Approver(name="Meera Iyer", role="database owner", public_key=public_pem(public).decode())
    return load_private(tmp_path / "key.pem"), who


def word(**changes: Any) -> Confirmation:
    return WORD.model_copy(update=changes)


def test_a_word_that_holds(signer: tuple[dsse.PrivateKey, Approver]) -> None:
    key, who = signer
    envelope = confirm(DIGEST, WORD, key)
    assert read_confirmation(envelope, DIGEST, STEP, [who], NOW).said == WORD


@pytest.mark.parametrize(
    "wrong",
    ["another step", "another plan", "nobody trusted", "another name", "another role", "future", "expired", "bytes"],
)
def test_a_word_that_does_not(signer: tuple[dsse.PrivateKey, Approver], wrong: str) -> None:
    key, who = signer
    trusted = [] if wrong == "nobody trusted" else [who]
    said = {
        "another step": word(step="c-other/01"),
        "another name": word(by="Ravi"),
        "another role": word(role="auditor"),
        "future": word(confirmed_at=NOW + timedelta(minutes=1)),
    }.get(wrong, WORD)
    envelope = confirm("sha256:" + "00" * 32 if wrong == "another plan" else DIGEST, said, key)
    if wrong == "expired":
        trusted = [who.model_copy(update={"valid_until": NOW - timedelta(days=1)})]
    if wrong == "bytes":
        raw = json.loads(envelope)
        body = base64.b64decode(raw["payload"]).replace(b"deleted", b"KEPT   ")
        envelope = json.dumps({**raw, "payload": base64.b64encode(body).decode()}).encode()
    with pytest.raises(NotApproved):
        read_confirmation(envelope, DIGEST, STEP, trusted, NOW)


def step() -> Step:
    parameters = {"backup": "nightly", "owner": "database team", "act": "delete", "due_days": 14}
    act = {"action": Action.BACKUP_CONFIRM, "executor": "people", "parameters": parameters, "earliest_start": NOW}
    return plans.step(STEP, "c-backup-nightly", ["c-a/99-verify"], **act)


def test_the_executor_waits_until_it_is_due_takes_the_word_and_never_a_bad_one(
    signer: tuple[dsse.PrivateKey, Approver], tmp_path: Path
) -> None:
    key, who = signer
    people = PeopleExecutor(tmp_path / "words", DIGEST, [who], lambda: NOW, lambda _: NOW - timedelta(days=1))
    waits = people.run(step(), None)
    assert waits.waiting_until == NOW + timedelta(days=13)
    assert waits.facts["waits_for"] == "database team"
    assert not people.verify(step(), None).ok
    path = confirmation_file(tmp_path / "words", STEP)
    path.parent.mkdir()
    path.write_bytes(confirm(DIGEST, word(step="c-other/01"), key))
    with pytest.raises(RunError, match="different step"):
        people.run(step(), None)
    path.write_bytes(confirm(DIGEST, WORD, key))
    done = people.run(step(), None)
    assert done.waiting_until is None
    assert (done.facts["confirmed_by"], done.facts["evidence_sha256"]) == ("Meera Iyer", "cd" * 32)
    assert people.verify(step(), None).ok


@pytest.mark.parametrize(
    ("began", "holds"),
    [(None, False), (NOW - timedelta(minutes=2), False), (NOW - timedelta(minutes=1), True)],
    ids=["unsaid", "before the note", "after it"],
)
def test_a_job_that_computes_a_table_again_began_after_its_files_were_noted(
    signer: tuple[dsse.PrivateKey, Approver], tmp_path: Path, began: datetime | None, holds: bool
) -> None:
    key, who = signer
    noted = NOW - timedelta(minutes=1)
    people = PeopleExecutor(tmp_path, DIGEST, [who], lambda: NOW, lambda _: noted)
    task = step()
    task = task.model_copy(update={"parameters": {**task.parameters, COMPUTES: ["c-counts"]}})
    confirmation_file(tmp_path, STEP).write_bytes(confirm(DIGEST, word(began=began), key))
    done = people.run(task, None)
    assert (done.waiting_until is None, people.verify(task, None).ok) == (holds, holds)
    assert holds or ("begins after 2026-11-21T09:59:00" in done.waits_for and "--began TIME" in done.waits_for)
    assert done.facts.get("began") == ("2026-11-21T09:59:00.000000Z" if holds else None)


def test_a_job_does_not_begin_after_the_word_about_it(signer: tuple[dsse.PrivateKey, Approver]) -> None:
    key, who = signer
    envelope = confirm(DIGEST, word(began=NOW + timedelta(seconds=1)), key)
    with pytest.raises(NotApproved, match="dated before the job"):
        read_confirmation(envelope, DIGEST, STEP, [who], NOW + timedelta(days=1))


def test_a_word_from_before_the_erasure_does_not_count(
    signer: tuple[dsse.PrivateKey, Approver], tmp_path: Path
) -> None:
    key, who = signer
    erased = WORD.confirmed_at + timedelta(minutes=1)
    people = PeopleExecutor(tmp_path, DIGEST, [who], lambda: erased, lambda _: erased)
    path = confirmation_file(tmp_path, STEP)
    path.write_bytes(confirm(DIGEST, WORD, key))
    waits = people.run(step(), None)
    assert waits.waiting_until == erased + timedelta(days=14)
    assert waits.facts["confirmed_too_early"] == WORD.confirmed_at.isoformat()
    assert people.verify(step(), None).findings[0].startswith("it was confirmed before the previous steps ended")
    path.write_bytes(confirm(DIGEST, WORD.model_copy(update={"confirmed_at": erased}), key))
    assert people.run(step(), None).waiting_until is None
    assert people.verify(step(), None).ok


def test_a_word_that_tells_a_value_never_gets_into_the_journal(
    signer: tuple[dsse.PrivateKey, Approver], tmp_path: Path
) -> None:
    """Who signed it had no means to know."""

    def refuse(said: Confirmation) -> None:
        raise ReviewError(f"a value stands in {len(said.said)} letters")

    key, who = signer
    people = PeopleExecutor(tmp_path, DIGEST, [who], lambda: NOW, lambda _: None, refuse)
    confirmation_file(tmp_path, STEP).write_bytes(confirm(DIGEST, WORD, key))
    for act in (people.run, people.verify):
        with pytest.raises(RunError, match="a value stands"):
            act(step(), None)


def test_without_anybody_trusted_the_step_fails_before_it_waits(tmp_path: Path) -> None:
    nobody = PeopleExecutor(tmp_path, DIGEST, [], lambda: NOW, lambda _: None)
    with pytest.raises(RunError, match="the run has no list of trusted persons"):
        nobody.check(step(), None)
