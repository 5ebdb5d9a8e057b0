"""What of a plan is the same for every build of the sample estate: no digests, ids of snapshots, sizes or paths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pii_tracer.model.plan import Copy, ErasurePlan, Step

GOLDEN = Path(__file__).parents[2] / "sample_lineage" / "expected" / "plan.stable.json"


def stable(plan: ErasurePlan) -> bytes:
    """The stable view as sorted, indented JSON."""
    view = {
        "requests": [{"id": r.id, "law": r.law, "deadline": r.deadline.isoformat()} for r in plan.requests],
        "complete": plan.complete,
        "applyable": plan.applyable,
        "copies": [_copy(c) for c in plan.copies],
        "gaps": [g.id for g in plan.gaps],
        "examined": [{"table": e.table, "carries": e.carries.value} for e in plan.examined],
        "steps": [_step(s) for s in plan.steps],
        "schedules": {s.retention: s.meets_deadline for s in plan.schedules},
        "totals": {k: getattr(plan.totals, k) for k in ("copies", "beyond", "steps", "irreversible", "gaps", "waived")},
    }
    return (json.dumps(view, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _copy(copy: Copy) -> dict[str, Any]:
    return {
        "id": copy.id,
        "kind": copy.kind.value,
        "dataset": str(copy.dataset),
        "table": copy.table,
        "format": copy.format.value,
        "carries": copy.carries.value,
        "strategy": copy.strategy.value,
        "columns": [f"{c.name}: {c.category}" for c in copy.columns],
        "match": [f"{t.label()} in {t.key_set}" for t in copy.match.terms] if copy.match else None,
        "other_keys": list(copy.other_keys),
        "lineage": list(copy.lineage),
        "origin": copy.origin,
        "rows": copy.found.rows if copy.found else None,
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "id": step.id,
        "action": step.action.value,
        "depends_on": list(step.depends_on),
        "hazards": list(step.hazards),
        "irreversible": step.irreversible,
    }
