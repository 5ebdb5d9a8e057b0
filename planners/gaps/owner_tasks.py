"""What people do by hand about waived gaps, as steps of the plan: who, what, before and after which copies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pii_tracer.model.actions import COMPUTES, Action
from pii_tracer.model.errors import PlanError
from pii_tracer.model.plan import Gap
from pii_tracer.model.waivers import OwnerTask
from planners.gaps.recomputed_copies import is_recomputed_by, looked_at_after
from planners.step_drafts import CopyDraft, Draft, is_named


def with_tasks(items: Sequence[CopyDraft], gaps: Iterable[Gap]) -> tuple[tuple[CopyDraft, ...], tuple[Draft, ...]]:
    """The copies, with what waits for a task behind it, and the steps of the tasks that the gaps' waivers name.

    One task that several waivers name word for word is one step.

    Raises:
        PlanError: a task names a copy that the plan does not change, or computes a copy again and one made from that.
    """
    asked: dict[OwnerTask, list[Gap]] = {}
    for gap in gaps:
        if gap.task:
            asked.setdefault(gap.task, []).append(gap)
    steps = []
    for number, (task, about) in enumerate(asked.items(), 1):
        step = _step(number, task, about, items)
        first = {_named(name, items, about[0]).drafts[0].id for name in task.before}
        mine = [item for item in items if is_recomputed_by(item, step.parameters["gaps"])]
        again = [item.copy.id for item in mine]
        if again:
            _refuse_chain(mine)
            noted = (item.drafts[0].id for item in items if item.copy.id in again)
            told = {**step.parameters, COMPUTES: sorted(again)}
            step = replace(step, parameters=told, after=tuple(sorted({*step.after, *noted})))
        steps.append(step)
        items = [_waiting(item, first, step.id) for item in items]
        items = [looked_at_after(item, step.id) if item.copy.id in again else item for item in items]
    return tuple(items), tuple(steps)


def _step(number: int, task: OwnerTask, about: Sequence[Gap], items: Sequence[CopyDraft]) -> Draft:
    return Draft(
        id=f"tasks/{number:02d}-owner-task",
        copy=None,
        action=Action.OWNER_TASK,
        executor="people",
        parameters={
            "owner": task.owner,
            "act": task.act,
            "due_days": task.due_days,
            "gaps": [gap.id for gap in about],
        },
        hazards=(),
        irreversible=False,
        verification=(
            "a trusted person signed that the task is done, with the digest of the evidence; at its end the run "
            "searches every place of the plan again"
        ),
        reason=f"{task.owner}: {task.act}",
        after=tuple(sorted(_named(name, items, about[0]).drafts[-1].id for name in task.after)),
    )


def _refuse_chain(items: Sequence[CopyDraft]) -> None:
    """One task cannot compute two tables again of which one is computed from the other: this is noted in between."""
    looks = {item.drafts[-1].id: item.copy for item in items}
    for item in items:
        if above := sorted(looks.keys() & {*item.drafts[0].after}):
            source, copy = looks[above[0]], item.copy
            raise PlanError(
                f"a task to recompute {copy.table or copy.id} uses the same words as a task to recompute its source "
                f"{source.table or source.id}",
                where=f"the waiver for {copy.id}",
                todo=(
                    "describe the task of this waiver in different words, because people do it after the task of the "
                    "source"
                ),
            )


def _waiting(item: CopyDraft, first: set[str], task: str) -> CopyDraft:
    if not item.drafts or item.drafts[0].id not in first:
        return item
    begins = item.drafts[0]
    return replace(item, drafts=(replace(begins, after=(*begins.after, task)), *item.drafts[1:]))


def _named(name: str, items: Sequence[CopyDraft], gap: Gap) -> CopyDraft:
    found = [item for item in items if item.drafts and (name == item.copy.id or is_named(name, item.copy))]
    if not found:
        raise PlanError(
            f"a task names {name} in `before` or `after`, but the plan has no step for {name}",
            where=f"the waiver of {gap.id}",
            todo="write the table, place or id of a copy in the plan",
        )
    # what hangs from a copy (its history, its old versions) has the copy's name, and comes behind it
    return next((item for item in found if item.copy.origin is None), found[0])
