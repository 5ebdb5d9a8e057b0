"""Rows and persons are counted from one: order 512301 is somebody else's, and not customer 512301."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from pii_tracer.cli.main import run
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.plan import NUMBERED, ErasurePlan
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.byte_search import verify_bytes
from tests.cli.small import declared, request

ESTATE = (
    declared("lake", dict.fromkeys(("s.cust", "s.orders", "s.lines"), "delta"))
    + """\
  - name: c
    source: s.cust
    key: cust_id
    tables: [{table: s.orders, key: cust_id, record_keys: [order_id]}]
"""
)
REQUEST = request("c", "512301")
HERS, HER_ORDER, ORDERS = 512301, 600001, [600001, 512301, 600003]


@pytest.fixture
def plan(tmp_path: Path) -> ErasurePlan:
    ids = [HERS, 512302, 512303]
    write_deltalake(tmp_path / "lake" / "cust", pa.table({"cust_id": ids}))
    write_deltalake(tmp_path / "lake" / "orders", pa.table({"cust_id": ids, "order_id": ORDERS}))
    write_deltalake(tmp_path / "lake" / "lines", pa.table({"order_id": ORDERS, "sku": [1, 2, 3]}))
    for name, text in {
        "pii-tracer.yaml": ESTATE,
        "jobs.sql": "INSERT INTO s.lines SELECT order_id, 1 AS sku FROM s.orders;",
        "request.yaml": REQUEST,
        "policy.yaml": "version: 1\n",
    }.items():
        (tmp_path / name).write_text(text)
    given = ["--estate", str(tmp_path / "pii-tracer.yaml"), "--state", str(tmp_path / "state")]
    assert run(["plan", str(tmp_path / "request.yaml"), "--out", str(tmp_path / "p.plan.json"), *given]) == 0
    return ErasurePlan.model_validate(json.loads((tmp_path / "p.plan.json").read_text()))


def test_the_number_of_anothers_row_is_no_residue_and_hers_is(plan: ErasurePlan, tmp_path: Path) -> None:
    patterns = build_patterns(
        [
            KeySet(name="c.cust_id", origin="cust_id", weak=True, values=(("s", str(HERS)),)),
            KeySet(name="c.s.orders.order_id", origin="s.orders.order_id", weak=True, values=(("s", str(HER_ORDER)),)),
        ]
    )
    copies = {c.table: c for c in plan.copies}
    assert copies["s.lines"].facts[NUMBERED] == {"order_id": ["c.s.orders.order_id"]}
    assert NUMBERED not in copies["s.cust"].facts
    for name, left in (("s.cust", "cust_id"), ("s.orders", "cust_id"), ("s.lines", None)):
        copy = copies[name]
        columns = {r.where.rpartition(": ")[2] for r in verify_bytes(copy, patterns, Path(copy.location)).residue}
        assert columns - {"order_id"} == ({left} if left else set())
        assert ("order_id" in columns) == (name != "s.cust"), "her own order"
    others = pa.table({"order_id": ORDERS[1:], "sku": [2, 3]})
    write_deltalake(tmp_path / "lines2", others)
    moved = copies["s.lines"].model_copy(update={"location": str(tmp_path / "lines2")})
    verdict = verify_bytes(moved, patterns, tmp_path / "lines2")
    assert verdict.residue == ()
    assert [(d.column, d.files) for d in verdict.same_digits] == [("order_id", 2)]
