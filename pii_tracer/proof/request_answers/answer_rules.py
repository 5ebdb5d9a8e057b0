"""What can be said of each place of a plan, by what a run has proved: never by what the plan hopes for.

A place is said to be erased in two cases alone: an attestation that holds is about the request; or every step there is
verified by the run's journal, the verifier's verdict says that nothing is left, and nothing casts doubt on the run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pii_tracer.model.actions import CONFIRMED, Action
from pii_tracer.model.canonical_json import parse_time
from pii_tracer.model.datasets import CopyKind, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.legal_holds import kept_as_asked
from pii_tracer.model.plan import HELD, Copy, ErasurePlan, Step
from pii_tracer.proof.attestation import exceptions_of
from pii_tracer.proof.evidence_leaves import ReservedKind
from pii_tracer.proof.open_requests import computed_from
from pii_tracer.proof.request_answers.answer import ERASING, AnswerItem, Standing, latest
from pii_tracer.run.journal import Kind, Record
from pii_tracer.run.run_state import State

_OF_STEPS = (Kind.STEP_INTENT, Kind.STEP_RESULT, Kind.STEP_VERIFIED, Kind.STEP_FAILED, Kind.STEP_WAITING)
_NAMED = frozenset({ReservedKind.CONFIRMED, ReservedKind.WAIVED, ReservedKind.UNVERIFIED})
_BY_RIGHT = frozenset({ReservedKind.HOLD, ReservedKind.EXEMPTION, ReservedKind.SEALED})
"""Kinds of exceptions that stand at their copy."""
NOT_OVER = "the run did not come to its end"
HOLD_ENDED = "a hold kept it, and has ended: it is to be planned again"


@dataclass(frozen=True)
class Proved:
    """What a run has proved so far.

    records: of its journal, which is whole. clean: ids of copies in which the verifier found nothing, but of the
    persons of `left_of` (by copy, keyed references). contradicted: whether the verdicts say other than the journal.
    result: its final object. claims: the predicate of an attestation that holds; None where it has none.
    """

    plan: ErasurePlan
    records: Sequence[Record] = ()
    clean: Collection[str] = ()
    left_of: Mapping[str, Collection[str]] = field(default_factory=dict)
    residue: bool = False
    unread: bool = False
    contradicted: bool = False
    result: Mapping[str, Any] = field(default_factory=dict)
    claims: Mapping[str, Any] | None = None


def doubt_of(proved: Proved) -> str | None:
    """Why nothing of a run is said to be erased; None where what is verified there can be told."""
    if proved.claims is not None:
        return _doubt_of_claims(proved.claims)
    result, records = proved.result, proved.records
    if not records:
        return None
    if records[-1].kind is not Kind.RUN_FINISHED or result.get("journal_head") != records[-1].hash:
        return NOT_OVER
    hard = any(item.get("hard", True) for item in result.get("drift") or ())  # what is told and stops nothing is none
    if hard or State.BLOCKED in (records[-1].facts.get("state"), result.get("state")):
        return "data or settings changed after the plan was made, and the run stopped"
    if proved.contradicted:
        return "what the verifier wrote down is not what the run's journal says"
    if result.get("residue") or result.get("open_requests") or proved.residue:
        return "data was found after the erasure"
    if result.get("unverified") or proved.unread:
        return "not everything could be read"
    if result.get("bystander_rows_lost"):
        return "other data was lost or changed"
    if State.COMPLETE in (records[-1].facts.get("state"), result.get("state")):
        return "the run could not be attested"
    last = last_records(records)
    looks = [s.id for s in proved.plan.steps if s.action is Action.VERIFY_COPY]
    if any(step in last and last[step].kind is Kind.STEP_FAILED for step in looks):
        return "a search for what is left failed"
    return None


def _doubt_of_claims(claims: Mapping[str, Any]) -> str | None:
    if claims["others"]["rows_lost"] or claims["others"]["changed"]:
        return "other data was lost or changed"
    for item in claims["exceptions"]:
        answered = item["kind"] in _NAMED and item["who"]
        if not answered and item["kind"] not in _BY_RIGHT:
            return "not everything could be read"
    return None


def last_records(records: Sequence[Record]) -> dict[str, Record]:
    """How each step stands, by the last record about it."""
    return {str(r.facts["step"]): r for r in records if r.kind in _OF_STEPS}


def items_of(proved: Proved, subject: str, doubt: str | None) -> Iterator[AnswerItem]:
    """How each place stands for a person. subject: keyed reference of the person. doubt: as of `doubt_of`."""
    last = last_records(proved.records)
    left = {copy.id for copy in proved.plan.copies if _counts_again(proved, copy, subject)}
    words = [item for item in _words(proved, last) if item.what not in left]
    answered = {item.what for item in words}
    for copy in proved.plan.copies:
        by_word = copy.kind is CopyKind.BACKUP or copy.strategy is Strategy.RECOMPUTED
        if not by_word or copy.id not in answered:
            item = _of_copy(proved, copy, last, subject)
            unsure = doubt is not None and item.standing in ERASING
            yield AnswerItem(standing=Standing.UNCONFIRMED, what=item.what, why=doubt) if unsure else item
    names = {copy.id: name_of(copy) for copy in proved.plan.copies}
    yield from (item.model_copy(update={"what": names.get(item.what, item.what)}) for item in words)
    yield from _open(proved.plan, last, answered)


def as_of(item: AnswerItem, at: datetime, *, approved: bool) -> AnswerItem:
    """How a place stands at a time. A hold that has ended keeps nothing; approved: nobody answers for what nobody
    approved."""
    if item.standing in (Standing.HELD, Standing.KEPT, Standing.PARTLY) and item.until and item.until <= at:
        return AnswerItem(standing=Standing.NOT_ERASED, what=item.what, why=HOLD_ENDED)
    return item if approved else item.model_copy(update={"who": None})


def _words(proved: Proved, last: Mapping[str, Record]) -> Iterator[AnswerItem]:
    """What named persons answer for. A step that takes a person's word counts when it is verified."""
    steps = {s.copy_ or s.id: s for s in proved.plan.steps if s.action in CONFIRMED}
    again = {copy.id for copy in proved.plan.copies if copy.strategy is Strategy.RECOMPUTED}
    looks = (s for s in proved.plan.steps if s.action is Action.VERIFY_COPY and s.copy_ in again)
    steps |= {str(s.copy_): s for s in looks}  # its owner's word counts with what was seen
    if proved.claims is not None:
        found = [dict(item) for item in proved.claims["exceptions"]]
    else:
        found = [item.model_dump(mode="json") for item in exceptions_of(proved.plan, proved.records)]
    for item in found:
        step = steps.get(item["what"])
        if item["kind"] not in _NAMED or not item["who"] or (step and not _verified(last, step)):
            continue
        until = parse_time(item["until"]) if item["until"] else None
        yield AnswerItem(standing=Standing.ANSWERED, what=item["what"], why=item["why"], who=item["who"], until=until)


