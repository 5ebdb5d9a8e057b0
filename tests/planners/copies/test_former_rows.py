"""Archives, vaults and backups of tables that hold nothing of the person today: last year's rows lie there still."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import ObjectSet
from pii_tracer.lineage.graph.edges import LineageGap, Subtype
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    Carries,
    ColumnId,
    DatasetId,
    Strategy,
)
from pii_tracer.model.plan import ErasurePlan, Gap
from planners.copies.scan_evidence import Evidence
from tests.planners.copies.test_keytables import KeyLake
from tests.planners.smalllake import NOW, Lake, archive, dataset, hold, kinds, strategies
from tests.planners.stores.test_archives import replica
from tests.planners.stores.test_backups import DUMP
from tests.planners.stores.test_vaults import archive as in_vault
from tests.planners.stores.test_vaults import state as vault
from tests.waivers import waivers_of

CLEAN = Evidence(files=1, files_with_person=0, bytes=1)
TODAY = {"/w/a": CLEAN}
"""Evidence of a lake whose table `a` no longer holds the person."""


def gaps(plan: ErasurePlan, kind: str) -> list[Gap]:
    return [g for g in plan.gaps if g.kind == kind]


def examined(plan: ErasurePlan, name: str) -> str:
    return next(e.reason for e in plan.examined if name in (e.table, e.dataset.name))


def in_objects(plan: ErasurePlan) -> dict[str, Any]:
    return {c.id: c for c in plan.copies if c.location.startswith("s3://")}


@dataclass
class Through(Lake):
    """`a` gets the key put through an expression."""

    expression: str = ""

    def _graph(self) -> LineageGraph:
        facts, changes = super()._graph().facts, {"expression": self.expression, "subtype": Subtype.TRANSFORMATION}
        to = ColumnId(dataset=dataset("a"), column="uid")
        edges = tuple(e.model_copy(update=changes) if e.target == to else e for e in facts.edges)
        return LineageGraph(facts.model_copy(update={"edges": edges}))


# --- what lineage connects with the person ---


def test_the_archive_of_a_table_that_lost_the_person_is_treated_as_of_any_copy() -> None:
    sets = (archive(), replica(fed=True))
    plan, before = Lake(objects=sets, seen=TODAY).plan(), Lake(objects=sets).plan()
    assert "c-prod.a" not in strategies(plan)
    assert "no file contains data of the person" in examined(plan, "prod.a")
    assert in_objects(plan) == in_objects(before)
    assert set(in_objects(plan)) == {"c-b-p", "c-b-p-versions", "c-c-p"}
    own = [[s.id for s in p.steps if (s.copy_ or "").startswith(("c-b-p", "c-c-p"))] for p in (plan, before)]
    assert sorted(own[0]) == sorted(own[1])
    assert not [s for s in plan.steps if s.copy_ == "c-prod.a"]
    assert plan.applyable
    assert plan.complete


def test_its_vault_and_its_backups_too() -> None:
    plan = Lake(vaults=(vault(in_vault("1")),), backups=({**DUMP, "of": ["prod.a"]},), seen=TODAY).plan()
    cold, tape = plan.copy_by_id("c-r-cold"), plan.copy_by_id("c-backup-nightly")
    assert (cold.strategy, tape.strategy) == (Strategy.RESTORE_REWRITE_ARCHIVE, Strategy.CONFIRM)
    assert cold.match
    assert [t.column for t in cold.match.terms] == ["uid"]
    assert {c.name for c in tape.columns} == {"uid"}
    [asked] = [s for s in plan.steps if s.copy_ == tape.id]
    assert "c-prod.users/99-verify" in asked.depends_on, "a job could fill the table from it again"
    assert plan.complete


def test_a_table_that_nobody_could_write_still_tells_how_its_archive_is_searched() -> None:
    states = {"a": {"format": ICEBERG, "table": None}}
    plan = Lake(objects=(archive(of="/w/a"),), states=states, seen=TODAY).plan()
    copy = plan.copy_by_id("c-b-p")
    assert copy.match
    assert plan.applyable


def test_an_archive_whose_rows_no_key_tells_apart_is_blocked_before_anything_runs() -> None:
    lake = Lake(copies={"a": Subtype.AGGREGATION}, objects=(archive(),))
    plan = lake.plan()
    [gap] = gaps(plan, "archive_match")
    assert "delete_whole" in gap.reason
    assert not plan.applyable
    lake.objects = (archive(delete_whole="the lake has the same rows"),)
    assert not gaps(lake.plan(), "archive_match")


def test_part_of_a_plan_can_be_such_an_archive() -> None:
    plan = Lake(objects=(archive(),), seen=TODAY).plan(only=("s3://b/p",))
    assert set(strategies(plan)) == {"c-b-p", "c-b-p-versions"}


def test_holds_on_such_an_archive_and_on_what_is_in_a_backup_count() -> None:
    lake = Lake(objects=(archive(),), backups=({**DUMP, "of": ["prod.a"]},), seen=TODAY)
    assert {strategies(lake.plan(hold("s3://b/p")))[i] for i in ("c-b-p", "c-b-p-versions")} == {"exempt"}
    plan = lake.plan(hold("prod.a"))
    assert [g.id for g in gaps(plan, "hold_in_backup")] == ["gap-hold_in_backup-backup-nightly"]
    assert "hold_unmatched" not in kinds(plan)
    assert not gaps(lake.plan(hold("prod.a", "nightly")), "hold_in_backup")


# --- names ---


@pytest.mark.parametrize("name", ["Prod.A", "/w/a", "w/a"])
@pytest.mark.parametrize("seen", [{}, TODAY])
def test_a_table_is_named_in_any_case_or_by_its_folder(name: str, seen: dict[str, Evidence]) -> None:
    plan = Lake(objects=(archive(of=name),), vaults=(vault(in_vault("1"), of=name),), seen=seen).plan()
    assert {"c-b-p", "c-b-p-versions", "c-r-cold"} <= strategies(plan).keys()
    assert plan.complete


def test_a_name_that_means_two_folders_is_a_gap() -> None:
    states = {n: {"location": f"/{n}/t", "dataset": DatasetId(namespace="file", name=f"/{n}/t")} for n in "ab"}
    plan = Lake(objects=(archive(of="/t"),), states=states, loose=("a", "b"), copies={}).plan()
    [gap] = gaps(plan, "archive_unmatched")
    assert "could be /a/t or /b/t" in gap.reason
    assert not plan.applyable


def test_a_name_that_no_table_has_is_a_gap() -> None:
    plan = Lake(objects=(archive(of="prod.gone"),), vaults=(vault(in_vault("1"), of="spark_catalog.prod.a"),)).plan()
    found = {g.evidence: g.reason for g in gaps(plan, "archive_unmatched")}
    assert found.keys() == {"the estate file, `archives`", "the estate file, `vaults`"}
    assert (
        "s3://b/p is declared as a copy of prod.gone, which is not in the inventory"
        in found["the estate file, `archives`"]
    )
    assert not plan.applyable
    empty = (archive(of="prod.gone", versions=()),)
    assert not gaps(Lake(objects=empty, vaults=(vault(of="prod.gone"),)).plan(), "archive_unmatched")


@pytest.mark.parametrize("part", ["archives", "vaults"])
def test_who_looked_into_what_an_archive_lists_waived_nothing_that_came_later(part: str) -> None:
    """The waiver named the prefix alone: it held for each version that came, and for everybody."""

    def lake(*ids: str) -> Lake:
        if part == "vaults":
            return Lake(vaults=(vault(*map(in_vault, ids), of="prod.gone"),))
        first = archive(of="prod.gone").versions[0]
        return Lake(objects=(archive(of="prod.gone", versions=[first.model_copy(update={"key": i}) for i in ids]),))

    words = waivers_of(lake("1").plan().gaps, NOW + timedelta(days=9))
    assert lake("1").plan(waivers=words).complete
    assert not lake("1", "2").plan(waivers=words).complete
    assert not lake("1").plan(ids=("Q",), waivers=words).complete


# --- what lineage does not connect ---


def test_what_hangs_from_a_table_without_lineage_is_listed_as_not_looked_into() -> None:
    lake = Lake(
        objects=(archive(of="prod.c"),),
        vaults=(vault(in_vault("1"), of="prod.c"),),
        backups=({**DUMP, "of": ["prod.c"]},),
        loose=("c",),
        seen={"/w/c": CLEAN},
    )
    plan = lake.plan()
    for name, what in (("p", "archive"), ("cold", "archive"), ("nightly", "a backup")):
        told = examined(plan, name)
        assert f"{what} of prod.c, which lineage does not connect with the person" in told
        assert told.endswith("its contents were not searched")
    assert plan.complete
    assert {c.id for c in plan.copies} == {"c-prod.users", "c-prod.a", "c-prod.b"}


def test_what_lineage_could_not_follow_into_the_table_leaves_its_archive_open() -> None:
    class Lost(Lake):
        def _graph(self) -> LineageGraph:
            lost = LineageGap(dataset=dataset("c"), kind="sql_opaque", reason="a UDF", evidence="j:1")
            return LineageGraph(super()._graph().facts.model_copy(update={"gaps": (lost,)}))

    lake = Lost(objects=(archive(of="prod.c"),), loose=("c",), seen={"/w/c": CLEAN})
    [gap] = gaps(lake.plan(), "archive_unmatched")
    assert "not complete" in gap.reason


def test_the_archive_of_a_table_of_which_all_is_other_peoples_too_says_so() -> None:
    plan = Through(objects=(archive(),), seen=TODAY, expression="right(concat(s.uid, '0'), 1)").plan()
    assert "also belong to other people" in examined(plan, "p")
    assert next(e.carries for e in plan.examined if e.dataset.name == "p") is Carries.COMPUTED_KEY
    assert "shared_identifier" in kinds(plan)


def test_where_the_person_has_no_value_to_be_looked_for_no_run_is_made_to_fail() -> None:
    plan = Through(objects=(archive(),), seen=TODAY, expression="substring(s.uid, 20, 1)").plan()
    assert "no value to search for" in examined(plan, "prod.a")
    assert examined(plan, "p").endswith("the person has no value to search for); its contents were not searched")
    assert plan.complete


@pytest.mark.parametrize("name", ["prod.b", "spark_catalog.prod.b", "b", "prod.a"])
def test_what_a_manifest_gives_to_another_copy_is_told(name: str) -> None:
    given = {"of_others": (("p/b.parquet", "1", "e"),), "other_tables": (name, "prod.z")}
    cold = vault(in_vault("1", of_others=True), of="prod.users").model_copy(update={"other_tables": (name,)})
    plan = Lake(objects=(archive(of="prod.users", **given),), vaults=(cold,), seen=TODAY).plan()
    assert {g.evidence.split("`")[1] for g in gaps(plan, "manifest_of_copy")} == {"archives", "vaults"}
    assert name in gaps(plan, "manifest_of_copy")[0].reason
    assert "prod.z" not in gaps(plan, "manifest_of_copy")[0].reason
    loose = archive(of="prod.users", **{**given, "other_tables": ("prod.c",)})
    assert Lake(objects=(loose,), loose=("c",), seen={"/w/c": CLEAN}).plan().complete


# --- keys ---


def keys_of(**more: Any) -> KeyLake:
    return KeyLake(seen={"/w/calls": CLEAN, "/w/keys": CLEAN}, **more)


def stored(of: str) -> dict[str, Any]:
    objects: tuple[ObjectSet, ...] = (archive(of=of),)
    return {"objects": objects}


@pytest.mark.parametrize(
    "more",
    [
        stored("prod.keys"),
        stored("PROD.keys"),
        {"vaults": (vault(in_vault("1"), of="prod.keys"),)},
        {"backups": ({**DUMP, "of": ["prod.Keys"]},)},
    ],
)
def test_a_key_that_only_what_was_stored_of_the_key_table_has_is_not_taken_for_gone(more: dict[str, Any]) -> None:
    plan = keys_of(**more).plan()
    assert "key_remembered" in kinds(plan)
    assert not plan.complete


def test_unreadable_is_tried_when_the_vault_of_the_key_table_forgot_the_key_too() -> None:
    plan = KeyLake(vaults=(vault(in_vault("1"), of="Prod.keys"),), objects=(archive(of="Prod.keys"),)).plan()
    [wait] = [s for s in plan.steps if s.action is Action.KEY_AWAIT_CACHES]
    assert {"c-r-cold/99-verify", "c-b-p/99-verify"} <= set(wait.depends_on)
