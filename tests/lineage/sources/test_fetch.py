from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from pii_tracer.config.lineage import EventTopic, LineageSources
from pii_tracer.lineage.harvest import Given, harvest_all
from pii_tracer.lineage.sources.openlineage import kafka_events
from pii_tracer.lineage.sources.openlineage.event_fetching import gather, sources_of
from pii_tracer.lineage.sources.openlineage.kafka_events import KafkaSource
from pii_tracer.lineage.sources.openlineage.marquez import MarquezSource
from pii_tracer.model.errors import EstateError, LineageError
from tests.kafkasupport import Broker, broker
from tests.lineage.conftest import COPY, PAYMENTS, column_facet, dataset, event
from tests.lineage.sources.marquez_standin import marquez
from tests.servers import free_ports

__all__ = ["broker"]

FACET = column_facet(pan=(PAYMENTS, "pan", "IDENTITY"))
NOW = "2026-11-21T10:00:00+00:00"


def at(run: int, second: int) -> dict:
    made = event(str(run), "COMPLETE", [dataset(PAYMENTS)], [dataset(COPY, columnLineage=FACET)])
    return made | {"eventTime": f"2026-11-01T00:{second // 60:02}:{second % 60:02}Z"}


def runs(log: Path) -> set[str]:
    lines = [line for f in sorted(log.glob("*.ndjson")) for line in f.read_text().splitlines()]
    found = [json.loads(line)["run"]["runId"] for line in lines]
    assert len(found) == len(set(found)), "an event was stored twice"
    return set(found)


def quiet(text: str) -> None:
    """No progress."""


# Marquez