def _open(plan: ErasurePlan, last: Mapping[str, Record], answered: Collection[str]) -> Iterator[AnswerItem]:
    """Tasks of owners that are still to be done, and what the plan leaves out."""
    for step in plan.steps:
        if step.copy_ is None and step.action is Action.OWNER_TASK and step.id not in answered:
            yield _waits(step.id, [step], last)
    for gap in plan.gaps:
        if gap.kind == GapKind.LEFT_OUT:
            what = str(gap.dataset) if gap.dataset else gap.id
            yield AnswerItem(standing=Standing.NOT_ERASED, what=what, why="the plan leaves it out")


def _counts_again(proved: Proved, copy: Copy, subject: str) -> bool:
    """Whether a copy that its owner computes again may count a person who is left there, or in a source of it."""
    if copy.strategy is not Strategy.RECOMPUTED:
        return False
    return any(subject in proved.left_of.get(one, ()) for one in (copy.id, *computed_from(proved.plan, copy.id)))


def _of_copy(proved: Proved, copy: Copy, last: Mapping[str, Record], subject: str) -> AnswerItem:
    what = name_of(copy)
    if subject in proved.left_of.get(copy.id, ()):
        return AnswerItem(standing=Standing.FOUND, what=what, why="it was found there after the erasure")
    if copy.strategy is Strategy.EXEMPT:
        return _held(proved.plan, copy, what)
    if copy.strategy is Strategy.BLOCKED:
        return AnswerItem(standing=Standing.NOT_ERASED, what=what, why="no step of the plan can erase it")
    steps = [step for step in proved.plan.steps if step.copy_ == copy.id]
    if copy.kind is CopyKind.BACKUP or not (steps and all(_verified(last, step) for step in steps)):
        return _waits(what, steps, last)
    at = latest(last[step.id].time for step in steps)
    if proved.claims is None and copy.id not in proved.clean:
        return AnswerItem(standing=Standing.NOT_ERASED, what=what, why="it is not verified as a whole")
    if copy.strategy in HELD:
        held = _held(proved.plan, copy, what)
        return held.model_copy(update={"standing": Standing.PARTLY, "at": at})
    if copy.strategy is Strategy.DESTROY_KEY:
        why = "it is encrypted, and the key that opened it was destroyed"
        return AnswerItem(standing=Standing.UNREADABLE, what=what, why=why, at=at)
    if _counts_again(proved, copy, subject):
        return AnswerItem(standing=Standing.UNCONFIRMED, what=what, why="something is left in what it is computed from")
    if copy.strategy is Strategy.RECOMPUTED:
        why = "its owner computed it again after the erasure of its sources; the counts were not compared"
        return AnswerItem(standing=Standing.ANSWERED, what=what, why=why, at=at)
    return AnswerItem(standing=Standing.ERASED, what=what, at=at)


