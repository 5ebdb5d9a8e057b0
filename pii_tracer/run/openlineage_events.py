"""A run as OpenLineage tells it: one run for the walk over the plan, and below it one for each step that changes data.

The events are read off the journal, record by record, and depend on nothing else: the same journal gives the same
events with the same ids, so a resumed run neither repeats nor forgets one. A step reads and writes its own dataset;
nothing flows from one dataset to another, so a harvest of these events finds no edge and no gap.

Run cycle: https://openlineage.io/docs/spec/run-cycle. What is said of the erasure itself stands in a facet of our own
(https://openlineage.io/docs/spec/facets/custom-facets), whose schema is `pii_tracer/schemas/ErasureRunFacet.json`. It
names requests and never persons, not even by reference: a lineage store keeps what it is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any

import attr
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    JobFacet,
    RunFacet,
    dataset_version_dataset,
    error_message_run,
    job_type_job,
    parent_run,
)
from openlineage.client.uuid import generate_static_uuid

from pii_tracer.lake.formats.base import Role
from pii_tracer.lake.formats.registry import actions_with
from pii_tracer.model.actions import READS_ONLY
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.plan import Copy, ErasurePlan, Step
from pii_tracer.run.journal import Kind, Record

PRODUCER = "https://github.com/pii-tracer/pii-tracer"
NAMESPACE = "pii-tracer"
FACET = "piiTracer_erasure"
FACET_SCHEMA = f"{PRODUCER}/blob/main/pii_tracer/schemas/ErasureRunFacet.json#/$defs/ErasureRunFacet"

MOST_NAMED = 100
"""Requests that an event names: it is sent for every step, and may not grow with the persons."""

_ROWS = ("rows_deleted", "rows_dropped")


@attr.define
class ErasureRequest:
    """A request that the plan answers. deadline: RFC 3339."""

    id: str
    law: str
    deadline: str


@attr.define
class ErasureStep:
    """The step that a run is about. rowsErased: as it counted them, where it counts rows."""

    id: str
    copy: str
    action: str
    irreversible: bool
    hazards: list[str]
    rowsErased: int | None = None


@attr.define
class ErasureRunFacet(RunFacet):
    """What is erased. planDigest: of the approved bytes. attempt: counts from 1, per run of the plan or of the step.
    requests: of more than `MOST_NAMED` those that are due first. requestCount: all of them, where not all are named.
    """

    planId: str
    planDigest: str
    attempt: int
    requests: list[ErasureRequest]
    step: ErasureStep | None = None
    requestCount: int | None = None

    @staticmethod
    def _get_schema() -> str:
        return FACET_SCHEMA


def step_runs(plan: ErasurePlan, records: Iterable[Record]) -> dict[str, str]:
    """The OpenLineage run that each record of a step belongs to: hash of the record -> run id."""
    events = RunEvents(plan)
    found = {}
    for record in records:
        told = events.feed([record])
        if told and "step" in record.facts:
            found[record.hash] = str(told[-1].run.runId)
    return found


@dataclass
class _Open:
    """An OpenLineage run that has no end yet. waits: it has begun something that goes on without us."""

    run_id: str
    attempt: int
    parent: str
    waits: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)


class RunEvents:
    """Turns journal records into events. Feed every record once, from the first."""

    def __init__(self, plan: ErasurePlan) -> None:
        self._plan = plan
        reads_only = READS_ONLY | actions_with(Role.WAITS)
        self._steps = {step.id: step for step in plan.steps if step.copy_ and step.action not in reads_only}
        self._copies = {copy.id: copy for copy in plan.copies}
        first = nsmallest(MOST_NAMED, plan.requests, key=lambda r: r.deadline)
        self._requests = [ErasureRequest(r.id, r.law, iso(r.deadline)) for r in first]
        self._digest = ""
        self._walk: _Open | None = None
        self._open: dict[str, _Open] = {}
        self._attempts: dict[str, int] = {}

    def feed(self, records: Iterable[Record]) -> list[RunEvent]:
        """The events of the next records, in the order in which things happened."""
        return [event for record in records for event in self._of(record)]

    def _of(self, record: Record) -> list[RunEvent]:
        if record.kind is Kind.RUN_STARTED:
            return self._started(record)
        if record.kind is Kind.RUN_FINISHED:
            return self._finished(record)
        step = self._steps.get(str(record.facts.get("step")))
        return self._stepped(step, record) if step is not None and self._walk is not None else []

    # -- the walk ------------------------------------------------------------------------------------------------

    def _started(self, record: Record) -> list[RunEvent]:
        self._digest = str(record.facts["plan_digest"])
        events = []
        if self._walk is not None and not self._walk.waits:
            events = self._died(record)
        if self._walk is not None:
            self._walk.waits = False
            return [*events, self._event(RunState.RUNNING, record, self._walk, None)]
        self._walk = self._begin("", "")
        return [*events, self._event(RunState.START, record, self._walk, None)]

    def _died(self, record: Record) -> list[RunEvent]:
        """The runner before came to no end: what it had begun is broken off, but for what goes on by itself."""
        reason = "the runner stopped before its end; the run was resumed"
        events = []
        for step_id, run in list(self._open.items()):
            if not run.waits:
                del self._open[step_id]
                events.append(self._event(RunState.ABORT, record, run, self._steps[step_id], reason))
        if self._walk is not None:
            events.append(self._event(RunState.ABORT, record, self._walk, None, reason))
            self._walk = None
        return events

    def _finished(self, record: Record) -> list[RunEvent]:
        walk = self._walk
        if walk is None:
            return []
        state = record.facts["state"]
        if state == "waiting":
            walk.waits = True
            return [self._event(RunState.RUNNING, record, walk, None)]
        self._walk = None
        if state == "complete":
            return [self._event(RunState.COMPLETE, record, walk, None)]
        if state == "blocked":
            reason = "the estate is not as the plan knew it; nothing more was done"
            return [self._event(RunState.ABORT, record, walk, None, reason)]
        reason = f"failed: {', '.join(record.facts.get('failed', ()))}"
        return [self._event(RunState.FAIL, record, walk, None, reason)]

    # -- steps ---------------------------------------------------------------------------------------------------

    def _stepped(self, step: Step, record: Record) -> list[RunEvent]:
        if step.id not in self._open and record.kind is Kind.STEP_WAITING:
            return []  # the plan lets it wait; nothing has begun
        events = []
        if step.id not in self._open:
            self._open[step.id] = self._begin(step.id, self._walk.run_id if self._walk else "")
            events.append(self._event(RunState.START, record, self._open[step.id], step))
        run = self._open[step.id]
        run.waits = record.kind is Kind.STEP_WAITING
        if record.kind is Kind.STEP_RESULT:
            run.facts = record.facts.get("facts") or {}
        if record.kind is Kind.STEP_WAITING:
            events.append(self._event(RunState.RUNNING, record, run, step))
        if record.kind in (Kind.STEP_VERIFIED, Kind.STEP_FAILED):
            del self._open[step.id]
            failed = record.kind is Kind.STEP_FAILED
            state = RunState.FAIL if failed else RunState.COMPLETE
            events.append(self._event(state, record, run, step, str(record.facts["reason"]) if failed else None))
        return events

    def _begin(self, name: str, parent: str) -> _Open:
        attempt = self._attempts[name] = self._attempts.get(name, 0) + 1
        data = f"{self._plan.plan_id}/{self._digest}/{name}/{attempt}".encode()
        return _Open(str(generate_static_uuid(self._plan.created_at, data)), attempt, parent)

    # -- an event ------------------------------------------------------------------------------------------------

    def _event(
        self, state: RunState, record: Record, run: _Open, step: Step | None, reason: str | None = None
    ) -> RunEvent:
        facets: dict[str, RunFacet] = {FACET: self._facet(run, step)}
        if reason is not None:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
                message=reason, programmingLanguage="PYTHON", producer=PRODUCER
            )
        if run.parent:
            facets["parent"] = parent_run.ParentRunFacet(
                run=parent_run.Run(runId=run.parent),
                job=parent_run.Job(namespace=NAMESPACE, name=self._job(None)),
                producer=PRODUCER,
            )
        copy = self._copies.get(step.copy_ or "") if step else None
        job: dict[str, JobFacet] = {
            "jobType": job_type_job.JobTypeJobFacet(
                processingType="BATCH", integration="PII_TRACER", jobType="ERASURE", producer=PRODUCER
            )
        }
        return RunEvent(
            eventTime=iso(record.time),
            producer=PRODUCER,
            eventType=state,
            run=Run(runId=run.run_id, facets=facets),
            job=Job(namespace=NAMESPACE, name=self._job(step), facets=job),
            inputs=[_input(copy, run.facts)] if copy else [],
            outputs=[_output(copy, run.facts)] if copy else [],
        )

    def _job(self, step: Step | None) -> str:
        return f"{self._plan.estate}.erasure" + (f".{step.id}" if step else "")

    def _facet(self, run: _Open, step: Step | None) -> ErasureRunFacet:
        plan = self._plan
        about = None
        if step is not None:
            rows = next((run.facts[name] for name in _ROWS if isinstance(run.facts.get(name), int)), None)
            about = ErasureStep(
                id=step.id,
                copy=step.copy_ or "",
                action=step.action.value,
                irreversible=step.irreversible,
                hazards=list(step.hazards),
                rowsErased=rows,
            )
        return ErasureRunFacet(
            planId=plan.plan_id,
            planDigest=self._digest,
            attempt=run.attempt,
            requests=self._requests,
            step=about,
            requestCount=len(plan.requests) if len(plan.requests) > MOST_NAMED else None,
            producer=PRODUCER,
        )


def _version(facts: Mapping[str, Any], name: str) -> dict[str, DatasetFacet]:
    if facts.get(name) is None:
        return {}
    version = dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=str(facts[name]), producer=PRODUCER)
    return {"version": version}


def _input(copy: Copy, facts: Mapping[str, Any]) -> InputDataset:
    return InputDataset(
        namespace=copy.dataset.namespace, name=copy.dataset.name, facets=_version(facts, "snapshot_before")
    )


def _output(copy: Copy, facts: Mapping[str, Any]) -> OutputDataset:
    return OutputDataset(
        namespace=copy.dataset.namespace, name=copy.dataset.name, facets=_version(facts, "snapshot_after")
    )
