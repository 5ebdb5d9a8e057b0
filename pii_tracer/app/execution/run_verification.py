"""The verifier as a run uses it, and what the run's journal tells it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from pii_tracer.app.progress import Shows
from pii_tracer.app.scan_ledger_file import ledger_of
from pii_tracer.app.settings import Settings
from pii_tracer.app.verification import Verification
from pii_tracer.model.actions import COMPUTES, READS_ONLY, Action
from pii_tracer.model.canonical_json import parse_time
from pii_tracer.model.plan import Copy, ErasurePlan, Step
from pii_tracer.review.sealed_person_values import KeyRing
from pii_tracer.run.journal import Journal, Kind, Record
from pii_tracer.verify.recomputation_evidence import Noted, noted_in

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
    """Which files of a copy were there when its sources were erased, and when its owner says that the job began after
    that, as the journal has it; None where nothing is noted."""
    note = next((s for s in plan.steps if s.copy_ == copy.id and s.action is Action.NOTE_FILES), None)
    if note is None:
        return None
    at = [r.seq for r in records if r.kind is Kind.STEP_RESULT and r.facts.get("step") == note.id]
    since = [r for r in records if at and r.seq > at[-1]]
    again = any((r.kind, r.facts.get("step")) in _erasing_again(plan, note) for r in since)
    asked = (step for step in plan.steps if step.action is Action.OWNER_TASK)
    tasks = [step.id for step in asked if copy.id in step.parameters.get(COMPUTES, ())]
    told = [facts["began"] for task in tasks for facts in facts_of(since, task) if facts.get("began")]
    began = parse_time(str(told[-1])) if told else None
    return noted_in(facts_of(records, note.id), began=began, erased_since=again)


def _erasing_again(plan: ErasurePlan, note: Step) -> set[tuple[Kind, str]]:
    """Records after which a note says nothing: a source of the copy was erased once more, or a look at it noted whom
    it found. A look that could not read it found nobody, and erased nothing."""
    looks = [s for s in plan.steps if s.id in note.depends_on and s.action is Action.VERIFY_COPY]
    copies = {look.copy_ for look in looks}
    acts = [s for s in plan.steps if s.copy_ in copies and s.action not in READS_ONLY]
    begun = {(kind, act.id) for act in acts for kind in (Kind.STEP_INTENT, Kind.STEP_RESULT)}
    return begun | {(Kind.STEP_NOTED, look.id) for look in looks}


def written(records: Sequence[Record]) -> dict[tuple[str, str], str]:
    """Objects that the run wrote, from its journal: (key, version id) to SHA-256 in hex."""
    found = {}
    for record in records:
        facts = record.facts.get("facts")
        for item in facts.get("objects", ()) if isinstance(facts, dict) else ():
            if isinstance(item, dict) and item.get("state") == "rewritten" and item.get("sha256"):
                found[str(item["key"]), str(item["version_id"])] = str(item["sha256"])
    return found
