"""The view of a run for reports and the closing table, from plan, journal and verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pii_tracer import __version__
from pii_tracer.app.other_people_counts import is_rewritten
from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.base import Role
from pii_tracer.lake.formats.registry import actions_with
from pii_tracer.lake.stores.lakefs.repository_state import in_lakefs
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import CopyKind, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import HELD, Copy, ErasurePlan
from pii_tracer.proof.attestation import LIMITS, on_owners_word
from pii_tracer.proof.deletions.deletion_log import DeletionLog
from pii_tracer.proof.open_requests import OpenRequest
from pii_tracer.proof.store_blind_spots import unlisted
from pii_tracer.run.journal import Kind, Record
from pii_tracer.run.run_state import RunState as Walked
from pii_tracer.run.run_state import State
from pii_tracer.verify.verdicts import (
    NO_COPY,
    ByteVerdict,
    CopyVerdict,
    RunVerdict,
    no_copy_name,
    to_be_seen,
)
from reports.run.run_views import (
    Bystanders,
    ByteCheck,
    CopyRun,
    CopyState,
    FormatCheck,
    Holding,
    NaivePanel,
    Proofs,
    Residue,
    RunState,
    RunView,
    StepRun,
    StepState,
)
from reports.wording import copy_name

if TYPE_CHECKING:
    from pii_tracer.app.execution.plan_run import Ran

FORMS = (
    "plain text and typed values",
    "letter case, Unicode and UTF-16",
    "URL- and JSON-encoded",
    "base64 and hex",
    "MD5, SHA-1 and SHA-256",
    "every expression that lineage recorded over an identifier",
    "cut bounds and statistics",
)


def run_view(
    ran: Ran,
    verdict: RunVerdict,
    elsewhere: Sequence[ByteVerdict],
    log: DeletionLog,
    attestation: Path | None,
    still: Sequence[OpenRequest] = (),
) -> RunView:
    """Facts only; nothing is judged here but what the verdicts say."""
    plan = ran.loaded.plan
    verdicts = {v.copy_id: v for v in verdict.copies}
    copies = tuple(_copy(c, ran, verdicts.get(c.id)) for c in plan.copies)
    residue = [*verdict.residue, *(r for v in elsewhere for r in v.residue)]
    return RunView(
        plan_id=plan.plan_id,
        estate=plan.estate,
        tool_version=__version__,
        requests=tuple(r.id for r in plan.requests),
        subjects=tuple(r.subject for r in plan.requests),
        state=RunState.RESIDUE if residue else RunState(how_far(ran, verdict).value),
        started=ran.records[0].time,
        finished=ran.records[-1].time,
        deadline=plan.totals.deadline,
        copies=copies,
        rows_erased=_rows_erased(ran),
        bystander_rows_lost=verdict.bystander_rows_lost,
        residue=tuple(
            Residue(copy_=r.copy_id, file=r.file, where=r.where, form=r.form, foreseen=foreseen(plan, r.copy_id))
            for r in residue
        ),
        naive=_naive(ran.info.naive),
        bytes_checked=_bytes(verdict, {c.id: copy_name(c) for c in plan.copies}),
        bystanders=_bystanders(ran, verdict),
        proofs=_proofs(ran, log, attestation),
        limits=(*LIMITS, *on_owners_word(plan), *unlisted(plan, verdict.not_asked)),
        open_requests=tuple(sorted({item.request for item in still})) if attestation else (),
        waiting_until=ran.state.waiting_until,
        left_out=tuple(str(g.dataset) for g in plan.gaps if g.kind == GapKind.LEFT_OUT),
        demo=ran.info.demo,
    )


def foreseen(plan: ErasurePlan, place: str) -> tuple[str, ...]:
    """The waived gaps about a place of a verdict, a copy or what was examined at planning; what is new has none."""
    datasets = {c.dataset for c in plan.copies if c.id == place}
    datasets |= {i.dataset for i in plan.examined if place == no_copy_name(i)}
    names = {gap.id: f"{NO_COPY}{gap.dataset.name if gap.dataset else gap.evidence}" for gap in plan.gaps}
    return tuple(gap.id for gap in plan.gaps if gap.waiver and (gap.dataset in datasets or place == names[gap.id]))


def how_far(ran: Ran, verdict: RunVerdict) -> State:
    """How the erasure stands. A plan that leaves copies out can be done, and the erasure is not; nor is that of a copy
    which every step passed by."""
    plan = ran.loaded.plan
    if ran.state.state is not State.COMPLETE:
        return ran.state.state
    clean = set(verdict.erased)
    words = {s.copy_ for s in plan.steps if s.action is Action.BACKUP_CONFIRM}
    unseen = any(copy.id not in clean for copy in to_be_seen(plan))
    unsaid = any(c.kind is CopyKind.BACKUP and c.strategy not in HELD and c.id not in words for c in plan.copies)
    open_ = unseen or unsaid or bool(verdict.unverified) or not plan.complete
    return State.PARTIAL if open_ else State.COMPLETE


def _rows_erased(ran: Ran) -> int:
    """What the steps counted; where a crash took a count along, the baseline from before the run stands in for it."""
    from pii_tracer.app.execution.run_outputs import counts_lost, rows_deleted

    counted = rows_deleted(ran.records)
    copies = {copy.id: copy for copy in ran.loaded.plan.copies}
    lost = counts_lost(ran.records) & set(ran.state.done)
    for step in ran.loaded.plan.steps:
        if step.id in lost and step.action in actions_with(Role.COUNTS_ROWS) and step.copy_:
            before = _rows_before(copies[step.copy_], ran)
            counted[step.id] = max(counted.get(step.id, 0), before or 0)
    return sum(counted.values())


def _copy(copy: Copy, ran: Ran, verdict: CopyVerdict | None) -> CopyRun:
    plan, walked = ran.loaded.plan, ran.state
    steps = tuple(_step(s.id, s.action.value, s.irreversible, ran) for s in plan.steps if s.copy_ == copy.id)
    history = copy.kind is CopyKind.TABLE_HISTORY
    files_before = copy.found.files_with_person if copy.found else _objects(plan, copy)
    before = Holding(files=None if history else files_before, rows=_rows_before(copy, ran))
    after = None
    if verdict is not None:
        rows = verdict.rows.rows_left if verdict.rows else None
        files = len({r.file for r in verdict.bytes.residue}) if verdict.bytes else None
        after = Holding(files=files, rows=rows)
    until = [t for s, t in walked.waiting if s in {x.id for x in steps}]
    state = _state(copy, verdict, walked, steps)
    return CopyRun(
        id=copy.id,
        kind=copy.kind,
        dataset=copy.dataset,
        table=f"{copy.table} ({copy.facts['ref_kind']} {copy.facts['ref']})" if history else copy.table,
        location=copy.location,
        format=copy.format,
        strategy=copy.strategy,
        state=state,
        before=before,
        after=after,
        files_decoded=verdict.files_decoded if verdict else 0,
        origin=copy.origin,
        steps=steps,
        waiting_until=min(until, default=None),
        note=_copy_note(copy, state, files_before) or next((s.note for s in steps if s.state is StepState.WAITING), ""),
    )


def _copy_note(copy: Copy, state: CopyState, files_before: int) -> str:
    if copy.strategy in HELD:
        return copy.reason
    if copy.strategy is Strategy.DESTROY_KEY:
        return "ciphertext stays, its key is destroyed" if state is CopyState.ERASED else ""
    if copy.strategy is Strategy.RECOMPUTED and state is CopyState.CONFIRMED:
        return "computed again by its owner; counts were not compared"
    if copy.strategy is Strategy.REBUILD:
        return "rebuilt" if state is CopyState.ERASED else ""
    in_bucket = copy.kind in (CopyKind.ARCHIVE, CopyKind.REPLICA, CopyKind.OBJECT_VERSION)
    return "versions" if in_bucket and copy.found is None and files_before else ""


def _rows_before(copy: Copy, ran: Ran) -> int | None:
    """Rows in the state itself, from the baseline; from planning where none was taken."""
    baseline = ran.verification.baselines.get(copy.origin if copy.kind is CopyKind.TABLE_HISTORY else copy.id)  # type: ignore[arg-type]
    if baseline is None:
        return copy.found.rows if copy.found else None
    if in_lakefs(copy.location) or is_rewritten(copy):
        return sum(state.rows_person for state in baseline.states)
    name = f"{copy.facts['ref_kind']} {copy.facts['ref']}" if copy.kind is CopyKind.TABLE_HISTORY else "current"
    return next((s.rows_person for s in baseline.states if s.state == name), None)


def _objects(plan: ErasurePlan, copy: Copy) -> int:
    """Object versions that are to go, for copies in buckets."""
    return sum(
        s.estimate.files for s in plan.steps if s.copy_ == copy.id and "versions" in s.parameters and s.irreversible
    )


def _state(copy: Copy, verdict: CopyVerdict | None, walked: Walked, steps: tuple[StepRun, ...]) -> CopyState:
    states = {s.state for s in steps}
    if copy.strategy is Strategy.EXEMPT:
        return CopyState.EXEMPT
    if verdict is not None and verdict.residue:
        return CopyState.RESIDUE
    if StepState.FAILED in states:
        return CopyState.FAILED
    if StepState.WAITING in states:
        return CopyState.WAITING
    if copy.kind is CopyKind.BACKUP and states == {StepState.DONE}:
        return CopyState.CONFIRMED
    if verdict is not None and verdict.erased and states == {StepState.DONE}:
        if copy.strategy is Strategy.RECOMPUTED:
            return CopyState.CONFIRMED
        return CopyState.MASKED if copy.strategy is Strategy.MASK_COLUMNS else CopyState.ERASED
    if states == {StepState.NOT_STARTED}:
        return CopyState.NOT_STARTED
    return CopyState.NOT_VERIFIED


def _step(step_id: str, action: str, irreversible: bool, ran: Ran) -> StepRun:
    mine = [r for r in ran.records if r.facts.get("step") == step_id]
    intents = [r for r in mine if r.kind is Kind.STEP_INTENT]
    results = [r for r in mine if r.kind is Kind.STEP_RESULT]
    facts: dict[str, Any] = dict(results[-1].facts.get("facts") or {}) if results else {}
    failed = {f.step: f.reason for f in ran.state.failed}
    state = StepState.NOT_STARTED
    if step_id in ran.state.done:
        state = StepState.DONE
    elif step_id in failed:
        state = StepState.FAILED
    elif step_id in dict(ran.state.waiting):
        state = StepState.WAITING
    return StepRun(
        id=step_id,
        action=action,
        state=state,
        irreversible=irreversible,
        started=intents[0].time if intents else None,
        finished=mine[-1].time if mine and state is StepState.DONE else None,
        snapshot_before=_text(facts.get("snapshot_before")),
        snapshot_after=_text(facts.get("snapshot_after")),
        note=failed.get(step_id) or (_waits_for(mine) if state is StepState.WAITING else _note(facts)),
    )


def _waits_for(mine: Sequence[Record]) -> str:
    waiting = [r for r in mine if r.kind is Kind.STEP_WAITING]
    return str(waiting[-1].facts.get("reason", "")) if waiting else ""


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


_NOTES = {
    "rows_deleted": ("row deleted", "rows deleted"),
    "others_deleted": ("record of others deleted", "records of others deleted"),
    "rows_dropped": ("row dropped", "rows dropped"),
    "rows_masked": ("row masked", "rows masked"),
    "files_rewritten": ("file rewritten", "files rewritten"),
    "files_removed": ("file removed", "files removed"),
    "files_decoded": ("file decoded", "files decoded"),
    "files_swept": ("hidden file swept", "hidden files swept"),
}


def _note(facts: dict[str, Any]) -> str:
    parts = [counted(facts[key], *words) for key, words in _NOTES.items() if isinstance(facts.get(key), int)]
    if facts.get("confirmed_by"):
        parts.append(f"confirmed by {facts['confirmed_by']}, {facts['role']}; evidence {facts['evidence_sha256'][:16]}")
    if isinstance(facts.get("deleted"), list):
        parts.append(counted(len(facts["deleted"]), "version deleted", "versions deleted"))
    if isinstance(facts.get("deleted"), dict):
        gone = sum(v for v in facts["deleted"].values() if isinstance(v, int))
        parts.append(counted(gone, "file deleted", "files deleted"))
    return ", ".join(parts)


def _bytes(verdict: RunVerdict, names: Mapping[str, str]) -> ByteCheck | None:
    seen = [v.bytes for v in verdict.copies if v.bytes]
    if not seen:
        return None
    files: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for item in (f for b in seen for f in b.files):
        files[item.decoded_as] += 1
        sizes[item.decoded_as] += item.size
    other = {
        f"{names[s.copy_id]}, column {s.column}: {counted(s.count, 'time')} in {counted(s.files, 'file')}"
        for b in seen
        for s in b.same_digits
    }
    held = {
        f"{names[h.copy_id]}, {f'column {h.column}' if h.column else 'where no column is named'}:"
        f" {h.key_set}, {counted(h.count, 'time')} in {counted(h.files, 'file')}"
        for b in seen
        for h in b.held
    }
    return ByteCheck(
        formats=tuple(FormatCheck(what=k, files=files[k], bytes=sizes[k]) for k, _ in files.most_common()),
        forms=FORMS,
        other_meaning=tuple(sorted(other)),
        held=tuple(sorted(held)),
        unread=verdict.unverified,
        known=verdict.reading.before,
        known_since=verdict.reading.oldest,
        known_by_store=verdict.reading.by_store,
        shaped=verdict.reading.shaped,
        chunks_left=verdict.reading.left,
        in_parts=verdict.reading.in_parts,
    )


def _bystanders(ran: Ran, verdict: RunVerdict) -> tuple[Bystanders, ...]:
    result = []
    for found in verdict.copies:
        before = ran.verification.baselines.get(found.copy_id)
        if found.bystanders is None or before is None:
            continue
        copy = ran.loaded.plan.copy_by_id(found.copy_id)
        # what left by a topic's own retention was nobody's to keep any more
        rows = sum(s.rows_other for s in before.states) - found.bystanders.lapsed
        sums = " ".join(s.checksum for s in before.states)
        result.append(
            Bystanders(
                dataset=copy.table or Path(copy.location).name,
                rows_before=rows,
                rows_after=rows - found.bystanders.lost,
                checksum_before=sums,
                checksum_after=sums if found.bystanders.equal else "differs",
            )
        )
    return tuple(result)


def _proofs(ran: Ran, log: DeletionLog, attestation: Path | None) -> Proofs:
    return Proofs(
        plan_digest=ran.loaded.digest,
        approved_by=", ".join(f"{a.predicate.approver}, {a.predicate.role}" for a in ran.approvals) or None,
        merkle_root=_root(attestation),
        log_entries=log.count(),
        deletion_log=str(log.path),
        attestation=str(attestation) if attestation else None,
        report=str(ran.folder.report),
    )


def _root(attestation: Path | None) -> str | None:
    if attestation is None:
        return None
    import base64
    import json

    payload = json.loads(base64.b64decode(json.loads(attestation.read_bytes())["payload"]))
    merkle = payload["predicate"].get("merkle", {})
    return str(merkle.get("root")) if isinstance(merkle, dict) else None


def _naive(panel: str | None) -> NaivePanel | None:
    """What a demonstration wrote of a plain DELETE, where the run has one."""
    return NaivePanel.model_validate_json(Path(panel).read_bytes()) if panel else None
