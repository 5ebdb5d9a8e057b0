"""Bugs to put in on purpose, by the row of the fault table (docs/runs.md) whose check must then fail.

A check that nobody has seen fail proves little. Each entry names the bug in words, plants it, and names the test that
must notice it; without the bug the same test passes in its own place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

from executors.engine import retries
from executors.formats.delta import sweep_rules
from executors.formats.plain_files.executor import FilesExecutor
from executors.keys.envelope.key_destruction_check import ShredExecutor
from executors.keys.kms.key_deletion import KmsExecutor
from executors.stores.s3.delete_versions import VersionDeleter
from executors.stores.s3.executor import S3Executor
from executors.stores.s3.object_rewrite import Rewriting
from executors.stores.s3.replica_wait import AwaitingReplica
from executors.stores.s3.restore import Restoring
from executors.streams.kafka.executor import KafkaExecutor
from executors.streams.kafka.topic_step_base import TopicWork
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Copy, Step
from pii_tracer.review import drift
from pii_tracer.run import runner
from pii_tracer.run.executor_protocol import (
    Check,
    Executor,
    Outcome,
    PartlyDone,
)
from pii_tracer.run.journal import Journal, Kind, Record
from pii_tracer.run.lease import Lease
from pii_tracer.run.store_lease import LeaseObject, StoreHolder, StoreLease
from pii_tracer.verify.verdicts import CopyVerdict
from tests.e2e import test_meanwhile as meanwhile
from tests.executors import test_killed_everywhere as killed
from tests.executors.engine import test_match as match
from tests.executors.keys import test_kms as kms
from tests.executors.keys import test_shred as shred
from tests.executors.stores.s3 import test_s3_archives as archives
from tests.executors.stores.s3 import test_s3_executor as s3
from tests.executors.stores.s3 import test_s3_partial as partial
from tests.executors.streams.kafka import test_kafka as kafka
from tests.proof import test_attestation as attestation
from tests.proof.cloudtrail import test_trail_binding as binding
from tests.proof.cloudtrail import test_trail_chain as chain
from tests.review import test_review as review
from tests.review.plans import plan, step
from tests.run import test_crashes as crashes
from tests.run import test_faults as faults
from tests.run import test_journal as journal
from tests.run import test_lease as lease
from tests.run import test_runner as runs
from tests.run import test_store_lease as lease_s3
from tests.run import test_throttling as throttling

ROWS = range(1, 21)

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Seeded:
    """One bug. given: arguments of the check; what it needs beyond them are fixtures by name.

    fails: how the check fails; anything else (a crash of the test itself) would prove nothing.
    """

    row: int
    bug: str
    plant: Plant
    check: Callable[..., Any]
    given: dict[str, Any] = field(default_factory=dict)
    fails: tuple[type[BaseException], ...] = (AssertionError, pytest.fail.Exception)
    marks: tuple[pytest.MarkDecorator, ...] = ()


def resolved(target: Any) -> Any:
    """A module that is named, or what was given."""
    return resolve_name(target) if isinstance(target, str) else target


def put(target: Any, name: str, value: Any) -> Plant:
    """A bug that is another function, method or number in one place."""
    return lambda patch: patch.setattr(resolved(target), name, value)


def around(target: Any, name: str, change: Callable[..., Any]) -> Plant:
    """A bug that changes what a function does; `change` gets it first, then its arguments."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        original = getattr(resolved(target), name)
        patch.setattr(resolved(target), name, lambda *words, **more: change(original, *words, **more))

    return plant