@pytest.mark.parametrize("times", [lambda n: n, lambda n: 7, lambda n: n // 25], ids=["apart", "at once", "in bursts"])
def test_every_event_of_marquez_is_read_whatever_their_times(tmp_path: Path, times):
    events = [at(n, times(n)) for n in range(105)]
    with marquez(events) as (url, queries):
        got = gather([MarquezSource(url, page=10)], tmp_path / "events", NOW, quiet)
        assert runs(tmp_path / "events") == {str(n) for n in range(105)}
        assert len(queries) > 10
        assert got.gaps == ()
        events.append(at(500, 3))
        gather([MarquezSource(url, page=10)], tmp_path / "events", NOW, quiet)
    assert runs(tmp_path / "events") == {*(str(n) for n in range(105)), "500"}


def test_events_that_are_removed_meanwhile_push_no_other_over_the_edge(tmp_path: Path):
    """Marquez deletes what is older than its retention: by number alone, ten events would be skipped."""
    events = [at(n, n) for n in range(60)]

    def expire(number: int) -> None:
        if number == 2:
            del events[:10]

    with marquez(events, expire) as (url, _):
        gather([MarquezSource(url, page=10)], tmp_path / "events", NOW, quiet)
    assert runs(tmp_path / "events") == {str(n) for n in range(60)}


def test_the_standin_refuses_what_marquez_refuses(tmp_path: Path):
    with marquez([]) as (url, _), pytest.raises(LineageError, match="it refused: HTTP 422"):
        gather([MarquezSource(url, page=-1)], tmp_path / "events", NOW, quiet)


def test_a_source_never_read_is_an_error_and_later_a_gap(tmp_path: Path):
    log = tmp_path / "lineage" / "events"
    with marquez([at(1, 1)]) as (url, _):
        pass
    with pytest.raises(LineageError, match="was never read"):
        gather([MarquezSource(url)], log, NOW, quiet)
    with marquez([at(1, 1)]) as (url, _):
        source = MarquezSource(url)
        gather([source], log, NOW, quiet)
    (gap,) = gather([source], log, "later", quiet).gaps
    assert gap.kind == "source_unreachable"
    assert f"read last at {NOW}" in gap.evidence
    assert runs(log) == {"1"}


def test_harvesting_twice_adds_nothing(tmp_path: Path):
    log = tmp_path / "lineage" / "events"
    with marquez([at(n, n) for n in range(30)]) as (url, _):
        digests = set()
        for _ in range(2):
            gather([MarquezSource(url)], log, NOW, quiet)
            digests.add(harvest_all(LineageSources(), Given(tmp_path, log=log)).graph.digest())
            size = sum(f.stat().st_size for f in log.glob("*.ndjson"))
    assert len(digests) == 1
    assert sum(f.stat().st_size for f in log.glob("*.ndjson")) == size


# Kafka


def filled(broker: Broker, name: str, values: list[str | None], partitions: int = 1) -> EventTopic:
    topic = broker.topic(name, partitions)
    for number in range(partitions):
        broker.send(topic, *((None, value) for value in values[number::partitions]), partition=number)
    return EventTopic(bootstrap=broker.bootstrap, topic=topic)


def packed(*events: dict[str, Any]) -> list[str | None]:
    return [json.dumps(e) for e in events]


def test_a_topic_is_read_whole_and_what_is_no_event_is_told(broker: Broker, tmp_path: Path):
    topic = filled(broker, "whole", [*packed(*(at(n, n) for n in range(1500))), "rubbish", None, '{"a": 1}'], 2)
    for _ in range(2):
        got = gather(sources_of(LineageSources(kafka=(topic,)), tmp_path), tmp_path / "events", NOW, quiet)
        assert got.reads == ((f"Kafka topic {topic.topic} at {broker.bootstrap}", 1500),)
        assert sorted((g.evidence.partition(", ")[2], g.reason.rpartition(": ")[2]) for g in got.gaps) == [
            ("partition 0, offset 750", "it is not JSON"),
            ("partition 0, offset 751", "it is not an OpenLineage event"),
            ("partition 1, offset 750", "it is not JSON"),
        ]
        assert runs(tmp_path / "events") == {str(n) for n in range(1500)}


def delete_before(broker: Broker, topic: str, offset: int) -> None:
    for future in broker.admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result(20)


def test_messages_that_were_gone_before_they_were_read_are_a_gap(broker: Broker, tmp_path: Path):
    topic = filled(broker, "short", packed(*(at(n, n) for n in range(10))))
    source = KafkaSource(topic, tmp_path)
    assert gather([source], tmp_path / "read" / "events", NOW, quiet).gaps == ()
    delete_before(broker, topic.topic, 4)
    assert gather([source], tmp_path / "read" / "events", NOW, quiet).gaps == ()
    assert len(runs(tmp_path / "read" / "events")) == 10
    for _ in range(2):
        (gap,) = gather([source], tmp_path / "anew" / "events", NOW, quiet).gaps
        assert gap.kind == "lost_events"
        assert "offsets 0 to 3 of partition 0" in gap.reason


def test_a_topic_made_anew_under_its_old_name_begins_anew(broker: Broker, tmp_path: Path):
    topic = filled(broker, "anew", packed(*(at(n, n) for n in range(10))))
    source, log = KafkaSource(topic, tmp_path), tmp_path / "l" / "events"
    gather([source], log, NOW, quiet)
    for future in broker.admin.delete_topics([topic.topic], operation_timeout=60).values():
        future.result(20)
    until = time.monotonic() + 120
    while topic.topic in broker.admin.list_topics(timeout=60).topics:
        assert time.monotonic() < until
        time.sleep(0.1)
    for future in broker.admin.create_topics([NewTopic(topic.topic, 1, 1)]).values():
        future.result(20)
    broker.send(topic.topic, *((None, v) for v in packed(*(at(n, n) for n in range(20, 26)))))
    delete_before(broker, topic.topic, 3)
    (gap,) = gather([source], log, NOW, quiet).gaps
    assert "offsets 0 to 2 of partition 0" in gap.reason
    assert runs(log) == {str(n) for n in [*range(10), 23, 24, 25]}


def test_aborted_messages_are_not_read_and_do_not_stop_the_reading(broker: Broker, tmp_path: Path):
    topic = filled(broker, "transactions", packed(at(1, 1)))
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic.topic})
    producer.init_transactions(20)
    for run, commit in ((2, True), (3, False)):
        producer.begin_transaction()
        producer.produce(topic.topic, packed(at(run, run))[0], partition=0)
        producer.flush(20)
        (producer.commit_transaction if commit else producer.abort_transaction)(20)
    gather([KafkaSource(topic, tmp_path)], tmp_path / "e", NOW, quiet)
    assert runs(tmp_path / "e") == {"1", "2"}


def test_an_empty_topic_and_one_that_is_not_there(broker: Broker, tmp_path: Path):
    assert gather([KafkaSource(filled(broker, "empty", []), tmp_path)], tmp_path / "e", NOW, quiet).gaps == ()
    missing = EventTopic(bootstrap=broker.bootstrap, topic="nowhere")
    with pytest.raises(LineageError, match="UNKNOWN_TOPIC_OR_PART"):
        gather([KafkaSource(missing, tmp_path)], tmp_path / "e", NOW, quiet)


def test_a_broker_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kafka_events, "TIMEOUT", 1.0)
    source = KafkaSource(EventTopic(bootstrap=f"127.0.0.1:{free_ports(1)[0]}", topic="x"), tmp_path)
    with pytest.raises(LineageError, match="was never read, and cannot be"):
        gather([source], tmp_path / "e", NOW, quiet)


def test_settings_of_the_client_come_from_a_file(tmp_path: Path):
    (tmp_path / "kafka.properties").write_text("# TLS\nsecurity.protocol = nonsense\n")
    topic = EventTopic(bootstrap="127.0.0.1:1", topic="x", properties_file="kafka.properties")
    with pytest.raises(EstateError, match="refused"):
        KafkaSource(topic, tmp_path)
    with pytest.raises(EstateError, match="cannot be read"):
        KafkaSource(topic.model_copy(update={"properties_file": "none"}), tmp_path)
