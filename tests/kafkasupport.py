"""A real Kafka broker for tests: one KRaft process on loopback, its jars fetched once by the Ivy that Spark brings."""

from __future__ import annotations

import base64
import json
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from executors.streams.kafka.executor import KafkaExecutor, Patience
from pii_tracer.app.topic_records import look
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.inventory import TopicState
from pii_tracer.lake.streams.kafka.topics import discover_topics
from pii_tracer.model.datasets import (
    Carries,
    CopyKind,
    Format,
    JsonAccess,
    KeySet,
    Match,
    MatchTerm,
    Strategy,
)
from pii_tracer.model.plan import Copy, Estimate, Step
from pii_tracer.review.sealed_person_values import KeyRing
from pii_tracer.run.executor_protocol import Outcome, Progress
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.streams.kafka.topic_records import TopicLook
from planners.step_drafts import CopyDraft, Draft
from planners.streams.kafka.steps import topic_steps
from tests.servers import end, free_ports, own_java, retrieved

KAFKA = ("org.apache.kafka", "kafka_2.13", "4.3.1")
ANSWERS_WITHIN = 180.0

_JVM = ("-Xmx320m", "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")

# one node, and a cleaner that looks often: everything else as a broker has it by default
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
default.replication.factor=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.cleaner.backoff.ms=300
log.cleaner.dedupe.buffer.size=8388608
log.retention.check.interval.ms=500
log.initial.task.delay.ms=300
log.flush.interval.messages=1
log.segment.delete.delay.ms=1000
"""


def jars() -> Path:
    """The folder with the broker's jars."""
    return retrieved("kafka", KAFKA[2], dependency=KAFKA)


@dataclass
class Broker:
    """A running broker; `data` is the folder with its segment files."""

    bootstrap: str
    data: Path
    process: subprocess.Popen[bytes] = field(repr=False)

    def __post_init__(self) -> None:
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def topic(self, name: str, partitions: int = 1, on: Sequence[int] = (1,), **config: str) -> str:
        """A new topic with a name of its own; config keys are written with `_` for `.`.

        on: the brokers that have a replica of each partition; the first of them leads.
        """
        name = f"{name}-{uuid.uuid4().hex[:8]}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        new = NewTopic(name, partitions, replica_assignment=[list(on)] * partitions, config=settings)
        made = self.admin.create_topics([new], request_timeout=60)
        made[name].result(20)
        self._led(name, partitions)
        return name

    def _led(self, topic: str, partitions: int) -> None:
        """Wait until every partition of a new topic has its leader: before, it answers to nobody."""
        end = time.monotonic() + 60
        wanted = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}
        while refused := [e for a in self.admin.list_offsets(wanted).values() if (e := a.exception(60))]:
            assert time.monotonic() < end, refused
            time.sleep(0.1)
            self.admin.list_topics(topic, 10)  # else the client goes on asking whom it knows

    def configure(self, topic: str, **config: str) -> None:
        """Set a topic's settings; their names are written with `_` for `.`."""
        kind = AlterConfigOpType.SET
        entries = [ConfigEntry(name.replace("_", "."), v, incremental_operation=kind) for name, v in config.items()]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self.admin.incremental_alter_configs([resource])[resource].result(60)

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions, and wait until the broker tells of them."""
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(20)
        end = time.monotonic() + 120
        while len(self.admin.list_topics(topic, 10).topics[topic].partitions) < partitions:
            assert time.monotonic() < end, "the new partitions do not come"
            time.sleep(0.1)

    def send(self, topic: str, *records: tuple[str | bytes | None, str | bytes | None], **more: object) -> None:
        """Produce records (key, value) and wait until the broker has them; `more` goes to `produce`."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 0, "log_level": 0})
        failed: list[object] = []
        for key, value in records:
            producer.produce(
                topic, key=key, value=value, on_delivery=lambda error, _: error and failed.append(error), **more
            )
        assert producer.flush(30) == 0
        assert not failed, failed

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Commit a group's offsets. A broker's first group is refused, partition by partition, while it gets ready."""
        places = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, p, o) for p, o in sorted(offsets.items())])
        end = time.monotonic() + 60
        while any(
            p.error for p in self.admin.alter_consumer_group_offsets([places])[group].result(60).topic_partitions
        ):
            assert time.monotonic() < end, "the offsets are not taken"
            time.sleep(0.2)

    def segments(self, topic: str) -> bytes:
        """All bytes of a topic's folder: live segments, and those that wait to be removed."""
        files = sorted(p for p in self.data.glob(f"{topic}*/*") if p.is_file())
        return b"".join(_bytes(p) for p in files)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:  # the cleaner was faster
        return b""