def both(*plants: Plant) -> Plant:
    """A bug in two places."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        for one in plants:
            one(patch)

    return plant


# --- the runner ---


def act_before_intent(self: Any, step: Step, position: int, copy: Copy | None, executor: Executor) -> Outcome:
    outcome = executor.run(step, copy)
    self._note(Kind.STEP_INTENT, step, position, copy=step.copy_, action=step.action, token=self.lease.token)
    self._note(Kind.STEP_RESULT, step, position, facts=outcome.facts)
    return outcome


def believing(original: Callable[..., Any], call: Callable[[], Any]) -> Any:
    answer = original(call)
    return Check(True) if isinstance(answer, Check) else answer


def forgets_facts(original: Callable[..., None], *words: Any, **_: Any) -> None:
    original(*words[:5])


# --- leases ---


def whatever_stands_there(
    original: Callable[..., Any], self: LeaseObject, holder: StoreHolder, etag: str | None
) -> Any:
    seen = self.read()
    return original(self, holder, seen.etag if seen else None)


# --- S3 ---


def taken_for_done(original: Callable[..., Any], *words: Any) -> Any:
    try:
        return original(*words)
    except PartlyDone as error:
        return Outcome(error.facts)


def only_the_current(original: Callable[..., Any], *words: Any) -> Iterator[Any]:
    return (version for version in original(*words) if version.latest)


def at_once(original: Callable[..., Any], *words: Any) -> Outcome:
    return Outcome(original(*words).facts)


def only_once() -> Callable[..., str]:
    asked: set[str] = set()

    def request(original: Callable[..., str], step: Restoring, item: Any) -> str:
        if item.version_id in asked:
            return "asked before"
        asked.add(item.version_id)
        return original(step, item)

    return request


def no_second_try(original: Callable[..., Any], **words: Any) -> Any:
    return original(**{**words, "retries": {"max_attempts": 0}})


# --- tables ---


def references_first(folder: Path, apart: tuple[str, ...] = ()) -> list[sweep_rules.Listed]:
    live = sweep_rules.log_of(folder, history=False).needed
    there = [file for file in sweep_rules.files_below(folder) if "_delta_log" not in file.parts]
    return [file for file in there if file.path not in live]


def blind_to_refs(original: Callable[..., str], precondition: Any, world: Any) -> str:
    return str(precondition.expected) if precondition.kind in ("refs", "clones") else original(precondition, world)


# --- the journal ---


def unchained(line: bytes, seq: int, prev: str, where: str) -> Record:
    import hashlib
    import json

    from pii_tracer.model.canonical_json import parse_time

    raw = json.loads(line)
    digest = "sha256:" + hashlib.sha256(line).hexdigest()
    return Record(raw["seq"], parse_time(raw["time"]), Kind(raw["kind"]), raw["facts"], raw["prev"], digest)


E2E = (pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow, pytest.mark.nightly)
CRASHING = crashes.test_killed_at_every_moment_once.hypothesis.inner_test  # type: ignore[attr-defined]
TWO_STEPS = {"a_plan": plan([step("a", None), step("b", None, after=["a"])], [])}

SEEDED = (
    Seeded(
        1,
        "resume repeats an act whose answer is unknown",
        put(runner._Run, "_settled", lambda *_: False),
        CRASHING,
        TWO_STEPS,
    ),
    Seeded(1, "the intent is written after the act", put(runner._Run, "_act", act_before_intent), CRASHING, TWO_STEPS),
    Seeded(
        1,
        "an object that this plan wrote is not recognised later",
        put(Rewriting, "_written", lambda *_: False),
        s3.test_killed_between_put_and_delete_then_resumed,
    ),
    Seeded(
        1,
        "files that a dead process left beside a file stay there",
        put(FilesExecutor, "_leftovers", lambda *_: []),
        killed.test_bare_files,
        {"kind": Format.JSON},
    ),
    Seeded(
        2,
        "a finished run is executed again",
        put(runner, "came_to_its_end", lambda *_: False),
        runs.test_runs_in_the_plans_order_and_twice_does_nothing,
    ),
    Seeded(
        3,
        "the lock of the state folder locks nothing",
        put("pii_tracer.run.lease.fcntl", "flock", lambda *_: None),
        lease.test_a_second_runner_is_refused_and_told_who_holds_it,
    ),
    Seeded(
        3,
        "the lease in a store is taken without watching its holder",
        put("pii_tracer.run.store_lease", "_watch", lambda place, seen, *_: seen),
        # its holder writes only when it is watched: one that writes by itself can be quicker than the bug
        lease_s3.test_no_clock_of_another_machine_is_believed,
    ),
    Seeded(
        3,
        "the lease in a store is overwritten even if another runner has changed it",
        around(LeaseObject, "write", whatever_stands_there),
        lease_s3.test_of_two_who_see_the_same_silence_one_takes_over,
    ),
    Seeded(
        4,
        "a process does not notice that another one took over its plan",
        put(Lease, "check", lambda _: None),
        lease.test_a_frozen_runner_finds_out_that_it_was_overtaken,
    ),
    Seeded(
        4,
        "a runner does not check whether it still holds the lease in a store",
        put(StoreLease, "check", lambda _: None),
        lease_s3.test_a_taking_over_whose_answer_was_lost_is_known_as_our_own,
    ),
    Seeded(
        5,
        "after a lost answer, the run assumes that the act was not done",
        put(runner._Run, "_settled", lambda *_: False),
        faults.test_a_count_that_a_crash_took_along_is_known_to_be_lost,
    ),
    Seeded(
        6,
        "objects that a failed batch did delete are not recorded",
        around(runner._Run, "_fail", forgets_facts),
        faults.test_a_batch_that_failed_in_part_is_not_done_and_only_the_rest_is_tried_again,
    ),
    Seeded(
        6,
        "a step is verified although a step on which it depends is done only in part",
        put(runner._Run, "_unfinished", lambda *_: []),
        runs.test_one_object_that_fails_does_not_hold_up_what_decides_by_object,
    ),
    Seeded(
        6,
        "one object that fails delays the whole archive",
        put(runner, "BY_OBJECT", frozenset()),
        partial.test_the_versions_of_the_others_go_and_the_steps_stay_open,
    ),
    Seeded(
        6,
        "a batch that failed in part is recorded as done",
        around(VersionDeleter, "run", taken_for_done),
        s3.test_a_locked_version_is_reported_and_the_others_go,
    ),
    Seeded(
        7,
        "a busy store gets one request only",
        both(
            put("executors.stores.s3.batch_delete", "_TRIES", 1),
            around("pii_tracer.lake.stores.s3.clients", "Config", no_second_try),
        ),
        throttling.test_a_short_trouble_is_waited_out,
        {"how": "throttle"},
    ),
    Seeded(
        8,
        "a version under a legal hold is recorded as deleted",
        both(
            around(VersionDeleter, "run", taken_for_done),
            put(S3Executor, "verify", lambda *_: Check(True)),
        ),
        throttling.test_a_legal_hold_keeps_the_step_open_until_it_is_lifted,
    ),
    Seeded(
        8,
        "an attestation is made with steps still open",
        put("pii_tracer.proof.attestation", "open_steps", lambda *_: ()),
        attestation.test_it_is_refused_with_open_steps_and_blocked_copies,
    ),
    Seeded(
        9,
        "a step is recorded as done although its verification failed",
        around(runner, "_guard", believing),
        runs.test_a_verification_that_does_not_hold_is_a_failure,
    ),
    Seeded(
        9,
        "a verdict does not report the residue that it found",
        both(
            put(CopyVerdict, "residue", property(lambda _: ())),
            put(CopyVerdict, "erased", property(lambda _: True)),
        ),
        meanwhile.test_a_writer_in_the_middle_of_the_plan_is_found,
        marks=E2E,
    ),
    Seeded(
        10,
        "nothing is searched again at the end",
        put(runner._Run, "_look_back", lambda _: None),
        runs.test_a_step_that_holds_no_longer_at_the_end_keeps_the_plan_open,
    ),
    Seeded(
        10,
        "nothing is searched again at the end, on a real table",
        put(runner._Run, "_look_back", lambda _: None),
        meanwhile.test_what_comes_back_after_its_verification_is_found_before_the_end,
        marks=E2E,
    ),
    Seeded(
        11,
        "a commit conflict is not tried again",
        put(retries, "conflicts", lambda: ()),
        match.test_conflicts_are_retried_within_a_bound,
        fails=(RunError,),
    ),
    Seeded(
        11,
        "commit conflicts are tried again without a bound",
        put(retries, "ATTEMPTS", 500),
        match.test_conflicts_are_retried_within_a_bound,
    ),
    Seeded(
        12,
        "branches, tags and clones are not compared before a run",
        around(drift, "_found", blind_to_refs),
        review.test_drift_of_every_kind,
    ),
    Seeded(
        12,
        "branches, tags and clones are not compared before a run, on a real table",
        around(drift, "_found", blind_to_refs),
        meanwhile.test_a_tag_made_after_planning_stops_the_run_before_anything_is_touched,
        marks=E2E,
    ),
    Seeded(
        13,
        "the sweep reads the references before it lists the folder",
        put(sweep_rules, "unreferenced", references_first),
        faults.test_a_writer_that_commits_while_the_sweep_looks_loses_no_file,
    ),
    Seeded(
        14,
        "only current versions are listed, so versions under a delete marker are recorded as deleted",
        around("executors.stores.s3.delete_versions", "iter_object_versions", only_the_current),
        s3.test_naive_delete_leaves_the_person_and_the_steps_do_not,
    ),
    Seeded(
        15,
        "a replica is assumed to equal its origin without a check",
        put(AwaitingReplica, "_missing", lambda *_: ([], {})),
        s3.test_a_slow_replica_is_waited_for,
    ),
    Seeded(
        16,
        "a requested restore is treated as a finished restore",
        around(Restoring, "run", at_once),
        s3.test_restore_waits_and_is_not_asked_for_twice,
    ),
    Seeded(
        16,
        "a restore is never requested again, even when its copy has lapsed",
        around(Restoring, "_request", only_once()),
        archives.test_a_resume_after_the_restore_lapsed_asks_again,
    ),
    Seeded(
        17,
        "settings that a dead run lowered are not restored",
        put(TopicWork, "restore", lambda *_: []),
        kafka.test_after_a_crash_the_settings_are_restored_and_the_person_goes,
        {"moment": "lowered"},
        marks=(pytest.mark.slow,),
    ),
    Seeded(
        17,
        "a cleaning that has begun is recorded as finished",
        around(KafkaExecutor, "_compact", at_once),
        kafka.test_a_cleaner_that_is_too_slow_makes_it_wait_not_done,
    ),
    Seeded(
        18,
        "a key that is pending deletion is recorded as gone",
        put(KmsExecutor, "verify", lambda *_: Check(True, ())),
        kms.test_pending_is_not_done_until_kms_does_not_know_the_key,
    ),
    Seeded(
        18,
        "the step waits for a cancelled deletion as for a pending one",
        put("executors.keys.kms.key_deletion", "PENDING", frozenset({"PendingDeletion", "Disabled", "Enabled"})),
        kms.test_a_cancelled_deletion_fails_and_is_not_repeated_blindly,
    ),
    Seeded(
        18,
        "the caches of readers with a destroyed key are ignored",
        put(ShredExecutor, "_over", lambda *_: datetime(2000, 1, 1, tzinfo=timezone.utc)),
        shred.test_a_destroyed_key_is_not_over_before_the_longest_cache_is,
    ),
    Seeded(
        19,
        "a CloudTrail digest is not compared with the digest before it",
        around(
            "pii_tracer.proof.cloudtrail.digest_chain",
            "_wrong",
            lambda original, digest, before, keys: original(digest, None, keys),
        ),
        chain.test_a_digest_of_an_hour_that_was_left_out_is_a_gap,
    ),
    Seeded(
        19,
        "CloudTrail log files are not compared with their digest",
        put("pii_tracer.proof.cloudtrail.digest_chain", "_logs", lambda *_: 0),
        chain.test_reordering_and_swapping_are_found,
    ),
    Seeded(
        19,
        "CloudTrail digests may end before the end of the erasure",
        put("pii_tracer.proof.cloudtrail.deletion_binding", "_covered", lambda *_: iter(())),
        binding.test_a_cut_tail_is_a_failure_of_its_own,
    ),
    Seeded(
        20,
        "the journal goes on after a write that failed",
        lambda patch: patch.setattr(Journal, "_damaged", property(lambda _: False, lambda *_: None), raising=False),
        journal.test_after_a_failed_write_nothing_more_is_written,
    ),
    Seeded(
        20,
        "an incomplete last line of the journal is not removed",
        put(Journal, "_cut", lambda *_: None),
        journal.test_a_torn_last_line_is_cut_and_noted_wherever_it_tore,
    ),
    Seeded(
        20,
        "a journal record is not compared with the record before it",
        put("pii_tracer.run.journal", "_record", unchained),
        journal.test_lines_dropped_swapped_or_doubled_are_refused,
        {"change": "swap"},
    ),
    Seeded(
        20,
        "the clock is not compared with the time of the last record",
        put(Journal, "_refuse_past", lambda *_: None),
        journal.test_a_clock_that_was_set_back_stops_the_run_until_it_is_right_again,
    ),
)
