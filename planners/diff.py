"""What changed between two plans, in a reviewer's words."""

from __future__ import annotations

from pii_tracer.plan import ErasurePlan


def describe(old: ErasurePlan, new: ErasurePlan) -> tuple[str, ...]:
    """One line for each difference that a reviewer must know, the weightiest first; a line that says so if none."""
    lines: list[str] = []
    before, after = {c.id: c for c in old.copies}, {c.id: c for c in new.copies}
    lines += [f"+ copy {i}: {after[i].strategy}, {after[i].reason}" for i in sorted(after.keys() - before.keys())]
    lines += [f"- copy {i}: no longer in the plan" for i in sorted(before.keys() - after.keys())]
    for name in sorted(before.keys() & after.keys()):
        if before[name].strategy is not after[name].strategy:
            lines.append(f"~ copy {name}: {before[name].strategy} becomes {after[name].strategy}")
    old_gaps, new_gaps = {g.id: g for g in old.gaps}, {g.id: g for g in new.gaps}
    lines += [f"+ gap {i}: {new_gaps[i].reason}" for i in sorted(new_gaps.keys() - old_gaps.keys())]
    lines += [f"- gap {i}: closed" for i in sorted(old_gaps.keys() - new_gaps.keys())]
    old_steps, new_steps = {s.id: s for s in old.steps}, {s.id: s for s in new.steps}
    lines += [f"+ step {i}" for i in sorted(new_steps.keys() - old_steps.keys())]
    lines += [f"- step {i}" for i in sorted(old_steps.keys() - new_steps.keys())]
    for name in sorted(old_steps.keys() & new_steps.keys()):
        if old_steps[name].parameters != new_steps[name].parameters:
            lines.append(f"~ step {name}: other parameters")
    for what, a, b in (
        ("done by", old.totals.finish, new.totals.finish),
        ("deadline", old.totals.deadline, new.totals.deadline),
        ("cost", old.totals.cost, new.totals.cost),
        ("retention", old.retention, new.retention),
    ):
        if a != b:
            lines.append(f"~ {what}: {a} becomes {b}")
    return tuple(lines) or ("nothing that a reviewer must know has changed",)
