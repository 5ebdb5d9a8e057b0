"""The end of a request: the persons' values that its plan needed are destroyed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pii_tracer.app.execution.run_folder import CLOSING, RunFolder, choose_run, over
from pii_tracer.app.intake.planned_requests import gone_from
from pii_tracer.app.persons_apart.requests_left_open import to_be_closed_before, unanswered
from pii_tracer.app.planning.plan_files import manifest_path
from pii_tracer.app.proof.deletion_log_check import log_fault
from pii_tracer.app.proof.own_attestation import attestation_findings
from pii_tracer.app.recipients.erased_data import data_of
from pii_tracer.app.recipients.recipient_states import read_told
from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.common.plurals import counted
from pii_tracer.intake.requests import ENDED
from pii_tracer.model.errors import ReviewError, UsageError
from pii_tracer.model.plan import ErasurePlan, digest_of
from pii_tracer.proof.attestation import open_steps
from pii_tracer.run.journal import Kind, read_journal

_NAMED = 5
"""Requests that an error names; there may be any number."""


@dataclass(frozen=True)
class Closed:
    """A run that is closed. destroyed: just now. others: sealed manifests of plans for some of the same persons."""

    plan: ErasurePlan
    manifest: Path
    destroyed: bool
    at: str
    others: tuple[Path, ...]


def close_run(state: Path, run: str | None = None) -> Closed:
    """Destroy the sealed manifest of a run that is over (a plan id); without one, of the newest.

    Raises:
        UsageError: there is no such run, it is not over, or the manifest is not there or cannot be removed.
    """
    folder = choose_run(state, run, unfinished=False)
    plan = folder.approved().plan
    result = folder.last_result() or {}
    still = _still_open(folder, plan)
    if still:
        raise UsageError(
            f"{counted(len(still), 'request of the run stays', 'requests of the run stay')} open, and the persons' "
            f"values are needed to search for them: {', '.join(still[:_NAMED])}",
            where=plan.plan_id,
            todo="plan these requests again; close this run after the run of the new plan has ended, and before you "
            "close that run",
        )
    if not over(result):
        raise UsageError(
            "the run is not over: it needs the persons' values to go on",
            where=plan.plan_id,
            todo="run `pii-tracer status` to see the open steps, then `pii-tracer resume`",
        )
    _refuse_unproved(folder)
    if untold := _untold(folder):
        raise UsageError(
            f"the recipient {untold[0]} was not informed of the erasure, and the persons' values are needed for that",
            where=plan.plan_id,
            todo="run `pii-tracer inform` first, or remove the recipient from the estate file",
        )
    if first := to_be_closed_before(state, folder):
        raise UsageError(
            f"the run {first[0]} left a request open that this run answered, and is not closed yet. The sealed"
            " manifests of both show that this run looked for all that was known of the person",
            where=plan.plan_id,
            todo=f"run `pii-tracer close {first[0]}` first, then close this run",
        )
    plan_file = Path(folder.info().plan_file)
    manifest = manifest_path(plan_file)
    destroyed = manifest.exists() or folder.closed_at() is None
    if destroyed:
        last = folder.found_file(folder.info().plan_digest).at_close(folder.settings().key().found_mark)
        told = {"plan_id": plan.plan_id, **last}
        if manifest.exists() or not folder.is_closing:  # else a kill came between
            _destroy(manifest, plan, lambda: _note(folder, told | {CLOSING: True}))
        _note(folder, told | {"closed_at": datetime.now(timezone.utc).isoformat(timespec="seconds")})
    return Closed(plan, manifest, destroyed, str(folder.closed_at()), tuple(_others(plan_file, plan)))


def _refuse_unproved(folder: RunFolder) -> None:
    """A run's result is a file that anybody can edit. Its journal is a chain, and its attestation is signed: these have
    to say that it is over, too.

    Raises:
        UsageError: they do not.
        JournalError: the journal was changed, or is not whole.
    """
    loaded, where = folder.approved(), folder.path.name
    records, torn = read_journal(folder.journal)
    begun = {record.facts.get("plan_digest") for record in records if record.kind is Kind.RUN_STARTED}
    done = bool(records) and records[-1].kind is Kind.RUN_FINISHED and records[-1].facts.get("state") == "complete"
    if torn or not done or begun != {loaded.digest} or open_steps(loaded.plan, records):
        raise UsageError(
            "the run's result says that the run has ended, but its journal does not. The persons' values were not "
            "removed",
            where=where,
            todo="run `pii-tracer resume`, which writes the result again",
        )
    findings = attestation_findings(folder, with_log=True)
    if findings:
        raise UsageError(
            f"the run's attestation is not valid, so the persons' values were not removed: {findings[0]}",
            where=where,
            todo="run `pii-tracer attest verify` to see all findings, then `pii-tracer resume` to verify and attest "
            "again",
        )
    if findings is None and loaded.plan.complete:
        raise UsageError(
            "the run has no attestation, so nothing proves that it has ended. The persons' values were not removed",
            where=where,
            todo="run `pii-tracer resume`: it verifies again, and attests if nothing of the persons is left and "
            "other people lost no row",
        )
    if fault := log_fault(folder, loaded.plan.estate):
        raise UsageError(
            f"{fault}. So the persons' values were not removed",
            where=where,
            todo="restore the deletion log and its end file from their newest copy",
        )


def _still_open(folder: RunFolder, plan: ErasurePlan) -> list[str]:
    """The requests of a run of whose persons something is left, and that no later run has answered with all values."""
    still = unanswered(folder.state, folder, folder.settings().key)
    return sorted(request.id for request in plan.requests if request.subject in still)


def _untold(folder: RunFolder) -> list[str]:
    """The recipients that were not told of the plan's requests; none where the values are gone anyway, or where all of
    its requests were withdrawn or refused."""
    loaded = folder.approved()
    gone = gone_from(folder.settings(), loaded.plan)
    nobody = all(gone.get(request.id) in ENDED for request in loaded.plan.requests)
    if nobody or not manifest_path(Path(folder.info().plan_file)).exists():
        return []
    mine = [one.name for one in folder.settings().estate().recipients if data_of(one, loaded.plan) is not None]
    told = {name: read_told(folder, name, loaded.digest) for name in mine}
    return [name for name, one in told.items() if one is None or one.at is None]


def _note(folder: RunFolder, told: Mapping[str, Any]) -> None:
    write_atomic(folder.closed, (json.dumps(told, indent=2, sort_keys=True) + "\n").encode())


def _destroy(manifest: Path, plan: ErasurePlan, note: Callable[[], None]) -> None:
    """Remove it. note: writes down, first, that this is begun: afterwards nobody could tell it from a lost one.

    Raises:
        UsageError: it is not there, which says nothing of where it is; another plan's lies there; or it stays.
    """
    try:
        if digest_of(manifest.read_bytes()) != plan.subjects_digest:
            raise UsageError(
                "the sealed manifest beside the plan does not belong to the plan of this run",
                where=str(manifest),
                todo="restore the plan and its manifest in this folder; nothing was removed",
            )
        note()
        _remove(manifest)
    except OSError as error:
        raise UsageError(
            f"the sealed manifest cannot be removed: {error.strerror or type(error).__name__}",
            where=str(manifest),
            todo="if the manifest was moved, put it back beside the plan; otherwise make its folder writable; then "
            "close again",
        ) from None


def _remove(manifest: Path) -> None:
    manifest.unlink()


def _others(plan_file: Path, closed: ErasurePlan) -> list[Path]:
    """Sealed manifests beside it of plans for some of the same persons: they may wait for a run of their own."""
    from pii_tracer.review.plan_file import load_plan

    persons = {request.subject for request in closed.requests}
    found = []
    for path in sorted(plan_file.parent.glob("*.plan.json")):
        if path == plan_file or not manifest_path(path).exists():
            continue
        try:
            plan = load_plan(path).plan
        except ReviewError:
            continue  # no plan of this version: whose values its manifest holds cannot be told
        if not persons.isdisjoint(request.subject for request in plan.requests):
            found.append(manifest_path(path))
    return found
