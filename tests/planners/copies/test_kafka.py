"""Which way a topic is cleaned, what blocks it, and when: rules alone, no broker."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import ValidationError

from pii_tracer.config.estate_file import Estate, Request
from pii_tracer.config.kafka import Topic
from pii_tracer.lake.inventory import Inventory, TableState, TopicState
from pii_tracer.lineage.graph.canonical_facts import collect
from pii_tracer.lineage.graph.edges import Edge, EdgeType, Subtype
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    Column,
    ColumnId,
    DatasetId,
    Format,
    Strategy,
)
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.review.drift import compare
from planners.build import Digests, PlanInputs, build_plan
from planners.copies.match_key_resolution import SourceRows, Wanted, resolve
from planners.copies.scan_evidence import Evidence, TopicEvidence
from planners.locate.key_location import follow
from planners.locate.subject_survey import World, survey
from planners.schedule.step_dates import Retention
from tests.waivers import MARKS

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=timezone.utc)
SOURCE = DatasetId(namespace="file", name="/w/users")
TOPIC = DatasetId(namespace="kafka://broker:9092", name="users")
COLUMNS = tuple(Column(name=c, type="string") for c in ("uid", "mail"))
DAY = 86_400_000
JSON_USERS = {
    "key": {"format": "string", "column": "uid"},
    "value": {"format": "json", "fields": {"user.mail": "mail"}, "other": ["shop"]},
}
SETTINGS = {
    "cleanup.policy": "delete",
    "retention.ms": str(7 * DAY),
    "segment.ms": str(DAY),
    "file.delete.delay.ms": "60000",
    "log.segment.delete.delay.ms": "60000",
    "min.compaction.lag.ms": "0",
    "message.timestamp.type": "CreateTime",
}
COMPACT = {"cleanup.policy": "compact"}


def at(days: float) -> int:
    """Milliseconds of a moment so many days from now."""
    return int((NOW + timedelta(days=days)).timestamp() * 1000)


SEEN = TopicEvidence(
    records=9, of_person=2, bytes=50, strong=frozenset({"user.uid"}), newest=at(-0.1), rolled_after=at(-1)
)


def topic(declared: dict[str, Any], settings: dict[str, str], **more: Any) -> TopicState:
    made = SETTINGS | settings
    return TopicState(
        dataset=TOPIC,
        cluster="main",
        declared=Topic.model_validate({"name": "users", "of": "users", **declared}),
        topic_id="id-1",
        settings=made,
        overrides=settings,
        **{"replicas": 1, "offsets": ((0, 9),), **more},
    )


def plan(
    settings: dict[str, str],
    seen: TopicEvidence | None = SEEN,
    declared: dict[str, Any] = JSON_USERS,
    stopped: bool = True,
    others: tuple[str, ...] = ("b@x.org",),
    fed: bool = False,
    backups: tuple[dict[str, Any], ...] = (),
    erased: bool = False,
    named: str = "",
    **more: Any,
) -> ErasurePlan:
    """A source table and one topic that carries its rows. fed: lineage knows the topic too. erased: the source is.

    named: a column of the source that names others (`other_keys`).
    """
    edge = Edge(
        source=ColumnId(dataset=SOURCE, column="uid"),
        target=ColumnId(dataset=TOPIC, column="uid"),
        type=EdgeType.DIRECT,
        subtype=Subtype.IDENTITY,
        masking=False,
        expression="users.uid",
        evidence=(),
    )
    edges = [edge] if fed else []
    graph = LineageGraph(
        collect(columns={SOURCE: COLUMNS}, edges=edges, memberships=[], jobs=[], gaps=[], aliases={"users": SOURCE})
    )
    state = topic(declared, settings, **more)
    made = Estate.model_validate(
        {
            "version": 1,
            "estate": "t",
            "environment": "local",
            "catalogs": {},
            "roots": ["w"],
            "lineage": {},
            "subjects": [
                {
                    "name": "user",
                    "source": "users",
                    "key": "uid",
                    "identifiers": [{"column": "mail", "category": "email"}],
                    "other_keys": [{"column": named, "row": "keep"}] if named else [],
                }
            ],
            "writers": [{"job": "web", "stopped": stopped}],
            "backups": list(backups),
        }
    )
    subject = made.subjects[0]
    rows = SourceRows({"uid": ["990000000077", *map(str, range(len(others)))], "mail": ["a@x.org", *others]})
    if erased:
        rows = SourceRows({name: values[1:] for name, values in rows.columns.items()})
    keys = resolve(subject, rows, [Wanted("R", "subj", "990000000077")], source_erased=erased)
    found = survey(subject, SOURCE, follow(graph, SOURCE, subject), keys)
    columns = (*COLUMNS, *([Column(name=named, type="string")] if named else []))
    table = TableState(
        dataset=SOURCE, table="users", location="/w/users", format=Format.PARQUET, snapshot="1", columns=columns
    )
    evidence = Evidence(files=1, files_with_person=1, bytes=1, strong=frozenset({"user.uid"}))
    topics = {("user", state.location): seen} if seen else {}
    inventory = Inventory(tables=(table,), topics=(state,) if more.get("replicas", 1) else ())
    world = World(graph, inventory, {"/w/users": evidence}, lambda _: False, topics)
    request = Request.model_validate(
        {"id": "R", "law": "DPDP", "received": NOW, "subject": {"type": "user", "key": "990000000077"}}
    )
    digests = Digests("", "", "", "", "")
    return build_plan(
        PlanInputs(made, [request], {"R": "subj"}, [found], world, digests, NOW, Retention.RETAIN, marks=MARKS)
    )


def strategy(made: ErasurePlan) -> Strategy:
    (found,) = [c.strategy for c in made.copies if c.format is Format.KAFKA]
    return found


def test_a_compacted_topic_gets_tombstones_and_the_plan_holds_the_settings_to_restore() -> None:
    made = plan({**COMPACT, "segment.ms": "5000"})
    assert made.applyable
    assert strategy(made) is Strategy.TOMBSTONE
    steps = [s for s in made.steps if s.executor == "kafka"]
    assert [s.action for s in steps] == [Action.KAFKA_TOMBSTONE, Action.KAFKA_COMPACT]
    assert steps[1].parameters["settings"]["segment.ms"] == "5000"
    assert steps[1].parameters["settings"]["delete.retention.ms"] is None
    (copy,) = [c for c in made.copies if c.format is Format.KAFKA]
    assert copy.match is not None
    assert [t.label() for t in copy.match.terms] == ["key", "value.$.user.mail"]
    assert copy.other_keys == ("value.$.shop",)


@pytest.mark.parametrize(("settings", "expected"), [(COMPACT, Strategy.BLOCKED), ({}, Strategy.LET_LAPSE)])
def test_records_of_rows_that_name_others_are_not_rewritten(settings: dict[str, str], expected: Strategy) -> None:
    """A record that names her as somebody's referrer is not hers, and none can be cleared; what lapses goes anyway."""
    made = plan(settings, named="referred_by")
    assert strategy(made) is expected
    assert made.applyable is (expected is Strategy.LET_LAPSE)
    assert [g.kind for g in made.gaps if g.dataset == TOPIC] == (
        ["several_persons"] if expected is Strategy.BLOCKED else []
    )


