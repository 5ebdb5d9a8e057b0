"""The verifier as a run uses it, and what the run's journal tells it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from pii_tracer.app.progress import Shows
from pii_tracer.app.scan_ledger_file import ledger_of
from pii_tracer.app.settings import Settings
from pii_tracer.app.verification import Verification
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.review.sealed_person_values import KeyRing
from pii_tracer.run.journal import Journal, Record

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
        warn=show.warn,
        ledger=ledger_of(settings, estate, show.warn),
    )


def facts_of(records: Sequence[Record], step: str) -> list[dict[str, Any]]:
    """The facts of every answer that a step gave, from the journal."""
    found = (r.facts.get("facts") for r in records if r.facts.get("step") == step)
    return [dict(facts) for facts in found if isinstance(facts, dict)]


def written(records: Sequence[Record]) -> dict[tuple[str, str], str]:
    """Objects that the run wrote, from its journal: (key, version id) to SHA-256 in hex."""
    found = {}
    for record in records:
        facts = record.facts.get("facts")
        for item in facts.get("objects", ()) if isinstance(facts, dict) else ():
            if isinstance(item, dict) and item.get("state") == "rewritten" and item.get("sha256"):
                found[str(item["key"]), str(item["version_id"])] = str(item["sha256"])
    return found
