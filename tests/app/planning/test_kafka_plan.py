"""Plans over real topics, from the command line and without Spark: dates, gaps, and what is no copy."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from pii_tracer.cli.main import run
from tests.kafkasupport import MAIL, USER, Broker, broker, value
from tests.servers import free_ports

__all__ = ["broker"]

VALUE = {"format": "json", "fields": {"user.id": "uid"}}
OTHER = "880000000001"


def estate(base: Path, bootstrap: str, topics: list[dict[str, Any]]) -> None:
    folder = base / "tables" / "users"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"uid": [USER, OTHER], "mail": [MAIL, "x@example.org"]}), folder / "part-0.parquet")
    table = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
    declared = {
        "version": 1,
        "estate": "shop",
        "environment": "local",
        "catalogs": {"spark_catalog": {"type": "declared", "tables": [table]}},
        "roots": ["tables"],
        "lineage": {},
        "subjects": [
            {
                "name": "user",
                "source": "shop.users",
                "key": "uid",
                "identifiers": [{"column": "mail", "category": "email"}],
            }
        ],
        "kafka": [{"name": "main", "bootstrap": bootstrap, "topics": [{"of": "shop.users", **t} for t in topics]}],
    }
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(declared))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1}))
    subject = {"type": "user", "key": USER}
    request = {"id": "R-1", "law": "GDPR", "received": (NOW - timedelta(hours=25)).isoformat(), "subject": subject}
    (base / "request.yaml").write_text(yaml.safe_dump(request))


def plan(base: Path) -> tuple[int, dict[str, Any]]:
    out = base / "p.plan.json"
    words = ["--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state"), "--out", str(out)]
    code = run(["plan", str(base / "request.yaml"), "--as-of", NOW.isoformat(), *words])
    return code, json.loads(out.read_text())


NOW = datetime.now(timezone.utc).replace(minute=0, second=0, microsecond=0)
"""Of the plans. The broker goes by the real clock: what is older than a topic keeps is gone before anybody looks."""


def ago(**time: int) -> int:
    """A record's time stamp, so long before the plans."""
    return int((NOW - timedelta(**time)).timestamp() * 1000)


def test_the_date_comes_from_the_persons_last_record(broker: Broker, tmp_path: Path) -> None:
    name = broker.topic("visits", cleanup_policy="delete", retention_ms="604800000", segment_ms="86400000")
    broker.send(name, (None, value(OTHER, "x")), timestamp=ago(days=3))
    broker.send(name, (None, value(USER, MAIL)), timestamp=ago(days=4))
    broker.send(name, (None, value(OTHER, "x")), timestamp=ago(hours=1))
    estate(tmp_path, broker.bootstrap, [{"name": name, "value": VALUE}])
    code, made = plan(tmp_path)
    assert code == 0
    (copy,) = [c for c in made["copies"] if c["kind"] == "TOPIC"]
    assert copy["strategy"] == "let_lapse"
    (step,) = [s for s in made["steps"] if s["action"] == "kafka_await_retention"]
    # a day until the segment with the record of three days ago in it must have rolled, seven days of retention, slack
    lapse = NOW + timedelta(days=5)
    found = datetime.fromisoformat(step["earliest_start"].replace("Z", "+00:00"))
    assert timedelta() < found - lapse < timedelta(hours=1)
    assert step["estimate"]["wait"] > 0


def test_what_no_declared_field_explains_is_a_gap_and_what_is_clean_is_told(broker: Broker, tmp_path: Path) -> None:
    noted = broker.topic("noted", cleanup_policy="compact")
    broker.send(noted, ("1", value(OTHER, "x", note=f"friend of {MAIL}")), ("2", value(USER, MAIL)))
    broken = broker.topic("broken", cleanup_policy="compact")
    broker.send(broken, ("1", "{"))
    clean = broker.topic("clean", cleanup_policy="compact")
    broker.send(clean, ("1", value(OTHER, "x")))
    key = {"format": "string"}
    names = (noted, broken, clean, "nowhere")
    estate(tmp_path, broker.bootstrap, [{"name": n, "key": key, "value": VALUE} for n in names])
    code, made = plan(tmp_path)
    assert code == 3
    gaps = {(g["dataset"]["name"], g["kind"]) for g in made["gaps"]}
    assert gaps == {(noted, "unexpected_copy"), (broken, "cannot_be_proved"), ("nowhere", "missing_topic")}
    (gap,) = [g for g in made["gaps"] if g["kind"] == "unexpected_copy"]
    assert "value.$.note" in gap["evidence"]
    assert [e["dataset"]["name"] for e in made["examined"]] == [clean]
    assert MAIL not in json.dumps(made)
    assert USER not in json.dumps(made)


