"""A run: the gate in front of it, the lease, the baseline, the steps. What comes of it is in `run_outputs`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pii_tracer.app.execution.approvals import approval_files, read_approval
from pii_tracer.app.execution.executor_value_search import finds
from pii_tracer.app.execution.journal_rollback_check import begun_with, refuse_gone, refuse_unlike
from pii_tracer.app.execution.live_step_output import Teller
from pii_tracer.app.execution.run_folder import RunFolder, RunInfo, folder_of
from pii_tracer.app.execution.run_lock import held
from pii_tracer.app.execution.run_scratch import run_scratch
from pii_tracer.app.execution.run_verification import facts_of, now, verification_of
from pii_tracer.app.execution.storage_witnesses import watched
from pii_tracer.app.execution.verify_step import VerifyExecutor
from pii_tracer.app.installation_checks import foreign_packages
from pii_tracer.app.intake.planned_requests import begin_requests, refuse_withdrawn
from pii_tracer.app.persons_apart.later_findings import FoundSince
from pii_tracer.app.persons_apart.later_findings_file import KEPT, found_locked
from pii_tracer.app.persons_apart.requests_left_open import refuse_unsearched
from pii_tracer.app.planning.plan_files import key_sets_at_hand, manifest_path
from pii_tracer.app.planning.value_masking import refuse_telling_approval, refuse_telling_word
from pii_tracer.app.progress import Shows, with_facts
from pii_tracer.app.settings import Settings
from pii_tracer.app.verification import Verification
from pii_tracer.common.atomic_files import real_path, sweep_temporaries, write_atomic
from pii_tracer.config.estate_file import file_digest
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import NotApproved, PlanIncomplete, Refused, Waiting
from pii_tracer.model.plan import ErasurePlan, Step
from pii_tracer.proof.attester_keys import attester
from pii_tracer.proof.open_requests import left_of_step
from pii_tracer.review.approval import Approval, consume, consumed_by, verify_approvals
from pii_tracer.review.drift import DriftItem, World, step_drift
from pii_tracer.review.estate_changes import refuse_changed_estate, section_digests
from pii_tracer.review.plan_file import LoadedPlan, load_plan
from pii_tracer.review.policy_rules import enforce, evaluate
from pii_tracer.review.sealed_person_values import KeyRing
from pii_tracer.review.trusted_keys import load_trusted
from pii_tracer.run.executor_protocol import Executor
from pii_tracer.run.journal import Journal, Kind, Record
from pii_tracer.run.run_state import RunState, State, StepEvent
from pii_tracer.run.runner import Fence
from pii_tracer.run.runner import run as walk
from pii_tracer.run.suppression_list import FILE as SUPPRESSION_FILE
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.verdicts import Baseline

if TYPE_CHECKING:
    from executors.context import ExecutionContext
    from pii_tracer.run.openlineage_sender import Sent


def start_run(
    settings: Settings,
    plan_file: Path,
    policy: Path | None,
    approvals: Sequence[Path],
    trusted: Path | None,
    **more: Any,
) -> RunFolder:
    """Check everything that can be checked before anything is touched, and make the run's folder.

    Raises:
        PlanIncomplete, PolicyDenied, NotApproved, Drift, Refused: nothing was started.
        JournalError: the run has begun before, and its journal is missing.
        ProofError, ReviewError: nobody could sign the attestation; nothing was started.
    """
    loaded = load_plan(plan_file)
    if not loaded.plan.applyable:  # one that leaves copies out by choice is, and never complete
        raise PlanIncomplete(
            "the plan cannot be applied: it has gaps without a waiver, or blocked copies",
            where=str(plan_file),
            todo="run `pii-tracer check`; close or waive each gap, unblock each blocked copy, then plan again",
        )
    _, policy_file = settings.policy(policy)
    info = RunInfo(
        plan_id=loaded.plan.plan_id,
        plan_digest=loaded.digest,
        plan_file=str(real_path(plan_file)),
        estate_file=str(real_path(settings.estate_file)),
        policy_file=str(real_path(policy_file)),
        approvals=tuple(str(real_path(p)) for p in list(approvals) or approval_files(plan_file)),
        trusted=str(real_path(trusted)) if trusted else None,
        state=str(real_path(settings.state)),
        **more,
    )
    folder = folder_of(settings.state, loaded.plan.plan_id)
    if folder.info_file.exists():
        folder.info()  # one that was moved or copied is not begun again
    gate(folder, info, loaded)
    estate = settings.estate()
    # what nobody could attest in the end is not begun
    attester(estate.attestation_key, settings.base, settings.state, local=estate.environment == "local")
    sections = section_digests(settings.estate_file)
    folder.write_info(info.model_copy(update={"estate_sections": sections}))
    return folder


def trust(folder: RunFolder, trusted: Path) -> None:
    """From here on the run asks another file whose signatures count; unless the gate closes by it.

    Raises:
        PolicyDenied, NotApproved, Drift, Refused, ReviewError: as the gate says; nothing was changed.
    """
    info = folder.info().model_copy(update={"trusted": str(real_path(trusted))})
    gate(folder, info, load_plan(Path(info.plan_file)))
    folder.write_info(info)


@dataclass(frozen=True)
class Gate:
    """What let a run through."""

    loaded: LoadedPlan
    approvals: tuple[Approval, ...]


def gate(folder: RunFolder, info: RunInfo, loaded: LoadedPlan) -> Gate:
    """Installation, journal, policy, approvals, digests: asked at the start and again at every resume."""
    foreign = foreign_packages()
    if foreign:
        raise Refused(
            f"the packages {', '.join(foreign)} were installed by a different project than pii-tracer",
            todo="install pii-tracer in its own Python environment, then check it with `pii-tracer doctor`",
        )
    settings = Settings(Path(info.estate_file), folder.state)
    consumed = consumed_by(settings.state / "consumed", loaded.digest)
    refuse_gone(folder, consumed == folder.path.name)
    if loaded.digest != info.plan_digest:
        raise NotApproved("the plan file was changed since this run began", where=info.plan_file, todo="restore it")
    refuse_changed_estate(settings.estate_file, loaded.plan.estate_digest, info.estate_sections)
    refuse_withdrawn(settings, loaded.plan, partial(key_sets_at_hand, settings, loaded.plan, Path(info.plan_file)))
    _await_notice(loaded.plan)
    policy, policy_file = settings.policy(Path(info.policy_file))
    estate = settings.estate()
    production = estate.environment == "production"
    enforce(evaluate(loaded.plan, policy, production=production, now=now(), holds=estate.holds))
    approvals = verify_approvals(
        loaded,
        [read_approval(Path(p)) for p in info.approvals],
        load_trusted(Path(info.trusted)) if info.trusted else (),
        policy,
        policy_digest=file_digest(policy_file),
        production=production,
        planner=loaded.plan.planned_by or None,
        now=now(),
        consumed=consumed,
        run=folder.path.name,
        begun=begun_with(folder, loaded.digest),
    )
    return Gate(loaded, approvals)


def _await_notice(plan: ErasurePlan) -> None:
    """A person whom the law wants told may still take action: until then nothing is begun, and can be withdrawn."""
    if plan.not_before and now() < plan.not_before:
        raise Waiting(
            "the persons' notice period has not ended: nothing may be erased before "
            f"{plan.not_before:%Y-%m-%d %H:%M} UTC",
            where=plan.plan_id,
            todo="apply the plan after this time; for a person who withdraws, run `pii-tracer requests withdraw`",
            until=plan.not_before,
        )


class Baselines(Frozen):
    """Everybody else's rows as they were before the run began."""

    copies: tuple[Baseline, ...]


