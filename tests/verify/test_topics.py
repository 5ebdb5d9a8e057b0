"""The verifier on topics: every place of a record counts, and what is not as declared is never clean. Real broker."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from pii_tracer.app.topic_records import look_elsewhere
from pii_tracer.lake.streams.kafka.topics import topic_dataset
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.row_checks import compare
from pii_tracer.verify.short_numbers import ShortNumbersThen
from tests.kafkasupport import BY_KEY, BY_VALUE, KEYS, MAIL, USER, USERS, Broker, broker, estate, planned, value
from tests.kits.waived_places_kit import FIRST, MAILS, Place, persons_apart, persons_apart_in_copy

__all__ = ["broker"]

CLEAN = ("7", value("7", "x@example.org"))


@pytest.mark.parametrize(
    ("key", "content", "headers", "where"),
    [
        (USER, value("7", "x@example.org"), [], "record key: key"),
        ("7", value("7", MAIL), [], "record value: value.$.mail"),
        ("7", value("7", "x", note=f"ask {MAIL} first"), [], "record value: value.$.note"),
        ("7", value("7", "x", blob=base64.b64encode(MAIL.encode()).decode()), [], "record value: value.$.blob"),
        ("7", value("7", "x"), [("from", MAIL.encode())], "record header: header.from"),
        ("7", value("7", "x"), [(MAIL, None)], "record header: header.[mail]"),
        (USER, None, [], "record key: key"),
    ],
    ids=["key", "value", "inside a text", "base64", "header", "name of a header", "tombstone"],
)
def test_the_person_is_found_wherever_a_record_has_room(
    broker: Broker, key: str, content: str | None, headers: list[tuple[str, bytes | None]], where: str
) -> None:
    topic = broker.topic("places", cleanup_policy="compact")
    broker.send(topic, CLEAN)
    broker.send(topic, (key, content), headers=headers)
    seen = planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY, BY_VALUE).look()
    assert [r.where for r in seen.bytes.residue] == [where]
    assert seen.rows.rows_left == 1
    assert MAIL not in seen.bytes.model_dump_json()


def test_a_clean_topic_is_clean_and_its_scope_is_hashed(broker: Broker) -> None:
    topic = broker.topic("clean", 2, cleanup_policy="compact")
    broker.send(topic, CLEAN)
    world = planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY)
    seen = world.look()
    assert seen.bytes.clean
    assert [len(f.sha256) for f in seen.bytes.files] == [64, 64]
    broker.send(topic, ("8", value("8", "z@example.org")))
    assert world.look().bytes.files != seen.bytes.files


@pytest.mark.parametrize("content", [gzip.compress(value(USER, MAIL).encode(), mtime=0), b"\xff\xfe", b"{"])
def test_what_is_not_encoded_as_declared_is_unverified(broker: Broker, content: bytes) -> None:
    topic = broker.topic("odd", cleanup_policy="compact")
    broker.send(topic, ("7", content))
    seen = planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY).look()
    assert seen.bytes.unverified
    assert not seen.bytes.clean


@pytest.mark.parametrize("change", [("7", None), ("7", value("7", "other@example.org"))], ids=["lost", "changed"])
def test_a_bystander_who_is_lost_or_changed_is_seen(broker: Broker, change: tuple[str, str | None]) -> None:
    topic = broker.topic("others", cleanup_policy="compact")
    broker.send(topic, CLEAN, ("8", value("8", "y@example.org")), (USER, value(USER, MAIL)))
    world = planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY)
    before = world.look().baseline
    assert before is not None
    assert (before.states[0].rows_total, before.states[0].rows_person) == (3, 1)
    broker.send(topic, change, (USER, None))
    after = world.look().baseline
    assert after is not None
    found = compare(before, after)
    assert not found.equal
    assert found.lost == (1 if change[1] is None else 0)


@pytest.mark.parametrize("strategy", [Strategy.TOMBSTONE, Strategy.REWRITE_TOPIC])
def test_what_was_aborted_is_nobodys_loss_and_holds_the_person_all_the_same(broker: Broker, strategy: Strategy) -> None:
    topic = broker.topic("aborted", 2, cleanup_policy="compact")
    for partition in range(2):
        broker.send(topic, CLEAN, ("8", value("8", "y@example.org")), partition=partition)
    world = planned(broker, topic, USERS, strategy, BY_KEY)
    before = world.look()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(20)
    for partition in range(2):
        producer.begin_transaction()
        producer.produce(topic, key="7", value=value("7", "never@example.org"), partition=partition)
        producer.produce(topic, key="9", value=value("9", "never@example.org"), partition=partition)
        producer.produce(topic, key="8", value=value(USER, MAIL), partition=partition)
        producer.flush(20)
        producer.abort_transaction(20)
    seen = world.look()
    assert before.baseline is not None
    assert seen.baseline is not None
    assert compare(before.baseline, seen.baseline).equal
    assert seen.rows.rows_left == 2
    assert not seen.bytes.clean


def test_what_an_open_transaction_hides_is_counted(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pii_tracer.lake.streams.kafka.topics.DECIDED_WITHIN", 0.2)
    topic = broker.topic("open", cleanup_policy="compact")
    broker.send(topic, CLEAN)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, key="9", value=value("9", "x@example.org"))
    producer.flush(20)
    broker.send(topic, ("8", value("8", "y@example.org")))
    seen = planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY).look().baseline
    producer.abort_transaction(20)
    assert seen is not None
    assert seen.states[0].rows_other == 3


def test_a_short_number_counts_unless_declared_to_be_something_else(broker: Broker) -> None:
    weak = (KEYS[0].model_copy(update={"weak": True, "values": (("subj_1", "77123"),)}),)
    topic = broker.topic("weak", cleanup_policy="compact")
    broker.send(topic, ("7", json.dumps({"user": {"id": "7"}, "shop": 77123})))
    world = planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY)
    from pii_tracer.app.topic_records import look

    assert look(world.estate, Path(), world.copy, build_patterns(weak)).bytes.residue
    told = world.copy.model_copy(update={"other_keys": ("value.$.shop",)})
    seen = look(world.estate, Path(), told, build_patterns(weak))
    assert seen.bytes.clean
    assert [d.column for d in seen.bytes.same_digits] == ["value.$.shop"]


def test_a_topic_that_was_no_copy_is_looked_at_again(broker: Broker) -> None:
    topic = broker.topic("later", cleanup_policy="delete")
    broker.send(topic, CLEAN)
    world = planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY)
    patterns = build_patterns(KEYS)
    assert look_elsewhere(world.estate, Path(), world.state.dataset, patterns).clean
    broker.send(topic, ("9", value("9", MAIL)))
    assert look_elsewhere(world.estate, Path(), world.state.dataset, patterns).residue
    broker.admin.delete_topics([topic])[topic].result(20)
    assert look_elsewhere(world.estate, Path(), world.state.dataset, patterns).unverified


def test_a_short_key_counts_in_the_declared_fields_of_a_topic_where_it_is_asked_for(broker: Broker) -> None:
    weak = (KEYS[0].model_copy(update={"weak": True, "values": (("subj_1", "77123"),)}),)
    topic = broker.topic("short", cleanup_policy="delete")
    broker.send(topic, ("7", json.dumps({"user": {"id": "7"}, "shop": 77123})))
    world = planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY)
    given = (world.estate, Path(), world.state.dataset, build_patterns(weak))
    clean = look_elsewhere(*given, named=True, short=ShortNumbersThen(certain=True))
    assert (clean.clean, bool(clean.files)) == (True, True)
    broker.send(topic, ("77123", json.dumps({"user": {"id": "8"}})))
    assert look_elsewhere(*given, short=ShortNumbersThen(certain=True)).residue
    assert look_elsewhere(*given).clean


def waived_topic(broker: Broker, topic: str, base: Path) -> Place:
    """A topic that could not be described at planning."""
    made = estate(broker, topic, USERS)
    cluster = made.kafka[0]
    return Place(made, base, topic_dataset(cluster, topic), GapKind.KAFKA_TOPIC)


def test_a_waived_topic_is_looked_at_again_once_it_can_be_read(broker: Broker, tmp_path: Path) -> None:
    """It was passed by: nothing had asked whether it could be read again."""
    topic = broker.topic("waived", cleanup_policy="delete")
    place = waived_topic(broker, topic, tmp_path)
    assert place.files_found() == set()
    broker.send(topic, ("9", value("9", MAILS[FIRST])))
    assert place.files_found()


def test_a_topic_that_is_missing_now_is_not_as_it_was_waived(broker: Broker, tmp_path: Path) -> None:
    place = waived_topic(broker, "nowhere", tmp_path)
    assert place.files_found()
    assert replace(place, kind=GapKind.MISSING_TOPIC).files_found() == set()


def test_what_is_left_of_one_person_in_a_topic_is_hers_alone(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic("apart", cleanup_policy="delete")

    def send(key: str, lines: bytes) -> None:
        broker.send(topic, *((key, value("9", mail)) for mail in lines.decode().split()[1:]))

    persons_apart(waived_topic(broker, topic, tmp_path), send)


def test_a_topic_with_something_of_one_person_is_erased_of_the_others(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic("copy", cleanup_policy="delete")
    world = planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY)

    def send(key: str, lines: bytes) -> None:
        broker.send(topic, *((key, value("9", mail)) for mail in lines.decode().split()[1:]))

    persons_apart_in_copy(world.estate, tmp_path, world.copy.model_copy(update={"match": None}), send)
