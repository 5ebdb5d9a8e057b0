"""Every executor that needs no Spark, killed before and after each thing it does outside; then resumed by the runner.

Those that need Spark are in `tests/e2e/crashes/test_executor_crashes.py`; here it is also seen to that none is in neither.
"""

from __future__ import annotations

import csv
import importlib
import io
import json
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from botocore.client import BaseClient
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient, ConfigResource
from pyarrow import orc

import executors
from executors.registry import build
from executors.stores.glacier.executor import VaultExecutor
from pii_tracer.app.execution.run_verification import facts_of
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format, Strategy
from pii_tracer.model.plan import Step
from pii_tracer.run.journal import parse
from pii_tracer.run.suppression_list import SuppressionList
from tests import kafkasupport as ks
from tests.e2e.crashes import test_nessie_killed as nessie
from tests.e2e.crashes.test_executor_crashes import SPARK_CASES
from tests.executors import test_suppression as suppression
from tests.executors.crashes import Effects, die_and_resume
from tests.executors.engine.test_mask import Masked, mask
from tests.executors.formats.plain_files.test_files_formats import (
    SCHEMA,
    read_avro,
    row,
    scanned,
    write_avro,
    write_orc,
)
from tests.executors.keys import test_kms as on_kms
from tests.executors.keys.test_kms import kms
from tests.executors.stores import test_vault as on_vaults
from tests.executors.stores.s3.test_s3_executor import delete, rewrite, snapshot
from tests.executors.streams.kafka import test_kafka_prefix as prefixes
from tests.executors.streams.kafka import test_kafka_rewrite as topics
from tests.executors.streams.kafka.test_kafka import compacted, left_on_disk, newest
from tests.executors.world import BY_UID, UID, Steps, context
from tests.gcs import test_run as gcs
from tests.glaciersupport import StrictGlacier, strict_glacier
from tests.hdfs import test_hive_acid as hive_acid
from tests.hdfs import test_run as hdfs
from tests.kafkasupport import BY_KEY, BY_VALUE, USER, USERS, Broker, broker
from tests.kmssupport import StrictKms
from tests.lakefs import test_run as lakefs
from tests.review.plans import plan
from tests.run.fakes import Killed
from tests.s3support import OTHER_REGION, PERSON, PLAN, World, standin, step, user_rows, world
from tests.sparksession import SparkEstate

__all__ = ["broker", "kms", "standin", "world"]

CASES = {
    "files": "test_bare_files, test_bare_files_of_which_columns_are_held",
    "kafka": "test_a_compacted_topic, test_a_topic_that_is_written_again, test_a_topic_whose_prefix_goes",
    "kms": "test_the_persons_own_keys_in_kms",
    "s3": "test_an_archive_with_its_replica; its uploads in tests/executors/stores/s3/test_s3_servers.py",
    "suppression": "test_the_suppression_list",
    "vault": "test_a_vault",
}
"""Executor -> the tests here in which it dies."""

ELSEWHERE = {
    "hdfs": hdfs.test_a_run_that_is_killed_anywhere_is_taken_up_again,
    "hive_acid": hive_acid.test_a_killed_run_goes_on_and_readers_are_waited_for,
    "lakefs": lakefs.test_killed_anywhere_in_the_rewrite_and_resumed,
    "objects": gcs.test_a_run_that_is_killed_anywhere_is_taken_up_again,
    "nessie": nessie.test_killed_in_the_middle_and_resumed,
}
"""Executors that die beside the servers they need."""

LOOKS_ONLY = {
    "people": "waits for what a person signs, and reads it",
    "shred": "waits for caches and tries to read; the key leaves its table by the table's own executor",
}
"""Executors whose acts change nothing: dying in one is like dying in front of it."""


def executor_names() -> set[str]:
    """Of every executor that there is, whether an estate asks for it or not."""
    found = set()
    for module in pkgutil.walk_packages(executors.__path__, "executors."):
        for thing in vars(importlib.import_module(module.name)).values():
            made_here = isinstance(thing, type) and thing.__module__ == module.name
            if made_here and all(hasattr(thing, act) for act in ("check", "run", "verify", "probe")):
                found |= {thing.name} if isinstance(getattr(thing, "name", None), str) else set()
    return found


def test_no_executor_is_left_out() -> None:
    """A new executor has to be killed like the others."""
    assert executor_names() == set(CASES) | set(SPARK_CASES) | set(ELSEWHERE) | set(LOOKS_ONLY)


