"""Answers to requests: they claim what a certificate could claim, over every state of a run; and what they say."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_tracer.app import pdf
from pii_tracer.app.execution.attesting import attest_run
from pii_tracer.app.execution.plan_run import Ran
from pii_tracer.app.execution.run_folder import RunFolder, RunInfo
from pii_tracer.app.execution.verify_step import numbers_of, verdict_file
from pii_tracer.app.proof.request_answers import read_answer, write_answers
from pii_tracer.app.proof.run_certificate import write_certificate
from pii_tracer.app.settings import Settings
from pii_tracer.cli.main import run as command
from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import PiiTracerError, ProofError, RunError, UsageError, Waiting
from pii_tracer.model.plan import Copy, ErasurePlan, Exemption, PlannedHold, Step
from pii_tracer.model.planned_requests import PlannedRequest
from pii_tracer.proof.open_requests import OpenRequest
from pii_tracer.proof.request_answers.answer import ERASING, Outcome, RequestAnswer, Standing
from pii_tracer.review.drift import DriftItem
from pii_tracer.review.plan_file import parse_plan
from pii_tracer.run.executor_protocol import Check
from pii_tracer.run.journal import Journal, Kind
from pii_tracer.run.run_state import State
from pii_tracer.run.runner import run as walk
from pii_tracer.verify.verdicts import (
    Bystanders,
    ByteVerdict,
    CopyVerdict,
    Residue,
    RunVerdict,
    ScannedFile,
    to_be_seen,
    with_unseen,
)
from reports.run.answer import answer_lines, parts_of
from tests.cli.small import declared
from tests.proof.test_attestation import approved
from tests.review.plans import DEADLINE, NOW, copy, plan
from tests.run.fakes import FakeExecutor, FakeLease, Ticking, World

FILES = (ScannedFile(path="a.parquet", size=9, sha256="a" * 64, decoded_as="parquet"),)
LATER = NOW + timedelta(days=90)
HOLD = PlannedHold(
    id="ledger", kind="retention_duty", basis="PMLA 2002", citation="s. 12", from_=NOW, until=LATER, approver="Meera",
    copies=("c3",),
)  # fmt: skip
ALONG: str | None = None
"""The copy with which the held one stays, where it is not held itself."""
REQUESTS = tuple(
    PlannedRequest(id=f"REQ-{n}", subject=f"subj_{n}", law="dpdp", citation="s", received=NOW, deadline=DEADLINE)
    for n in (1, 2)
)
LEFT = (Residue(copy_id="c1", file="a.parquet", where="column", form="plain"),)

FOUND_LATER = {"residue": [LEFT[0].as_json()], "open_requests": [], "attestation": None}
"""What a look at a finished run writes that finds something whose person nobody knows."""


@dataclass(frozen=True)
class Told:
    """What happens in a run. seen: what the verifier says of c1. meddled: what somebody does to its files."""

    held: bool = False
    step: str = "done"
    seen: str = "clean"
    meddled: str = "nothing"


def the_plan(held: bool) -> ErasurePlan:
    copies = [copy("c1"), copy("c2")]
    if held:
        exempt = {"strategy": Strategy.EXEMPT, "exemption": Exemption(holds=("ledger",), until=LATER), "origin": ALONG}
        copies.append(copy("c3", **exempt))
    return plan(copies=copies, requests=REQUESTS, holds=(HOLD,) if held else ())


def verdict_of(name: str, told: Told) -> CopyVerdict:
    seen = told.seen if name == "c1" else "clean"
    return CopyVerdict(
        copy_id=name,
        bytes=ByteVerdict(
            copy_id=name,
            root="/",
            files=FILES,
            residue=LEFT if seen in ("residue", "left_of") else (),
            unverified=("it cannot be read",) if seen == "unread" else (),
        ),
        bystanders=Bystanders(copy_id=name, lost=1, added=0, equal=False) if seen == "others" else None,
        left_of=("subj_2",) if seen == "left_of" else (),
    )


class Looking(FakeExecutor):
    """Says of each look into the journal what the verifier's step does."""

    told = Told()

    def verify(self, step: Step, copy: Copy | None) -> Check:
        check = super().verify(step, copy)
        looks = step.action is Action.VERIFY_COPY
        return replace(check, facts=numbers_of(verdict_of(str(step.copy_), self.told))) if looks else check