def test_rows_leave_the_table_before_its_topic() -> None:
    made = plan(COMPACT, fed=True)
    (tombstone,) = [s for s in made.steps if s.action is Action.KAFKA_TOMBSTONE]
    assert any(d.startswith("c-users/") for d in tombstone.depends_on)


def test_retention_that_ends_in_time_is_waited_for_and_dated() -> None:
    made = plan({})
    assert strategy(made) is Strategy.LET_LAPSE
    (wait,) = [s for s in made.steps if s.action is Action.KAFKA_AWAIT_RETENTION]
    # the person's last record is a day old: a day until its segment rolls, seven days of retention, and slack
    assert timedelta(days=7) < wait.earliest_start - NOW < timedelta(days=7, hours=1)
    assert made.totals.finish >= wait.earliest_start


@pytest.mark.parametrize(
    ("settings", "seen"),
    [
        ({"retention.ms": str(60 * DAY)}, SEEN),
        ({"retention.ms": "-1"}, SEEN),
        ({"segment.ms": str(40 * DAY)}, SEEN),
        ({}, replace(SEEN, newest=at(3))),  # a clock that is wrong keeps its segment for longer
    ],
    ids=["too long", "for ever", "segments roll too late", "a record from the future"],
)
def test_retention_that_does_not_help_means_a_rewrite_if_producers_are_stopped(
    settings: dict[str, str], seen: TopicEvidence
) -> None:
    named = {**JSON_USERS, "producers": ["web"]}
    made = plan(settings, seen, named)
    assert strategy(made) is Strategy.REWRITE_TOPIC
    (step,) = [s for s in made.steps if s.executor == "kafka"]
    assert ("writers_stopped", "web") in [(p.kind, p.target) for p in step.preconditions]
    assert strategy(plan(settings, seen, JSON_USERS)) is Strategy.BLOCKED
    running = plan(settings, seen, named, stopped=False)
    assert strategy(running) is Strategy.BLOCKED
    assert not running.applyable


