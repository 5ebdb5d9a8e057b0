"""Records in Protobuf: numbers that no text search sees are found, erased and verified; what is not of the schema stops it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pii_tracer.config.kafka import RecordPart
from pii_tracer.model.datasets import JsonAccess, MatchTerm, Strategy
from pii_tracer.model.errors import EstateError, RunError
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.value_forms import build_patterns
from tests.kafkasupport import BY_VALUE, KEYS, MAIL, USER, Broker, World, broker, planned
from tests.protobufsupport import COMMON, ORDER, descriptor_set, framed, message, order

__all__ = ["broker"]

ORDER_INDEX = b"\x02\x02"
BY_KEY_MEMBER = MatchTerm(column="key", access=(JsonAccess(path=("id",)),), key_set="uid", type="string")
PATTERNS = build_patterns(KEYS)


def declared(tmp_path: Path, **more: Any) -> dict[str, Any]:
    (tmp_path / "order.desc").write_bytes(descriptor_set(COMMON, ORDER))
    value = {"format": "protobuf", "fields": {"user.id": "uid"}, **more}
    if not value.get("framed"):
        value |= {"schema_file": str(tmp_path / "order.desc"), "message": "shop.Order"}
    return {"key": {"format": "string"}, "value": value}


def orders(broker: Broker, tmp_path: Path, *records: tuple[str, bytes], **more: Any) -> World:
    topic = broker.topic("orders", cleanup_policy="compact")
    broker.send(topic, *records)
    return planned(broker, topic, declared(tmp_path, **more), Strategy.TOMBSTONE, BY_VALUE)


def where(world: World) -> set[str]:
    return {one.where for one in world.look().bytes.residue}


def test_a_number_that_no_search_in_the_bytes_sees_is_found_and_erased(broker: Broker, tmp_path: Path) -> None:
    of_person, of_others = order(int(USER), ""), order(5, "x@example.org")
    world = orders(broker, tmp_path, ("o-1", of_person), ("o-2", of_others))
    topic = world.state.declared.name
    naive = Collector(PATTERNS)
    naive.raw(broker.segments(topic), "segments")
    naive.binary(of_person, "value", None)
    assert not naive.hits()  # the person is there, and whoever looks for text says that they are not
    assert where(world) == {"record value: value.$.user.id"}

    # a tombstone alone leaves the bytes
    broker.send(topic, ("o-1", None))
    assert of_person in broker.segments(topic)
    assert where(world) == {"record value: value.$.user.id"}

    world = planned(broker, topic, declared(tmp_path), Strategy.TOMBSTONE, BY_VALUE)
    world.run()
    after = world.look()
    assert after.bytes.clean
    assert after.baseline is not None
    assert after.baseline.states[0].rows_total == 1
    assert of_person not in broker.segments(topic)
    assert of_others in broker.segments(topic)


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"friends": [5, int(USER)]}, "value.$.friends"),
        ({"phone": int(USER)}, "value.$.phone"),
        ({"near": int(USER)}, "value.$.near"),
        ({"buyer": {"value": int(USER)}}, "value.$.buyer"),
        ({"seen_by": {int(USER): {"id": 5}}}, "value.$.seen_by.key"),
        ({"seen_by": {5: {"id": int(USER)}}}, "value.$.seen_by.*.id"),
        ({"seal": b"\x00\xff" + MAIL.encode()}, "value.$.seal"),
        ({"note": ["x", f"call {MAIL}"]}, "value.$.note"),
    ],
    ids=["a packed list", "fixed64", "zigzag", "a wrapper", "a key of a map", "a map", "bytes", "a list of texts"],
)
def test_the_verifier_sees_the_person_in_every_kind_of_member(
    broker: Broker, tmp_path: Path, more: dict[str, Any], place: str
) -> None:
    seen_by = more.pop("seen_by", {})
    made = message("shop.Order", user={"id": 5}, **more)
    for key, person in seen_by.items():
        made.seen_by[key].id = person["id"]
    world = orders(broker, tmp_path, ("o-1", made.SerializeToString()))
    assert where(world) == {f"record value: {place}"}


def test_registered_records_are_erased_by_key_and_value_and_written_again(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic("orders")
    mine, others = (message("shop.Shop", id=number).SerializeToString() for number in (int(USER), 5))
    kept = [
        (framed(7, b"\0", others), framed(7, ORDER_INDEX, order(5, "x@example.org"))),
        (framed(7, b"\0", others), framed(7, ORDER_INDEX, order(int(USER + "0"), ""))),
        (framed(7, b"\0", others), None),
    ]
    broker.send(topic, (framed(7, b"\0", mine), framed(7, ORDER_INDEX, order(5, ""))), *kept[:2])
    broker.send(topic, (framed(7, b"\0", others), framed(7, ORDER_INDEX, order(int(USER), MAIL))), kept[2])
    parts = declared(tmp_path, framed=True, schema_ids={7: str(tmp_path / "order.desc")})
    parts["key"] = {**parts["value"], "fields": {"id": "uid"}}
    world = planned(broker, topic, parts, Strategy.REWRITE_TOPIC, BY_KEY_MEMBER, BY_VALUE)
    assert where(world) == {
        "record key: key.$.id",
        "record value: value.$.user.id",
        "record value: value.$.user.mail",
    }
    before = world.look()
    assert before.rows.rows_left == 2
    world.run()
    after = world.look()
    assert after.bytes.clean
    assert before.baseline is not None
    assert after.baseline is not None
    assert after.baseline.states[0].checksum == before.baseline.states[0].checksum
    assert mine not in broker.segments(topic)
    assert all(part in broker.segments(topic) for record in kept for part in record if part)


@pytest.mark.parametrize(
    "value",
    [
        order(5, "x") + b"\xa2\x06\x0c" + USER.encode(),
        order(5, "x") + b"\xa0\x06\x05",
        order(int(USER), "x") + order(5, "y"),
        order(5, "x")[:-1],
        b'{"user": 1}',
    ],
    ids=["an unknown text", "an unknown number", "two of it", "cut", "JSON"],
)
def test_records_that_are_not_of_the_schema_stop_it_and_are_never_clean(
    broker: Broker, tmp_path: Path, value: bytes
) -> None:
    world = orders(broker, tmp_path, ("o-1", value))
    end = world.now().offsets
    with pytest.raises(RunError, match="cannot be identified") as caught:
        world.executor().run(world.steps[0], world.copy)
    assert USER not in str(caught.value)
    assert world.now().offsets == end
    assert world.look().bytes.unverified


def test_text_that_another_schema_makes_numbers_of_is_found_all_the_same(broker: Broker, tmp_path: Path) -> None:
    text = b"\x1a" + bytes([len(MAIL)]) + MAIL.encode()  # fits the list of numbers that the schema has there
    world = orders(broker, tmp_path, ("o-1", text))
    assert where(world) == {"record value: value.$.friends"}
    other = b"\x1a" + bytes([len(MAIL) + 1]) + MAIL.encode() + b"\x07"
    assert where(orders(broker, tmp_path, ("o-1", other))) == {"record value: value.$.friends"}


def test_somebody_elses_longer_key_is_not_the_person(broker: Broker, tmp_path: Path) -> None:
    longer = message("shop.Order", note=[f"{USER}1"], letter=f"{USER}23").SerializeToString()
    world = orders(broker, tmp_path, ("o-1", longer))
    assert world.look().bytes.clean


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"message": "shop.Nothing"}, "no message shop.Nothing"),
        ({"fields": {"user.uid": "uid"}}, "no single value at user.uid"),
        ({"schema_file": "gone.desc"}, "FileNotFoundError"),
    ],
)
def test_a_declaration_that_does_not_fit_the_schema_is_an_error(
    broker: Broker, tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    topic = broker.topic("orders", cleanup_policy="compact")
    broker.send(topic, ("o-1", order(5, "x")))
    parts = declared(tmp_path)
    parts["value"] |= change
    world = planned(broker, topic, parts, Strategy.TOMBSTONE, BY_VALUE)
    with pytest.raises(EstateError, match=reason):
        world.look()
    with pytest.raises(RunError, match=reason):
        world.executor().run(world.steps[0], world.copy)


@pytest.mark.parametrize(
    "part",
    [
        {"format": "protobuf"},
        {"format": "protobuf", "schema_file": "a.desc"},
        {"format": "protobuf", "message": "a.B"},
        {"format": "protobuf", "framed": True, "message": "a.B"},
        {"format": "protobuf", "framed": True, "schema_file": "a.desc"},
        {"format": "json", "message": "a.B"},
        {"format": "avro", "schema_file": "a.avsc", "message": "a.B"},
        {"format": "json", "schema_ids": {7: "a.desc"}},
    ],
)
def test_parts_that_do_not_say_how_they_are_read_are_refused(part: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"message|schema|framed"):
        RecordPart.model_validate(part)