def _held(plan: ErasurePlan, copy: Copy, what: str) -> AnswerItem:
    names = copy.exemption.holds if copy.exemption else ()
    holds = [hold for hold in plan.holds if hold.id in names]
    why = "; ".join(f"{hold.basis}, {hold.citation}" for hold in holds) or copy.reason
    until = copy.exemption.until if copy.exemption else None
    if holds and kept_as_asked(plan, copy):
        return AnswerItem(standing=Standing.KEPT, what=what, why=why, until=until)
    who = ", ".join(sorted({hold.approver for hold in holds})) or None
    return AnswerItem(standing=Standing.HELD, what=what, why=why, who=who, until=until)


def _waits(what: str, steps: Sequence[Step], last: Mapping[str, Record]) -> AnswerItem:
    """A place whose steps are not all verified. A step that failed outweighs one that waits."""
    found = [last[step.id] for step in steps if step.id in last]
    if any(record.kind is Kind.STEP_FAILED for record in found):
        return AnswerItem(standing=Standing.NOT_ERASED, what=what, why="a step failed there, and is to be done again")
    waiting = [record for record in found if record.kind is Kind.STEP_WAITING]
    if waiting:
        whys = {str(record.facts["reason"]) for record in waiting if record.facts.get("reason")}
        until = latest(_moment(record.facts["until"]) for record in waiting)
        return AnswerItem(standing=Standing.WAITING, what=what, why="; ".join(sorted(whys)) or None, until=until)
    why = "the steps there are not all done" if found else "no step there has begun"
    return AnswerItem(standing=Standing.NOT_ERASED, what=what, why=why)


def _moment(value: object) -> datetime:
    return value if isinstance(value, datetime) else parse_time(str(value))


def _verified(last: Mapping[str, Record], step: Step) -> bool:
    return step.id in last and last[step.id].kind is Kind.STEP_VERIFIED


def name_of(copy: Copy) -> str:
    """What a place is called: a table by its name, what else by where it lies."""
    name = copy.table or copy.location
    return f"{name} ({copy.facts['ref_kind']} {copy.facts['ref']})" if "ref" in copy.facts else name