def linked(steps: list[Step]) -> list[Step]:
    """One after the other, with names of their own."""
    made: list[Step] = []
    for number, one in enumerate(steps):
        before = (made[-1].id,) if made else ()
        made.append(one.model_copy(update={"id": f"c1/{number:02}-{one.action.value}", "depends_on": before}))
    return made


def assert_killed_at(effects: Effects, steps: Sequence[Step], kinds: Mapping[str, int]) -> None:
    """In front of every step's act; and in front of and behind everything that was done, so often for each kind."""
    assert {f"before the act {one.id}" for one in steps} <= set(effects.deaths)
    for kind, count in kinds.items():
        for when in ("before", "after"):
            died = [what for what in effects.deaths if what.startswith(f"{when} {kind}")]
            assert len(died) == count, (when, kind, effects.deaths)


# --- S3 ---


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Effects:
    """Every request that changes something in S3 or KMS."""
    effects, call = Effects(), BaseClient._make_api_call

    def watched(self: Any, operation: str, words: dict[str, Any]) -> Any:
        writes = operation.startswith(
            ("Put", "Delete", "Restore", "Copy", "Complete", "Schedule", "Upload", "Initiate")
        )
        place = str(words.get("Bucket") or words.get("vaultName") or words.get("KeyId"))
        writes = writes and not place.startswith("leases-")  # which a lease of another test may still write
        if writes:
            named = ("Key", "Delete", "archiveId", "archiveDescription", "jobParameters")
            what = f"{operation} {place} {next((words[n] for n in named if words.get(n)), None)}"
            effects.before(what)
        answer = call(self, operation, words)
        if writes:
            effects.after(what)
        return answer

    monkeypatch.setattr(BaseClient, "_make_api_call", watched)
    return effects


def test_an_archive_with_its_replica(world: World, requests: Effects, tmp_path: Path) -> None:
    """Restore, rewrite, replicate, delete on both sides: nothing is asked for twice, nobody else's version goes."""
    source, replica = world.new("crash"), world.new("crashcopy", OTHER_REGION)
    world.replicate(source, replica)
    olds = [world.put(source, f"archive/{n}.parquet", snapshot(PERSON), StorageClass="GLACIER") for n in range(2)]
    theirs = world.put(source, "archive/other.parquet", snapshot())
    keys = [old["key"] for old in olds]
    there = {"bucket": replica, "region": OTHER_REGION, "prefix": "", "origin_bucket": source, "keys": keys}
    steps = linked(
        [
            step(Action.S3_RESTORE, {"bucket": source, "versions": olds}),
            rewrite(source, olds),
            step(Action.S3_AWAIT_REPLICA, {**there, "plan_id": PLAN}),
            delete(source, olds, keep_latest_of=keys),
            delete(replica, olds, keep_latest_of=keys, region=OTHER_REGION),
        ]
    )
    requests.done.clear()
    die_and_resume(plan(steps, []), lambda: {"s3": world.executor()}, tmp_path / "j", requests, world.advance)
    assert_killed_at(requests, steps, {"RestoreObject": 2, "PutObject": 2, "DeleteObjects": 2})
    asked = [request for request in requests.done if not request.startswith("the act")]
    assert len(asked) == len(set(asked)) == 2 + 2 + 2, asked
    for bucket in (source, replica):
        held = dict(world.versions(bucket))
        assert sorted(held) == sorted([*keys, "archive/other.parquet"])
        assert held["archive/other.parquet"] == theirs["version_id"]
        assert not {old["version_id"] for old in olds} & set(held.values())
        for key in keys:
            world.client().restore_object(Bucket=bucket, Key=key, RestoreRequest={"Days": 1})
    world.advance()
    assert [user_rows(world.get(source, key)) for key in keys] == [0, 0]


# --- keys in KMS ---


def test_the_persons_own_keys_in_kms(kms: StrictKms, requests: Effects, tmp_path: Path) -> None:
    """Scheduled once each, pending until KMS has forgotten them; nobody else's key is touched."""
    mine, theirs = [kms.key(), kms.key()], kms.key()
    steps = linked([on_kms.step(kms, a, *mine) for a in (Action.KMS_SCHEDULE_DELETION, Action.KMS_AWAIT_DELETION)])

    def weeks_pass() -> None:
        kms.advance(days=8)

    die_and_resume(plan(steps, []), lambda: {"kms": on_kms.executor(kms)}, tmp_path / "j", requests, weeks_pass)
    assert_killed_at(requests, steps, {"ScheduleKeyDeletion": 2})
    asked = [request for request in requests.done if not request.startswith("the act")]
    assert len(asked) == len(set(asked)) == 2, asked
    assert [on_kms.state(kms, key) for key in (*mine, theirs)] == ["Deleted", "Deleted", "Enabled"]


