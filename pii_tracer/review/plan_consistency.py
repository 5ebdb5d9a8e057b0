"""What no planner writes into a plan. A file that says such a thing was edited by hand, and is refused.

Each rule gives words, or None. The words hold nothing of the file but positions: what was edited in may be anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pii_tracer.lake.formats.base import Role
from pii_tracer.lake.formats.registry import actions_with, known_actions
from pii_tracer.model.actions import COMPUTES, SOURCES, Action
from pii_tracer.model.datasets import PLAIN, Carries, CopyKind, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import (
    HELD,
    STAYS,
    Copy,
    ErasurePlan,
    Gap,
    Step,
)

# a run's folder and a verdict's file are named by them
_HARMLESS = re.compile(r"[A-Za-z0-9][^/\\\x00-\x1f]{0,199}")
_UNTOUCHED = frozenset({Strategy.EXEMPT, Strategy.BLOCKED})
_ROUNDED = 0.1  # days of slack are written with one digit
_CENT = 0.01


def contradiction(plan: ErasurePlan) -> str | None:
    """The first thing in a plan that cannot be: names that lead to other places on a disk, a copy that nobody will look
    at, an exemption without its hold, sums of something else."""
    return next((found for rule in _RULES if (found := rule(plan))), None)


def _names(plan: ErasurePlan) -> str | None:
    copies, steps = [copy.id for copy in plan.copies], [step.id for step in plan.steps]
    if not all(_HARMLESS.fullmatch(name) for name in (plan.plan_id, *copies)):
        return "the id of the plan or of a copy cannot be the name of a file"
    if len(set(copies)) != len(copies) or len(set(steps)) != len(steps):
        return "two copies or two steps have one id"
    there = {None, *copies}
    if any(step.copy_ not in there for step in plan.steps):
        return "a step is for a copy that is not there"
    known = set(steps)
    for number, step in enumerate(plan.steps):
        if not known.issuperset(step.depends_on):
            return f"steps.{number} waits for a step that is not there"
    if not known.issuperset(plan.totals.critical_path):
        return "the critical path names a step that is not there"
    return None


def _words(plan: ErasurePlan) -> str | None:
    """An action of an adapter that is not installed here: no rule knows what it does."""
    known = known_actions()
    for number, step in enumerate(plan.steps):
        if step.action not in known:
            return f"steps.{number} does what no installed adapter knows; install the one that the plan was made with"
    return None


def _looks(plan: ErasurePlan) -> str | None:
    """What is erased and then not looked at would be attested by nobody's eyes."""
    steps = _by_copy(plan)
    for number, copy in enumerate(plan.copies):
        wrong = _look(copy, steps.get(copy.id, {}))
        if wrong:
            return f"copies.{number} {wrong}"
    return None


def _by_copy(plan: ErasurePlan) -> Mapping[str, Mapping[str, Step]]:
    found: dict[str, dict[str, Step]] = {}
    for step in plan.steps:
        if step.copy_ is not None:
            found.setdefault(step.copy_, {})[step.id] = step
    return found


def _look(copy: Copy, steps: Mapping[str, Step]) -> str | None:
    actions = {step.action for step in steps.values()}
    if copy.strategy in _UNTOUCHED:
        return "is kept or blocked, and has steps" if steps else None
    if (copy.kind is CopyKind.BACKUP) is not (copy.strategy is Strategy.CONFIRM):
        return "is a backup and is not confirmed by a person, or the other way round"
    if copy.kind is CopyKind.BACKUP:
        return None if Action.BACKUP_CONFIRM in actions else "is a backup that nobody is asked to confirm"
    looks = [step for step in steps.values() if step.action is Action.VERIFY_COPY]
    if not looks:
        return "has no verification"
    if any(steps.keys() - _before(look, steps) - {look.id} for look in looks):
        return "is verified before its last step"
    return None


def _before(look: Step, steps: Mapping[str, Step]) -> set[str]:
    """Steps of the same copy that a verification waits for, through however many others of it."""
    found: set[str] = set()
    todo = [look]
    while todo:
        new = [name for name in todo.pop().depends_on if name in steps and name not in found]
        found.update(new)
        todo += [steps[name] for name in new]
    return found