@contextmanager
def running(folder: Path) -> Iterator[Broker]:
    """Format, start, wait until it answers; stop it by its own handle at the end."""
    port, controller = free_ports(2)
    data = folder / "data"
    text = _PROPERTIES.format(port=port, controller=controller, data=data)
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    with _process(folder, text, cluster) as process:
        broker = Broker(f"127.0.0.1:{port}", data, process)
        _await(broker, brokers=1)
        yield broker


@contextmanager
def follower(of: Broker, folder: Path) -> Iterator[Broker]:
    """A second broker in the cluster of a first one; `data` is its own."""
    (port,) = free_ports(1)
    first = (of.data.parent / "server.properties").read_text(encoding="utf-8").splitlines()
    own = {
        "process.roles": "broker",
        "node.id": "2",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(folder / "data"),
    }
    kept = [line for line in first if line.partition("=")[0] not in own]
    text = "\n".join([*kept, *(f"{name}={setting}" for name, setting in own.items())]) + "\n"
    meta = (of.data / "meta.properties").read_text(encoding="utf-8").splitlines()
    cluster = next(line.partition("=")[2] for line in meta if line.startswith("cluster.id="))
    with _process(folder, text, cluster) as process:
        _await(of, brokers=2)
        second = Broker(of.bootstrap, folder / "data", process)
        try:
            yield second
        finally:
            end(second.process)  # `killed` has started another one


@contextmanager
def killed(follower: Broker) -> Iterator[None]:
    """A follower is dead inside, and starts again at the end, on what it had."""
    follower.process.kill()
    follower.process.wait()
    try:
        yield
    finally:
        follower.process = _started(follower.data.parent)