@dataclass(frozen=True)
class Ran:
    """A run that came to an end, complete or not, with what the results are made of. found: what `verify` had found
    when it went on."""

    folder: RunFolder
    info: RunInfo
    loaded: LoadedPlan
    approvals: tuple[Approval, ...]
    state: RunState
    records: tuple[Record, ...]
    verification: Verification
    events: Sent
    found: FoundSince | None = None


def perform(
    folder: RunFolder,
    show: Shows,
    patience: float = 0.0,
    *,
    take_over: bool = False,
    follow: Callable[[Sequence[Record]], None] = lambda records: None,
) -> Ran:
    """Run or resume. patience: seconds to wait for steps that wait, before it stops and says until when.

    take_over: a person says that the runner on another host is gone for good. follow: hears the journal as it grows.

    Raises:
        NotApproved, PolicyDenied, Drift, Refused: nothing was started.
        JournalError: the journal is broken, or knows less than the run's other files.
        PlanError: the sealed manifest does not open.
        ReviewError: a value of the persons stands in an approval; nothing was started.
        ScanError: the baseline could not be taken; nothing was started.
    """
    from pii_tracer.run.openlineage_sender import Sender

    info = folder.info()
    settings = folder.settings()
    passed = gate(folder, info, load_plan(Path(info.plan_file)))
    plan = passed.loaded.plan
    with_facts(show).about({"estate": plan.estate, "plan_id": plan.plan_id, "run_id": folder.path.name})
    keyring = KeyRing.open(manifest_path(Path(info.plan_file)), plan.subjects_digest, settings.key())
    refuse_unsearched(settings, plan, keyring)
    if not folder.journal.exists():  # what was begun with an approval is finished with it
        patterns = build_patterns(keyring.key_sets)
        for said in (a.predicate for a in passed.approvals):
            refuse_telling_approval(said.approver, said.role, said.reason, [patterns])
    with (
        held(settings, folder, now, take_over=take_over) as (journal, lease),
        run_scratch(folder, settings.estate().spark.conf),
    ):
        refuse_unlike(folder, settings.state, plan, journal.records)
        sweep_temporaries(folder.path)
        sweep_temporaries(folder.verdicts)
        consume(settings.state / "consumed", passed.loaded.digest, folder.path.name)
        ctx = _context(settings, plan, keyring, journal, lease)
        verification = verification_of(settings, plan, keyring, ctx, journal, show)
        _baseline(folder, journal, verification, ctx, show)
        found = _taken_over(folder, passed.loaded, ctx)
        touched = any(record.kind is Kind.STEP_INTENT for record in journal.records)
        begin_requests(settings, plan, now(), lambda: () if touched else keyring.key_sets)
        looks = VerifyExecutor(
            verification, folder.verdicts, ctx.note, lambda step: left_of_step(journal.records, step)
        )
        executors = _executors(ctx, looks, verification, folder, passed.loaded, info, settings)
        tell = Teller(show, plan, journal.records, now())
        sender = Sender(plan, folder.events, show.warn)

        def on_event(event: StepEvent) -> None:
            tell(event)
            sender.follow(journal.records)
            follow(journal.records)

        while True:
            state = walk(
                plan,
                executors,
                journal,
                clock=now,
                lease=lease,
                on_event=on_event,
                drift=_drift(settings),
                undone=lambda step: _undone(step, plan, looks, tell.looks_back),
                plan_digest=passed.loaded.digest,
                facts={"approvals": [a.digest for a in passed.approvals], **KEPT},
            )
            sender.follow(journal.records)
            follow(journal.records)
            left = (state.waiting_until - now()).total_seconds() if state.waiting_until else None
            if state.state is not State.WAITING or left is None or left > patience:
                break
            patience -= max(left, 1.0)
            show.step("waiting", f"until {state.waiting_until:%H:%M:%S}")
            time.sleep(max(left, 1.0))
        sent = sender.finish()
        return Ran(folder, info, passed.loaded, passed.approvals, state, journal.records, verification, sent, found)