def _holds(plan: ErasurePlan) -> str | None:
    keeps = {hold.id: hold.copies for hold in plan.holds}
    for number, copy in enumerate(plan.copies):
        if (copy.strategy in HELD) is not (copy.exemption is not None):
            return f"copies.{number} is kept without an exemption, or has one and is not kept"
        if (copy.strategy is Strategy.MASK_COLUMNS) is not (copy.mask is not None):
            return f"copies.{number} does not say which columns are kept, or does and is not kept in part"
        if copy.strategy is Strategy.CLEAR_MENTIONS and (copy.match is not None or not copy.mentions):
            return f"copies.{number} says that every row stays, and finds rows that go, or no column to clear"
        if any(not (mention.mask.columns or mention.match.lists) for mention in copy.mentions):
            return f"copies.{number} names the persons in rows that stay, and does not say what becomes of these"
        if copy.match and any(part.within for term in copy.match.terms for part in term.parts):
            return f"copies.{number} takes rows for the persons' that have them in a list, beside others"
        if copy.exemption is None:
            continue
        if not copy.exemption.holds or any(copy.id not in keeps.get(name, ()) for name in copy.exemption.holds):
            return f"copies.{number} is kept by a hold that the plan does not have, or that keeps something else"
    return None


def _claims(plan: ErasurePlan) -> str | None:
    open_gaps = [gap for gap in plan.gaps if gap.waiver is None]
    if not {request.id for request in plan.requests}.issuperset(plan.known_by_key or ()):
        return "it knows persons by their keys alone for whom it has no request"
    if plan.complete is bool(open_gaps):
        return "its `complete` and its open gaps do not agree"
    if not plan.applyable:
        return None
    if any(copy.strategy is Strategy.BLOCKED for copy in plan.copies):
        return "it can be applied, and a copy is blocked"
    if any(gap.kind != GapKind.LEFT_OUT for gap in open_gaps):
        return "it can be applied, and a gap is open"
    return None


def _tasks(plan: ErasurePlan) -> str | None:
    """A waiver that rests on a task which no step asks for, or asks for in other words."""
    asked = {
        gap: step for step in plan.steps if step.action is Action.OWNER_TASK for gap in step.parameters.get("gaps", ())
    }
    for number, gap in enumerate(plan.gaps):
        task, step = gap.task, asked.pop(gap.id, None)
        said = step and (step.executor, step.parameters.get("owner"), step.parameters.get("act"))
        if said != (task and ("people", task.owner, task.act)):
            return f"gaps.{number} is waived with a task that no step asks for, or the other way round"
    return "a task is for a gap that is not there" if asked else None


def _recomputed(plan: ErasurePlan) -> str | None:
    """Computed again is a bare table of aggregates alone, between its erased sources and a look at it: where it is
    anything else, rows of the persons would stay on their owner's word."""
    steps, copies = _by_copy(plan), {copy.id: copy for copy in plan.copies}
    looks = {s.copy_: s.id for s in plan.steps if s.action is Action.VERIFY_COPY}
    asked = [step for step in plan.steps if step.action is Action.OWNER_TASK]
    tasks = {gap: step for step in asked for gap in _named(step, "gaps")}
    promised: dict[str, set[str]] = {}
    for number, copy in enumerate(plan.copies):
        mine = steps.get(copy.id, {}).values()
        if copy.strategy is not Strategy.RECOMPUTED:
            if any(step.action is Action.NOTE_FILES for step in mine):
                return f"copies.{number} is not computed again, and its files are noted"
            continue
        if (copy.kind, copy.carries) != (CopyKind.DERIVED, Carries.AGGREGATE) or copy.format not in PLAIN:
            return f"copies.{number} is computed again, and is no bare table of aggregates"
        if copy.columns or copy.match is not None or copy.mentions:
            return f"copies.{number} is computed again, and has columns of the persons"
        acts = {step.action: step for step in mine if step.executor == "verify"}
        if len(mine) != len(acts) or acts.keys() != {Action.NOTE_FILES, Action.VERIFY_COPY}:
            return f"copies.{number} is computed again, and has other steps than to note its files and to verify it"
        note, look = acts[Action.NOTE_FILES], acts[Action.VERIFY_COPY]
        task = next((tasks.get(gap.id) for gap in plan.gaps if _is_promise(gap, copy)), None)
        if task is None or note.id not in task.depends_on or task.id not in look.depends_on:
            return f"copies.{number} is verified before its owner computed it again, or its files are noted after that"
        promised.setdefault(task.id, set()).add(copy.id)
        sources = [copies.get(name) for name in _named(note, SOURCES)]
        if not sources or not all(one and _is_gone(one, copy) for one in sources):
            return f"copies.{number} is computed again from what is not erased"
        if not {looks.get(one.id) for one in sources if one} <= {*note.depends_on}:
            return f"copies.{number} has its files noted before what it is computed from is erased"
    for step in asked:
        if {*_named(step, COMPUTES)} != promised.get(step.id, set()):
            return "a task is to compute other copies again than those that wait for it"
    return None


