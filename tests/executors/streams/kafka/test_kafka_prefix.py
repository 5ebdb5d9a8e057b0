"""A prefix is deleted, on a real broker: what DeleteRecords alone leaves, who must have read it, what a crash leaves."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from executors.streams.kafka.prefix_delete import PrefixCutter
from executors.streams.kafka.topic_step_base import TopicWork
from pii_tracer.lake.streams.kafka.records import Record
from pii_tracer.lake.streams.kafka.topic_reading import read_topic
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import Progress
from pii_tracer.verify.row_checks import compare
from tests.executors.streams.kafka.test_kafka_open import left_open
from tests.kafkasupport import BY_VALUE, MAIL, PAGES, USER, Broker, World, broker, planned, value

__all__ = ["broker"]


def visits(broker: Broker, on: Sequence[int] = (1,), **own: str) -> str:
    """Three partitions with five records each; the person is in two of them, second and third, never last.

    on: brokers that have it, the leader first. own: further settings of the topic.
    """
    settings = {"cleanup_policy": "delete", "retention_ms": "-1", "segment_ms": "900000", **own}
    topic = broker.topic("visits", 3, on, **settings)
    for partition in range(3):
        for number in range(5):
            user, mail = (f"55{number}", f"by{partition}{number}@example.org")
            if partition != 1 and number in (1, 2):
                user, mail = USER, MAIL
            broker.send(topic, (None, value(user, mail)), partition=partition)
    return topic


def cut(broker: Broker, topic: str, *groups: str) -> World:
    """Planned, with the groups that must have read it."""
    declared = {**PAGES, "prefix": {"read_by": list(groups), "reason": "kept elsewhere"}}
    facts = {"until": {"0": 3, "2": 3}, "kept_below": [0, 5, 0]}
    return planned(broker, topic, declared, Strategy.DELETE_PREFIX, BY_VALUE, **facts)


def readers(broker: Broker, topic: str, first: int = 5) -> str:
    """A consumer group that has read everything. first: how much that is in the first partition."""
    group = f"billing-{topic}"
    broker.commit(group, topic, {0: first, 1: 5, 2: 5})
    return group


def read(world: World) -> list[Record]:
    client = {"bootstrap.servers": world.broker.bootstrap, "log_level": 0}
    return list(read_topic(client, world.state.declared.name, range(len(world.state.offsets))))


def on_disk(world: World) -> bool:
    data = world.broker.segments(world.state.declared.name)
    return MAIL.encode() in data or USER.encode() in data


def untouched(world: World) -> bool:
    now = world.now()
    return now.fingerprint() == world.state.fingerprint() and [f for f, _ in now.offsets] == [0, 0, 0]


def test_deleting_behind_the_persons_last_record_leaves_its_bytes_rolled_or_not(broker: Broker) -> None:
    world = cut(broker, visits(broker), "billing")
    (step,) = world.steps
    name = world.state.declared.name
    broker.admin.delete_records([TopicPartition(name, p, 3) for p in (0, 2)])
    time.sleep(2)  # several looks of the broker for segments to remove
    assert USER.encode() not in b"".join(r.value or b"" for r in read(world))
    assert on_disk(world)
    work = world.executor()._work(step, world.copy)
    PrefixCutter(work, 0, 0)._rolled((0, 2))
    time.sleep(2)
    assert on_disk(world), "the rest of the segment lies behind the cut"


def test_the_person_leaves_and_partitions_without_them_are_whole(broker: Broker) -> None:
    topic = visits(broker)
    world = cut(broker, topic, readers(broker, topic))
    before, kept = world.look(), [r for r in read(world) if r.partition == 1]
    (outcome,) = world.run()
    cut_at = outcome.facts["cut_at"]
    assert sorted(cut_at) == ["0", "2"]
    assert (outcome.facts["rows_deleted"], outcome.facts["others_deleted"]) == (4, 6)
    assert world.notes == [
        {"cuts": [{"partition": p, "first": 0, "end": cut_at[str(p)], "persons": 2, "others": 3} for p in (0, 2)]}
    ]
    assert read(world) == kept
    assert [first for first, _ in world.now().offsets] == [cut_at["0"], 0, cut_at["2"]]
    assert not on_disk(world)
    assert world.is_as_before()
    after = world.look()
    assert after.bytes.clean
    assert before.baseline is not None
    assert after.baseline is not None
    assert (before.baseline.states[0].rows_other, compare(before.baseline, after.baseline).equal) == (5, True)


def test_what_is_written_behind_the_cut_stays(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = visits(broker)
    world = cut(broker, topic, readers(broker, topic))
    before = world.look().baseline
    original = PrefixCutter._delete

    def meanwhile(self: PrefixCutter, *ends: Any) -> None:
        for partition in range(3):
            broker.send(topic, (None, value("559", "late@example.org")), partition=partition)
        original(self, *ends)

    monkeypatch.setattr(PrefixCutter, "_delete", meanwhile)
    world.run()
    late = [r.partition for r in read(world) if b"late@example.org" in (r.value or b"")]
    assert late == [0, 1, 2]
    after = world.look().baseline
    assert before is not None
    assert after is not None
    assert compare(before, after).equal, "producers need not rest"
    assert not on_disk(world)


@pytest.mark.parametrize(
    ("known", "at"),
    [(True, {0: 5, 1: 5, 2: 4}), (True, {0: 5}), (True, {}), (False, {0: 5, 2: 4})],
    ids=["one record behind", "nothing of a partition", "never read anything", "a group that nobody declared"],
)
def test_a_group_that_has_not_read_everything_is_waited_for(broker: Broker, known: bool, at: dict[int, int]) -> None:
    topic = visits(broker)
    done, group = readers(broker, topic), f"slow-{topic}"
    if at:
        broker.commit(group, topic, at)
    world = cut(broker, topic, done, *([group] if known else []))
    executor, (step,) = world.executor(), world.steps
    held = executor.run(step, world.copy)
    assert held.waiting_until is not None
    assert held.facts["groups_behind"] == [group]
    assert held.waits_for == (
        f"not read by {group}: these groups would lose records that are deleted before they read them"
    )
    assert untouched(world)
    assert executor.probe(step, world.copy) is Progress.NOT_STARTED
    broker.commit(group, topic, {0: 5, 1: 5, 2: 5})
    assert executor.run(step, world.copy).waiting_until is None
    assert executor.verify(step, world.copy).ok
    assert not on_disk(world)


def test_what_came_while_segments_were_rolled_must_be_read_too(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = visits(broker)
    group = readers(broker, topic)
    world = cut(broker, topic, group)
    original = PrefixCutter._mark

    def meanwhile(self: PrefixCutter, partitions: Any) -> None:
        broker.send(topic, (None, value("559", "late@example.org")), partition=0)
        original(self, partitions)

    with monkeypatch.context() as writing:
        writing.setattr(PrefixCutter, "_mark", meanwhile)
        held = world.executor(roll=0.5).run(world.steps[0], world.copy)
    assert held.facts["groups_behind"] == [group]
    assert untouched(world)
    assert any(b"late@example.org" in (r.value or b"") for r in read(world))


class Died(BaseException):
    """The process ends here."""


def dies(*_: Any, **__: Any) -> Any:
    raise Died


def dies_after(original: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*args: Any, **more: Any) -> Any:
        original(*args, **more)
        raise Died

    return wrapped


@pytest.mark.parametrize(
    ("method", "after"),
    [("_mark", False), ("_mark", True), ("_rolled", True), ("_delete", False), ("_delete", True)],
    ids=["settings lowered", "marked", "rolled", "about to delete", "deleted, files still there"],
)
def test_after_a_crash_the_settings_are_restored_and_the_person_goes(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, method: str, after: bool
) -> None:
    topic = visits(broker)
    world = cut(broker, topic, readers(broker, topic))
    kept = [r for r in read(world) if r.partition == 1]
    (step,) = world.steps
    with monkeypatch.context() as dying:
        dying.setattr(TopicWork, "restore", lambda *_, **__: [])  # a killed process restores nothing
        dying.setattr(PrefixCutter, method, dies_after(getattr(PrefixCutter, method)) if after else dies)
        with pytest.raises(Died):
            world.executor().run(step, world.copy)
    assert world.now().settings["segment.ms"] == "100"
    starts = [first for first, _ in world.now().offsets]
    resumed = world.executor()
    assert resumed.probe(step, world.copy) is Progress.PARTIAL
    resumed.check(step, world.copy)
    resumed.run(step, world.copy)
    assert resumed.verify(step, world.copy).ok
    assert world.is_as_before()
    assert not on_disk(world)
    assert read(world) == kept
    if starts != [0, 0, 0]:
        assert [first for first, _ in world.now().offsets] == starts, "nothing is cut a second time"


@pytest.mark.parametrize("delay", ["60000", "1000"], ids=["another delay", "the very delay of the step"])
def test_killed_behind_the_cut_it_is_not_over_and_its_counts_are_not_lost(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, delay: str
) -> None:
    """Nobody can read the person any more, and where the topic's own delay is the step's, no setting is a mark."""
    topic = visits(broker, file_delete_delay_ms=delay)
    world = cut(broker, topic, readers(broker, topic))
    (step,) = world.steps
    with monkeypatch.context() as dying:
        dying.setattr(PrefixCutter, "_delete", dies_after(PrefixCutter._delete))
        with pytest.raises(Died):
            world.executor().run(step, world.copy)
    assert world.executor().probe(step, world.copy) is Progress.PARTIAL
    assert on_disk(world), "the files wait to be removed"
    outcome = world.executor().run(step, world.copy)
    assert not on_disk(world)
    assert (outcome.facts["rows_deleted"], outcome.facts["others_deleted"]) == (4, 6)
    assert sorted(outcome.facts["cut_at"]) == ["0", "2"]
    assert world.is_as_before()


def test_killed_between_the_note_and_the_cut_nothing_is_counted_twice(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One partition's records went, the other's did not: the broker of that one was away."""
    topic = visits(broker)
    world = cut(broker, topic, readers(broker, topic))
    (step,) = world.steps
    original = AdminClient.delete_records

    def only_one(self: AdminClient, places: list[TopicPartition], **more: Any) -> Any:
        original(self, places[:1], **more)[places[0]].result(60)
        raise Died

    with monkeypatch.context() as dying:
        dying.setattr(AdminClient, "delete_records", only_one)
        with pytest.raises(Died):
            world.executor().run(step, world.copy)
    outcome = world.executor().run(step, world.copy)
    assert [len(note["cuts"]) for note in world.notes] == [2, 1]
    assert (outcome.facts["rows_deleted"], outcome.facts["others_deleted"]) == (4, 6)
    assert not on_disk(world)


