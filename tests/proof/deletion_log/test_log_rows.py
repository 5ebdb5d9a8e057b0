"""The rows that a run writes: a state for everything, none of them better than what was seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.app.execution.attesting import step_facts
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG_DELETE_ROWS
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import CopyKind, DatasetId, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import ErasurePlan, Exemption, Gap, HeldColumn, Mask, PlannedHold, Precondition
from pii_tracer.model.planned_requests import PlannedRequest
from pii_tracer.model.waivers import Waiver
from pii_tracer.proof.deletions.deletion_log import DeletionLog
from pii_tracer.proof.deletions.deletion_log_rows import Logged, groups_of
from pii_tracer.proof.deletions.entries import Entry, EntryState, Selection
from pii_tracer.run.journal import Journal
from pii_tracer.run.openlineage_events import RunEvents, step_runs
from pii_tracer.run.runner import run
from tests.proof.deletion_log.grouped import apart, groups
from tests.review.plans import DEADLINE, NOW, copy, plan, step
from tests.run.fakes import (
    FakeExecutor,
    FakeLease,
    Ticking,
    World,
)

UNTIL = NOW + timedelta(days=3650)


def everything() -> ErasurePlan:
    """Two requests; a copy that goes, one that waits, one that fails, one held, two gaps."""
    planned = Precondition(kind="snapshot", target="/lake/c1", expected="s0")
    held = copy(
        "c4", strategy=Strategy.EXEMPT, reason="kept by PMLA", exemption=Exemption(holds=("pmla",), until=UNTIL)
    )
    waiver = Waiver(who="dpo", why="the vendor confirmed it", until=UNTIL)
    gaps = [
        Gap(
            id="g1",
            dataset=DatasetId(namespace="x", name="vendor"),
            kind="not_scanned",
            reason="r",
            evidence="e",
            waiver=waiver,
        ),
        Gap(id="g2", dataset=None, kind=GapKind.LEFT_OUT, reason="left out by choice", evidence="e"),
    ]
    return plan(
        steps=[
            step("keys/1", None, action=Action.STAGE_KEYS),
            step("c1/1", "c1", after=["keys/1"], preconditions=(planned,)),
            step("c1/2", "c1", after=["c1/1"], action=Action.VERIFY_COPY),
            step("c2/1", "c2"),
            step("c3/1", "c3"),
            step("c3/2", "c3", after=["c3/1"]),
        ],
        copies=[copy("c1"), copy("c2"), copy("c3"), held],
        gaps=gaps,
        applyable=True,
        holds=(
            PlannedHold(
                id="pmla",
                kind="law",
                basis="b",
                citation="c",
                from_=NOW,
                until=UNTIL,
                approver="counsel",
                copies=("c4",),
            ),
        ),
        requests=tuple(
            PlannedRequest(
                id=f"REQ-{n}", subject=f"subj_{n}", law="dpdp", citation="s", received=NOW, deadline=DEADLINE
            )
            for n in (1, 2)
        ),
    )


def told_of(logged: Logged) -> Iterator[Entry]:
    return apart(groups_of(logged))


def test_where_columns_are_held_steps_are_partial_and_what_is_held_is_exempt(tmp_path: Path) -> None:
    _, logged = rows(tmp_path, ("c1",))
    mask = Mask(columns=("email", "note"), held=(HeldColumn(name="pan", holds=("pmla",), until=UNTIL),))
    changes = {"strategy": Strategy.MASK_COLUMNS, "mask": mask, "reason": "kept: pan"}
    changes["exemption"] = Exemption(holds=("pmla",), until=UNTIL)
    copies = tuple(c.model_copy(update=changes) if c.id == "c1" else c for c in logged.plan.copies)
    logged = replace(logged, plan=logged.plan.model_copy(update={"copies": copies}))
    ours = {e.step_id: e for e in told_of(logged) if e.request_id == "REQ-1" and e.copy_id == "c1"}
    assert {key: e.state for key, e in ours.items()} == {
        "c1/1": EntryState.PARTIAL,
        "c1/2": EntryState.PARTIAL,
        "": EntryState.EXEMPT,
    }
    assert ours["c1/1"].reason == "erased in email, note; a hold keeps the rest"
    assert (ours[""].approver, ours[""].reason) == ("counsel", "kept: pan (until 2036-11-18T09:00:00.000000Z)")
    unverified = [e for e in told_of(replace(logged, erased=())) if e.copy_id == "c1" and e.step_id]
    assert {e.state for e in unverified} == {EntryState.DEFERRED}


def rows(
    folder: Path, erased: tuple[str, ...] = (), made: ErasurePlan | None = None, **executor: Any
) -> tuple[list[Entry], Logged]:
    made, clock = made or everything(), Ticking()
    journal = Journal.open(folder / "journal", clock)
    run(made, {"fake": FakeExecutor(World(), clock=clock, **executor)}, journal, clock=clock, lease=FakeLease())
    logged = Logged(
        plan=made,
        records=journal.records,
        erased=erased,
        scopes={"c1": "sha256:scope"},
        facts=step_facts(journal.records),
        runs=step_runs(made, journal.records),
        approver="asha",
        tool_version="0.1.0",
        mask=lambda text: text.replace("engine", "[engine]"),
    )
    return list(told_of(logged)), logged


def test_every_state_has_its_rows_for_every_request(tmp_path: Path) -> None:
    found, logged = rows(tmp_path, ("c1",), waits={"c2/1": NOW + timedelta(days=9)}, broken={"c3/1"})
    ours = {(e.copy_id, e.step_id): e for e in found if e.request_id == "REQ-1"}
    assert {key: e.state for key, e in ours.items()} == {
        ("c1", "c1/1"): EntryState.ERASED,
        ("c1", "c1/2"): EntryState.ERASED,
        ("c2", "c2/1"): EntryState.DEFERRED,
        ("c3", "c3/1"): EntryState.BLOCKED,
        ("c4", ""): EntryState.EXEMPT,
        ("g1", ""): EntryState.CONFIRMED,
        ("g2", ""): EntryState.DEFERRED,
    }
    assert len(found) == 2 * len(ours)
    assert {e.subject for e in found if e.request_id == "REQ-2"} == {"subj_2"}
    first, last = ours["c1", "c1/1"], ours["c1", "c1/2"]
    assert (first.snapshot_planned, first.approver, first.manifest) == ("s0", "asha", None)
    assert last.manifest == "sha256:scope"
    assert "waits until 2026-11-30" in (ours["c2", "c2/1"].reason or "")
    assert ours["c3", "c3/1"].reason == "the [engine] said no (c3/1)"
    held, confirmed = ours["c4", ""], ours["g1", ""]
    assert (held.approver, held.format, held.action) == ("counsel", logged.plan.copies[3].format, None)
    assert held.reason == "kept by PMLA (until 2036-11-18T09:00:00.000000Z)"
    assert (confirmed.approver, confirmed.dataset) == ("dpo", "x:vendor")
    assert (confirmed.reason or "").startswith("the vendor confirmed it")


def test_what_is_left_of_one_person_defers_her_rows_alone(tmp_path: Path) -> None:
    _, logged = rows(tmp_path, ("c1",))
    found = {e.request_id: e for e in told_of(replace(logged, left_of={"c1": {"subj_2"}})) if e.step_id == "c1/1"}
    assert {request: (e.subject, e.state) for request, e in found.items()} == {
        "REQ-1": ("subj_1", EntryState.ERASED),
        "REQ-2": ("subj_2", EntryState.DEFERRED),
    }
    assert found["REQ-2"].reason == "done; something of this person is left in the copy"


def test_a_run_that_found_nothing_to_erase_has_a_row_for_each_person(tmp_path: Path) -> None:
    made = everything().model_copy(update={"steps": (), "copies": (), "gaps": (), "holds": ()})
    found, logged = rows(tmp_path, made=made)
    assert found == [], "nobody has searched everything yet"
    told = {e.request_id: e for e in told_of(replace(logged, left={"subj_2"}))}
    assert {request: (e.subject, e.state, e.copy_id, e.step_id) for request, e in told.items()} == {
        "REQ-1": ("subj_1", EntryState.ERASED, "", ""),
        "REQ-2": ("subj_2", EntryState.DEFERRED, "", ""),
    }
    last = logged.records[-1]
    assert (told["REQ-1"].evidence, told["REQ-1"].run_at, told["REQ-1"].approver) == (last.hash, last.time, "asha")
    assert "nothing of the person was left" in (told["REQ-1"].reason or "")
    assert "something of this person" in (told["REQ-2"].reason or "")


def test_a_row_names_the_openlineage_run_of_its_step(tmp_path: Path) -> None:
    found, logged = rows(tmp_path)
    told = {e.run.runId: e for e in RunEvents(logged.plan).feed(logged.records)}
    for entry in found:
        if entry.action is ICEBERG_DELETE_ROWS:
            assert told[str(entry.run_id)].job.name.endswith(entry.step_id)
        else:
            assert entry.run_id is None  # it changes nothing


def test_a_later_state_is_a_new_row_and_the_rest_is_not_said_again(tmp_path: Path) -> None:
    log = DeletionLog(tmp_path / "log.sqlite", "e")
    found, logged = rows(tmp_path)
    log.append(groups(found))
    log.append(groups_of(logged))
    assert log.entries() == tuple(found)
    later = list(told_of(Logged(**{**vars(logged), "erased": ("c1",)})))
    log.append(groups(later))
    assert len(log.entries()) == len(found) + 4  # two steps, two requests
    newest = log.entries(Selection(copy="c1", newest=True))
    assert {e.state for e in newest} == {EntryState.ERASED}
    assert len(newest) == 4


def test_what_the_storage_shows_counts_before_what_the_step_says(tmp_path: Path) -> None:
    _, logged = rows(tmp_path)
    facts = {"c2/1": {"files_removed": 7, "snapshot_before": 2**60, "snapshot_after": "8", "deleted": [{"bytes": 3}]}}
    counted = [
        r
        if r.facts.get("step") != "c2/1" or "facts" not in r.facts
        else _with(r, {"files_removed": 2, "manifest": "m"})
        for r in logged.records
    ]
    told = {e.step_id: e for e in told_of(Logged(**{**vars(logged), "records": counted, "facts": facts}))}
    row = told["c2/1"]
    assert (row.files_removed, row.bytes_removed, row.manifest) == (2, 3, "m")
    assert (row.snapshot_before, row.snapshot_after) == (str(2**60), "8")
    told = {e.step_id: e for e in told_of(Logged(**{**vars(logged), "facts": facts}))}
    assert told["c2/1"].files_removed == 1  # the list of what was deleted


def test_a_person_s_word_is_no_erasure_and_names_the_person(tmp_path: Path) -> None:
    _, logged = rows(tmp_path)
    backup = [c.model_copy(update={"kind": CopyKind.BACKUP}) if c.id == "c2" else c for c in logged.plan.copies]
    changes = {
        "plan": logged.plan.model_copy(update={"copies": tuple(backup)}),
        "facts": {"c2/1": {"confirmed_by": "ops"}},
        "erased": ("c2",),
    }
    told = {e.step_id: e for e in told_of(Logged(**{**vars(logged), **changes}))}
    assert (told["c2/1"].state, told["c2/1"].approver) == (EntryState.CONFIRMED, "ops")
    assert told["c1/1"].approver == "asha"


def _with(record: Any, facts: dict[str, object]) -> Any:
    return type(record)(**{**vars(record), "facts": {**record.facts, "facts": facts}})


def test_what_an_owner_computed_again_is_confirmed_for_nobody_who_is_left_in_a_source(tmp_path: Path) -> None:
    counts = copy("c2", strategy=Strategy.RECOMPUTED)
    steps = [
        step("c1/2", "c1", action=Action.VERIFY_COPY),
        step("c2/1", "c2", after=["c1/2"], action=Action.NOTE_FILES, parameters={"sources": ["c1"]}),
        step("c2/2", "c2", after=["c2/1"], action=Action.VERIFY_COPY),
    ]
    made = everything().model_copy(update={"steps": tuple(steps), "copies": (copy("c1"), counts)})
    _, logged = rows(tmp_path, ("c1", "c2"), made)
    found = {(e.request_id, e.step_id): e for e in told_of(replace(logged, left_of={"c1": {"subj_2"}}))}
    noted, verified = found["REQ-1", "c2/1"], found["REQ-1", "c2/2"]
    assert noted.state is verified.state is EntryState.CONFIRMED
    assert "computed it again" in (verified.reason or "")
    assert "computed it again" not in (noted.reason or ""), "noting files erases nothing"
    assert {found["REQ-2", name].state for name in ("c1/2", "c2/1", "c2/2")} == {EntryState.DEFERRED}


@pytest.mark.parametrize("order", [("found", "clean", "found"), ("clean", "found", "clean")])
@pytest.mark.parametrize("copies", [True, False], ids=["copies", "nothing to erase"])
def test_the_newest_row_says_what_the_last_look_at_a_run_found(
    tmp_path: Path, order: tuple[str, ...], copies: bool
) -> None:
    made = everything().model_copy(update={"steps": (), "copies": (), "gaps": (), "holds": ()})
    _, logged = rows(tmp_path, ("c1",), None if copies else made)
    persons = {"subj_1", "subj_2"}
    found = replace(logged, left_of={"c1": persons}) if copies else replace(logged, left=persons)
    clean = replace(logged, left=None if copies else ())
    log = DeletionLog(tmp_path / "log.sqlite", "e")
    for look in order:
        for _ in range(2):
            log.append(groups_of(found if look == "found" else clean))
        newest = log.entries(Selection(request="REQ-2", copy="c1" if copies else "", newest=True))
        assert {e.state for e in newest} == {EntryState.DEFERRED if look == "found" else EntryState.ERASED}
    assert log.count() == len(log.entries()) == (2 * (8 + 4) if copies else 2 * 3)
