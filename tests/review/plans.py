"""Small valid plans for tests, and the times they live in."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG, ICEBERG_DELETE_ROWS, ICEBERG_EXPIRE_SNAPSHOTS
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    Carries,
    CopyKind,
    DatasetId,
    Strategy,
)
from pii_tracer.model.plan import HELD, Copy, ErasurePlan, Estimate, Gap, Override, Precondition, Step, Totals
from pii_tracer.model.planned_requests import PlannedRequest

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=timezone.utc)
DEADLINE = NOW + timedelta(days=30)
DIGEST = "sha256:" + "ab" * 32


def copy(copy_id: str = "c1", **changes: Any) -> Copy:
    """One Iceberg table that carries the key."""
    fields: dict[str, Any] = {
        "id": copy_id,
        "kind": CopyKind.DERIVED,
        "dataset": DatasetId(namespace="file", name=f"/lake/{copy_id}"),
        "table": f"lake.{copy_id}",
        "location": f"/lake/{copy_id}",
        "format": ICEBERG,
        "carries": Carries.KEY,
        "strategy": Strategy.DELETE_BY_KEY,
        "columns": (),
        "lineage": (),
        "reason": "carries the key",
    }
    return Copy(**{**fields, **changes})


def step(step_id: str, copy_id: str | None = "c1", after: Sequence[str] = (), **changes: Any) -> Step:
    """One step without waits that runs on executor `fake`."""
    fields: dict[str, Any] = {
        "id": step_id,
        "copy": copy_id,
        "action": ICEBERG_DELETE_ROWS,
        "executor": "fake",
        "parameters": {},
        "depends_on": tuple(after),
        "hazards": (),
        "preconditions": (),
        "verification": "rows read",
        "irreversible": True,
        "earliest_start": NOW,
        "earliest_finish": NOW,
        "latest_start": DEADLINE,
        "estimate": Estimate(),
        "reason": "",
    }
    return Step(**{**fields, **changes})


def acts(of: Copy) -> tuple[Step, ...]:
    """What is done to a copy, and its verification; nothing to one that is kept or blocked."""
    if of.strategy in (Strategy.EXEMPT, Strategy.BLOCKED):
        return ()
    first, last = f"{of.id}/1", f"{of.id}/2"
    return (
        step(first, of.id, action=ICEBERG_EXPIRE_SNAPSHOTS),
        step(last, of.id, after=[first], action=Action.VERIFY_COPY),
    )


def snapshot(target: str, expected: str = "s1", **changes: Any) -> Precondition:
    """A precondition on a table's snapshot."""
    return Precondition(kind="snapshot", target=target, expected=expected, **changes)


def plan(
    steps: Sequence[Step] | None = None,
    copies: Sequence[Copy] | None = None,
    gaps: Sequence[Gap] = (),
    overrides: Sequence[Override] = (),
    **changes: Any,
) -> ErasurePlan:
    """A plan over these steps and copies; one copy where none is given, and an act and its verification for each."""
    copies = (copy("c1"),) if copies is None else copies
    steps = tuple(s for c in copies for s in acts(c)) if steps is None else steps
    waived = sum(1 for gap in gaps if gap.waiver)
    fields: dict[str, Any] = {
        "format_version": 2,
        "plan_id": "plan-1",
        "tool_version": "0.1.0",
        "created_at": NOW,
        "estate": "test",
        "planned_by": "chitra",
        "retention": "retain",
        "overrides": tuple(overrides),
        "requests": (
            PlannedRequest(
                id="REQ-1", subject="hmac:0011", law="dpdp", citation="s. 12", received=NOW, deadline=DEADLINE
            ),
        ),
        "graph_digest": DIGEST,
        "inventory_digest": DIGEST,
        "policy_digest": DIGEST,
        "subjects_digest": DIGEST,
        "estate_digest": DIGEST,
        "partitioned": (),
        "complete": waived == len(gaps),
        "applyable": waived == len(gaps) and all(c.strategy is not Strategy.BLOCKED for c in copies),
        "gaps": tuple(gaps),
        "copies": tuple(copies),
        "examined": (),
        "steps": tuple(steps),
        "schedules": (),
        "totals": Totals(
            copies=sum(c.origin is None for c in copies),
            beyond=sum(c.origin is not None for c in copies),
            exempt=sum(c.origin is None and c.strategy in HELD for c in copies),
            steps=len(steps),
            irreversible=sum(s.irreversible for s in steps),
            gaps=len(gaps) - waived,
            waived=waived,
            finish=NOW,
            deadline=DEADLINE,
            slack_days=30.0,
            cost=0.0,
            currency="INR",
            critical_path=(),
        ),
    }
    return ErasurePlan(**{**fields, **changes})