@pytest.fixture
def glacier() -> Iterator[StrictGlacier]:
    with strict_glacier() as running:
        yield running


def test_a_vault(glacier: StrictGlacier, requests: Effects, tmp_path: Path) -> None:
    """An upload whose answer was lost is done again, and its twin holds nobody; nobody else's rows are lost."""
    mixed = [glacier.put(snapshot(PERSON), f"{n}") for n in range(2)]
    theirs = glacier.put(snapshot(), "theirs")
    run, journal = on_vaults.Run(glacier), tmp_path / "j"
    run.plan(*mixed, theirs)
    made = [s.model_copy(update={"copy_": None}) for s in run.steps.values()]
    steps = [s.model_copy(update={"depends_on": (made[n - 1].id,) if n else ()}) for n, s in enumerate(made)]

    def told(step_id: str) -> Sequence[Mapping[str, Any]]:
        return facts_of(parse(journal.read_bytes())[0], step_id)

    def hours_pass() -> None:
        glacier.advance(hours=4.5)

    requests.done.clear()
    executor = {"vault": VaultExecutor(replace(run.context, told=told))}
    die_and_resume(plan(steps, []), lambda: executor, journal, requests, hours_pass)
    assert_killed_at(requests, steps, {"UploadArchive": 2, "DeleteArchive": 2, "InitiateJob": 4})
    assert not [body for body in glacier.readable() if user_rows(body)]
    assert theirs in glacier.archives
    assert not set(mixed) & set(glacier.archives)
    kept = {a.description: a.body for a in glacier.archives.values()}
    assert {name: pq.read_table(io.BytesIO(body)).num_rows for name, body in kept.items()} == {
        "0": others_in(PERSON),
        "1": others_in(PERSON),
        "theirs": others_in(),
    }


def others_in(*persons: str) -> int:
    whole = pq.read_table(io.BytesIO(snapshot(*persons)))
    return sum(str(value) != PERSON for value in whole.column("user_id").to_pylist())


# --- bare files ---


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Effects:
    """Every file that is put in place or taken away, but for the journal's."""
    effects, unlink, replace = Effects(sweeps=99), Path.unlink, Path.replace

    def watched_unlink(self: Path, missing_ok: bool = False) -> None:
        if self.exists():
            effects.before(f"unlink {self}")
            unlink(self, missing_ok)
            effects.after(f"unlink {self}", sweep=True)

    def watched_replace(self: Path, target: Any) -> Path:
        if Path(target).name == "j.end":  # the journal's (pii_tracer/run/journal_truncation.py)
            return replace(self, target)
        effects.before(f"replace {target}")
        answer = replace(self, target)
        effects.after(f"replace {target}")
        return answer

    monkeypatch.setattr(Path, "unlink", watched_unlink)
    monkeypatch.setattr(Path, "replace", watched_replace)
    return effects


Rows = list[dict[str, Any]]


def write(path: Path, rows: Rows) -> None:
    """A file of the format that its name ends in."""
    kind = path.suffix.removeprefix(".")
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif kind == "orc":
        write_orc(path, rows)
    elif kind == "avro":
        write_avro(path, rows)
    elif kind == "json":
        path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    else:
        path.write_text("uid,email\n" + "".join(f"{r['uid']},{r['email']}\n" for r in rows))


def read(path: Path) -> Rows:
    """What other readers make of it."""
    kind = path.suffix.removeprefix(".")
    if kind == "parquet":
        return pq.ParquetFile(path).read().to_pylist()  # type: ignore[no-any-return]
    if kind == "orc":
        return orc.ORCFile(path).read().to_pylist()  # type: ignore[no-any-return]
    if kind == "avro":
        return read_avro(path)
    lines = path.read_text().splitlines()
    return [json.loads(line) for line in lines] if kind == "json" else list(csv.DictReader(lines))


