"""Keys of several columns in Kafka: one person's records leave a topic, and her namesake's of another tenant stay."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.lake.streams.kafka.topic_reading import read_topic
from tests.hdfs import shop
from tests.kafkasupport import Broker, broker
from tests.kits.tenants_kit import BY_KEY, ESTATE, OTHERS, Row, erased, opened, waived

__all__ = ["broker"]

VALUE = {"format": "json", "fields": {"who.tenant": "tenant", "who.uid": "uid", "mail": "mail"}}
WHOLE = {"format": "json", "fields": {"tenant": "tenant", "uid": "uid"}}
USER = {"format": "string", "column": "uid"}


@dataclass
class Shop(shop.Shop):
    """topic: as the estate file declares it."""

    broker: Broker | None = None
    topic: dict[str, Any] = field(default_factory=dict)

    def _places(self) -> dict[str, Any]:
        assert self.broker is not None
        topics = [{"of": "shop.users", "producers": ["web"], **self.topic}]
        clusters = [{"name": "main", "bootstrap": self.broker.bootstrap, "topics": topics}]
        return {"roots": ["tables"], "kafka": clusters, "writers": [{"job": "web", "stopped": True}]}

    def send(self, *rows: Row, key: dict[str, Any] | None = None) -> None:
        assert self.broker is not None
        self.broker.send(self.topic["name"], *((_key(row, key), _value(row)) for row in rows))

    def values(self) -> list[bytes]:
        """What consumers are given."""
        assert self.broker is not None
        found = read_topic({"bootstrap.servers": self.broker.bootstrap}, self.topic["name"], range(1), committed=True)
        return sorted(record.value for record in found if record.value is not None)


def _key(row: Row, key: dict[str, Any] | None) -> str | None:
    if key is None:
        return None
    return str(row[1]) if key is USER else json.dumps({"tenant": row[0], "uid": row[1]})


def _value(row: Row) -> str:
    return json.dumps({"who": {"tenant": row[0], "uid": row[1]}, "mail": row[2]})


def sent(*rows: Row) -> Sequence[bytes]:
    return sorted(_value(row).encode() for row in rows)


def made(broker: Broker, base: Path, key: dict[str, Any] | None, **settings: str) -> Shop:
    topic: dict[str, Any] = {"name": broker.topic("tenants", **settings), "value": VALUE}
    topic |= {"key": key} if key else {}
    return Shop(None, base, "", broker=broker, topic=topic)  # type: ignore[arg-type]


def test_a_topic_is_written_again_without_her(broker: Broker, tmp_path: Path) -> None:
    shop = made(broker, tmp_path, USER, cleanup_policy="delete", retention_ms="-1")
    shop.send(BY_KEY, *OTHERS, key=USER)
    erased(shop, 1, shop.values, sent(*OTHERS))


def test_a_compacted_topic_of_whole_keys_gets_her_tombstone(broker: Broker, tmp_path: Path) -> None:
    """A record of two others, whose key has her tenant and whose value her number, is not hers."""
    shop = made(broker, tmp_path, WHOLE, cleanup_policy="compact")
    shop.send(BY_KEY, *OTHERS, key=WHOLE)
    broker.send(shop.topic["name"], (_key(("north", 9, None), WHOLE), _value(OTHERS[0])))
    erased(shop, 1, shop.values, sent(*OTHERS, OTHERS[0]))


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({"key": USER}, "the records' key does not have all key columns"),
        ({"value": {"format": "json", "fields": {"who.uid": "uid", "mail": "mail"}}}, "is searched for the persons'"),
    ],
)
def test_what_nobody_can_decide_is_a_gap(broker: Broker, tmp_path: Path, declared: dict[str, Any], why: str) -> None:
    """A tombstone for user 7 would be for the one of the other tenant, too; and without the tenant none is found."""
    shop = made(broker, tmp_path, USER, cleanup_policy="compact")
    shop.topic |= declared
    shop.send(BY_KEY, *OTHERS, key=USER)
    opened(shop)
    _, plan = shop.plan(**ESTATE)
    reasons = [gap["reason"] for gap in plan["gaps"] if gap["id"] in waived(plan)]
    assert any(why in reason for reason in reasons)
    assert not [step for step in plan["steps"] if step["executor"] == "kafka"]
