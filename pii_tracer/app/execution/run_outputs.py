"""What comes of a run: verdicts joined, deletion log, attestation, report, and the final object."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pii_tracer import __version__
from pii_tracer.app.execution.attesting import attest_run, scope_of, step_facts
from pii_tracer.app.execution.plan_run import Ran
from pii_tracer.app.execution.run_folder import nothing_left
from pii_tracer.app.execution.run_verification import now
from pii_tracer.app.execution.verify_step import read_verdicts
from pii_tracer.app.intake.planned_requests import settle_requests
from pii_tracer.app.persons_apart.residue_of_persons import ResidueOfPersons
from pii_tracer.app.progress import SILENT, Shows
from pii_tracer.app.proof.deletion_log_check import HEAD
from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.model.errors import ExitCode
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.proof.deletions.deletion_log import FILE, DeletionLog
from pii_tracer.proof.deletions.deletion_log_rows import Logged, groups_of
from pii_tracer.proof.deletions.deletion_log_table import fill_table
from pii_tracer.proof.evidence_leaves import lines_digest, scope_lines
from pii_tracer.proof.open_requests import OpenRequest
from pii_tracer.run.journal import Kind, Record
from pii_tracer.run.openlineage_events import step_runs
from pii_tracer.run.run_state import State
from pii_tracer.run.suppression_list import FILE as SUPPRESSION_FILE
from pii_tracer.run.suppression_list import SuppressionList
from pii_tracer.verify.persons_left import NOBODY, PersonsLeft
from pii_tracer.verify.verdicts import RunVerdict, read_as_a_whole, to_be_seen, with_since, with_unseen


def conclude(ran: Ran, show: Shows = SILENT) -> dict[str, Any]:
    """Write everything that a run leaves, and return the final object (a stable interface, see docs/commands.md)."""
    from pii_tracer.app.execution.run_view import how_far, run_view
    from reports.run.run_html import render_run_html

    done = ran.state.state is State.COMPLETE
    verdict = read_verdicts(ran.folder.verdicts, ran.loaded.plan.copies)
    verdict = with_unseen(verdict, to_be_seen(ran.loaded.plan)) if done else verdict
    if done:
        show.step("searching for the persons outside the copies, and in what was added since the plan")
    elsewhere = ran.verification.elsewhere() if done else ()
    plan = ran.loaded.plan
    verdict = with_since(verdict, elsewhere, no_copies=not plan.copies, whole=read_as_a_whole(plan))
    left = ResidueOfPersons(ran.verification).left(verdict, elsewhere) if done else NOBODY
    still = _still_open(ran.loaded.plan, left)
    show.step("writing the deletion log")
    log = _deletion_log(ran, verdict, left.persons if done and not ran.loaded.plan.copies else None)
    table = fill_table(log, ran.loaded.plan.estate, ran.verification.estate.deletion_log.kind)
    show.step("attesting, and writing the report")
    attestation = attest_run(ran, verdict, elsewhere, still)
    _suppress(ran, left if attestation else NOBODY)
    view = run_view(ran, verdict, elsewhere, log, attestation, still)
    state = how_far(ran, verdict)
    if state is State.COMPLETE and view.residue:
        state = State.PARTIAL  # every step of the plan is done, and the person is somewhere else
    write_atomic(ran.folder.report, render_run_html(view, ran.loaded.plan).encode())
    write_atomic(ran.folder.path / "view.json", view.model_dump_json(by_alias=True, indent=1).encode())
    result = {
        "plan_id": ran.state.plan_id,
        "state": state.value,
        "left_out": list(view.left_out),
        "copies_total": len(view.counted),
        "copies_erased": view.erased,
        "copies_confirmed": view.confirmed,
        "copies_exempt": view.exempt,
        "beyond_total": len(view.beyond),
        "beyond_erased": sum(copy.state.value == "erased" for copy in view.beyond),
        "residue": [r.model_dump(by_alias=True) for r in view.residue],
        "open_requests": list(view.open_requests),
        "unverified": list(verdict.unverified),
        "not_asked": list(verdict.not_asked),
        "not_keys": [
            {"column": item.name, "owner": item.owner, "reason": item.reason, "copied_from": item.copied_from}
            for item in ran.loaded.plan.not_keys
        ],
        "rows_erased": view.rows_erased,
        "bystander_rows_lost": view.bystander_rows_lost,
        "waiting_until": ran.state.waiting_until.isoformat() if ran.state.waiting_until else None,
        "failed": [{"step": f.step, "reason": f.reason, "next": f.todo} for f in ran.state.failed],
        "drift": [vars(item) for item in ran.state.drift],
        "never_started": list(ran.state.never_started),
        "deletion_log": str(table),
        HEAD: log.head,
        "attestation": str(attestation) if attestation else None,
        "report": str(ran.folder.report),
        "lineage_events": asdict(ran.events),
        "journal_head": ran.state.journal_head,
    }
    write_atomic(ran.folder.result, _written(result))
    return _handed_over(ran, result, done=done)


def _handed_over(ran: Ran, result: dict[str, Any], *, done: bool) -> dict[str, Any]:
    """The final object with what `verify` found meanwhile, by which the requests of the plan are settled."""
    if done and ran.found is not None:  # all was looked at again, but what was found meanwhile
        file = ran.folder.found_file(ran.loaded.digest)
        file.change(lambda kept: None if kept == ran.found else kept, ran.folder.settings().key().found_mark)
    told = ran.folder.last_result() or result
    settle_requests(ran.folder, ran.loaded.plan, told, done=done, at=now())
    if ran.info.result:
        write_atomic(Path(ran.info.result), _written(told))
    return told


def _written(result: Mapping[str, Any]) -> bytes:
    return (json.dumps(result, indent=2, sort_keys=True) + "\n").encode()


def _still_open(plan: ErasurePlan, left: PersonsLeft) -> tuple[OpenRequest, ...]:
    """The requests of persons of whom something is left, with the places; none where that may be everybody."""
    return tuple(
        OpenRequest(request=request.id, subject=request.subject, place=place)
        for request in plan.requests
        for place in left.places.get(request.subject, ())
    )


def _suppress(ran: Ran, left: PersonsLeft) -> None:
    """Whom a run did not erase is not on the suppression list as erased."""
    known = SuppressionList(Path(ran.info.state) / SUPPRESSION_FILE, ran.folder.settings().key())
    known.open_of(ran.loaded.plan.plan_id, left.persons)


def exit_code(result: dict[str, Any]) -> ExitCode:
    """The exit code of a final object; what is left of a person outranks everything else."""
    if result["residue"]:
        return ExitCode.RESIDUE
    if result["left_out"] and nothing_left(result):
        return ExitCode.INCOMPLETE  # done as planned, and there is nothing to resume
    return {
        State.COMPLETE: ExitCode.DONE,
        State.WAITING: ExitCode.WAITING,
        State.BLOCKED: ExitCode.DRIFT,
        State.PARTIAL: ExitCode.PARTIAL,
    }[State(result["state"])]


def rows_deleted(records: Sequence[Record]) -> dict[str, int]:
    """Rows of the persons that each step deleted, from the journal.

    A step that was done again for late rows counts them besides. Steps that tell of each object are counted by these: a
    later answer no longer knows the rows of one whose old version has gone meanwhile.
    """
    found: dict[str, int] = {}
    by_object: dict[str, dict[str, int]] = {}
    for record in records:
        facts = record.facts.get("facts")
        if not isinstance(facts, dict):
            continue
        step = str(record.facts["step"])
        by_object.setdefault(step, {}).update(_dropped(facts))
        rows = facts.get("rows_deleted", facts.get("rows_dropped"))
        if record.kind is Kind.STEP_RESULT and isinstance(rows, int):
            found[step] = sum(by_object[step].values()) or found.get(step, 0) + rows
    return found


def _dropped(facts: Mapping[str, Any]) -> dict[str, int]:
    """Rows that went from each object, where the step still could count them."""
    items = [*facts.get("objects", ()), *facts.get("rewritten_archives", ())]
    counted = (i for i in items if isinstance(i, dict) and isinstance(i.get("rows_before"), int))
    return {str(i.get("key") or i.get("archive")): i["rows_before"] - i["rows_after"] for i in counted}


def counts_lost(records: Sequence[Record]) -> set[str]:
    """Steps of which an answer was lost: what they counted is not all they did."""
    begun, answered = _steps(records, Kind.STEP_INTENT), _steps(records, Kind.STEP_RESULT)
    probed = {str(r.facts["step"]) for r in records if r.kind is Kind.STEP_PROBED}
    return probed | {step for step, times in begun.items() if times > answered[step]}


def _steps(records: Sequence[Record], kind: Kind) -> Counter[str]:
    return Counter(str(r.facts["step"]) for r in records if r.kind is kind)


def _deletion_log(ran: Ran, verdict: RunVerdict, left: Collection[str] | None) -> DeletionLog:
    plan = ran.loaded.plan
    log = DeletionLog(Path(ran.info.state) / FILE, plan.estate)
    logged = Logged(
        plan=plan,
        records=ran.records,
        erased=frozenset((*verdict.erased, *verdict.erased_of_others)),
        left_of={c.copy_id: frozenset(c.left_of) for c in verdict.copies if c.left_of},
        scopes={c.copy_id: lines_digest(scope_lines(scope_of(c))) for c in verdict.copies if c.bytes},
        facts=step_facts(ran.records),
        runs=step_runs(plan, ran.records),
        approver=", ".join(a.predicate.approver for a in ran.approvals),
        tool_version=__version__,
        mask=ran.verification.patterns.mask,
        left=left,
    )
    log.append(groups_of(logged))
    return log
