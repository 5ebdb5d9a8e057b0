"""The whole path with a topic whose prefix goes: held up by a group, killed twice in the middle, resumed, attested."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.config.estate_file import load_estate
from pii_tracer.lake.inventory import TopicState
from pii_tracer.lake.streams.kafka.records import Record
from pii_tracer.lake.streams.kafka.topic_reading import read_topic
from pii_tracer.lake.streams.kafka.topics import discover_topics, topic_offsets
from tests.e2e.processes import Ended, run_until
from tests.e2e.shop import NAMED, OTHERS, PEOPLE, plan_and_approve, settings_of, write
from tests.kafkasupport import MAIL, USER, Broker, broker, value
from tests.leaks import Person, leaks

__all__ = ["broker"]

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.nightly]

LATE = "late@example.org"
WHERE = (0, 2)
"""Partitions with the person; partition 1 has everybody else."""

Places = list[tuple[int, int]]
Contents = list[tuple[int, bytes | None, bytes | None, int]]


@dataclass(frozen=True)
class Done:
    """What the run left. gone: first offset and end of each partition, by when. waiting: the first result."""

    base: Path
    broker: Broker
    topic: str
    logs: Path
    codes: dict[str, int]
    ended: dict[str, Ended]
    lowered: dict[str, dict[str, str]]
    gone: dict[str, Places]
    plan: dict[str, Any]
    waiting: dict[str, Any]
    result: dict[str, Any]
    before: Contents
    after: Contents
    settings: dict[str, list[str]]

    @property
    def journal(self) -> list[dict[str, Any]]:
        (file,) = (self.base / "state" / "runs").glob("*/journal.jsonl")
        return [json.loads(line) for line in file.read_text().splitlines()]

    @property
    def step(self) -> str:
        (step,) = [s["id"] for s in self.plan["steps"] if s["action"] == "kafka_delete_prefix"]
        return str(step)


def build(base: Path, broker: Broker) -> str:
    """Three partitions; the person in the earlier records of two of them. Retention ends long after the deadline."""
    own = {"retention_ms": "315360000000", "segment_ms": "900000", "file_delete_delay_ms": "1000"}
    topic = broker.topic("visits", 3, cleanup_policy="delete", **own)
    for partition in range(3):
        people = PEOPLE if partition in WHERE else OTHERS
        for user, mail in (*people, *OTHERS):
            broker.send(topic, (None, value(user, mail, page=partition)), partition=partition)
    kept = {"read_by": [f"billing-{topic}", f"search-{topic}"], "reason": "billing keeps what it needs"}
    write(base, broker, [{"name": topic, "of": "shop.users", "value": NAMED, "prefix": kept}])
    return topic


def read_up_to(broker: Broker, topic: str, group: str, missing: int = 0) -> None:
    """Commit a group's offsets at the end of each partition, `missing` records before it in the last one."""
    ends = [end for _, end in offsets(broker, topic)]
    ends[-1] -= missing
    broker.commit(group, topic, dict(enumerate(ends)))


def offsets(broker: Broker, topic: str) -> Places:
    return list(topic_offsets(broker.admin, topic, [0, 1, 2]))


def contents(broker: Broker, topic: str) -> Contents:
    """Every record that can be read from the beginning."""
    client = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
    found: list[Record] = list(read_topic(client, topic, range(3)))
    return [(r.partition, r.key, r.value, r.timestamp) for r in found]


def state_of(base: Path) -> TopicState:
    (state,), _ = discover_topics(load_estate(base / "pii-tracer.yaml"), base)
    return state


def ran(base: Path, log: Path, *words: str) -> Ended:
    """A command in a process of its own."""
    return run_until([*words, "--state", str(base / "state")], log)


def killed_when(base: Path, log: Path, point: Callable[[TopicState], bool]) -> tuple[Ended, TopicState]:
    """A `resume` that is killed when the topic is as asked; how the topic was then."""
    seen: list[TopicState] = []

    def reached() -> bool:
        seen[:] = [state_of(base)]
        return point(seen[0])

    return run_until(["resume", "--state", str(base / "state")], log, reached), seen[0]


