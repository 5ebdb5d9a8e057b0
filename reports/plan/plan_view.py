"""The plan as its readers need it: verdict, copies in a tree, what is irreversible. Shared by all plan reports."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import count as counting

from pii_tracer.common.plurals import counted
from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.actions import CONFIRMED, Action
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.gap_remedies import REMEDIES
from pii_tracer.model.plan import (
    Copy,
    ErasurePlan,
    Examined,
    Gap,
    PlannedHold,
    Step,
)
from reports import wording


class Verdict(StrEnum):
    """The plan's state in one word; the worst that holds."""

    INCOMPLETE = "incomplete"
    LATE = "late"
    NOT_APPLYABLE = "not_applyable"
    PARTIAL = "partial"
    READY = "ready"


HEADLINES = {
    Verdict.INCOMPLETE: "Incomplete: gaps must be closed or waived by name before this plan can be approved",
    Verdict.LATE: "Misses the legal deadline: its last step ends later",
    Verdict.NOT_APPLYABLE: "Not applyable: the plan cannot erase a copy, has no copy, or may have a wrong key",
    Verdict.PARTIAL: "Not a complete erasure: copies are left out by choice. The plan can be applied, but not attested",
    Verdict.READY: "Complete and ready for review",
}


@dataclass(frozen=True)
class CopyRow:
    """A copy with what the plan does to it. number: `7`, or empty for a copy beyond; depth: 0 for counting copies."""

    number: str
    depth: int
    copy: Copy
    steps: tuple[Step, ...]

    @property
    def name(self) -> str:
        """What people call it."""
        return wording.copy_name(self.copy)

    @property
    def kind(self) -> str:
        """`dev clone`."""
        return wording.KINDS[self.copy.kind]

    @property
    def carries(self) -> str:
        """`computed key`."""
        return wording.CARRIES[self.copy.carries]

    @property
    def strategy(self) -> str:
        """`delete by key`."""
        return wording.STRATEGIES[self.copy.strategy]

    @property
    def rows(self) -> int | None:
        """Rows of the persons that the scan at planning saw; None where rows do not apply or nobody looked."""
        return self.copy.found.rows if self.copy.found else None

    @property
    def files(self) -> int | None:
        """Files with the persons in them at planning."""
        return self.copy.found.files_with_person if self.copy.found else None

    @property
    def hazards(self) -> tuple[str, ...]:
        """Catalogue ids over all steps, each once, in order of the first step that meets it."""
        return tuple(dict.fromkeys(hazard for step in self.steps for hazard in step.hazards))

    @property
    def irreversible(self) -> int:
        """Steps that cannot be undone."""
        return sum(step.irreversible for step in self.steps)


@dataclass(frozen=True)
class Act:
    """One kind of irreversible act: how often, and on which copies by name."""

    action: str
    count: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class Kept:
    """A hold, and what it keeps by name. rest: where it keeps columns only, what becomes of the others."""

    hold: PlannedHold
    names: tuple[str, ...]
    rest: tuple[str, ...] = ()

    @property
    def why(self) -> str:
        """`PMLA 2002, s. 12, until 31 Mar 2031, approved by …`."""
        hold = self.hold
        until = "without an end date" if hold.until is None else f"until {wording.day(hold.until)}"
        kind = hold.kind.replace("_", " ")
        return f"{kind}: {hold.basis}, {hold.citation}, {until}, approved by {hold.approver}"


_TASK_NAMES = 6


@dataclass(frozen=True)
class Task:
    """What a person does by hand. step: to confirm. due: at the latest. after, before: names of copies."""

    step: str
    owner: str
    act: str
    due: datetime
    after: tuple[str, ...]
    before: tuple[str, ...]

    @property
    def when(self) -> str:
        """`until 1 Dec 2026; after prod.a; before prod.b`."""
        parts = [f"until {wording.day(self.due)}"]
        for word, names in (("after", self.after), ("before", self.before)):
            if names:
                more = f" and {len(names) - _TASK_NAMES} more" if len(names) > _TASK_NAMES else ""
                parts.append(f"{word} {', '.join(names[:_TASK_NAMES])}{more}")
        return "; ".join(parts)


