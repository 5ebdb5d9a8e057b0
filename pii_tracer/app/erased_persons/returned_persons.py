"""Persons who are back although they were erased, and holds that have lapsed: to be looked for long after a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pii_tracer.app.execution.run_folder import all_runs
from pii_tracer.app.settings import Settings, moment
from pii_tracer.config.subjects import Subject
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.model.column_paths import find_spot
from pii_tracer.model.datasets import MatchTerm, Strategy
from pii_tracer.model.errors import EstateError, ExitCode
from pii_tracer.model.keys_as_text import joined, split
from pii_tracer.model.number_keys import without_fraction
from pii_tracer.model.plan import Copy, ErasurePlan, Mask
from pii_tracer.review.sealed_person_values import EstateKey
from pii_tracer.run.suppression_list import FILE, SuppressionList

if TYPE_CHECKING:
    from pii_tracer.proof.deletions.deletion_log import DeletionLog


@dataclass(frozen=True)
class Returned:
    """A person who was erased from a source and stands in it again. subject: keyed reference."""

    subject: str
    source: str
    erased_at: datetime


@dataclass(frozen=True)
class Due:
    """A finished run whose holds lapse: what they kept has to be planned again on that day."""

    plan_id: str
    requests: tuple[str, ...]
    recheck_on: datetime


@dataclass(frozen=True)
class Recheck:
    """What is due long after runs.

    back: who stands in a table again. due: holds that have lapsed. waiting: all holds that lapse, the due ones as well.
    look_again_on: when a later look is due. not_looked_at: places that nobody looked into.
    """

    back: tuple[Returned, ...]
    due: tuple[Due, ...]
    waiting: tuple[Due, ...]
    look_again_on: datetime | None
    not_looked_at: tuple[str, ...]

    @property
    def exit_code(self) -> ExitCode:
        """9 where somebody is back, 7 where a hold has lapsed, 0 otherwise."""
        return ExitCode.RESIDUE if self.back else ExitCode.PARTIAL if self.due else ExitCode.DONE


def recheck(settings: Settings, as_of: datetime | None = None) -> Recheck:
    """Look whether erased persons are back in a source, and which holds have lapsed by a time (now, without one).

    Whom it looks for is in the deletion log and on the suppression list, as keyed references: the keys that stand in a
    source now, and whatever else finished plans matched rows by, are put through the same keyed functions. No value of
    an erased person is kept anywhere for this.

    Raises:
        ConfigError: the estate file cannot be read.
        EstateError: a table is gone or cannot be read: nobody could say who is back.
        UsageError: the plan of a finished run is not there any more.
        ProofError: the deletion log lacks rows, or a row was changed.
    """
    from pii_tracer.app.planning.plan_creation import take_inventory

    state, now = settings.state, as_of or moment(None)
    estate = settings.estate()
    inventory = take_inventory(estate, settings.base, lambda _: None)
    paths = EstatePaths(estate, settings.base)
    log = _log(settings, estate.estate)
    back = [r for s in estate.subjects if log for r in returned(s, log, inventory, paths, settings.key())]
    told_of = (log is not None and log.erased_somebody()) or (state / FILE).exists()
    known = SuppressionList(state / FILE, settings.key()) if told_of else None
    done = finished(state)
    if known is not None:
        told = {(r.subject, r.source) for r in back}  # the log and the list may have other times for one erasure
        back += [r for r in elsewhere(known, done, inventory, paths) if (r.subject, r.source) not in told]
    unseen = not_looked_at(done, inventory)
    waiting = rechecks(state)
    due = [item for item in waiting if item.recheck_on <= now]
    look = min((e.recheck_on for e in (known.entries if known else ()) if e.recheck_on > now), default=None)
    return Recheck(tuple(back), tuple(due), tuple(waiting), look, tuple(unseen))


def _log(settings: Settings, estate: str) -> DeletionLog | None:
    """Checked: somebody whose rows were removed would not be looked for. Raises `ProofError`."""
    from pii_tracer.proof.deletions.deletion_log import log_in

    log = log_in(settings.state, estate)
    if log is not None:
        log.check()
    return log


def returned(
    subject: Subject, log: DeletionLog, inventory: Inventory, paths: EstatePaths, key: EstateKey
) -> list[Returned]:
    """The persons of one kind who were erased by the deletion log, and whose key stands in their source again.

    Raises:
        EstateError: the source is gone or cannot be read: nobody could say who is back.
    """
    from pii_tracer.lake.rows.current_rows import read_spots

    source = paths.aliases.get(subject.source)
    gone = log.last_erased(str(source))
    if not gone:
        return []
    state: TableState | None = next((s for s in inventory.tables if s.dataset == source), None)
    if state is None:
        raise EstateError(
            f"the source table {subject.source} of subject `{subject.name}` was not found",
            where="the estate file, `subjects`",
            todo="correct the name of the table or of its catalog",
        )
    spots = {name: find_spot(name, state.columns, subject.source) for name in subject.key_parts}
    rows = read_spots(state, spots, paths)
    parts = ([None if cell is None else str(cell) for cell in rows[name]] for name in subject.key_parts)
    values = {joined(row) for row in zip(*parts, strict=True)} - {None}
    found = {key.reference(subject.name, str(value)) for value in values} & gone.keys()
    return [Returned(reference, subject.source, gone[reference]) for reference in sorted(found)]


def elsewhere(
    known: SuppressionList, plans: Sequence[ErasurePlan], inventory: Inventory, paths: EstatePaths
) -> list[Returned]:
    """Suppressed persons who stand again in any table that a finished plan erased them from, by what it matched.

    Raises:
        EstateError: a table cannot be read without Spark: nobody could say who is back.
    """
    states = {s.location: s for s in inventory.tables}
    _refuse_unseen([copy for plan in plans for copy in plan.copies if copy.folder not in states], inventory)
    last_done = _last_done(plans)
    found = {}
    for copy in _ways(plans, states):
        title = copy.table or copy.id.removeprefix("c-")
        for term in copy.places.terms if copy.places else ():
            for value in standing(states[copy.folder], term, paths, copy.mask):
                entry = known.find(term.key_set, value)
                if (
                    entry is not None
                    and not entry.open
                    and _erased_as(copy, last_done(copy.location, entry.subject) or copy)
                ):
                    found[copy.location, entry.subject] = Returned(entry.subject, title, entry.since)
    return [found[name] for name in sorted(found)]


def _last_done(plans: Sequence[ErasurePlan]) -> Callable[[str, str], Copy | None]:
    """What was last done in a place (by its location) about a person (keyed reference); None where nothing was."""
    newest_first = sorted(plans, key=lambda made: made.created_at)[::-1]
    copies = [{copy.location: copy for copy in plan.copies if copy.origin is None} for plan in newest_first]
    persons = [{request.subject for request in plan.requests} for plan in newest_first]

    def last(location: str, person: str) -> Copy | None:
        theirs = (there for there, who in zip(copies, persons, strict=True) if person in who and location in there)
        return next((there[location] for there in theirs), None)

    return last


def _ways(plans: Sequence[ErasurePlan], states: Mapping[str, TableState]) -> list[Copy]:
    """Every way in which a plan found rows of a table: plans for others find theirs by other columns. Each way once."""
    ways = {
        (copy.location, str(copy.places), str(copy.mask)): copy
        for plan in plans
        for copy in plan.copies
        if copy.places and copy.origin is None and copy.folder in states
    }
    return [ways[name] for name in sorted(ways)]


def _erased_as(copy: Copy, last: Copy) -> bool:
    """Whether what was last done about a person left no more of them than this copy does: what a hold keeps of them is
    not back."""
    return last.strategy is not Strategy.EXEMPT and last.mask == copy.mask


def _refuse_unseen(copies: Sequence[Copy], inventory: Inventory) -> None:
    """A table in S3 of which the inventory tells nothing but a gap may be there with everybody in it."""
    gaps = {gap.evidence: gap.reason for gap in inventory.gaps}
    for copy in copies:
        if (copy.s3_table or copy.in_objects) and copy.places and copy.folder in gaps:
            raise EstateError(
                f"cannot find out whether erased persons are back in a table in S3: {gaps[copy.folder]}",
                where=copy.table or copy.location,
                todo="make the bucket reachable; if the table no longer exists, remove it from the estate file",
            )


def standing(state: TableState, term: MatchTerm, paths: EstatePaths, mask: Mask | None = None) -> set[str]:
    """The distinct values that stand at a term's place in a table now; mask: in rows that hold more than it keeps."""
    from pii_tracer.lake.rows.current_rows import read_columns
    from planners.copies.person_rows import leaves

    rest = mask.columns if mask else ()
    rows = read_columns(state, sorted({*term.columns, *rest}), paths).to_pylist()
    more = (row for row in rows if mask is None or any(row.get(name) is not None for name in rest))
    found = {value for row in more for value in leaves(row, term)}
    if term.beside:
        return found | {joined([without_fraction(part) for part in split(value)]) or value for value in found}
    return found | {without_fraction(value) for value in found}