def stood(base: Path, told: Told) -> RunFolder:
    """A run as far as `conclude` takes it, with the real runner, attestation and verdict files."""
    state = base / "state"
    made = the_plan(told.held)
    loaded = parse_plan(made.to_bytes(), "p.plan.json")
    folder = RunFolder(state / "runs" / made.plan_id)
    folder.path.mkdir(parents=True)
    (base / "p.plan.json").write_bytes(loaded.raw)
    (base / "e.yaml").write_text(
        declared("w", {"app.users": "delta"}) + "  - {name: user, source: app.users, key: user_id}\n"
    )
    (base / "approval.json").write_bytes(approved(loaded))
    clock = Ticking()
    journal = Journal.open(folder.journal, clock)
    looks = {"residue", "unread", "others"}
    executor = Looking(
        World(),
        clock=clock,
        waits={"c2/1": NOW + timedelta(days=40)} if told.step in ("waits", "softly") else {},
        broken={"c2/1"} if told.step == "fails" else set(),
        unverifiable={"c1/2"} if told.seen in looks and told.step != "late" else set(),
    )
    executor.told = told
    hard = told.step == "drifts"
    drift = [DriftItem("c1", "snapshot", "/lake/c1", "s1", "s2", hard)] if hard or told.step == "softly" else []

    def note(step: str) -> None:
        if step == "c1/2" and told.seen == "left_of":
            journal.append(Kind.STEP_NOTED, step=step, facts={"left_of": ["subj_2"]})

    executor.note = note
    walked = walk(
        loaded.plan,
        {"fake": executor},
        journal,
        clock=clock,
        lease=FakeLease(),
        drift=lambda step: drift,
        plan_digest=loaded.digest,
    )
    info = RunInfo(
        plan_id=made.plan_id,
        plan_digest=loaded.digest,
        plan_file=str(base / "p.plan.json"),
        estate_file=str(base / "e.yaml"),
        policy_file="q",
        approvals=(str(base / "approval.json"),),
        trusted=None,
        state=str(state),
    )
    folder.write_info(info)
    looked = [s.copy_ for s in made.steps if s.action is Action.VERIFY_COPY and _ended(journal, s.id)]
    verdict = RunVerdict(copies=tuple(verdict_of(str(name), told) for name in looked))
    for one in verdict.copies:
        write_atomic(verdict_file(folder.verdicts, one.copy_id), one.model_dump_json().encode())
    done = walked.state is State.COMPLETE
    verdict = with_unseen(verdict, to_be_seen(made)) if done else verdict
    still = (OpenRequest(request="REQ-2", subject="subj_2", place="c1"),) if done and told.seen == "left_of" else ()
    estate = SimpleNamespace(timestamp_authority=None, attestation_key=None, environment="local")
    ran = SimpleNamespace(
        folder=folder,
        info=info,
        loaded=loaded,
        state=walked,
        records=journal.records,
        verification=SimpleNamespace(estate=estate, patterns=None),
    )
    attestation = attest_run(cast(Ran, ran), verdict, (), still)
    clean = len({*verdict.erased, *verdict.erased_of_others})
    state_told = walked.state if not (done and (verdict.residue or clean < 2)) else State.PARTIAL
    result = {
        "state": state_told.value,
        "residue": [r.as_json() for r in verdict.residue],
        "open_requests": ["REQ-2"] if still and attestation else [],
        "unverified": list(verdict.unverified),
        "bystander_rows_lost": verdict.bystander_rows_lost,
        "drift": [vars(item) for item in walked.drift],
        "copies_total": len(made.copies),
        "copies_erased": clean,
        "copies_exempt": int(told.held),
        "attestation": str(attestation) if attestation else None,
        "journal_head": walked.journal_head,
    }
    folder.result.write_text(json.dumps(result))
    _meddle(folder, told.meddled, clock)
    return folder


def _ended(journal: Journal, step: str) -> bool:
    ends = (Kind.STEP_VERIFIED, Kind.STEP_FAILED)
    return any(r.kind in ends and r.facts["step"] == step for r in journal.records)


def _meddle(folder: RunFolder, how: str, clock: Ticking) -> None:
    result = folder.last_result() or {}
    if how == "killed later":
        Journal.open(folder.journal, clock).append(Kind.LEASE, host="h")
    elif how == "no result":
        folder.result.unlink()
    elif how == "found later":
        folder.result.write_text(json.dumps({**result, **FOUND_LATER}))
    elif how == "told complete":
        folder.result.write_text(json.dumps({**result, "state": "complete", "residue": [], "unverified": []}))
    elif how == "no evidence" and folder.attestation.exists():
        (folder.evidence / "scope.jsonl").unlink()
    elif how == "no attestation" and folder.attestation.exists():
        folder.attestation.unlink()
    elif how == "no verdict":
        for path in folder.verdicts.glob("*.json"):
            path.unlink()
    elif how in ("verdicts edited", "all edited"):
        for path in folder.verdicts.glob("*.json"):
            found = CopyVerdict.model_validate_json(path.read_bytes())
            seen = found.bytes.model_copy(update={"residue": (), "unverified": ()}) if found.bytes else None
            clean = found.model_copy(update={"bytes": seen, "bystanders": None, "left_of": ()})
            path.write_text(clean.model_dump_json())
        if how == "all edited":
            harmless = {"residue": [], "unverified": [], "open_requests": [], "bystander_rows_lost": 0}
            folder.result.write_text(json.dumps({**result, **harmless}))