def _taken_over(folder: RunFolder, loaded: LoadedPlan, ctx: ExecutionContext) -> FoundSince | None:
    """What `verify` found since the run went on last, which the journal hears of now."""
    with found_locked(folder.path):
        found = folder.found_since()
        for step, facts in found.notes(loaded.plan) if found else ():
            ctx.note(step, facts)
        heard = found and found.model_copy(update={"of_copies": {}})
        kept = folder.found_file(loaded.digest).keep(heard, folder.settings().key().found_mark)
        return heard and kept


def _context(
    settings: Settings, plan: ErasurePlan, keyring: KeyRing, journal: Journal, lease: Fence
) -> ExecutionContext:
    from executors.context import ExecutionContext
    from executors.stores.spark_connectors import stores_of

    def verified_at(step: str) -> datetime | None:
        times = [r.time for r in journal.records if r.kind is Kind.STEP_VERIFIED and r.facts.get("step") == step]
        return times[-1] if times else None

    def told(step: str) -> list[dict[str, Any]]:
        return facts_of(journal.records, step)

    def note(step: str, facts: Mapping[str, Any]) -> None:
        lease.check()
        journal.append(Kind.STEP_NOTED, step=step, facts=facts)

    estate, base, sets, stores = settings.estate(), settings.base, keyring.key_sets, stores_of(plan)
    rest = (sets, note, stores, finds(estate, base), plan.not_keys, settings.key().marks)
    return ExecutionContext(estate, base, keyring, now, verified_at, told, *rest)