PREFIX = {"prefix": {"read_by": ["billing", "search"], "reason": "the lake keeps what matters"}}
IN_ONE = replace(SEEN, until={1: 7}, beside=4)
FOR_EVER = {"retention.ms": "-1"}


def test_a_prefix_goes_only_where_its_owner_says_so() -> None:
    made = plan(FOR_EVER, IN_ONE, {**JSON_USERS, **PREFIX, "producers": ["web"]}, offsets=((0, 9), (2, 9)))
    assert made.applyable
    assert strategy(made) is Strategy.DELETE_PREFIX
    assert strategy(plan(FOR_EVER, IN_ONE, {**JSON_USERS, "producers": ["web"]})) is Strategy.REWRITE_TOPIC
    assert strategy(plan(FOR_EVER, IN_ONE, JSON_USERS)) is Strategy.BLOCKED
    (step,) = [s for s in made.steps if s.executor == "kafka"]
    assert (step.action, step.irreversible) == (Action.KAFKA_DELETE_PREFIX, True)
    assert step.parameters["until"] == {"1": 7}
    assert step.parameters["read_by"] == ["billing", "search"]
    assert step.parameters["settings"] == {"segment.ms": None, "file.delete.delay.ms": None}
    assert "K5" in step.hazards
    assert [p.kind for p in step.preconditions] == ["topic"], "its producers may go on"
    (copy,) = [c for c in made.copies if c.format is Format.KAFKA]
    assert copy.facts["kept_below"] == [9, 0]
    assert "in partition 1," in copy.reason
    assert "At planning, 4 of these belonged to other people" in copy.reason
    assert "after billing, search read them" in copy.reason
    assert "not read yet" not in copy.reason
    assert [(o.kind, o.reason) for o in made.overrides] == [
        ("kafka_delete_prefix", f"{copy.location}: the lake keeps what matters")
    ]


def test_the_plan_says_which_groups_have_not_read_what_would_go() -> None:
    made = plan(FOR_EVER, replace(IN_ONE, behind=("search",)), {**JSON_USERS, **PREFIX}, offsets=((0, 9), (2, 9)))
    (copy,) = [c for c in made.copies if c.format is Format.KAFKA]
    assert copy.reason.endswith("not read yet by: search")


def test_nobody_else_loses_a_record_where_waiting_or_compaction_helps() -> None:
    declared = {**JSON_USERS, **PREFIX}
    for settings, expected in (({}, Strategy.LET_LAPSE), (COMPACT, Strategy.TOMBSTONE)):
        made = plan(settings, IN_ONE, declared)
        assert strategy(made) is expected
        assert not made.overrides


def test_a_prefix_without_the_person_is_not_deleted() -> None:
    only_elsewhere = replace(SEEN, of_person=0, elsewhere=frozenset({"value.$.note"}))
    made = plan(FOR_EVER, only_elsewhere, {**JSON_USERS, **PREFIX})
    assert strategy(made) is Strategy.BLOCKED


def test_a_segment_that_a_record_of_the_future_keeps_open_is_no_prefix() -> None:
    made = plan(FOR_EVER, replace(IN_ONE, newest=at(3)), {**JSON_USERS, **PREFIX})
    assert strategy(made) is Strategy.BLOCKED
    assert any("a future time stamp" in g.reason for g in made.gaps)


def test_rows_leave_the_table_before_a_prefix_of_its_topic() -> None:
    made = plan(FOR_EVER, IN_ONE, {**JSON_USERS, **PREFIX}, fed=True)
    (step,) = [s for s in made.steps if s.action is Action.KAFKA_DELETE_PREFIX]
    assert any(d.startswith("c-users/") for d in step.depends_on)


