"""The whole path with topics: plan, approve, apply, killed in the middle of a cleaning, resumed, verified, attested."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.config.estate_file import load_estate
from pii_tracer.lake.streams.kafka.topic_reading import read_topic
from pii_tracer.lake.streams.kafka.topics import discover_topics
from pii_tracer.run.journal import Kind, parse
from tests.kafkasupport import MAIL, USER, Broker, broker, value

__all__ = ["broker"]
from tests.e2e.shop import NAMED, OTHERS, PEOPLE, cli, plan_and_approve, settings_of, write
from tests.leaks import Person, leaks
from tests.protobufsupport import COMMON, ORDER, descriptor_set, message, order

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

IN_PROTOBUF = {**NAMED, "format": "protobuf", "schema_file": "order.desc", "message": "shop.Order"}


@dataclass(frozen=True)
class Done:
    """What the run left."""

    base: Path
    broker: Broker
    topics: dict[str, str]
    codes: dict[str, int]
    plan: dict[str, Any]
    result: dict[str, Any]
    before: dict[str, Any]
    after: dict[str, Any]
    killed_while: dict[str, str]
    settings: dict[str, list[str]]


def build(base: Path, broker: Broker) -> dict[str, str]:
    """A table as a Parquet folder, and three topics that carry its rows in three ways; one is in Protobuf."""
    (base / "order.desc").write_bytes(descriptor_set(COMMON, ORDER))
    topics = {
        "users": broker.topic("users", 2, cleanup_policy="compact", segment_ms="900000"),
        "orders": broker.topic("orders", cleanup_policy="compact"),
        "clicks": broker.topic("clicks", cleanup_policy="delete", retention_ms="-1"),
    }
    for user, mail in PEOPLE:
        broker.send(topics["users"], (user, value(user, mail)), (user, value(user, mail, visits=2)))
        broker.send(topics["orders"], (f"order-of-{mail[:4]}", order(int(user), mail)))
        broker.send(topics["clicks"], (None, value(user, mail)), (None, value(user, mail, page="b")))
    parts: dict[str, dict[str, Any]] = {
        "users": {"key": {"format": "string", "column": "uid"}, "value": NAMED},
        "orders": {"key": {"format": "string"}, "value": IN_PROTOBUF},
        "clicks": {"value": NAMED, "producers": ["web"]},
    }
    write(base, broker, [{"name": topics[n], "of": "shop.users", **part} for n, part in parts.items()])
    return topics


def everybody(base: Path, broker: Broker, topics: dict[str, str]) -> dict[str, Any]:
    """Everybody else: the newest record of each key, every click."""
    found: dict[str, Any] = {}
    for name, topic in topics.items():
        partitions = len(broker.admin.list_topics(topic, timeout=60).topics[topic].partitions)
        records = list(read_topic({"bootstrap.servers": broker.bootstrap, "log_level": 0}, topic, range(partitions)))
        if name == "clicks":
            found[name] = [r.value for r in records if MAIL.encode() not in (r.value or b"")]
        else:
            newest = {r.key: r.value for r in records}
            found[name] = {k: v for k, v in newest.items() if v is not None and MAIL.encode() not in v}
    return found


def killed_in_the_middle(base: Path, topic: str, words: list[str]) -> dict[str, str]:
    """Apply in a process of its own, killed as soon as it has lowered the topic's settings."""
    estate = load_estate(base / "pii-tracer.yaml")
    places = ["--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")]
    root = str(Path(__file__).parents[3])
    command = [sys.executable, "-m", "pii_tracer.cli.main", *words, *places]
    environment = {**os.environ, "PYTHONPATH": root}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 240
        while time.monotonic() < until and process.poll() is None:
            (state,) = [s for s in discover_topics(estate, base)[0] if s.declared.name == topic]
            if state.settings["segment.ms"] == "100":
                return state.settings
    finally:
        process.kill()
        process.wait()
    raise AssertionError("the settings were never lowered")


@pytest.fixture(scope="module")
def done(spark: Any, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Done:
    base = tmp_path_factory.mktemp("shop")
    file = base / "shop.plan.json"
    topics = build(base, broker)
    before, settings = everybody(base, broker, topics), settings_of(base)
    codes = plan_and_approve(base)
    trusted = ["--trusted", str(base / "approvers.yaml"), "--result", str(base / "result.json")]
    killed = killed_in_the_middle(base, topics["users"], ["apply", str(file), *trusted])
    codes["apply again"] = cli(base, "apply", str(file), *trusted)
    codes["verify"] = cli(base, "verify", str(file))
    return Done(
        base,
        broker,
        topics,
        codes,
        json.loads(file.read_text()),
        json.loads((base / "result.json").read_text()),
        before,
        everybody(base, broker, topics),
        killed,
        settings,
    )


def test_every_command_ends_as_it_should(done: Done) -> None:
    assert done.codes == {"plan": 0, "approve": 0, "apply again": 0, "verify": 0}


def test_each_topic_is_planned_in_its_own_way(done: Done) -> None:
    ways = {c["facts"]["topic"]: c["strategy"] for c in done.plan["copies"] if c["kind"] == "TOPIC"}
    assert ways == {
        done.topics["users"]: "tombstone",
        done.topics["orders"]: "tombstone",
        done.topics["clicks"]: "rewrite_topic",
    }
    assert USER not in json.dumps(done.plan)
    assert MAIL not in json.dumps(done.plan)


def test_the_result_claims_what_happened(done: Done) -> None:
    assert done.result["state"] == "complete"
    assert (done.result["copies_total"], done.result["copies_erased"]) == (4, 4)
    assert done.result["residue"] == []
    assert done.result["unverified"] == []
    assert done.result["bystander_rows_lost"] == 0
    assert done.result["attestation"]


def test_nobody_else_lost_a_record(done: Done) -> None:
    assert done.after == done.before
    assert len(done.before["clicks"]) == 2 * len(OTHERS)


def test_the_settings_that_the_killed_run_had_lowered_are_back(done: Done) -> None:
    assert done.killed_while["segment.ms"] == "100"
    assert settings_of(done.base) == done.settings


@pytest.mark.parametrize("name", ["users", "orders", "clicks"])
def test_no_byte_of_the_person_is_on_the_brokers_disk(done: Done, name: str) -> None:
    data = done.broker.segments(done.topics[name])
    assert MAIL.encode() not in data
    assert USER.encode() not in data
    assert message("shop.Person", id=int(USER)).SerializeToString() not in data


def test_where_the_rewrite_copies_from_is_in_the_journal_before_its_end(done: Done) -> None:
    (journal,) = (done.base / "state" / "runs").glob("*/journal.jsonl")
    records = parse(journal.read_bytes())[0]
    (noted,) = [r for r in records if r.kind is Kind.STEP_NOTED]
    told = noted.facts["facts"]
    assert told.keys() == {"copied_from", "rows_deleted", "records_kept", "groups"}
    assert (told["copied_from"], told["rows_deleted"]) == ([0], 2)
    step = [r.kind for r in records if r.facts.get("step") == noted.facts["step"]]
    assert step == [Kind.STEP_INTENT, Kind.STEP_NOTED, Kind.STEP_RESULT, Kind.STEP_VERIFIED]


def test_no_value_is_in_what_the_run_leaves(done: Done) -> None:
    assert list((done.base / "state").rglob("journal.jsonl"))
    assert leaks(Person((MAIL, USER)), [done.base / "state"]) == []