def answers(base: Path, folder: RunFolder) -> dict[str, RequestAnswer]:
    """Each through its file and its signature."""
    where = Settings(base / "e.yaml", base / "state")
    paths = [
        path for path in write_answers(where, folder.path.name, now=LATER - timedelta(days=1)) if path.suffix == ".json"
    ]
    read = [read_answer(path, (base / "state" / "keys" / "attest.pem.pub",)) for path in paths]
    return {one.request: one for one in read}


def certified(base: Path, folder: RunFolder, request: str) -> PiiTracerError | None:
    try:
        [*write_certificate(base / "state", folder.path.name, request=request)]
    except PiiTracerError as refused:
        return refused
    return None


RUNS = st.builds(
    Told,
    held=st.booleans(),
    step=st.sampled_from(["done", "waits", "softly", "fails", "drifts", "late"]),
    seen=st.sampled_from(["clean", "residue", "unread", "others", "left_of"]),
    meddled=st.sampled_from(
        [
            *["nothing"] * 4,
            *[
                "killed later",
                "no result",
                "found later",
                "told complete",
                "no evidence",
                "no attestation",
                "no verdict",
                "verdicts edited",
                "all edited",
            ],
        ]
    ),
)


@settings(deadline=None)
@given(told=RUNS)
def test_an_answer_claims_nothing_that_a_certificate_refuses(
    tmp_path_factory: pytest.TempPathFactory, told: Told
) -> None:
    """For residue, unread places, drift and missing evidence there is no claim at all. What waits or is held by right
    keeps the certificate back, and not what is verified in other places."""
    base = tmp_path_factory.mktemp("run")
    folder = stood(base, told)
    refused = {one.id: certified(base, folder, one.id) for one in REQUESTS}
    try:
        found = answers(base, folder)
    except ProofError:
        assert told.meddled == "no evidence"
        assert all(refused.values())
        return
    for name, answer in found.items():
        why, claims = refused[name], {item.standing for item in answer.items} & ERASING
        assert (answer.outcome is Outcome.ERASED) == (why is None), (why, answer)
        assert bool(claims) == (answer.outcome is not Outcome.NOT_ERASED)
        if not claims or why is None:
            continue
        by_right = isinstance(why, ProofError) and "(hold c3:" in why.what
        assert isinstance(why, (Waiting, RunError)) or by_right, why
        assert told.step != "drifts"
        assert told.seen == "clean" or (told.seen == "left_of" and name == "REQ-1" and by_right)
        # what an attestation with its evidence shows needs nothing beside it
        unchecked = ("killed later", "no result", "found later", "no verdict")
        assert by_right or told.meddled not in unchecked, "what nobody can check is not claimed"


@pytest.mark.parametrize(
    ("told", "outcome", "standings"),
    [
        (Told(), Outcome.ERASED, [Standing.ERASED, Standing.ERASED]),
        (Told(held=True), Outcome.ERASED_IN_PART, [Standing.ERASED, Standing.ERASED, Standing.HELD]),
        (Told(step="waits"), Outcome.ERASED_IN_PART, [Standing.ERASED, Standing.WAITING]),
        (Told(step="softly"), Outcome.ERASED_IN_PART, [Standing.ERASED, Standing.WAITING]),
        (Told(step="fails"), Outcome.ERASED_IN_PART, [Standing.ERASED, Standing.NOT_ERASED]),
        (Told(step="drifts"), Outcome.NOT_ERASED, [Standing.NOT_ERASED, Standing.NOT_ERASED]),
        (Told(step="late", seen="residue"), Outcome.NOT_ERASED, [Standing.NOT_ERASED, Standing.UNCONFIRMED]),
        (Told(step="waits", seen="residue"), Outcome.NOT_ERASED, [Standing.NOT_ERASED, Standing.WAITING]),
        (Told(meddled="no attestation"), Outcome.NOT_ERASED, [Standing.UNCONFIRMED, Standing.UNCONFIRMED]),
        (Told(step="waits", meddled="killed later"), Outcome.NOT_ERASED, [Standing.UNCONFIRMED, Standing.WAITING]),
        (Told(step="waits", seen="left_of", meddled="all edited"), Outcome.NOT_ERASED, [Standing.UNCONFIRMED, Standing.WAITING]),
        (Told(step="waits", meddled="no verdict"), Outcome.NOT_ERASED, [Standing.NOT_ERASED, Standing.WAITING]),
    ],
)  # fmt: skip
def test_what_an_answer_says(tmp_path: Path, told: Told, outcome: Outcome, standings: Sequence[Standing]) -> None:
    found = answers(tmp_path, stood(tmp_path, told))["REQ-1"]
    assert (found.outcome, [item.standing for item in found.items]) == (outcome, standings)
    if told.step == "waits":
        assert found.items[1].until == NOW + timedelta(days=40)
    if told.held:
        assert (found.items[2].until, found.items[2].who) == (LATER, "Meera")