def _started(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """One of Kafka's programs, by default the broker itself."""
    command = [own_java(), *_JVM, "-cp", f"{jars()}/*"]
    with (folder / "broker.log").open("ab") as log:
        said = words or ("kafka.Kafka", str(folder / "server.properties"))
        return subprocess.Popen([*command, *said], stdout=log, stderr=log)


@contextmanager
def _process(folder: Path, properties: str, cluster: str) -> Iterator[subprocess.Popen[bytes]]:
    file = folder / "server.properties"
    file.write_text(properties, encoding="utf-8")
    formatting = _started(folder, "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(file))
    assert formatting.wait(120) == 0, "see broker.log"
    process = _started(folder)
    try:
        yield process
    finally:
        end(process)


def _await(broker: Broker, brokers: int) -> None:
    until = time.monotonic() + ANSWERS_WITHIN
    while True:
        assert broker.process.poll() is None, "the broker ended; see broker.log"
        assert time.monotonic() < until, "the broker does not answer"
        try:
            if len(broker.admin.list_topics(timeout=2).brokers) == brokers:
                return
        except KafkaException:
            pass
        time.sleep(0.2)


_RUNNING = pytest.StashKey[Broker]()


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Broker:
    """One broker for the whole session, however many modules import this; every test makes topics of its own."""
    stash = request.config.stash
    if _RUNNING not in stash:
        stack = ExitStack()
        request.config.add_cleanup(stack.close)
        stash[_RUNNING] = stack.enter_context(running(tmp_path_factory.mktemp("kafka")))
    return stash[_RUNNING]


# --- one invented person among bystanders ---

USER = "990000000077"
MAIL = "anita.rao.7731@example.org"
NOW = datetime(2026, 11, 21, 10, 0, tzinfo=timezone.utc)
KEYS = (
    KeySet(name="uid", origin="users.uid", weak=False, values=(("subj_1", USER),)),
    KeySet(name="mail", origin="users.mail", weak=False, values=(("subj_1", MAIL),)),
)
BY_KEY = MatchTerm(column="key", key_set="uid", type="string")
BY_VALUE = MatchTerm(column="value", access=(JsonAccess(path=("user", "id")),), key_set="uid", type="string")
USERS = {"key": {"format": "string", "column": "uid"}, "value": {"format": "json", "fields": {"user.id": "uid"}}}
ORDERS = {"key": {"format": "string"}, "value": {"format": "json", "fields": {"user.id": "uid"}}}
PAGES = {"value": {"format": "json", "fields": {"user.id": "uid"}}}


def value(user: str, mail: str, **more: object) -> str:
    return json.dumps({"user": {"id": user}, "mail": mail, **more})


def estate(broker: Broker, topic: str, declared: dict[str, Any], **more: Any) -> Estate:
    """An estate with one topic and nothing else."""
    return Estate.model_validate(
        {
            "version": 1,
            "estate": "test",
            "environment": "local",
            "catalogs": {},
            "roots": [],
            "lineage": {},
            "subjects": [{"name": "user", "source": "users", "key": "uid"}],
            "kafka": [
                {"name": "main", "bootstrap": broker.bootstrap, "topics": [{"name": topic, "of": "users", **declared}]}
            ],
            **more,
        }
    )


@dataclass(frozen=True)
class Context:
    """The execution context as far as Kafka needs it."""

    estate: Estate
    base: Path = Path()
    keyring: KeyRing = field(default_factory=lambda: KeyRing(KEYS))
    now: Callable[[], datetime] = lambda: NOW
    note: Callable[[str, Mapping[str, Any]], None] = lambda step, facts: None
    told: Callable[[str], Sequence[Mapping[str, Any]]] = lambda step: ()


@dataclass(frozen=True)
class World:
    """A topic as it was planned for: its copy, and the steps that the planner writes for it. notes: what these noted."""

    broker: Broker
    estate: Estate
    state: TopicState
    copy: Copy
    steps: tuple[Step, ...]
    notes: list[Mapping[str, Any]] = field(default_factory=list)

    def executor(self, **patience: float) -> KafkaExecutor:
        return KafkaExecutor(
            Context(self.estate, note=lambda step, facts: self.notes.append(facts), told=lambda step: self.notes),
            Patience(**{"roll": 6.0, "whole": 30.0, "poll": 0.2, "followers": 3.0, **patience}),
        )

    @property
    def cuts(self) -> bool:
        """Whether a prefix was deleted: only its answer, which a dead process never gave, says that this is over."""
        return any("cuts" in note for note in self.notes)

    def look(self) -> TopicLook:
        return look(self.estate, Path(), self.copy, build_patterns(KEYS))

    def now(self) -> TopicState:
        return discover_topics(self.estate, Path())[0][0]

    def is_as_before(self, within: float = 10.0) -> bool:
        """Whether the topic has its own settings again: a broker answers with those of before for a moment."""
        until = time.monotonic() + within
        while self.now().fingerprint() != self.state.fingerprint():
            if time.monotonic() > until:
                return False
            time.sleep(0.2)
        return True

    def run(self, **patience: float) -> list[Outcome]:
        """Every step, checked before and verified after it, and known as done where it noted nothing on its way."""
        executor, outcomes = self.executor(**patience), []
        for step in self.steps:
            executor.check(step, self.copy)
            outcomes.append(executor.run(step, self.copy))
            seen = executor.verify(step, self.copy)
            assert seen.ok, (step.id, seen, outcomes)
            assert executor.probe(step, self.copy) is (Progress.PARTIAL if self.cuts else Progress.DONE)
        return outcomes


def planned(
    broker: Broker, topic: str, declared: dict[str, Any], strategy: Strategy, *terms: MatchTerm, **facts: Any
) -> World:
    """Plan for a topic that exists. facts: of the copy."""
    made = estate(broker, topic, declared)
    (state,), gaps = discover_topics(made, Path())
    assert not gaps
    copy = Copy(
        id="c-topic",
        kind=CopyKind.TOPIC,
        dataset=state.dataset,
        table=None,
        location=state.location,
        format=Format.KAFKA,
        carries=Carries.KEY,
        strategy=strategy,
        columns=(),
        lineage=(),
        reason="test",
        match=Match(terms=terms),
        facts={"cluster": "main", "topic": topic, **facts},
    )
    drafts = topic_steps(CopyDraft(copy=copy, topic=state, lapse=NOW), state, "plan-1")
    return World(broker, made, state, copy, tuple(step(draft) for draft in drafts))


def step(draft: Draft) -> Step:
    """A draft as a step of a plan, without dates that matter."""
    return Step(
        id=draft.id,
        copy_=draft.copy,
        action=draft.action,
        executor=draft.executor,
        parameters=draft.parameters,
        depends_on=draft.after,
        hazards=draft.hazards,
        preconditions=(),
        verification=draft.verification,
        irreversible=draft.irreversible,
        earliest_start=NOW,
        earliest_finish=NOW,
        latest_start=NOW,
        estimate=Estimate(),
        reason=draft.reason,
    )
