"""Reads a run's journal as a history and says what must never stand in one, whatever killed the run in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pii_tracer.model.actions import BY_OBJECT
from pii_tracer.model.plan import ErasurePlan, Step
from pii_tracer.run.journal import Kind, Record

_STEP_KINDS = {
    Kind.STEP_INTENT,
    Kind.STEP_RESULT,
    Kind.STEP_VERIFIED,
    Kind.STEP_WAITING,
    Kind.STEP_FAILED,
    Kind.STEP_PROBED,
}


def violations(records: Sequence[Record], plan: ErasurePlan) -> list[str]:
    """Everything in a history that breaks a promise of the runner; empty for a good one.

    - a result, a verification and a wait follow an intent of their step;
    - a verification follows a result;
    - after its verification a step is never touched again, unless a last look found that it holds no longer;
    - nothing begins before what it depends on is verified, but steps that decide object by object, behind one of their
      kind that failed;
    - nothing is verified before what it depends on is;
    - an act whose answer is unknown is probed before it is begun again;
    - fencing tokens never go back, and every intent is under the token of its runner;
    - a run that says it is complete has verified every step, and nothing follows it but a torn line's cut, or
      what `verify` found since, which opens it again.
    """
    found: list[str] = []
    steps = {step.id: step for step in plan.steps}
    last: dict[str, Kind] = {}
    answered: set[str] = set()
    verified: set[str] = set()
    token, complete = 0, False
    for record in records:
        at = f"record {record.seq}"
        if record.kind is Kind.STEP_NOTED and record.facts["facts"].get("found_by") == "verify":
            complete = False
        if complete and record.kind is not Kind.TORN_LINE_CUT:
            found.append(f"{at}: {record.kind} after the run was complete")
        if record.kind is Kind.LEASE:
            if record.facts["token"] < token:
                found.append(f"{at}: the token went back")
            token = record.facts["token"]
        if record.kind is Kind.RUN_FINISHED and record.facts["state"] == "complete":
            complete = True
            if verified != set(steps):
                found.append(f"{at}: complete without {sorted(set(steps) - verified)}")
        if record.kind not in _STEP_KINDS:
            continue
        step = steps[str(record.facts["step"])]
        found += [f"{at}: {step.id}: {what}" for what in _of_step(record, step, steps, last, answered, verified, token)]
        last[step.id] = record.kind
        if record.kind is Kind.STEP_RESULT:
            answered.add(step.id)
        if record.kind is Kind.STEP_VERIFIED:
            verified.add(step.id)
        if record.kind is Kind.STEP_FAILED:
            verified.discard(step.id)
    return found


def _missing(step: Step, steps: Mapping[str, Step], last: dict[str, Kind], verified: set[str]) -> set[str]:
    """What a step had to wait for and did not."""
    missing = set(step.depends_on) - verified
    if step.action not in BY_OBJECT:
        return missing
    return {d for d in missing if steps[d].action not in BY_OBJECT or last.get(d) is not Kind.STEP_FAILED}


def _of_step(
    record: Record,
    step: Step,
    steps: Mapping[str, Step],
    last: dict[str, Kind],
    answered: set[str],
    verified: set[str],
    token: int,
) -> list[str]:
    found = []
    kind, before = record.kind, last.get(step.id)
    if step.id in verified and kind is not Kind.STEP_FAILED:
        found.append(f"{kind} after it was verified")
    if kind is Kind.STEP_INTENT:
        if missing := _missing(step, steps, last, verified):
            found.append(f"begun before {sorted(missing)}")
        if before is Kind.STEP_INTENT:
            found.append("begun again without a probe")
        if record.facts["token"] != token:
            found.append("begun under another token than its runner's")
    if kind is Kind.STEP_RESULT and before not in (Kind.STEP_INTENT, Kind.STEP_PROBED):
        found.append("a result without an intent")
    if kind is Kind.STEP_VERIFIED and step.id not in answered:
        found.append("verified without a result")
    if kind is Kind.STEP_VERIFIED and (missing := set(step.depends_on) - verified):
        found.append(f"verified before {sorted(missing)}")
    if kind is Kind.STEP_PROBED and before is None:
        found.append("probed and never begun")
    return found
