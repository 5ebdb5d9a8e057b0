"""The verifier as a run uses it, and what the run's journal tells it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from pii_tracer.app.progress import Shows
from pii_tracer.app.scan_ledger_file import ledger_of
from pii_tracer.app.settings import Settings
from pii_tracer.app.verification import Verification
from pii_tracer.model.actions import Action
from pii_tracer.model.plan import Copy, ErasurePlan
from pii_tracer.review.sealed_person_values import KeyRing
from pii_tracer.run.journal import Journal, Kind, Record
from pii_tracer.verify.computed_again import Noted, noted_in

if TYPE_CHECKING:
    from executors.context import ExecutionContext


def now() -> datetime:
    """The clock of real runs, in UTC."""
    return datetime.now(timezone.utc)


def verification_of(
    settings: Settings, plan: ErasurePlan, keyring: KeyRing, ctx: ExecutionContext, journal: Journal, show: Shows
) -> Verification:
    estate = settings.estate()
    return Verification(
        plan=plan,
        estate=estate,
        base=settings.base,
        keys=keyring.key_sets,
        marks=settings.key().marks,
        spark=lambda: ctx.spark,
        now=now,
        written=lambda: written(journal.records),
        told=lambda step: facts_of(journal.records, step),
        noted=lambda copy: noted_of(journal.records, plan, copy),
        warn=show.warn,
        ledger=ledger_of(settings, estate, show.warn),
    )


def facts_of(records: Sequence[Record], step: str) -> list[dict[str, Any]]:
    """The facts of every answer that a step gave, from the journal."""
    found = (r.facts.get("facts") for r in records if r.facts.get("step") == step)
    return [dict(facts) for facts in found if isinstance(facts, dict)]


def noted_of(records: Sequence[Record], plan: ErasurePlan, copy: Copy) -> Noted | None:
    """Which files of a copy were there when its sources were erased, as the journal has it; None where it has not."""
    for step in plan.steps:
        if step.copy_ == copy.id and step.action is Action.NOTE_FILES:
            at = [r.seq for r in records if r.kind is Kind.STEP_RESULT and r.facts.get("step") == step.id]
            later = [r for r in records if r.kind is Kind.STEP_VERIFIED and at and r.seq > at[-1]]
            again = any(r.facts.get("step") in step.depends_on for r in later)
            return noted_in(facts_of(records, step.id), erased_since=again)
    return None


def written(records: Sequence[Record]) -> dict[tuple[str, str], str]:
    """Objects that the run wrote, from its journal: (key, version id) to SHA-256 in hex."""
    found = {}
    for record in records:
        facts = record.facts.get("facts")
        for item in facts.get("objects", ()) if isinstance(facts, dict) else ():
            if isinstance(item, dict) and item.get("state") == "rewritten" and item.get("sha256"):
                found[str(item["key"]), str(item["version_id"])] = str(item["sha256"])
    return found