def test_the_person_written_while_segments_are_rolled_stops_it(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the marker begins a new segment, which no cut takes from the disk; the next run rolls it as well."""
    topic = visits(broker)
    group = readers(broker, topic)
    world = cut(broker, topic, group)
    original = PrefixCutter._mark

    def meanwhile(self: PrefixCutter, partitions: Any) -> None:
        original(self, partitions)
        broker.send(topic, (None, value(USER, MAIL)), partition=0)
        broker.commit(group, topic, {0: 99, 1: 99, 2: 99})

    with monkeypatch.context() as writing:
        writing.setattr(PrefixCutter, "_mark", meanwhile)
        with pytest.raises(RunError, match="while the step rolled segments"):
            world.executor().run(world.steps[0], world.copy)
    assert untouched(world)
    (outcome,) = world.run()
    assert outcome.facts["rows_deleted"] == 5
    assert not on_disk(world)


def test_a_second_run_does_nothing(broker: Broker) -> None:
    topic = visits(broker)
    world = cut(broker, topic, readers(broker, topic))
    (first,) = world.run()
    before = world.now().offsets
    outcome = world.executor().run(world.steps[0], world.copy)
    assert outcome.facts == {**first.facts, "restored": []}
    assert world.now().offsets == before


def test_the_person_where_the_plan_cuts_nothing_stops_it(broker: Broker) -> None:
    topic = visits(broker)
    world = cut(broker, topic, readers(broker, topic))
    broker.send(topic, (None, value(USER, MAIL)), partition=1)
    with pytest.raises(RunError, match="a partition in which the plan deletes nothing: 1") as caught:
        world.executor().run(world.steps[0], world.copy)
    assert USER not in str(caught.value)
    assert untouched(world)


def test_the_person_written_again_after_it_is_seen(broker: Broker) -> None:
    topic = visits(broker)
    world = cut(broker, topic, readers(broker, topic))
    world.run()
    broker.send(topic, (None, value(USER, MAIL)), partition=0)
    assert not world.executor().verify(world.steps[0], world.copy).ok
    assert world.look().bytes.residue


def test_a_record_from_the_future_stops_it(broker: Broker) -> None:
    topic = visits(broker)
    broker.send(topic, (None, value("1", "x@example.org")), partition=0, timestamp=int(time.time() * 1000) + 600_000)
    world = cut(broker, topic, readers(broker, topic, first=6))
    with pytest.raises(RunError, match="with a future time stamp"):
        world.executor().run(world.steps[0], world.copy)
    assert untouched(world)


def test_what_an_open_transaction_hides_from_readers_does_not_go(broker: Broker) -> None:
    topic = visits(broker)
    world = cut(broker, topic, readers(broker, topic))
    with left_open(broker, topic), pytest.raises(RunError, match="open transaction"):
        world.executor().run(world.steps[0], world.copy)
    assert untouched(world)


def test_a_segment_that_cannot_be_rolled_stops_it_before_anything_goes(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = visits(broker)
    world = cut(broker, topic, readers(broker, topic))
    monkeypatch.setattr(PrefixCutter, "_mark", lambda *_: None)
    with pytest.raises(RunError, match="could not be rolled"):
        world.executor().run(world.steps[0], world.copy)
    assert untouched(world)
