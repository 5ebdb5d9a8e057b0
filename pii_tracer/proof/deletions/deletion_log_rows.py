"""What a run writes into the deletion log: a row for each step that came to something, and for each copy that has none;
and for the search of a plan that has nothing to erase.

The same journal, plan and verdicts give the same rows; only what changed since is new.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pii_tracer.model.actions import Action
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.datasets import CopyKind, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import HELD, Copy, ErasurePlan, Gap, Step
from pii_tracer.proof.deletions.entries import Deed, EntryState, Group, Person
from pii_tracer.proof.open_requests import computed_from
from pii_tracer.run.journal import Kind, Record

_ENDS = (Kind.STEP_VERIFIED, Kind.STEP_FAILED, Kind.STEP_WAITING)
_PLANNED = ("snapshot", "topic")
"""Preconditions whose expected value begins with a version of the copy, or a topic's id. One of `object_versions`
lists all versions: too long here, and in the plan."""


@dataclass(frozen=True)
class Logged:
    """What the rows are made of.

    erased: ids of copies in which the verifier found nothing left, but of the persons of `left_of` (by copy, keyed
    references). scopes: copy -> digest over its decoded files.
    facts: step -> facts of its answers. runs: hash of a record -> OpenLineage run of the step. mask: takes the persons'
    values out of a text, should a reason hold one. left: of a plan without copies, whose run searched everything, the
    persons (keyed references) of whom something is left; None for every other run.
    """

    plan: ErasurePlan
    records: Sequence[Record]
    erased: Collection[str]
    scopes: Mapping[str, str]
    facts: Mapping[str, Mapping[str, Any]]
    runs: Mapping[str, str]
    approver: str
    tool_version: str
    mask: Callable[[str], str]
    left_of: Mapping[str, Collection[str]] = field(default_factory=dict)
    left: Collection[str] | None = None


def groups_of(logged: Logged) -> Iterator[Group]:
    """The rows of a run as it stands: requests of which the same is left together."""
    groups: dict[tuple[frozenset[str], bool], list[Person]] = {}
    left_of: dict[str, set[str]] = {}
    for copy, persons in logged.left_of.items():
        for subject in persons:
            left_of.setdefault(subject, set()).add(copy)
    for request in logged.plan.requests:  # nothing else of a request decides what its rows say
        left = frozenset(left_of.get(request.subject, ()))
        is_left = request.subject in (logged.left or ())
        groups.setdefault((left, is_left), []).append(Person(request.id, request.subject))
    for (left, is_left), alike in groups.items():
        searched = () if logged.left is None else (_of_search(logged, is_left),)
        yield Group((*_deeds(logged, left), *searched), alike)


def _deeds(logged: Logged, left: Collection[str]) -> Iterator[Deed]:
    copies = {copy.id: copy for copy in logged.plan.copies}
    last = {str(r.facts["step"]): r for r in logged.records if r.kind in _ENDS}
    for step in logged.plan.steps:
        if step.id in last and step.copy_ in copies:
            yield _of_step(logged, left, step, copies[step.copy_], last[step.id])
    worked = {step.copy_ for step in logged.plan.steps}
    for copy in logged.plan.copies:
        stays = copy.strategy is Strategy.MASK_COLUMNS or copy.id not in worked
        if copy.strategy in (*HELD, Strategy.BLOCKED) and stays:
            yield _of_copy(logged, copy)
    for gap in logged.plan.gaps:
        if gap.waiver or gap.kind == GapKind.LEFT_OUT:
            yield _of_gap(logged, gap)


def _of_step(logged: Logged, left: Collection[str], step: Step, copy: Copy, record: Record) -> Deed:
    known = logged.facts.get(step.id, {})
    seen = record.facts.get("facts") or {} if record.kind is Kind.STEP_VERIFIED else {}
    state, reason = _state(logged, left, step, copy, record)
    return Deed(
        plan_id=logged.plan.plan_id,
        step_id=step.id,
        copy_id=copy.id,
        dataset=str(copy.dataset),
        format=copy.format,
        action=step.action,
        state=state,
        snapshot_planned=_planned(logged.plan, copy),
        snapshot_before=_text(known.get("snapshot_before", seen.get("snapshot_before"))),
        snapshot_after=_text(known.get("snapshot_after", seen.get("snapshot"))),
        manifest_before=_text(seen.get("manifest_before")),
        manifest=logged.scopes.get(copy.id) if step.action is Action.VERIFY_COPY else _text(seen.get("manifest")),
        run_id=logged.runs.get(record.hash),
        run_at=record.time,
        files_removed=_number(seen.get("files_removed"), _files_removed(known)),
        bytes_removed=_number(seen.get("bytes_removed"), _bytes_removed(known)),
        approver=_text(known.get("confirmed_by")) or logged.approver or None,
        reason=logged.mask(reason) if reason else None,
        tool_version=logged.tool_version,
        evidence=record.hash,
    )


def _state(
    logged: Logged, left: Collection[str], step: Step, copy: Copy, record: Record
) -> tuple[EntryState, str | None]:
    if record.kind is Kind.STEP_FAILED:
        return EntryState.BLOCKED, str(record.facts["reason"])
    if record.kind is Kind.STEP_WAITING:
        why = record.facts.get("reason")
        return EntryState.DEFERRED, f"waits until {record.facts['until']}" + (f": {why}" if why else "")
    if copy.kind is CopyKind.BACKUP:
        return EntryState.CONFIRMED, "a person's word"
    if copy.id in left:
        return EntryState.DEFERRED, "done; something of this person is left in the copy"
    if copy.strategy is Strategy.RECOMPUTED and not computed_from(logged.plan, copy.id).isdisjoint(left):
        return EntryState.DEFERRED, "done; something of this person is left in what the copy is computed from"
    if copy.id in logged.erased and copy.strategy is Strategy.RECOMPUTED:
        again = "its owner computed it again; no file of before is left, counts were not compared"
        noted = "its files were noted, which erases nothing; the verification of the copy says what became of them"
        return EntryState.CONFIRMED, again if step.action is Action.VERIFY_COPY else noted
    if copy.id in logged.erased and copy.mask:
        return EntryState.PARTIAL, f"erased in {', '.join(copy.mask.columns)}; a hold keeps the rest"
    if copy.id in logged.erased:
        return EntryState.ERASED, None
    return EntryState.DEFERRED, "done; the copy is not yet verified as a whole"


def _of_copy(logged: Logged, copy: Copy) -> Deed:
    """The run's first record stands for it: it names the plan's digest, which holds the copy."""
    exempt = copy.strategy in HELD
    holds = [h for h in logged.plan.holds if copy.exemption and h.id in copy.exemption.holds]
    until = copy.exemption.until if copy.exemption else None
    return _without_step(
        logged,
        logged.records[0],
        copy_id=copy.id,
        dataset=str(copy.dataset),
        format=copy.format,
        state=EntryState.EXEMPT if exempt else EntryState.BLOCKED,
        snapshot_planned=_planned(logged.plan, copy),
        approver=", ".join(sorted({h.approver for h in holds})) or logged.approver or None,
        reason=copy.reason + (f" (until {iso(until)})" if until else ""),
    )


def _of_gap(logged: Logged, gap: Gap) -> Deed:
    """What could not be proved, and a named person answers for; or what was left out, and nobody can answer for. The
    run's first record stands for it, as for a copy."""
    return _without_step(
        logged,
        logged.records[0],
        copy_id=gap.id,
        dataset=str(gap.dataset) if gap.dataset else "",
        format=None,
        state=EntryState.CONFIRMED if gap.waiver else EntryState.DEFERRED,
        approver=gap.waiver.who if gap.waiver else None,
        reason=f"{gap.waiver.why} (until {iso(gap.waiver.until)})" if gap.waiver else gap.reason,
    )