@dataclass(frozen=True)
class PlanView:
    """What every plan report shows, in the same order."""

    plan: ErasurePlan

    @cached_property
    def verdict(self) -> Verdict:
        """The worst that holds."""
        plan = self.plan
        if self.open_gaps or not (plan.complete or self.left_out):
            return Verdict.INCOMPLETE
        if plan.totals.finish > plan.totals.deadline:
            return Verdict.LATE
        if self.left_out and plan.applyable:
            return Verdict.PARTIAL
        return Verdict.READY if plan.applyable else Verdict.NOT_APPLYABLE

    @cached_property
    def examined(self) -> tuple[Examined, ...]:
        """What is no copy. Not a place where the persons were found: its gap says so, and the plan's other entry about
        the same place (a bare folder's objects) would seem to deny it."""
        found = {gap.dataset for gap in self.plan.gaps if gap.kind == GapKind.UNEXPECTED_COPY}
        return tuple(item for item in self.plan.examined if item.dataset not in found)

    @property
    def headline(self) -> str:
        """The verdict as a sentence."""
        return HEADLINES[self.verdict]

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The verdict's numbers, one phrase each: `19 copies`, `5 beyond`, … `₹1,840`."""
        totals = self.plan.totals
        left = len(self.left_out)
        gaps = counted_gaps(totals.gaps - left, totals.waived)
        return (
            counted(totals.copies, "copy", "copies"),
            f"{totals.beyond:,} beyond",
            counted(totals.steps, "step"),
            f"{totals.irreversible:,} irreversible",
            gaps,
            *((f"{left:,} left out",) if left else ()),
            *((f"{totals.exempt:,} kept by a hold",) if totals.exempt else ()),
            f"done by {wording.short_day(totals.finish)}, {wording.slack(totals.slack_days)}",
            wording.money(totals.cost, totals.currency),
        )

    @cached_property
    def kept(self) -> tuple[Kept, ...]:
        """What holds keep from being erased, in the plan's order of holds."""
        rows = {row.copy.id: row for row in self.rows}
        return tuple(_kept(hold, [rows[i] for i in hold.copies if i in rows]) for hold in self.plan.holds)

    @property
    def recheck(self) -> str:
        """When to plan again for what is kept; empty where nothing is."""
        if not self.plan.holds:
            return ""
        on = self.plan.totals.recheck_on
        if on is None:
            return "plan again when the approvers of the holds lift them: they have no end yet"
        return f"plan again on {wording.day(on)}, when the first hold lapses"

    @cached_property
    def open_gaps(self) -> tuple[Gap, ...]:
        """Gaps that nobody waived, without those that were left out by choice."""
        return tuple(gap for gap in self.plan.gaps if gap.waiver is None and gap.kind != GapKind.LEFT_OUT)

    @cached_property
    def remedies(self) -> Mapping[str, str]:
        """By id of an open gap, what closes it: once for each kind, at the first gap of it."""
        first: dict[str, str] = {}
        for gap in self.open_gaps:
            first.setdefault(gap.kind, gap.id)
        return {gap_id: remedy for kind, gap_id in first.items() if (remedy := REMEDIES.get(kind))}

    @cached_property
    def left_out(self) -> tuple[Gap, ...]:
        """Copies that this plan leaves out by choice."""
        return tuple(gap for gap in self.plan.gaps if gap.kind == GapKind.LEFT_OUT)

    @cached_property
    def waived_gaps(self) -> tuple[Gap, ...]:
        """Gaps that a named person accepts."""
        return tuple(gap for gap in self.plan.gaps if gap.waiver is not None and gap.kind != GapKind.LEFT_OUT)

    @cached_property
    def rows(self) -> tuple[CopyRow, ...]:
        """Counting copies in plan order, each followed by what hangs from it; a lost origin counts as none."""
        plan = self.plan
        known = {copy.id for copy in plan.copies}
        steps: dict[str, list[Step]] = {}
        below: dict[str | None, list[Copy]] = {}
        for step in plan.steps:
            if step.copy_ is not None:
                steps.setdefault(step.copy_, []).append(step)
        for copy in plan.copies:
            below.setdefault(copy.origin if copy.origin in known else None, []).append(copy)
        rows: list[CopyRow] = []
        seen: set[str] = set()
        numbers = counting(1)

        def add(copy: Copy, depth: int) -> None:
            if copy.id in seen:
                return
            seen.add(copy.id)
            number = str(next(numbers)) if depth == 0 else ""
            rows.append(CopyRow(number, depth, copy, tuple(steps.get(copy.id, ()))))
            for child in below.get(copy.id, ()):
                add(child, depth + 1)

        for copy in below.get(None, ()):
            add(copy, 0)
        for copy in plan.copies:  # copies that name each other as origin must still be shown
            add(copy, 0)
        return tuple(rows)

    @cached_property
    def shared_steps(self) -> tuple[Step, ...]:
        """Steps of no single copy (staging and dropping keys)."""
        return tuple(step for step in self.plan.steps if step.copy_ is None)

    @cached_property
    def acts(self) -> tuple[Act, ...]:
        """Irreversible acts by kind, the most frequent first."""
        names = {row.copy.id: row.name for row in self.rows}
        counts: Counter[str] = Counter()
        where: dict[str, dict[str, None]] = {}
        for step in self.plan.steps:
            if step.irreversible:
                counts[step.action] += 1
                where.setdefault(step.action, {})[names.get(step.copy_ or "", "all copies")] = None
        return tuple(
            Act(action.replace("_", " "), count, tuple(where[action]))
            for action, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        )

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """What people do by hand, in the plan's order: the run waits for each to be confirmed."""
        names = {row.copy.id: row.name for row in self.rows}
        whose = {step.id: names.get(step.copy_ or "") for step in self.plan.steps}
        tasks = {step.id for step in self.plan.steps if step.action is Action.OWNER_TASK}
        notes = {step.id: step.depends_on for step in self.plan.steps if step.action is Action.NOTE_FILES}
        behind: dict[str, dict[str, None]] = {}
        for step in self.plan.steps:
            for before in tasks.intersection(step.depends_on):
                if name := whose[step.id]:
                    behind.setdefault(before, {})[name] = None
        return tuple(
            Task(
                step.id,
                str(step.parameters["owner"]),
                str(step.parameters["act"]),
                step.earliest_finish,
                tuple(dict.fromkeys(n for s in step.depends_on for b in notes.get(s, (s,)) if (n := whose.get(b)))),
                tuple(behind.get(step.id, ())),
            )
            for step in self.plan.steps
            if step.action in CONFIRMED
        )

    def commands(self, plan_file: str, options: Sequence[str] = ()) -> tuple[tuple[str, str], ...]:
        """What to type next, with its purpose; nothing that would be refused in this state.

        options: what every command needs as well, e.g. `("--estate", "FILE")`. Words in capitals are to be filled in.
        """
        file = shlex.join([plan_file, *options])
        check = (f"pii-tracer check {file}", "policy, digests and gaps")
        if self.verdict is Verdict.INCOMPLETE:
            again = f"pii-tracer plan REQUESTS --planner NAME --out {file}"
            return (
                (again, "after each gap is closed, or waived with `--waivers` (docs/howto/incomplete-plan.md)"),
                check,
            )
        if self.verdict not in (Verdict.READY, Verdict.PARTIAL):
            return (check,)
        return (
            check,
            (
                f"pii-tracer approve {file} --approver NAME --role ROLE --reason WHY --key KEY.pem",
                "by someone other than the planner",
            ),
            (
                f"pii-tracer apply {file} --trusted APPROVERS.yaml",
                "runs exactly these bytes, if the file names the approver's public key",
            ),
        )


def _kept(hold: PlannedHold, rows: Sequence[CopyRow]) -> Kept:
    names, rest = [], []
    for row in rows:
        mask = row.copy.mask
        if mask is None:
            names.append(row.name)
            continue
        names.append(f"{row.name} (only {', '.join(c.name for c in mask.held if hold.id in c.holds)})")
        line = f"{row.name}: NULL in the persons' rows: {', '.join(mask.columns)}"
        if mask.found_by:
            line += f"; {', '.join(mask.found_by)} is also kept, because no held column shows whose row it is"
        rest.append(line)
    return Kept(hold, tuple(names), tuple(rest))


def counted_gaps(gaps: int, waived: int) -> str:
    """`0 gaps`, `3 gaps (2 waived)`."""
    return counted(gaps, "gap") + (f" ({waived:,} waived)" if waived else "")
