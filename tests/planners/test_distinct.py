"""Places of one name: each is a copy or a gap of its own, and none is waived with another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pii_tracer.cli.main import run
from pii_tracer.model.datasets import Carries, DatasetId, Format
from pii_tracer.model.plan import Examined, Gap
from planners.step_drafts import slug
from planners.unique_ids import distinct_examined, distinct_gaps
from tests.e2e import test_recall
from tests.planners.smalllake import Lake, hold


def test_two_folders_of_one_name_are_two_copies() -> None:
    bare: dict[str, Any] = {"format": Format.PARQUET, "table": None}
    lake = Lake(states={"a": {**bare, "location": "/w/2025/orders"}, "b": {**bare, "location": "/w/2026/orders"}})
    plan = lake.plan()
    orders = {c.id: c.location for c in plan.copies if c.location.endswith("/orders")}
    assert sorted(orders.values()) == ["/w/2025/orders", "/w/2026/orders"]
    assert {s.copy_ for s in plan.steps if s.parameters.get("location") in orders.values()} == set(orders)
    assert [c.id for c in lake.plan().copies] == [c.id for c in plan.copies]


def test_gaps_of_one_id_are_all_kept() -> None:
    def gap(evidence: str) -> Gap:
        return Gap(id="gap-x", dataset=None, kind="unreadable", reason="r", evidence=evidence)

    assert list(distinct_gaps([gap("1"), gap("1")])) == ["gap-x"]
    both = distinct_gaps([gap("1"), gap("2")])
    assert {g.evidence for g in both.values()} == {"1", "2"}
    assert all(g.id == key and key.startswith("gap-x-") for key, g in both.items())
    assert set(distinct_gaps([gap("2"), gap("1")])) == set(both)


@pytest.mark.parametrize("order", [(Carries.KEY, Carries.NONE), (Carries.NONE, Carries.KEY)])
def test_a_dataset_that_lineage_connects_with_one_kind_of_person_is_connected(order: tuple[Carries, ...]) -> None:
    dataset = DatasetId(namespace="file", name="/w/orders")
    told = [Examined(dataset=dataset, table="app.orders", carries=one, reason="r") for one in order]
    assert [one.carries for one in distinct_examined(told)] == [Carries.KEY]


def test_names_of_which_an_id_keeps_nothing_have_ids_of_their_own() -> None:
    for names in (("東京", "大阪"), ("db.orders v2", "db.orders/v2")):
        plans = [Lake().plan(hold(*some)) for some in (names, names[:1], names[1:])]
        both, one, other = ({g.id for g in plan.gaps if g.kind == "hold_unmatched"} for plan in plans)
        assert (len(both), len(one), len(other)) == (2, 1, 1)
    assert slug("東京") != slug("大阪")
    assert (slug("/w/a b.c"), slug("x" * 90)) == ("w-a-b.c", "x" * 80)


def test_one_waiver_does_not_close_the_gaps_of_two_writers() -> None:
    jobs = ["夜間", "日次", "job a", "job/a", "nightly"]
    writers = tuple({"job": job} for job in jobs)
    plan = Lake(writers=writers).plan()
    ids = {g.id for g in plan.gaps if g.kind == "writer_running"}
    assert len(ids) == len(jobs)
    assert "gap-writer_running-nightly" in ids
    assert {g.id for g in Lake(writers=writers[:1]).plan().gaps} < ids


def test_strangers_of_one_name_and_places_whose_long_names_begin_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both were lost before: the plan had one gap for two folders."""
    import json

    test_recall.build(tmp_path)
    lake = tmp_path / "lake"
    for place in ("x/orders_dump", "y/orders_dump"):
        (test_recall.folder(lake / place) / "1.csv").write_text(f"member_no,n\n{test_recall.PERSON},1\n")
    deep = test_recall.folder(lake / ("long" * 20))
    for name in ("one.bin", "two.bin"):
        (deep / name).write_bytes(b"\x00 no known format")
    words = ["--estate", str(tmp_path / "pii-tracer.yaml"), "--state", str(tmp_path / "state")]
    run(["plan", str(tmp_path / "request.yaml"), *words, "--out", str(tmp_path / "r.plan.json")])
    gaps = json.loads((tmp_path / "r.plan.json").read_text())["gaps"]
    strangers = [g["dataset"]["name"] for g in gaps if g["kind"] == "unexpected_copy" and g["dataset"]]
    assert {str(lake / "x" / "orders_dump"), str(lake / "y" / "orders_dump")} <= set(strangers)
    assert {str(deep / "one.bin"), str(deep / "two.bin")} <= {g["evidence"] for g in gaps}
    assert len({g["id"] for g in gaps}) == len(gaps)