def _of_search(logged: Logged, is_left: bool) -> Deed:
    """Of a run that had nothing to erase. Its last record stands for it: everything was searched after that."""
    found = "something of this person was found" if is_left else "nothing of the person was left to erase"
    return _without_step(
        logged,
        logged.records[-1],
        copy_id="",
        dataset="",
        format=None,
        state=EntryState.DEFERRED if is_left else EntryState.ERASED,
        approver=logged.approver or None,
        reason=f"every place was searched: {found}",
    )


def _without_step(logged: Logged, record: Record, **fields: Any) -> Deed:
    return Deed(
        plan_id=logged.plan.plan_id,
        step_id="",
        action=None,
        run_at=record.time,
        tool_version=logged.tool_version,
        evidence=record.hash,
        **fields,
    )


def _planned(plan: ErasurePlan, copy: Copy) -> str | None:
    for step in plan.steps:
        for condition in step.preconditions if step.copy_ == copy.id else ():
            if condition.kind in _PLANNED and condition.target == copy.location:
                return condition.expected.partition("\n")[0]
    return None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _number(*values: Any) -> int | None:
    return next((v for v in values if isinstance(v, int)), None)


def _files_removed(facts: Mapping[str, Any]) -> int | None:
    """What the step itself counted, where the storage was not counted (topics have no files)."""
    deleted = facts.get("deleted")
    if isinstance(deleted, list):
        return len(deleted)
    if isinstance(deleted, dict):
        return sum(v for v in deleted.values() if isinstance(v, int))
    return _number(facts.get("files_removed"), facts.get("files_rewritten"))


def _bytes_removed(facts: Mapping[str, Any]) -> int | None:
    deleted = facts.get("deleted")
    if not isinstance(deleted, list):
        return None
    return sum(item.get("bytes") or 0 for item in deleted if isinstance(item, dict))
