"""Archives that reach into their neighbours, or that no rewrite can treat: told before anything is planned for them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.inventory import ObjectSet
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    PLAIN,
    DatasetId,
    Format,
    Strategy,
)
from pii_tracer.model.plan import ErasurePlan, Gap
from planners.copies.scan_evidence import BesideEvidence
from planners.schedule.step_dates import Retention
from tests.planners.smalllake import NOW, Lake, archive
from tests.planners.stores.test_archives import version
from tests.s3support import estate
from tests.waivers import waivers_of


def place(prefix: str, *keys: str, bucket: str = "b", **more: Any) -> ObjectSet:
    dataset = DatasetId(namespace=f"s3://{bucket}", name=prefix.rstrip("/"))
    return archive(bucket=bucket, prefix=prefix, dataset=dataset, versions=tuple(map(version, keys)), **more)


def gaps(plan: ErasurePlan, kind: str) -> list[Gap]:
    return [gap for gap in plan.gaps if gap.kind == kind]


# --- places ---


@pytest.mark.parametrize(
    ("first", "second"), [("users", "users-eu/"), ("users/eu/", "users/"), ("users/", "users/"), ("", "users/")]
)
def test_archives_that_share_objects_are_refused(first: str, second: str) -> None:
    both = [
        {"name": n, "of": "t", "bucket": "b", "prefix": p, "format": "csv"} for n, p in (("x", first), ("y", second))
    ]
    with pytest.raises(ValidationError, match="end prefixes with `/`") as caught:
        estate("http://localhost", both)
    assert "`x`" in str(caught.value)
    assert "`y`" in str(caught.value)
    estate("http://localhost", [both[0], both[1] | {"bucket": "another"}])


def test_a_prefix_without_its_slash_takes_in_no_neighbour_unseen() -> None:
    keys = ("users/1.parquet", "users-eu/1.parquet", "users-eu/2.parquet", "users_old/1.parquet", "users.parquet")
    plan = Lake(objects=(place("users", *keys),)).plan()
    [gap] = gaps(plan, "s3_neighbours")
    assert "`users-eu/` (2 objects), `users_old/` (1 object), `users…` (1 object)" in gap.reason
    assert not plan.applyable
    for prefix, held in (("users/", "users/1.parquet"), ("users", "users/1.parquet"), ("", "x/1.parquet")):
        assert not gaps(Lake(objects=(place(prefix, held),)).plan(), "s3_neighbours")


def test_many_neighbours_are_a_number() -> None:
    plan = Lake(objects=(place("u", *(f"u{n}/1.parquet" for n in range(8))),)).plan()
    assert "and 3 more" in gaps(plan, "s3_neighbours")[0].reason


def test_places_that_rules_lead_into_each_other_are_a_gap() -> None:
    outer = place("users/", "users/1.parquet", bucket="c", replica_of="s3://b/users/")
    inner = place("users/eu/", "users/eu/1.parquet", bucket="c")
    plan = Lake(objects=(place("users/", "users/1.parquet"), outer, inner)).plan()
    assert [gap.evidence for gap in gaps(plan, "s3_overlap")] == ["s3://c/users/eu/"]


# --- archives that no rewrite can treat ---


def strategies(plan: ErasurePlan) -> set[Strategy]:
    return {c.strategy for c in plan.copies if c.location.startswith("s3://")}


@pytest.mark.parametrize("fmt", [DELTA, Format.KAFKA])
def test_a_format_that_cannot_be_rewritten_is_told_at_planning(fmt: Format) -> None:
    objects = place("p/", "p/x", format=fmt)
    plan = Lake(objects=(objects,)).plan()
    assert [gap.evidence for gap in gaps(plan, "archive_format")] == ["s3://b/p/"]
    assert (plan.applyable, strategies(plan)) == (False, {Strategy.BLOCKED})
    assert not [s for s in plan.steps if s.executor == "s3"]
    whole = Lake(objects=(objects.model_copy(update={"delete_whole": "the lake has the same rows"}),)).plan()
    assert whole.applyable
    assert not gaps(whole, "archive_format")
    old = objects.model_copy(update={"versions": (version("p/x", latest=False),)})
    assert not gaps(Lake(objects=(old,)).plan(), "archive_format")


@pytest.mark.parametrize("fmt", sorted(PLAIN))
def test_the_declared_format_counts_and_not_a_name(fmt: Format) -> None:
    plan = Lake(objects=(place("p/", "p/x.orc", format=fmt),)).plan()
    assert plan.applyable
    assert {s.parameters["format"] for s in plan.steps if s.action is Action.S3_REWRITE_ARCHIVE} == {fmt.value}


def test_what_lapses_in_time_needs_no_rewrite() -> None:
    lapsing = place("p/", "p/x", format=HUDI, versioned=False, expires_after_days=1)
    plan = Lake(objects=(lapsing,)).plan(retention=Retention.RETAIN)
    assert not gaps(plan, "archive_format")
    assert plan.applyable


def test_a_value_beside_the_bytes_of_an_object_is_told_at_planning() -> None:
    objects = place("p/", "p/x.parquet")
    plan = Lake(objects=(objects,), beside={"s3://b/p/": BesideEvidence(telling=2)}).plan()
    assert gaps(plan, "object_metadata")[0].reason.startswith("2 objects contain")
    assert (plan.applyable, strategies(plan)) == (False, {Strategy.BLOCKED})
    assert Lake(objects=(objects,), beside={"s3://b/q/": BesideEvidence(telling=2, unread=1, why="x")}).plan().applyable


def test_objects_that_refuse_the_look_beside_their_bytes_are_a_gap() -> None:
    objects = place("p/", "p/x.parquet")
    unread = BesideEvidence(unread=3, why="GetObjectTagging: AccessDenied")
    lake = Lake(objects=(objects,), beside={"s3://b/p/": unread})
    [gap] = gaps(lake.plan(), "beside_unread")
    assert "3 objects could not be read (GetObjectTagging: AccessDenied)" in gap.reason
    assert "s3:GetObjectVersion" in gap.reason
    broken = replace(unread, why="HeadObject: 400")
    [other] = gaps(Lake(objects=(objects,), beside={"s3://b/p/": broken}).plan(), "beside_unread")
    assert "Rights are not the cause" in other.reason
    assert "s3:" not in other.reason, "no right changes what a server cannot do"
    assert not lake.plan().applyable
    waived = lake.plan(waivers=waivers_of([gap], NOW + timedelta(days=400)))
    assert (waived.applyable, strategies(waived)) == (True, {Strategy.RESTORE_REWRITE_ARCHIVE})
    both = Lake(objects=(objects,), beside={"s3://b/p/": replace(unread, telling=1)}).plan()
    assert (len(gaps(both, "object_metadata")), strategies(both)) == (1, {Strategy.BLOCKED})
    whole = objects.model_copy(update={"delete_whole": "the lake has the same rows"})
    assert not gaps(Lake(objects=(whole,), beside={"s3://b/p/": unread}).plan(), "beside_unread")


def test_a_blocked_archive_with_old_versions_and_a_replica_makes_a_plan() -> None:
    main = place("p/", "p/x", format=HUDI)
    main = main.model_copy(update={"versions": (*main.versions, version("p/x", "0", latest=False))})
    copy = place("p/", "p/x", bucket="c", format=HUDI, replica_of="s3://b/p/", fed=True)
    plan = Lake(objects=(main, copy)).plan()
    assert gaps(plan, "archive_format")
    assert not plan.applyable