def _baseline(
    folder: RunFolder, journal: Journal, verification: Verification, ctx: ExecutionContext, show: Shows
) -> None:
    """Taken once, before anything is touched; a resumed run takes the one that was written down.

    What a rebuild would lose is looked for at the same time, and so never against erased sources.
    """
    if folder.baseline.exists():
        kept = Baselines.model_validate_json(folder.baseline.read_bytes())
    else:
        from executors.engine.rebuild_check import refuse_losses
        from executors.engine.spark_capability_check import refuse_unfit
        from executors.stores.hdfs.spark_rights import refuse_unable_user, refuse_unknown_nameservices

        if any(r.kind is Kind.STEP_INTENT for r in journal.records):
            raise Refused(
                "the run has begun, but its baseline file is missing: rows that other people lost could not be counted",
                where=str(folder.baseline),
                todo="restore the baseline file from a backup",
            )
        show.stage("before: everybody else's rows")
        refuse_unknown_nameservices(ctx.estate, verification.plan.steps)
        refuse_unfit(ctx.estate.spark, verification.plan.steps)
        refuse_unable_user(ctx, verification.plan)
        refuse_losses(ctx, verification.plan.steps, show.step, show.stop)
        kept = Baselines(copies=verification.take_baselines(show.step))
        write_atomic(folder.baseline, kept.model_dump_json(indent=1).encode())
    verification.baselines.update({b.copy_id: b for b in kept.copies})


def _executors(
    ctx: ExecutionContext,
    looks: VerifyExecutor,
    verification: Verification,
    folder: RunFolder,
    loaded: LoadedPlan,
    info: RunInfo,
    settings: Settings,
) -> dict[str, Executor]:
    from executors.manual_steps import PeopleExecutor
    from executors.registry import build
    from executors.suppression_steps import SuppressionExecutor

    trusted = load_trusted(Path(info.trusted)) if info.trusted else ()
    suppressed = settings.state / SUPPRESSION_FILE
    own: tuple[Executor, ...] = (
        PeopleExecutor(
            folder.confirmations,
            loaded.digest,
            trusted,
            now,
            ctx.verified_at,
            lambda word: refuse_telling_word(word.by, word.role, word.said, [build_patterns(ctx.everything)]),
        ),
        SuppressionExecutor(ctx.keyring, settings.key(), suppressed, ctx.now),
        looks,
    )
    acting = watched(build(ctx), verification, folder.path)
    return {**acting, **{executor.name: executor for executor in own}}


def _undone(step: Step, plan: ErasurePlan, verifier: VerifyExecutor, looks_back: Callable[[Step], None]) -> str | None:
    if step.action is not Action.VERIFY_COPY or not step.copy_:
        return None
    looks_back(step)
    return verifier.undone(step, plan.copy_by_id(step.copy_))


def _drift(settings: Settings) -> Callable[[Step], list[DriftItem]]:
    """The world is read once at the start for all steps, and again when a copy's first step comes."""
    from pii_tracer.app.planning.plan_creation import take_inventory

    estate = settings.estate()
    stopped = {w.job: w.stopped for w in estate.writers}
    asked: set[str] = set()
    worlds: list[World] = []

    def look(step: Step) -> list[DriftItem]:
        if not step.preconditions:
            return []
        if step.id in asked or not worlds:
            asked.clear()
            worlds[:] = [World.of(take_inventory(estate, settings.base, lambda _: None), stopped)]
        asked.add(step.id)
        return step_drift(step, worlds[0])

    return look