@pytest.mark.parametrize("told", [True, False])
def test_another_systems_number_is_no_find_in_its_member_alone(broker: Broker, tmp_path: Path, told: bool) -> None:
    name = broker.topic("drivers", cleanup_policy="compact")
    broker.send(name, ("1", value(OTHER, "x", driver=USER)), ("2", value(USER, MAIL)))
    fields = {"fields": {**VALUE["fields"], "driver": "driver"}}
    estate(tmp_path, broker.bootstrap, [{"name": name, "key": {"format": "string"}, "value": {**VALUE, **fields}}])
    users = pa.table({"uid": [USER, OTHER], "mail": [MAIL, "x@example.org"], "driver": ["1", USER]})
    pq.write_table(users, tmp_path / "tables" / "users" / "part-0.parquet")
    file = tmp_path / "pii-tracer.yaml"
    made = yaml.safe_load(file.read_text())
    if told:
        word = {"table": "shop.users", "column": "driver", "reason": "of the fleet", "owner": "Ravi Nair"}
        made["subjects"][0]["not_keys"] = [word]
    file.write_text(yaml.safe_dump(made))
    _, found = plan(tmp_path)
    assert sorted(item["labels"] for item in found["not_keys"]) == ([["driver"], ["value.$.driver"]] if told else [])
    assert ([g["kind"] for g in found["gaps"] if g["dataset"]["name"] == name] == []) is told


def test_records_without_a_key_are_fine_where_no_tombstone_needs_one(broker: Broker, tmp_path: Path) -> None:
    kept = {"retention_ms": "604800000", "segment_ms": "86400000"}
    names = {policy: broker.topic("mixed", cleanup_policy="delete", **kept) for policy in ("delete", "compact")}
    for name in names.values():
        sent = ago(days=1)
        broker.send(
            name, (None, value(USER, MAIL)), ("k", value(USER, MAIL)), (None, value(OTHER, "x")), timestamp=sent
        )
    # taken before the topic was compacted: no tombstone reaches it
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, names["compact"], incremental_configs=[entry])
    broker.admin.incremental_alter_configs([resource])[resource].result(20)
    key = {"format": "string"}
    estate(tmp_path, broker.bootstrap, [{"name": n, "key": key, "value": VALUE} for n in names.values()])
    code, made = plan(tmp_path)
    assert code == 3
    copies = {c["facts"]["topic"]: c for c in made["copies"] if c["kind"] == "TOPIC"}
    assert copies[names["delete"]]["strategy"] == "let_lapse"
    assert copies[names["delete"]]["found"]["rows"] == 2
    assert copies[names["compact"]]["strategy"] == "blocked"
    (gap,) = [g for g in made["gaps"] if g["kind"] == "cannot_be_proved"]
    assert {g["dataset"]["name"] for g in made["gaps"]} == {names["compact"]}
    assert gap["reason"] == "records are not as declared: the record has no key (2 records)"


def test_a_broker_that_is_down_leaves_the_plan_incomplete(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pii_tracer.lake.streams.kafka.topics.TIMEOUT", 1.0)
    (port,) = free_ports(1)
    estate(tmp_path, f"127.0.0.1:{port}", [{"name": "users", "key": {"format": "string"}, "value": VALUE}])
    code, made = plan(tmp_path)
    assert code == 3
    assert [g["kind"] for g in made["gaps"]] == ["kafka_cluster"]


def test_the_inventory_shows_topics(broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = broker.topic("shown", 2, cleanup_policy="compact")
    estate(tmp_path, broker.bootstrap, [{"name": name, "key": {"format": "string"}, "value": VALUE}])
    places = ["--estate", str(tmp_path / "pii-tracer.yaml"), "--state", str(tmp_path / "state")]
    assert run(["inventory", *places]) == 0
    shown = "".join(capsys.readouterr().out.split())
    assert name in shown
    assert "compact;2partitions" in shown


def test_a_prefix_names_its_partitions_and_who_has_not_read_them(broker: Broker, tmp_path: Path) -> None:
    name = broker.topic("visits", 2, cleanup_policy="delete", retention_ms="-1")
    then = ago(days=1)
    broker.send(name, (None, value(OTHER, "x")), (None, value(OTHER, "y")), partition=0, timestamp=then)
    records = [(None, value(OTHER, "x")), (None, value(USER, MAIL)), (None, value(OTHER, "y"))]
    broker.send(name, *records, partition=1, timestamp=then)
    broker.commit(f"done-{name}", name, {1: 2})
    broker.commit(f"slow-{name}", name, {1: 1})
    prefix = {"read_by": [f"done-{name}", f"slow-{name}"], "reason": "kept by billing"}
    estate(tmp_path, broker.bootstrap, [{"name": name, "value": VALUE, "prefix": prefix}])
    code, made = plan(tmp_path)
    assert code == 0
    (copy,) = [c for c in made["copies"] if c["kind"] == "TOPIC"]
    assert copy["strategy"] == "delete_prefix"
    assert (copy["facts"]["until"], copy["facts"]["kept_below"]) == ({"1": 2}, [2, 0])
    assert "all records then in partition 1," in copy["reason"]
    assert "At planning, 2 of these belonged to other people" in copy["reason"]
    assert copy["reason"].endswith(f"not read yet by: slow-{name}")
    assert [o["kind"] for o in made["overrides"]] == ["kafka_delete_prefix"]
    assert MAIL not in json.dumps(made)
