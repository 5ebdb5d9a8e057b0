"""Keys by which Hive finds no row are refused in the plan, and not in the middle of a run."""

from __future__ import annotations

import pytest

from pii_tracer.lake.formats.hive_acid.vocabulary import HIVE_ACID
from pii_tracer.lake.inventory import TableState
from pii_tracer.model.datasets import Access, Column, DatasetId, FieldAccess, JsonAccess
from planners.copies.executor_support import astray

STATE = TableState(
    dataset=DatasetId(namespace="hdfs://nn", name="/t"),
    table="core.t",
    location="hdfs://nn/t",
    format=HIVE_ACID,
    snapshot="",
    columns=(
        Column(name="doc", type="string"),
        Column(name="uid", type="bigint"),
        Column(name="u`id", type="string"),
        Column(name="who", type="struct<id:string>"),
    ),
)


@pytest.mark.parametrize(
    ("column", "access", "why"),
    [
        ("uid", (), None),
        ("who", (FieldAccess(name="id"),), None),
        ("doc", (JsonAccess(path=("uid",)),), "inside a JSON text"),
        ("who", (FieldAccess(name="id"), JsonAccess(path=("uid",))), "inside a JSON text"),
        ("u`id", (), "a backtick"),
        ("who", (FieldAccess(name="a`b"),), "a backtick"),
    ],
)
def test_keys_that_hive_does_not_compare_stand_against_a_table(
    column: str, access: tuple[Access, ...], why: str | None
) -> None:
    found = astray(STATE, [(column, access)])
    assert (found is None) if why is None else (found is not None and why in found)


def test_a_key_of_several_columns_stands_against_a_table() -> None:
    assert astray(STATE, [("uid", ()), ("doc", ())]) is None
    assert "several columns" in str(astray(STATE, [("uid", ()), ("doc", ())], several=True))
