"""What persons asked to keep: just that stays as they asked, and more, or nothing, is said."""

from __future__ import annotations

from typing import Any

from pii_tracer.lake.catalog_only_partitions import PartitionedTable
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import Ref, RefKind
from pii_tracer.model.datasets import DatasetId, Format
from pii_tracer.model.legal_holds import kept_as_asked, kept_unasked
from planners.copies.scan_evidence import Evidence
from tests.planners.smalllake import Lake, copy, hold, kinds


def own(name: str) -> dict[str, Any]:
    return hold(name, kind="own_request", until="indefinite", requests=["R"])


def test_a_table_alone_stays_as_it_was_asked() -> None:
    plan = Lake().plan(own("prod.a"))
    assert kept_as_asked(plan, copy(plan, "a"))
    assert not kept_as_asked(plan, copy(plan, "b"))
    assert (kept_unasked(plan), plan.applyable) == ((), True)


def test_a_branch_stays_with_it_unasked() -> None:
    refs = (Ref(name="audit", kind=RefKind.BRANCH, at="7"),)
    plan = Lake(states={"a": {"format": ICEBERG, "refs": refs}}).plan(own("prod.a"))
    assert [one.id for one in kept_unasked(plan)] == ["c-prod.a@branch.audit"]
    assert kept_as_asked(plan, copy(plan, "a"))


def test_what_lies_around_its_partitions_stays_unasked_and_is_said() -> None:
    s3 = DatasetId(namespace="s3://lake", name="t")
    table = PartitionedTable(title="core.t", location="s3://lake/t", dataset=s3, elsewhere=("/elsewhere", "/w/a"))
    plan = Lake(states={"a": {"format": Format.PARQUET}}, partitioned=(table,)).plan(own("core.t"))
    assert "hold_keeps_rest" in kinds(plan)
    assert [one.id for one in kept_unasked(plan)] == ["c-prod.a"]


def test_what_another_hold_keeps_too_is_that_hold_s() -> None:
    plan = Lake().plan(own("prod.a"), hold("prod.a", id="H2"))
    assert not kept_as_asked(plan, copy(plan, "a"))
    assert kept_unasked(plan) == ()


def test_a_dataset_without_the_person_is_a_gap() -> None:
    """A hold of the estate file on it is none: nobody said that it keeps something of this person."""
    lake = Lake(loose=("other",), seen={"/w/other": Evidence(1, 0, 0)})
    assert kinds(lake.plan(hold("prod.other"))) == []
    plan = lake.plan(own("prod.other"))
    assert kinds(plan) == ["hold_unmatched"]
    assert [(one.id, one.copies) for one in plan.holds] == [("H1", ())]


def test_each_dataset_without_the_person_is_a_gap_of_its_own() -> None:
    lake = Lake(loose=("other", "more"), seen={f"/w/{name}": Evidence(1, 0, 0) for name in ("other", "more")})
    plan = lake.plan(own("prod.other"), {**own("prod.more"), "id": "H2"})
    assert kinds(plan) == ["hold_unmatched", "hold_unmatched"]
    assert [(one.id, one.copies) for one in plan.holds] == [("H1", ()), ("H2", ())]


def test_a_part_of_a_table_is_not_kept() -> None:
    [gap] = Lake().plan(own("prod.a.city")).gaps
    assert "a part of prod.a, and a person can keep only the whole of it" in gap.reason