def finished(state: Path) -> list[ErasurePlan]:
    """The plans of runs that erased somebody, in the order of their folders: those that are complete, and those that
    attest all but the requests that stay open, which are left out.

    Raises:
        UsageError: the plan of one is not there any more: nobody could say whom it erased from where.
    """
    found = []
    for folder in all_runs(state):
        result = folder.last_result() or {}
        if result.get("state") == "complete" or result.get("attestation"):
            plan, open_ = folder.approved().plan, frozenset(result.get("open_requests") or ())
            done = tuple(request for request in plan.requests if request.id not in open_)
            found.append(plan.model_copy(update={"requests": done}))
    return found


def rechecks(state: Path) -> list[Due]:
    """What finished runs have to be planned again, the earliest first; a newer run of the same persons replaces one."""
    newest: dict[str, Any] = {}
    for plan in finished(state):
        for request in plan.requests:
            before = newest.get(request.subject)
            if before is None or before.created_at < plan.created_at:
                newest[request.subject] = plan
    plans = {plan.plan_id: plan for plan in newest.values() if plan.totals.recheck_on}
    due = [Due(p.plan_id, tuple(r.id for r in p.requests), p.totals.recheck_on) for p in plans.values()]
    return sorted(due, key=lambda item: (item.recheck_on, item.plan_id))


def not_looked_at(plans: Sequence[ErasurePlan], inventory: Inventory) -> list[str]:
    """Places that finished plans erased persons from and that no `recheck` looks into: archives, topics, vaults,
    repositories, backups, and tables that are not where they were."""
    states = {s.location for s in inventory.tables}
    copies = (copy for plan in plans for copy in plan.copies if copy.origin is None)
    unseen = (c for c in copies if c.strategy is not Strategy.EXEMPT and not (c.places and c.folder in states))
    return sorted({copy.table or copy.id.removeprefix("c-") for copy in unseen})