@pytest.mark.parametrize(
    "prefix", [{"read_by": [], "reason": "x"}, {"read_by": [""], "reason": "x"}, {"read_by": ["a"], "reason": ""}, {}]
)
def test_a_prefix_names_who_must_have_read_it_and_why(prefix: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Topic.model_validate({"name": "t", "of": "users", **JSON_USERS, "prefix": prefix})


@pytest.mark.parametrize(
    ("settings", "declared", "seen", "reason"),
    [
        (COMPACT, {"value": JSON_USERS["value"]}, SEEN, "without a declared key"),
        (COMPACT, JSON_USERS, replace(SEEN, unread=("the value is not json (1 records)",)), "not json"),
        (COMPACT, {**JSON_USERS, "key": {"format": "string"}, "value": {"format": "json"}}, SEEN, "no declared field"),
        ({**COMPACT, "min.compaction.lag.ms": "1000"}, JSON_USERS, SEEN, "min.compaction.lag.ms"),
        ({"remote.storage.enable": "true"}, JSON_USERS, SEEN, "tiered"),
    ],
)
def test_what_cannot_be_told_apart_or_done_is_blocked(
    settings: dict[str, str], declared: dict[str, Any], seen: TopicEvidence, reason: str
) -> None:
    made = plan(settings, seen, declared)
    assert strategy(made) is Strategy.BLOCKED
    assert not made.applyable
    assert any(reason in g.reason for g in made.gaps)


def test_the_person_in_somebody_elses_record_is_a_gap() -> None:
    made = plan(COMPACT, replace(SEEN, elsewhere=frozenset({"value.$.note"})))
    assert [g.kind for g in made.gaps] == ["unexpected_copy"]
    assert "value.$.note" in made.gaps[0].evidence


def test_followers_that_no_client_can_read_are_a_gap_to_waive() -> None:
    assert [g.kind for g in plan(COMPACT, replicas=3).gaps] == ["follower_replicas"]


def test_a_shared_identifier_is_not_used_while_another_is_there() -> None:
    made = plan(COMPACT, others=("a@x.org",))
    (copy,) = [c for c in made.copies if c.format is Format.KAFKA]
    assert copy.match is not None
    assert [t.label() for t in copy.match.terms] == ["key"]
    only_mail = {**JSON_USERS, "key": {"format": "string"}}
    alone = plan(COMPACT, declared=only_mail, others=("a@x.org",))
    assert sorted(g.kind for g in alone.gaps) == ["cannot_be_proved", "shared_identifier"]
    assert [c.strategy for c in alone.copies if c.format is Format.KAFKA] == ["blocked"]


def test_a_clean_topic_is_examined_and_an_unread_one_is_not_clean() -> None:
    clean = plan(COMPACT, TopicEvidence(records=9, of_person=0, bytes=0))
    assert [e.dataset for e in clean.examined] == [TOPIC]
    assert [g.kind for g in plan(COMPACT, None).gaps] == ["not_scanned"]
    tape = {"name": "tape", "of": [f"{TOPIC.namespace}/{TOPIC.name}"], "owner": "dba", "location": "t", "due_days": 3}
    stored = plan(COMPACT, TopicEvidence(records=9, of_person=0, bytes=0), backups=(tape,))
    assert "c-backup-tape" in {c.id for c in stored.copies}, "older records may be in it"


def test_a_topic_that_lineage_knows_and_nobody_declared_is_a_gap() -> None:
    made = plan(COMPACT, None, fed=True, replicas=0)
    (gap,) = made.gaps
    assert gap.dataset == TOPIC
    assert "does not declare the topic" in gap.reason


def test_other_settings_than_planned_are_drift() -> None:
    made = plan(COMPACT)
    same = Inventory(tables=(), topics=(topic(JSON_USERS, COMPACT),))
    changed = Inventory(tables=(), topics=(topic(JSON_USERS, {**COMPACT, "segment.ms": "1"}),))
    assert "topic" not in [d.kind for d in compare(made, same)]
    assert [d.kind for d in compare(made, changed) if d.target.startswith("kafka")] == ["topic"]


def test_a_topic_without_the_key_is_named_where_only_the_key_is_known_any_more() -> None:
    clean = TopicEvidence(records=9, of_person=0, bytes=0)
    by_mail = {"value": JSON_USERS["value"]}
    gaps = [g for g in plan(COMPACT, clean, by_mail, erased=True).gaps if g.kind == "key_only"]
    assert [g.evidence for g in gaps] == ["kafka://broker:9092/users"]
    for plain in (plan(COMPACT, clean, JSON_USERS, erased=True), plan(COMPACT, clean, by_mail)):
        assert not [g for g in plain.gaps if g.kind == "key_only"]