@pytest.mark.parametrize("kind", [Format.PARQUET, Format.JSON, Format.CSV, Format.AVRO, Format.ORC])
def test_bare_files(spark_estate: SparkEstate, disk: Effects, tmp_path: Path, kind: Format) -> None:
    """Three files with the person and one without; what a dead process left beside them goes, too."""
    folder = tmp_path / "t"
    folder.mkdir()
    kept: dict[str, Rows] = {}
    for number in range(4):
        path = folder / f"f{number}.{kind.value}"
        others = [row(n, False) for n in range(number * 20, number * 20 + 20)]
        write(path, others)
        kept[path.name] = read(path)
        if number:
            write(path, [*others[:7], row(7, True), *others[7:]])
            (folder / f".{path.name}.crc").write_bytes(b"stale")
    clean = (folder / f"f0.{kind.value}").read_bytes()
    assert scanned(folder) == (3, ())
    steps = Steps(context(SparkEstate(spark_estate.estate, tmp_path)), "files", None, folder, kind, BY_UID)
    a_plan = plan(linked([steps.step(Action.FILES_REWRITE, format=kind.value)]), [steps.copy])
    die_and_resume(a_plan, lambda: {"files": build(steps.ctx)["files"]}, tmp_path / "j", disk)
    assert_killed_at(disk, a_plan.steps, {"unlink": 6, "replace": 3})
    placed = [what for what in disk.done if what.startswith("replace")]
    assert len(placed) == len(set(placed)) == 3, placed
    assert scanned(folder) == (0, ())
    assert {path.name: read(path) for path in folder.iterdir()} == kept
    assert (folder / f"f0.{kind.value}").read_bytes() == clean


@pytest.mark.parametrize("kind", [Format.PARQUET, Format.JSON, Format.CSV, Format.AVRO, Format.ORC])
def test_bare_files_of_which_columns_are_held(
    spark_estate: SparkEstate, disk: Effects, tmp_path: Path, kind: Format
) -> None:
    """Each file is the old one or the masked one; the masked ones are not written again."""
    folder = tmp_path / "t"
    folder.mkdir()
    kept: dict[str, Rows] = {}
    nothing = "" if kind is Format.CSV else None
    for number in range(3):
        path = folder / f"f{number}.{kind.value}"
        mine = [row(7, True)] if number else []
        write_nullable(path, [*(row(n, False) for n in range(number * 20, number * 20 + 9)), *mine])
        kept[path.name] = [r | ({"email": nothing} if str(r["uid"]) == str(UID) else {}) for r in read(path)]
    clean = (folder / f"f0.{kind.value}").read_bytes()
    names = tuple(kept[f"f0.{kind.value}"][0])
    held = mask("email", held=tuple(n for n in names if n not in ("email", "uid")) or ("uid",), found_by=("uid",))
    steps = Masked(context(SparkEstate(spark_estate.estate, tmp_path)), "files", None, folder, kind, BY_UID, held)
    assert not steps.bytes().clean
    a_plan = plan(linked([steps.step(Action.FILES_MASK_ROWS, format=kind.value)]), [steps.copy])
    die_and_resume(a_plan, lambda: {"files": build(steps.ctx)["files"]}, tmp_path / "j", disk)
    assert_killed_at(disk, a_plan.steps, {"replace": 2})
    placed = [what for what in disk.done if what.startswith("replace")]
    assert len(placed) == len(set(placed)) == 2, placed
    assert {path.name: read(path) for path in folder.iterdir()} == kept
    assert (folder / f"f0.{kind.value}").read_bytes() == clean
    assert steps.bytes().clean, steps.bytes()


def write_nullable(path: Path, rows: Rows) -> None:
    """As `write`, with an address that can be missing in Avro, too."""
    if path.suffix != ".avro":
        write(path, rows)
        return
    fields = [f | ({"type": ["null", "string"]} if f["name"] == "email" else {}) for f in SCHEMA["fields"]]
    with path.open("wb") as stream:
        fastavro.writer(stream, SCHEMA | {"fields": fields}, rows)


# --- the suppression list ---


def test_the_suppression_list(disk: Effects, tmp_path: Path) -> None:
    """Whole with the person or whole without, and in it once."""
    file, one = tmp_path / "suppressed.jsonl", suppression.step("user.uid")
    a_plan = plan([one], [])
    die_and_resume(a_plan, lambda: {"suppression": suppression.executor(file)}, tmp_path / "j", disk)
    assert_killed_at(disk, a_plan.steps, {"replace": 1})
    known = SuppressionList(file, suppression.KEY)
    assert known.has([("user.uid", suppression.PERSON)])
    assert len(known.entries) == 1
    assert suppression.PERSON.encode() not in file.read_bytes()


# --- Kafka ---


