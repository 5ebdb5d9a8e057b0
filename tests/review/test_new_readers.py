"""Whoever has begun to read a table's files since the plan was made would be broken by it: that is drift."""

from __future__ import annotations

from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import Inventory, Sharing, TableState
from pii_tracer.model.datasets import Column, DatasetId, Format
from pii_tracer.model.plan import Precondition
from pii_tracer.review.drift import compare
from tests.review.plans import plan, step


def state(name: str, fmt: Format, **more: object) -> TableState:
    return TableState(
        dataset=DatasetId(namespace="file", name=f"/lake/{name}"),
        table=f"lake.{name}",
        location=f"/lake/{name}",
        format=fmt,
        snapshot="1",
        columns=(Column(name="id", type="bigint"),),
    ).model_copy(update=more)


def drift(kind: str, expected: str, *tables: TableState) -> list[str]:
    needed = Precondition(kind=kind, target="/lake/a", expected=expected)
    return [i.found for i in compare(plan([step("s", preconditions=(needed,))]), Inventory(tables=tables))]


def test_a_new_clone_is_drift_and_one_that_is_gone_is_not() -> None:
    origin = state("a", DELTA)
    known, new = (state(n, DELTA, clone_of="/lake/a") for n in ("known", "new"))
    assert drift("clones", "/lake/known", origin, known) == []
    assert drift("clones", "/lake/known", origin) == []
    assert drift("clones", "/lake/known", origin, known, new) == ["/lake/known\n/lake/new"]
    assert drift("clones", "", origin, new) == ["/lake/new"]


def test_a_new_table_that_added_the_files_is_drift() -> None:
    def shared(*names: str) -> TableState:
        others = tuple(
            Sharing(table=f"lake.{n}", location=f"/lake/{n}", format=ICEBERG, files=("/lake/a/f",)) for n in names
        )
        return state("a", ICEBERG, sharing=others)

    assert drift("sharing", "", shared()) == []
    assert drift("sharing", "/lake/b", shared("b")) == []
    assert drift("sharing", "/lake/b", shared()) == []
    assert drift("sharing", "", shared("b")) == ["/lake/b"]
    assert drift("sharing", "/lake/b", shared("b", "c")) == ["/lake/b\n/lake/c"]
