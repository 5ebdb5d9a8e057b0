"""Temporary tables of one name that several jobs make: each is a table of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from tests.lineage.conftest import COPY, PAYMENTS

Estate = Callable[..., LineageGraph]


@pytest.mark.parametrize(
    ("made", "other"),
    [("tmp_x", "tmp_x"), ("`tmp x`", "`tmp x`"), ("tmp_x", "TMP_X"), ("`tmp_x`", "tmp_x"), ("scratch.tmp_x", "scratch.tmp_x"), ("`tmp.x`", "`tmp.x`")],
)  # fmt: skip
def test_temporary_tables_of_two_jobs_are_two_tables(estate: Estate, made: str, other: str) -> None:
    mine = f"CREATE TEMPORARY TABLE {made} AS SELECT user_id FROM lake.prod.payments; INSERT INTO prod.copy (uid) SELECT user_id FROM {made}"
    theirs = f"CREATE TEMPORARY TABLE {other} AS SELECT pan AS user_id FROM lake.prod.payments; INSERT INTO prod.copy (pan) SELECT user_id FROM {other}"
    graph = estate(sql={"a.sql": mine, "b.sql": theirs})
    comes = {
        (edge.target.column, before.source.dataset, before.source.column)
        for edge in graph.edges_into(COPY)
        for before in graph.edges_into_column(edge.source)
    }
    assert comes == {("uid", PAYMENTS, "user_id"), ("pan", PAYMENTS, "pan")}
