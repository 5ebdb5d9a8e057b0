"""A short key in what a table says of itself: what counts after the run is a gap before it, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from pii_tracer.cli.main import run
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.byte_search import verify_bytes
from tests.cli.small import declared, request

HERS, OTHER = 10_234, 10_567
ESTATE = (
    declared("lake", dict.fromkeys(("s.cust", "s.orders"), "delta"))
    + """\
  - name: c
    source: s.cust
    key: cust_id
"""
)
JOBS = "INSERT OVERWRITE s.orders SELECT cust_id, 1 AS amount FROM s.cust;\n"
SCHEMA = pa.schema([("cust_id", pa.int64()), ("amount", pa.int64())])


def orders(place: Path, *ids: int, **options: Any) -> Path:
    for number in ids:  # a file each
        rows = pa.table({"cust_id": [number], "amount": [7]}, SCHEMA)
        write_deltalake(place, rows, mode="append", **options)
    return place


def bound(column: str, value: int) -> Callable[[Path], None]:
    """What the log says of the other person's file: a bound that no row of it has, as a writer may widen it."""

    def widen(place: Path) -> None:
        log = max((place / "_delta_log").glob("*.json"))
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for action in actions:
            if "add" in action:
                stats = json.loads(action["add"]["stats"])
                stats["minValues"][column] = value
                action["add"]["stats"] = json.dumps(stats)
        log.write_text("".join(json.dumps(action) + "\n" for action in actions))

    return widen


def owned(place: Path, by: str) -> None:
    DeltaTable(place).alter.set_table_properties({"owner": by}, raise_if_not_exists=False)


def nothing(place: Path) -> None:
    """The table as its writer left it."""


PLACES: dict[str, tuple[dict[str, Any], Callable[[Path], None]]] = {
    "nothing": ({}, nothing),
    "comment": ({"description": f"complaints of customer {HERS}"}, nothing),
    "comment with more digits": ({"description": f"ticket {HERS}77"}, nothing),
    "name": ({"name": f"orders_{HERS}"}, nothing),
    "property": ({}, lambda place: owned(place, f"team {HERS}")),
    "bound of the key": ({}, bound("cust_id", HERS)),
    "bound of another number": ({}, bound("amount", HERS)),
}


def planned(base: Path, kind: str) -> ErasurePlan:
    files = {"pii-tracer.yaml": ESTATE.replace("s.orders, format: delta", f"s.orders, format: {kind}")}
    files |= {"jobs.sql": JOBS, "policy.yaml": "version: 1\n", "request.yaml": request("c", str(HERS))}
    for file, text in files.items():
        (base / file).write_text(text)
    write_deltalake(base / "lake" / "cust", pa.table({"cust_id": [HERS, OTHER]}))
    given = ["--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")]
    run(["plan", str(base / "request.yaml"), "--out", str(base / "p.plan.json"), *given])
    return ErasurePlan.model_validate_json((base / "p.plan.json").read_bytes())


def left(plan: ErasurePlan, place: Path) -> bool:
    """Whether the verification finds her in a table that has none of her rows."""
    copy = next(c for c in plan.copies if c.table == "s.orders").model_copy(update={"location": str(place)})
    keys = KeySet(name="c.cust_id", origin="cust_id", weak=True, values=(("s", str(HERS)),))
    return bool(verify_bytes(copy, build_patterns([keys]), place).residue)


@pytest.mark.parametrize("name", PLACES)
def test_what_verification_counts_planning_says(tmp_path: Path, name: str) -> None:
    options, change = PLACES[name]
    change(orders(tmp_path / "lake" / "orders", HERS, OTHER, **options))
    plan = planned(tmp_path, "delta")
    change(orders(tmp_path / "left", OTHER, **options))
    stays = left(plan, tmp_path / "left")
    assert stays == (name in ("comment", "name", "property", "bound of the key"))
    assert ([g.kind for g in plan.gaps] == ["table_text"]) == stays, plan.gaps


@pytest.mark.parametrize(
    "note", [f"for customer {HERS}", f"run {HERS}77", str(HERS), "nobody", json.dumps({"rows": HERS})]
)
def test_entries_in_footers_of_plain_files(tmp_path: Path, note: str) -> None:
    for place, ids in (("lake/orders", (HERS, OTHER)), ("left", (OTHER,))):
        (tmp_path / place).mkdir(parents=True)
        for number in ids:
            rows = pa.table({"cust_id": [number], "amount": [7]}, SCHEMA.with_metadata({"exported": note}))
            pq.write_table(rows, tmp_path / place / f"{number}.parquet")
    plan = planned(tmp_path, "parquet")
    assert ([g.kind for g in plan.gaps] == ["table_text"]) == left(plan, tmp_path / "left"), plan.gaps