def _named(step: Step, parameter: str) -> tuple[str, ...]:
    """The ids that a parameter lists, whatever was written there."""
    found = step.parameters.get(parameter, ())
    return tuple(map(str, found)) if isinstance(found, list | tuple) else (str(found),)


def _is_promise(gap: Gap, copy: Copy) -> bool:
    """Whether by this gap's task its owner computes a copy again."""
    mine = gap.dataset == copy.dataset and gap.kind == GapKind.CANNOT_BE_PROVED and gap.task is not None
    return mine and gap.id == f"gap-no_way-{copy.id.removeprefix('c-')}"


def _is_gone(source: Copy, copy: Copy) -> bool:
    """Whether what a copy is computed from is without the persons by then."""
    if source.strategy is Strategy.RECOMPUTED:
        return source.id != copy.id
    return source.strategy not in STAYS and source.strategy is not Strategy.BLOCKED


def _waivers(plan: ErasurePlan) -> str | None:
    """A waiver of something else than the gap shows."""
    for number, gap in enumerate(plan.gaps):
        if gap.waiver and gap.waiver.of != gap.seen:
            return f"gaps.{number} has a waiver that was given for something else"
    return None


def _counts(plan: ErasurePlan) -> str | None:
    said, own = plan.totals, [copy for copy in plan.copies if copy.origin is None]
    counted = {
        "copies": len(own),
        "beyond": len(plan.copies) - len(own),
        "exempt": sum(copy.strategy in HELD for copy in own),
        "steps": len(plan.steps),
        "irreversible": sum(step.irreversible for step in plan.steps),
        "gaps": sum(gap.waiver is None for gap in plan.gaps),
        "waived": sum(gap.waiver is not None for gap in plan.gaps),
    }
    wrong = next((name for name, count in counted.items() if getattr(said, name) != count), None)
    if wrong:
        return f"totals.{wrong} is another number than the plan has"
    if abs(said.cost - sum(step.estimate.cost for step in plan.steps)) > _CENT:
        return "totals.cost is not the sum of the steps' costs"
    return None


def _dates(plan: ErasurePlan) -> str | None:
    said = plan.totals
    if said.finish != max((step.earliest_finish for step in plan.steps), default=plan.created_at):
        return "totals.finish is not when the last step ends"
    if any(said.deadline > request.deadline for request in plan.requests):
        return "totals.deadline is after the deadline of a request"
    if plan.not_before and any(step.earliest_start < plan.not_before for step in plan.steps):
        return "a step begins before the notice to a person has run"
    if abs(said.slack_days - (said.deadline - said.finish).total_seconds() / 86400) > _ROUNDED:
        return "totals.slack_days is not the time between the end and the deadline"
    return None


def _preconditions(plan: ErasurePlan) -> str | None:
    """Without the snapshot of the day of planning, what was written since would be erased or lost unseen."""
    steps = _by_copy(plan)
    for number, copy in enumerate(plan.copies):
        mine = steps.get(copy.id, {}).values()
        kinds = {item.kind for step in mine for item in step.preconditions if item.hard}
        if "snapshot" not in kinds and any(step.action in actions_with(Role.ON_ROWS) for step in mine):
            return f"copies.{number} is written again, and not compared with what was planned"
    return None


def _other_numbers(plan: ErasurePlan) -> str | None:
    """What is left out of every look has to be seen by the reviewers, and is never what rows are found by."""
    shown = {override.reason for override in plan.overrides if override.kind == "not_keys"}
    if shown != {item.told for item in plan.not_keys}:
        return "what it leaves out as numbers of other systems is not what it shows to its reviewers"
    for number, item in enumerate(plan.not_keys):
        names = {name.lower() for name in (item.column, *item.labels)}
        for copy in plan.copies:
            terms = copy.places.terms if copy.places and copy.dataset == item.dataset else ()
            mine = (term for term in terms if term.key_set in item.key_sets)
            if any(names & {term.column.lower(), term.label().lower(), term.place.lower()} for term in mine):
                return f"not_keys.{number} is a column by which rows of the persons are found"
    return None


_RULES: tuple[Callable[[ErasurePlan], str | None], ...] = (
    _names,
    _words,
    _looks,
    _holds,
    _claims,
    _tasks,
    _recomputed,
    _waivers,
    _counts,
    _dates,
    _preconditions,
    _other_numbers,
)