def test_the_person_of_whom_something_is_left_is_told_so_and_the_other_not(tmp_path: Path) -> None:
    both = answers(tmp_path, stood(tmp_path, Told(seen="left_of")))
    assert both["REQ-1"].outcome is Outcome.ERASED
    assert [item.standing for item in both["REQ-2"].items] == [Standing.FOUND, Standing.UNCONFIRMED]
    assert "subj_1" not in both["REQ-2"].model_dump_json()
    assert "subj_2" not in both["REQ-1"].model_dump_json()


def test_the_commands_write_show_and_refuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = stood(tmp_path, Told(held=True, step="waits"))
    where = ["--estate", str(tmp_path / "e.yaml"), "--state", str(tmp_path / "state")]
    name, key = folder.path.name, ["--key", str(tmp_path / "state/keys/attest.pem.pub")]
    assert command(["attest", "answer", name, "--request", "REQ-1", *where]) == 0
    signed, page = map(Path, capsys.readouterr().out.split())
    assert signed.parent == folder.path / "proofs"
    shown = page.read_text()
    assert "Your data was erased in part" in shown
    assert "lake.c2" in shown
    assert "not before 2026-12-31" in shown
    assert "PMLA 2002, s. 12; Meera answers for it; until 2027-02-19" in shown
    assert "REQ-2" not in shown
    assert "subj_2" not in shown
    assert command(["attest", "verify-answer", str(signed), *key]) == 0
    assert "REQ-1 (person subj_1, dpdp): Your data was erased in part" in capsys.readouterr().out
    assert command(["attest", "verify-answer", str(signed), *key, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "erased_in_part"
    changed = json.loads(signed.read_text())
    changed["signatures"][0]["sig"] = "AAAA"
    signed.write_text(json.dumps(changed))
    assert command(["attest", "verify-answer", str(signed), *key]) == 1
    assert command(["attest", "verify-answer", str(tmp_path / "approval.json"), *key]) == 1
    for words in ([], ["--all", "--request", "REQ-1"], ["--request", "REQ-9"]):
        assert command(["attest", "answer", name, *words, *where]) == 2
    capsys.readouterr()
    assert command(["attest", "answer", name, "--all", "--out", str(tmp_path / "sent"), *where]) == 0
    assert len({*(tmp_path / "sent").glob("answer-REQ-[12]-*.json")}) == 2


def test_before_a_run_everything_is_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(stood(tmp_path, Told()).path)
    where: list[Any] = ["--estate", tmp_path / "e.yaml", "--state", tmp_path / "state", "--out", tmp_path / "sent"]
    words = ["attest", "answer", str(tmp_path / "p.plan.json"), "--request", "REQ-1", *map(str, where)]
    assert command(words) == 0
    signed = Path(capsys.readouterr().out.split()[0])
    found = read_answer(signed, (tmp_path / "state" / "keys" / "attest.pem.pub",))
    assert {item.standing for item in found.items} == {Standing.NOT_ERASED}
    assert command(words[:-2]) == 2


def test_a_pdf_is_printed_in_the_way_of_the_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a Chromium the signed answer and the page are there all the same."""
    folder = stood(tmp_path, Told())
    monkeypatch.setattr(pdf.shutil, "which", lambda _: None)
    words = ["attest", "answer", folder.path.name, "--request", "REQ-1", "--pdf"]
    assert command([*words, "--estate", str(tmp_path / "e.yaml"), "--state", str(tmp_path / "state")]) == 1
    assert {path.suffix for path in (folder.path / "proofs").glob("answer-*")} == {".json", ".html"}


def _named(monkeypatch: pytest.MonkeyPatch, *ids: str) -> None:
    named = [one.model_copy(update={"id": name}) for one, name in zip(REQUESTS, ids, strict=True)]
    monkeypatch.setitem(globals(), "REQUESTS", tuple(named))


def test_a_hold_that_has_ended_keeps_nothing(tmp_path: Path) -> None:
    folder = stood(tmp_path, Told(held=True))
    where, after = Settings(tmp_path / "e.yaml", tmp_path / "state"), LATER + timedelta(days=1)
    [signed, _] = write_answers(where, folder.path.name, request="REQ-1", now=after)
    held = read_answer(signed, (tmp_path / "state/keys/attest.pem.pub",)).items[2]
    assert (held.standing, held.who, held.until) == (Standing.NOT_ERASED, None, None)
    assert "has ended" in str(held.why)


def test_what_the_person_asked_to_keep_is_said_so_and_no_law_is_named_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"kind": "own_request", "basis": "the person's own request", "approver": "the person", "until": None}
    monkeypatch.setitem(globals(), "HOLD", HOLD.model_copy(update=own))
    found = answers(tmp_path, stood(tmp_path, Told(held=True)))["REQ-1"]
    kept = found.items[2]
    assert (found.outcome, kept.standing, kept.who) == (Outcome.ERASED_IN_PART, Standing.KEPT, None)
    assert "the person's own request" in str(kept.why)
    [head] = [part.head for part in parts_of(found) if kept in part.items]
    assert head == "Not erased: kept at your own request"


def test_what_stays_along_with_what_she_kept_is_said_to_be_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"kind": "own_request", "basis": "the person's own request", "approver": "the person", "until": None}
    monkeypatch.setitem(globals(), "HOLD", HOLD.model_copy(update=own))
    monkeypatch.setitem(globals(), "ALONG", "c2")
    assert answers(tmp_path, stood(tmp_path, Told(held=True)))["REQ-1"].items[2].standing is Standing.HELD


def test_a_plan_file_answers_only_without_a_run_and_names_nobody_who_approved(tmp_path: Path) -> None:
    folder = stood(tmp_path, Told(held=True))
    where, file = Settings(tmp_path / "e.yaml", tmp_path / "state"), str(tmp_path / "p.plan.json")
    out, now = tmp_path / "out", LATER - timedelta(days=1)
    with pytest.raises(UsageError, match="this plan has a run"):
        [*write_answers(where, file, out=out, now=now)]
    assert not out.exists()
    shutil.rmtree(folder.path)
    [signed, _] = write_answers(where, file, request="REQ-1", out=out, now=now)
    found = read_answer(signed, (tmp_path / "state/keys/attest.pem.pub",))
    assert [(one.standing, one.who) for one in found.items][2] == (Standing.HELD, None)


def test_no_answer_takes_another_one_s_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not that of an id with a dot, nor that of the same second."""
    _named(monkeypatch, "2026.1", "2026.2")
    folder = stood(tmp_path, Told())
    where = Settings(tmp_path / "e.yaml", tmp_path / "state")
    paths = [*write_answers(where, folder.path.name, now=LATER), *write_answers(where, folder.path.name, now=LATER)]
    assert len({*paths}) == len(paths) == 8
    assert sorted(paths) == sorted((folder.path / "proofs").iterdir())
    of = [read_answer(path, (tmp_path / "state/keys/attest.pem.pub",)).request for path in paths[::2]]
    assert of == ["2026.1", "2026.2"] * 2


@pytest.mark.parametrize("name", ["x/../../../escaped", "a\x1b[31m", "R-1\n", ""])
def test_an_id_that_is_none_names_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    _named(monkeypatch, "REQ-1", name)
    (tmp_path / "p.plan.json").write_bytes(the_plan(False).to_bytes())
    (tmp_path / "e.yaml").write_text(
        declared("w", {"app.users": "delta"}) + "  - {name: user, source: app.users, key: user_id}\n"
    )
    where, out = Settings(tmp_path / "e.yaml", tmp_path / "state"), tmp_path / "a" / "b" / "out"
    with pytest.raises(UsageError, match="an id that is not valid"):
        [*write_answers(where, str(tmp_path / "p.plan.json"), now=LATER, out=out)]
    assert not (tmp_path / "a").exists()


def test_what_an_answer_says_does_nothing_to_a_terminal(tmp_path: Path) -> None:
    answer = answers(tmp_path, stood(tmp_path, Told()))["REQ-1"]
    lines = answer_lines(
        answer.model_copy(update={"request": "a\x1b[31m", "law": "b\x1b]0;x\x07", "subject": "\x9b1m"})
    )
    assert not any(sign in line for line in lines for sign in "\x1b\x07\x9b")