@pytest.fixture(scope="module")
def done(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Done:
    base, logs = tmp_path_factory.mktemp("shop"), tmp_path_factory.mktemp("logs")
    file, result = base / "shop.plan.json", base / "result.json"
    topic = build(base, broker)
    billing, search = f"billing-{topic}", f"search-{topic}"
    read_up_to(broker, topic, billing)
    read_up_to(broker, topic, search, missing=len(OTHERS) + 1)
    before, settings = contents(broker, topic), settings_of(base)
    codes, gone = plan_and_approve(base), {}

    trusted = ["--trusted", str(base / "approvers.yaml"), "--result", str(result)]
    held = ran(base, logs / "held", "apply", str(file), "--estate", str(base / "pii-tracer.yaml"), *trusted)
    waiting, gone["a group behind"] = json.loads(result.read_text()), offsets(broker, topic)
    read_up_to(broker, topic, search)

    rolling, lowered = killed_when(base, logs / "rolling", lambda s: s.settings["segment.ms"] == "100")
    gone["killed while it rolled"] = offsets(broker, topic)
    cutting, cut = killed_when(base, logs / "cutting", lambda s: all(s.offsets[p][0] for p in WHERE))
    gone["killed behind the cut"] = offsets(broker, topic)
    for partition in range(3):
        broker.send(topic, (None, value("880000009999", LATE, page=partition)), partition=partition)

    resumed = ran(base, logs / "resumed", "resume")
    gone["resumed"] = offsets(broker, topic)
    looked = ran(base, logs / "looked", "verify", str(file), "--estate", str(base / "pii-tracer.yaml"))
    codes |= {"apply": held.code, "resume": resumed.code, "verify": looked.code}
    return Done(
        base,
        broker,
        topic,
        logs,
        codes,
        {"held": held, "rolling": rolling, "cutting": cutting, "resumed": resumed},
        {"rolling": lowered.settings, "cutting": cut.settings},
        gone,
        json.loads(file.read_text()),
        waiting,
        json.loads(result.read_text()),
        before,
        contents(broker, topic),
        settings,
    )


def test_every_command_ends_as_it_should(done: Done) -> None:
    assert done.codes == {"plan": 0, "approve": 0, "apply": 8, "resume": 0, "verify": 0}
    assert [done.ended[name].killed for name in ("rolling", "cutting")] == [True, True]


def test_the_plan_says_what_goes_of_others_and_who_has_not_read_it(done: Done) -> None:
    (copy,) = [c for c in done.plan["copies"] if c["kind"] == "TOPIC"]
    assert copy["strategy"] == "delete_prefix"
    assert f"At planning, {of_others(done.before)} of these belonged to other people" in copy["reason"]
    assert f"not read yet by: search-{done.topic}" in copy["reason"]
    (override,) = [o for o in done.plan["overrides"] if o["kind"] == "kafka_delete_prefix"]
    assert override["reason"].endswith(": billing keeps what it needs")


def of_others(records: Contents) -> int:
    """Records of others in the partitions that are cut."""
    return sum(partition in WHERE and MAIL.encode() not in (content or b"") for partition, _, content, _ in records)


def of_person(records: Contents) -> int:
    return sum(MAIL.encode() in (content or b"") for _, _, content, _ in records)


def test_a_group_that_has_not_read_that_far_is_named_and_nothing_goes(done: Done) -> None:
    assert done.waiting["state"] == "waiting"
    assert done.gone["a group behind"] == [(0, 13), (0, 12), (0, 13)]
    told = " ".join((done.ended["held"].stdout + done.ended["held"].stderr).split())
    assert f"not read by search-{done.topic}" in told
    assert f"billing-{done.topic}" not in told


def test_a_resume_looks_at_once_whether_the_groups_have_read(done: Done) -> None:
    """And was killed twice: while segments were rolled, and when the records were gone and their files were not."""
    assert done.lowered["rolling"]["segment.ms"] == "100"
    assert done.gone["killed while it rolled"][1] == (0, 12)
    assert [first for first, _ in done.gone["killed while it rolled"]] == [0, 0, 0]
    cut = done.gone["killed behind the cut"]
    assert [first for first, _ in cut] == [cut[0][1], 0, cut[2][1]]
    assert [first for first, _ in done.gone["resumed"]] == [first for first, _ in cut], "nothing is cut twice"


def test_from_its_beginning_nobody_reads_the_person_and_the_rest_is_whole(done: Done) -> None:
    kept = [record for record in done.before if record[0] not in WHERE]
    late = [record for record in done.after if LATE.encode() in (record[2] or b"")]
    assert [partition for partition, *_ in late] == [0, 1, 2]
    assert [record for record in done.after if record not in late] == kept
    assert of_person(done.before) == len(WHERE)
    assert of_person(done.after) == 0


def test_no_byte_of_the_person_is_on_the_brokers_disk(done: Done) -> None:
    data = done.broker.segments(done.topic)
    assert LATE.encode() in data
    assert MAIL.encode() not in data
    assert USER.encode() not in data


def test_the_settings_that_the_killed_runs_had_lowered_are_back(done: Done) -> None:
    assert settings_of(done.base) == done.settings


def test_the_result_claims_what_happened(done: Done) -> None:
    assert done.result["state"] == "complete"
    assert (done.result["copies_total"], done.result["copies_erased"]) == (2, 2)
    assert (done.result["residue"], done.result["unverified"]) == ([], [])
    assert done.result["bystander_rows_lost"] == 0
    assert done.result["attestation"]


def test_what_went_is_counted_although_the_run_that_deleted_it_was_killed(done: Done) -> None:
    answers = [r["facts"] for r in done.journal if r["kind"] == "step_result"]
    (answer,) = [a["facts"] for a in answers if a["step"] == done.step]
    assert (answer["rows_deleted"], answer["others_deleted"]) == (of_person(done.before), of_others(done.before))
    assert done.result["rows_erased"] == of_person(done.before) + 1, "and the row of the table"
    view = json.loads((Path(done.result["report"]).parent / "view.json").read_text())
    (note,) = [s["note"] for c in view["copies"] for s in c["steps"] if s["id"] == done.step]
    assert note == f"{of_person(done.before)} rows deleted, {of_others(done.before)} records of others deleted"


def test_the_attestation_tells_what_went_of_others(done: Done) -> None:
    envelope = json.loads(Path(done.result["attestation"]).read_text())
    said = json.loads(base64.b64decode(envelope["payload"]))["predicate"]
    (step,) = [s for s in said["steps"] if s["id"] == done.step]
    assert step["result"]["others_deleted"] == of_others(done.before)
    assert step["result"]["rows_deleted"] == of_person(done.before)
    assert said["others"]["rows_lost"] == 0, "beside what the plan says"


def test_the_deletion_log_tells_of_the_wait_and_of_the_end(done: Done) -> None:
    with sqlite3.connect(done.base / "state" / "deletion_log.sqlite") as log:
        rows = log.execute(
            'SELECT state, reason FROM "deletions shop" WHERE step_id = ? ORDER BY seq', (done.step,)
        ).fetchall()
    assert [state for state, _ in rows][:: len(rows) - 1] == ["deferred", "erased"]
    assert f"not read by search-{done.topic}" in rows[0][1]


def test_no_value_is_in_what_the_runs_leave_and_say(done: Done) -> None:
    assert list((done.base / "state").rglob("journal.jsonl"))
    said = [done.base / "state", done.base / "shop.plan.json", done.base / "result.json", done.logs]
    assert leaks(Person((MAIL, USER)), said) == []