@pytest.fixture
def brokered(monkeypatch: pytest.MonkeyPatch) -> Effects:
    """Everything that changes something on a broker."""
    effects = Effects()

    class Watched(Producer):
        """What a dead process had in its queue never leaves it."""

        def __init__(self, settings: dict[str, Any]) -> None:
            super().__init__(settings)
            self.what = "in a transaction" if "transactional.id" in settings else ""

        def produce(self, topic: str, *words: Any, **more: Any) -> None:
            super().produce(topic, *words, **more)
            self.what = f"{self.what.split(' to ')[0]} to {topic}"

        def flush(self, *timeout: float) -> int:
            what = f"flush {self.what}"
            try:
                effects.before(what)
            except Killed:
                self.purge()
                raise
            left = super().flush(*timeout)
            effects.after(what)
            return left

        def abort_transaction(self, *timeout: float) -> None:
            try:
                effects.before("abort")
            except Killed:
                self.purge()
                raise
            super().abort_transaction(*timeout)
            effects.after("abort")

    for module in (
        "executors.streams.kafka.executor",
        "executors.streams.kafka.topic_rewrite",
        "executors.streams.kafka.prefix_delete",
    ):
        monkeypatch.setattr(f"{module}.Producer", Watched)
    changing = ("create_topics", "delete_topics", "delete_records")
    for name in (*changing, "incremental_alter_configs", "alter_consumer_group_offsets"):
        monkeypatch.setattr(AdminClient, name, _watched(name, getattr(AdminClient, name), effects))
    return effects


def _watched(name: str, call: Any, effects: Effects) -> Any:
    def watched(self: AdminClient, asked: list[Any], *words: Any, **more: Any) -> Mapping[Any, Future[Any]]:
        what = f"{name} {[_told(one) for one in asked]}"
        effects.before(what)
        futures: Mapping[Any, Future[Any]] = call(self, asked, *words, **more)
        for future in futures.values():
            future.exception(120)
        effects.after(what)
        return futures

    return watched


def _told(asked: Any) -> Any:
    if isinstance(asked, ConfigResource):
        return sorted((entry.name, entry.value) for entry in asked.incremental_configs)
    if isinstance(asked, ConsumerGroupTopicPartitions):
        return [(place.topic, place.partition) for place in asked.topic_partitions]
    return getattr(asked, "topic", asked)


def test_a_compacted_topic(broker: Broker, brokered: Effects, tmp_path: Path) -> None:
    """Tombstones, lowered settings, rolled segments: whatever died, the settings are those of before in the end."""
    topic = compacted(broker)
    there = ks.planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY, BY_VALUE)
    others = {key: value for key, value in newest(broker, topic).items() if key != USER.encode()}
    die_and_resume(plan(there.steps, [there.copy]), lambda: {"kafka": there.executor()}, tmp_path / "j", brokered)
    assert_killed_at(brokered, there.steps, {"flush": 2, "abort": 1, "incremental_alter_configs": 2})
    assert newest(broker, topic) == others
    assert there.look().bytes.clean
    assert left_on_disk(broker, topic) == [0, 0]
    assert there.now().fingerprint() == there.state.fingerprint()


def test_a_topic_that_is_written_again(broker: Broker, brokered: Effects, tmp_path: Path) -> None:
    """At every moment everybody else's records are in one topic or the other, and in the right one at the end."""
    there = topics.pages(broker)
    kept, group = topics.others(there), f"readers-{there.state.declared.name}"
    topics.commit(there, group, {0: 2, 1: 4})
    expected = topics.unread(there, group)
    die_and_resume(plan(there.steps, [there.copy]), lambda: {"kafka": there.executor()}, tmp_path / "j", brokered)
    kinds = {"create_topics": 2, "delete_topics": 2, "flush": 2, "alter_consumer_group_offsets": 2}
    assert_killed_at(brokered, there.steps, kinds)
    assert topics.contents(there) == kept
    assert topics.unread(there, group) == expected
    assert there.now().overrides == there.state.overrides
    assert topics.topics(broker, there) == [there.state.declared.name]


def test_a_topic_whose_prefix_goes(broker: Broker, brokered: Effects, tmp_path: Path) -> None:
    """Partitions without the person are whole, settings are those of before, and no file of a cut segment is left."""
    topic = prefixes.visits(broker)
    there = prefixes.cut(broker, topic, prefixes.readers(broker, topic))
    kept = [record for record in prefixes.read(there) if record.partition == 1]
    die_and_resume(plan(there.steps, [there.copy]), lambda: {"kafka": there.executor()}, tmp_path / "j", brokered)
    assert_killed_at(brokered, there.steps, {"abort": 1, "delete_records": 1, "incremental_alter_configs": 4})
    assert prefixes.read(there) == kept
    assert not prefixes.on_disk(there)
    assert there.now().fingerprint() == there.state.fingerprint()
