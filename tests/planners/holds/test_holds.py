"""What is held stays, nothing else destroys it, and the person does not come back from it. Each guard was seen red."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import (
    ObjectLock,
    ObjectSet,
    Ref,
    RefKind,
)
from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.model.datasets import DatasetId, Strategy
from pii_tracer.model.errors import PlanError
from pii_tracer.model.legal_holds import Hold, contradiction
from planners.copies.scan_evidence import Evidence
from planners.holds.unmatched_holds import _overlap
from tests.planners.copies.test_kafka import COMPACT, topic
from tests.planners.smalllake import FAR, NOW, Lake, archive, copy, hold, kinds, strategies, touched
from tests.waivers import waivers_of

# --- what is held stays


def test_without_a_hold_every_copy_is_deleted() -> None:
    plan = Lake().plan()
    assert touched(plan) == {"c-prod.users", "c-prod.a", "c-prod.b"}
    assert (plan.totals.exempt, plan.totals.recheck_on, plan.holds) == (0, None, ())


@pytest.mark.parametrize(
    "name",
    ["prod.a", "PROD.A", "/w/a", "./w/a", "/w/a/", "file:/w/a", "file:///w/a", "file://localhost/w/a/", "FILE:/w/%61"],
)
def test_a_held_copy_is_exempt_and_no_step_touches_it(name: str) -> None:
    plan = Lake().plan(hold(name))
    held = copy(plan, "a")
    assert held.strategy is Strategy.EXEMPT
    assert held.match is None
    assert "PMLA 2002, s. 12, until 2031-03-30" in held.reason
    assert touched(plan) == {"c-prod.users", "c-prod.b"}
    assert not any("/w/a" in str(s.parameters) for s in plan.steps)
    assert (plan.complete, plan.applyable) == (True, True)
    assert plan.totals.exempt == 1
    assert plan.totals.recheck_on == datetime.fromisoformat(FAR)
    assert [(h.id, h.copies) for h in plan.holds] == [("H1", ("c-prod.a",))]


def test_branches_of_a_held_table_are_held_with_it() -> None:
    refs = (Ref(name="audit", kind=RefKind.BRANCH, at="7"),)
    lake = Lake(states={"a": {"format": ICEBERG, "refs": refs}})
    assert "c-prod.a@branch.audit" in touched(lake.plan())
    plan = lake.plan(hold("prod.a"))
    assert strategies(plan)["c-prod.a@branch.audit"] == "exempt"
    assert touched(plan) == {"c-prod.users", "c-prod.b"}
    assert plan.totals.exempt == 1  # the branch hangs from the table


def test_an_indefinite_hold_wins_over_a_dated_one_and_the_later_over_the_earlier() -> None:
    later = hold("prod.a", id="H2", basis="court order", until="2040-01-01T00:00:00Z")
    both = Lake().plan(hold("prod.a"), later)
    assert copy(both, "a").exemption is not None
    assert both.totals.recheck_on == datetime(2040, 1, 1, tzinfo=timezone.utc)
    never = Lake().plan(hold("prod.a"), {**later, "until": "indefinite"})
    assert never.totals.recheck_on is None
    assert "without an end date" in copy(never, "a").reason


def test_a_hold_that_has_lapsed_or_begins_after_the_deadline_keeps_nothing() -> None:
    for dates in (
        {"until": "2026-11-21T10:00:00Z"},
        {"from": (NOW + timedelta(days=40)).isoformat()},
    ):
        assert strategies(Lake().plan(hold("prod.a", **dates)))["c-prod.a"] == "delete_by_key"
    soon = hold("prod.a", **{"from": (NOW + timedelta(days=3)).isoformat()})
    assert strategies(Lake().plan(soon))["c-prod.a"] == "exempt"


def test_a_hold_that_began_after_a_missed_deadline_counts_while_it_is_in_force() -> None:
    began = hold("prod.a", **{"from": "2027-02-01T00:00:00Z"})
    at = datetime(2027, 2, 2, tzinfo=timezone.utc)
    assert strategies(Lake().plan(began, as_of=at))["c-prod.a"] == "exempt"
    named = {**began, "requests": ["X"]}
    assert any(o.kind == "hold" for o in Lake().plan(named, as_of=at).overrides)


def test_a_hold_that_begins_while_a_run_after_the_deadline_may_last_counts() -> None:
    late = NOW + timedelta(days=60)
    for begins, strategy in (
        (timedelta(minutes=1), "exempt"),
        (timedelta(days=29), "exempt"),
        (timedelta(days=31), "delete_by_key"),
    ):
        plan = Lake().plan(hold("prod.a", **{"from": (late + begins).isoformat()}), as_of=late)
        assert plan.totals.finish > plan.totals.deadline
        assert strategies(plan)["c-prod.a"] == strategy


def test_a_plan_in_which_everything_is_held_has_nothing_to_apply() -> None:
    plan = Lake(copies={}).plan(hold("prod.users"))
    assert strategies(plan) == {"c-prod.users": "exempt"}
    assert not plan.applyable


def test_doubts_about_deleting_do_not_block_what_is_kept() -> None:
    lake = Lake(copies={"a": Subtype.AGGREGATION})  # no statement writes the whole of it
    assert kinds(lake.plan()) == ["cannot_be_proved"]
    assert kinds(lake.plan(hold("prod.a"))) == []


# --- what would destroy it


def test_the_origin_of_a_held_clone_is_not_touched() -> None:
    lake = Lake(states={"b": {"clone_of": "/w/a"}})
    assert "c-prod.a" in touched(lake.plan())
    plan = lake.plan(hold("prod.b"))
    assert strategies(plan) | {"c-prod.users": ""} == {
        "c-prod.users": "",
        "c-prod.a": "blocked",
        "c-prod.b": "exempt",
    }
    assert "hold_blocks" in kinds(plan)
    assert touched(plan) == {"c-prod.users"}
    assert not plan.applyable


def test_the_origin_of_the_origin_of_a_held_clone_is_not_touched() -> None:
    lake = Lake(states={"a": {"clone_of": "/w/users"}, "b": {"clone_of": "/w/a"}})
    plan = lake.plan(hold("prod.b"))
    assert touched(plan) == set()


def test_the_clone_of_a_held_origin_can_still_be_erased() -> None:
    plan = Lake(states={"b": {"clone_of": "/w/a"}}).plan(hold("prod.a"))
    assert touched(plan) == {"c-prod.users", "c-prod.b"}


@pytest.mark.parametrize(("held", "around"), [("a", "b"), ("b", "a")])
def test_a_folder_that_overlaps_with_a_held_one_is_not_swept(held: str, around: str) -> None:
    lake = Lake(states={"a": {"location": "/w/b/inner"}})
    plan = lake.plan(hold(f"prod.{held}"))
    assert strategies(plan)[f"c-prod.{around}"] == "blocked"
    assert touched(plan) == {"c-prod.users"}


def test_what_would_be_rebuilt_from_held_data_is_blocked() -> None:
    lake = Lake(
        copies={"a": Subtype.IDENTITY, "sums": Subtype.AGGREGATION},
        sql={"sums": "INSERT OVERWRITE TABLE sums SELECT SUM(amount) FROM users"},
    )
    assert strategies(lake.plan())["c-prod.sums"] == "rebuild"
    plan = lake.plan(hold("prod.users"))
    assert strategies(plan)["c-prod.sums"] == "blocked"
    assert touched(plan) == {"c-prod.a"}
    assert any("the person's data would come back" in g.reason for g in plan.gaps)


def test_what_is_rebuilt_from_an_erased_copy_of_held_data_is_not_blocked() -> None:
    lake = Lake(
        copies={"a": Subtype.IDENTITY, "sums": Subtype.AGGREGATION},
        inputs={"sums": "a"},
        sql={"sums": "INSERT OVERWRITE TABLE sums SELECT SUM(amount) FROM a"},
    )
    plan = lake.plan(hold("prod.users"))
    assert strategies(plan) == {"c-prod.users": "exempt", "c-prod.a": "delete_by_key", "c-prod.sums": "rebuild"}
    assert [g.id for g in plan.gaps] == ["gap-hold_refills-prod.users"]


def test_copies_that_jobs_fill_from_held_data_are_a_gap() -> None:
    plan = Lake().plan(hold("prod.users"))
    assert kinds(plan) == ["hold_refills"]
    assert "prod.a, prod.b" in plan.gaps[0].evidence
    assert not plan.complete
    assert kinds(Lake().plan(hold("prod.a"))) == []


@pytest.mark.parametrize(
    ("sql", "gaps"),
    [
        ("INSERT OVERWRITE TABLE a SELECT uid FROM users", ["hold_overwritten"]),
        ("CREATE OR REPLACE TABLE a AS SELECT uid FROM users", ["hold_overwritten"]),
        ("CREATE TABLE IF NOT EXISTS a AS SELECT uid FROM users", []),
        ("INSERT INTO a SELECT uid FROM users", []),
    ],
)
def test_only_what_replaces_the_rows_ends_a_hold(sql: str, gaps: list[str]) -> None:
    assert kinds(Lake(sql={"a": sql}).plan(hold("prod.a"))) == gaps


def test_a_job_that_overwrites_held_data_is_a_gap() -> None:
    lake = Lake(sql={"a": "INSERT OVERWRITE TABLE a SELECT uid FROM users"})
    assert kinds(lake.plan(hold("prod.a"))) == ["hold_overwritten"]
    assert kinds(lake.plan(hold("prod.a", "prod.users"))) == ["hold_refills"]


def test_a_held_archive_keeps_its_old_versions_and_replicas_too() -> None:
    replica = archive(bucket="c", dataset=DatasetId(namespace="s3://c", name="p"), replica_of="s3://b/p")
    lake = Lake(objects=(archive(), replica))
    assert {"c-b-p", "c-b-p-versions", "c-c-p"} <= touched(lake.plan())
    plan = lake.plan(hold("s3://b/p"))
    assert touched(plan) == {"c-prod.users", "c-prod.a", "c-prod.b"}


def test_what_hangs_from_a_blocked_copy_is_blocked_too() -> None:
    def at(prefix: str, bucket: str = "b", **changes: Any) -> ObjectSet:
        return archive(
            bucket=bucket, prefix=prefix, dataset=DatasetId(namespace=f"s3://{bucket}", name=prefix), **changes
        )

    lake = Lake(objects=(at("p"), at("p", "c", replica_of="s3://b/p"), at("p/inner", versions=archive().versions[:1])))
    assert {"c-b-p", "c-c-p", "c-b-p-inner"} <= touched(lake.plan())
    plan = lake.plan(hold("s3://b/p/inner"))
    assert touched(plan) == {"c-prod.users", "c-prod.a", "c-prod.b"}
    blocked = {g.id for g in plan.gaps if g.kind == "hold_blocks"}
    assert blocked == {f"gap-hold_blocks-{name}" for name in ("b-p", "b-p-versions", "c-p")}


def test_a_lifecycle_that_expires_held_objects_is_a_gap() -> None:
    lake = Lake(objects=(archive(expires_after_days=90),))
    assert kinds(lake.plan()) == []
    assert "hold_expires" in kinds(lake.plan(hold("s3://b/p")))
    short = hold("s3://b/p", until=(NOW + timedelta(days=80)).isoformat())
    assert "hold_expires" in kinds(lake.plan(short)), "the object was written long ago, and is due to go"
    young = tuple(v.model_copy(update={"modified": NOW.isoformat()}) for v in archive().versions)
    lake = Lake(objects=(archive(expires_after_days=90, versions=young),))
    assert kinds(lake.plan(short)) == []
    assert "hold_expires" in kinds(lake.plan(hold("s3://b/p")))


@pytest.mark.parametrize(
    ("settings", "gaps"),
    [
        ({"cleanup.policy": "delete"}, ["hold_expires"]),
        ({"cleanup.policy": "delete", "retention.ms": "-1"}, []),
        (COMPACT, []),
    ],
)
def test_a_held_topic_is_not_touched_and_its_own_retention_is_a_gap(settings: dict[str, str], gaps: list[str]) -> None:
    declared = {"of": "prod.a", "key": {"format": "string", "column": "uid"}, "value": {"format": "json"}}
    lake = Lake(topics=(topic(declared, settings, replicas=3),))
    assert {"cannot_be_proved", "follower_replicas"} & set(kinds(lake.plan()))
    plan = lake.plan(hold("users"))
    assert strategies(plan)["c-topic-broker-9092-users"] == "exempt"
    assert touched(plan) == {"c-prod.users", "c-prod.a", "c-prod.b"}
    assert kinds(plan) == gaps


def test_a_legal_hold_of_s3_is_a_gap_unless_a_hold_keeps_the_archive() -> None:
    versions = (archive().versions[0].model_copy(update={"lock": ObjectLock(legal_hold=True)}),)
    lake = Lake(objects=(archive(object_lock=True, versions=versions),))
    assert kinds(lake.plan()) == ["s3_legal_hold"]
    assert not lake.plan().applyable
    assert kinds(lake.plan(hold("s3://b/p"))) == []
    assert kinds(Lake(objects=(archive(object_lock=True),)).plan()) == []


# --- fail closed


def test_a_hold_that_matches_nothing_is_a_gap() -> None:
    plan = Lake().plan(hold("prod.a", "prod.typo"))
    assert [g.id for g in plan.gaps] == ["gap-hold_unmatched-H1-prod.typo"]
    assert not plan.applyable


@pytest.mark.parametrize(
    "name",
    [
        "s3://b",
        "s3://b/",
        "s3a://b/p",
        "s3n://b/p/",
        "parquet.`s3://b/p`",
        "s3://b/p/2026/1.parquet",
        "s3a://b/p/dt=1/",
    ],
)
def test_a_hold_around_or_in_a_copy_is_a_gap_that_names_the_copy(name: str) -> None:
    """A waiver of a hold that has nothing to keep says something else, and does not count any more."""
    near, far = (Lake(objects=objects).plan(hold(name)) for objects in ((archive(),), ()))
    [told], [other] = ([g for g in plan.gaps if g.kind == "hold_unmatched"] for plan in (near, far))
    assert "but shares files with it" in told.reason
    assert "nothing in the inventory has this name" in other.reason
    assert told.seen != other.seen


@pytest.mark.parametrize(
    "name", ["file:/w", "file:///w/a/dt=1", "parquet.`file:/w/a`", "file:/w/a%2Fdt=1", "/", "file:/"]
)
def test_a_hold_around_or_in_a_table_of_this_machine_names_it(name: str) -> None:
    near, far = (
        Lake().plan(hold(name)),
        Lake(copies={}, states={"users": {"location": "s3://z/users"}}).plan(hold(name)),
    )
    [told], [other] = ([g for g in plan.gaps if g.kind == "hold_unmatched"] for plan in (near, far))
    assert "but shares files with it" in told.reason
    assert "nothing in the inventory has this name" in other.reason


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("hdfs://nn/lake/a", "hdfs://NN:8020/lake"),
        ("abfss://lake@acc.dfs.core.windows.net/a", "abfs://lake@acc.dfs.core.windows.net/a/x"),
        ("s3://z/a", "s3a://z"),
    ],
)
def test_a_place_around_or_in_a_copy_is_near_in_any_spelling_of_its_store(location: str, name: str) -> None:
    assert _overlap(name, location)
    assert not _overlap(f"{name}-other", f"{location}/x")


@pytest.mark.parametrize(
    "name", ["file://elsewhere/w/a", "file:w/a", "file:a", "file:////w/a", "file:/w/a#b", "file:/w/a?b"]
)
def test_another_place_is_not_taken_for_a_table_of_this_machine(name: str) -> None:
    assert strategies(Lake().plan(hold(name)))["c-prod.a"] == "delete_by_key"


def test_a_waiver_of_an_idle_hold_is_for_no_copy_that_came_later() -> None:
    def at(prefix: str) -> ObjectSet:
        versions = tuple(v.model_copy(update={"key": f"{prefix}/x.parquet"}) for v in archive().versions)
        dataset = DatasetId(namespace="s3://b", name=prefix)
        return archive(dataset=dataset, prefix=prefix, versions=versions)

    held = hold("s3://b")
    waivers = waivers_of(Lake(objects=(at("p"),)).plan(held).gaps, NOW + timedelta(days=9))
    same, more = (Lake(objects=objects).plan(held, waivers=waivers) for objects in ((at("p"),), (at("p"), at("q"))))
    assert [gap.waiver is not None for gap in same.gaps] == [True]
    assert [gap.waiver is not None for gap in more.gaps if gap.kind == "hold_unmatched"] == [False]
    assert (same.applyable, more.applyable) == (True, False)
    [gap] = [gap for gap in more.gaps if gap.kind == "hold_unmatched"]
    assert "s3://b/p and 1 more" in gap.reason


def test_a_hold_on_a_dataset_without_the_person_is_no_gap() -> None:
    lake = Lake(objects=(archive(of="prod.other"),), loose=("other",), seen={"/w/other": Evidence(1, 0, 0)})
    plan = lake.plan(hold("s3://b/p"))
    assert (plan.gaps, plan.holds) == ((), ())


def test_a_name_that_means_two_places_is_refused() -> None:
    lake = Lake(states={"a": {"location": "/x/t"}, "b": {"location": "/y/t"}})
    with pytest.raises(PlanError, match="is ambiguous"):
        lake.plan(hold("/t"))


def test_a_hold_of_one_request_cannot_be_planned_with_others() -> None:
    mine = hold("prod.a", requests=["R"])
    assert strategies(Lake().plan(mine))["c-prod.a"] == "exempt"
    theirs = Lake().plan(mine, ids=("Q",))
    assert strategies(theirs)["c-prod.a"] == "delete_by_key"
    assert ("hold", "the hold H1 keeps nothing in this plan: the hold concerns only R") in [
        (o.kind, o.reason) for o in theirs.overrides
    ]
    lapsed = hold("prod.a", requests=["R"], until="2026-11-21T10:00:00Z")
    assert Lake().plan(lapsed, ids=("Q",)).overrides == Lake().plan(mine).overrides == Lake().plan().overrides
    with pytest.raises(PlanError, match="concerns R and not Q"):
        Lake().plan(mine, ids=("R", "Q"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"until": "2025-01-01T00:00:00Z"},
        {"until": "2031-03-31T00:00:00"},
        {"from": "2026-01-01"},
        {"until": "some day"},
        {"from": 20260101, "until": 20310331},
        {"from": "2026", "until": "2031"},
        {"until": 20310331.5},
        {"until": "20310331"},
        {"until": True},
        {"until": None},
        {"datasets": []},
        {"datasets": [" "]},
        {"basis": ""},
        {"approver": ""},
        {"kind": "wish"},
        {"extra": 1},
    ],
)
def test_a_hold_that_cannot_be_understood_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Hold.model_validate({**hold("prod.a"), **wrong})


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ({}, "two holds have the id"),
        ({"id": "H2", "until": "indefinite"}, "end on different days"),
        ({"id": "H2", "until": "2030-01-01T00:00:00Z", "datasets": ["PROD.A"]}, "end on different days"),
    ],
)
def test_holds_that_contradict_each_other_are_refused(second: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Lake().plan(hold("prod.a"), hold("prod.a", **second))


def test_two_periods_of_one_duty_do_not_contradict_each_other() -> None:
    later = hold("prod.a", id="H2", **{"from": FAR, "until": "2036-03-31T00:00:00+05:30"})
    assert strategies(Lake().plan(hold("prod.a"), later))["c-prod.a"] == "exempt"


def test_the_waiver_of_a_gap_does_not_free_what_is_blocked() -> None:
    lake = Lake(states={"b": {"clone_of": "/w/a"}})
    waivers = waivers_of(lake.plan(hold("prod.b")).gaps, NOW + timedelta(days=9))
    plan = lake.plan(hold("prod.b"), waivers=waivers)
    assert plan.complete
    assert not plan.applyable


def test_the_example_in_the_documentation_is_understood() -> None:
    page = (Path(__file__).parents[3] / "docs" / "holds.md").read_text()
    (block,) = re.findall(r"(?ms)^```yaml\n(.*?)^```", page)
    holds = [Hold.model_validate(item) for item in yaml.safe_load(block)["holds"]]
    assert [h.id for h in holds] == ["ledger-pmla", "dispute-8841", "payments-pmla"]
    assert contradiction(holds) is None
