"""Elements of lists and maps by real statements: what goes, what stays, and what the verifier says of a wrong one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from executors.engine import mask_sql
from pii_tracer.lake.formats.delta.vocabulary import DELTA, DELTA_MASK_ROWS
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG, ICEBERG_MASK_ROWS
from pii_tracer.model.datasets import Access, ElementAccess, FieldAccess, Match, MatchTerm, Strategy
from pii_tracer.model.plan import Copy, Mask, Mention
from pii_tracer.verify.row_checks import Verifier, compare
from tests.executors.world import UID, Keyring, Steps, context
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TWO = 990_000_008
ELEMENT, KEY = ElementAccess(name="element"), ElementAccess(name="key")
BY_ELEMENT = MatchTerm(column="members", access=(ELEMENT,), key_set="uid", type="bigint")


@dataclass(frozen=True)
class Lists(Steps):
    """Steps of a table with a list or a map of users, of which no row is one user's."""

    term: MatchTerm = BY_ELEMENT
    clears: tuple[str, ...] = ()

    @property
    def copy(self) -> Copy:
        stays = tuple(name for name in ("id", "members", "note") if name not in self.clears)
        mask = Mask(columns=self.clears, held=(), found_by=stays)
        mention = Mention(match=Match(terms=(self.term,)), mask=mask)
        return super().copy.model_copy(
            update={"strategy": Strategy.CLEAR_MENTIONS, "match": None, "mentions": (mention,)}
        )


def of_kind(kind: str, *way: Access) -> MatchTerm:
    return MatchTerm(column="members", access=way or (ELEMENT,), key_set="uid", type=kind)


def made(
    spark: SparkSession,
    world: SparkEstate,
    name: str,
    kind: str,
    values: str,
    term: MatchTerm,
    *,
    iceberg: bool = False,
) -> Lists:
    """A table with one list in each row, as SQL tells them."""
    folder: Path = world.folder(f"lists/{name}")
    table = f"lake.lists.{name}" if iceberg else None
    target = table or f"delta.`{folder}`"
    using = "iceberg" if iceberg else "delta"
    spark.sql(f"CREATE TABLE {target} (id INT, members {kind}, note STRING) USING {using}")
    spark.sql(
        f"INSERT INTO {target} SELECT id, CAST(members AS {kind}), note FROM VALUES {values} AS t(id, members, note)"
    )
    return Lists(
        context(world),
        using,
        table,
        world.base / "warehouse" / "lake" / "lists" / name if iceberg else folder,
        ICEBERG if iceberg else DELTA,
        None,
        term,
    )


def members(spark: SparkSession, steps: Lists) -> list[Any]:
    found = spark.table(steps.table) if steps.table else spark.read.format("delta").load(str(steps.location))
    return [row.members for row in found.orderBy("id").collect()]


def mask(steps: Lists) -> dict[str, Any]:
    action = ICEBERG_MASK_ROWS if steps.table else DELTA_MASK_ROWS
    return steps.all((action, {"mention": 0, "materialise": False}))[action]


@pytest.mark.parametrize(
    ("kind", "one", "other", "term"),
    [
        ("array<bigint>", f"{UID}", f"{TWO}", of_kind("bigint")),
        ("array<string>", f"'{UID}'", "'x'", of_kind("string")),
        ("array<string>", f"'{UID}.0'", f"'{UID}0'", of_kind("string")),
        ("array<decimal(20,2)>", f"{UID}.00", f"{UID}.50", of_kind("decimal(20,2)")),
        ("array<double>", f"{UID}D", f"{UID}.5D", of_kind("double")),
        (
            "array<struct<`user-id`:bigint,seat:int>>",
            f"named_struct('user-id', {UID}L, 'seat', 1)",
            f"named_struct('user-id', {TWO}L, 'seat', 1)",
            of_kind("bigint", ELEMENT, FieldAccess(name="USER-ID")),
        ),
        (
            "array<struct<who:struct<id:string>>>",
            f"named_struct('who', named_struct('id', '{UID}'))",
            "named_struct('who', CAST(NULL AS struct<id:string>))",
            of_kind("string", ELEMENT, FieldAccess(name="who"), FieldAccess(name="id")),
        ),
    ],
)
def test_the_persons_elements_go_and_all_others_stay_in_order(
    spark: SparkSession, spark_estate: SparkEstate, kind: str, one: str, other: str, term: MatchTerm
) -> None:
    null = f"CAST(NULL AS {kind[6:-1]})"
    lists = [f"array({one})", f"array({other}, {one}, {null}, {other}, {one})", f"array({other})", f"array({null})"]
    empty = f"CAST(array() AS {kind})"
    values = ", ".join(f"({n}, {x}, 'n')" for n, x in enumerate([*lists, empty, f"CAST(NULL AS {kind})"]))
    name = "".join(c for c in kind + one if c.isalnum())
    steps = made(spark, spark_estate, name, kind, values, term)
    before = members(spark, steps)
    (it,) = before[2]
    assert it != before[0][0]
    verifier = Verifier(spark, [Keyring.sets["uid"]])
    planned = verifier.baseline(steps.copy)
    assert verifier.rows(steps.copy).states[0].rows == 2, "a naive run leaves these"

    assert mask(steps)["rows_masked"] == 2

    assert members(spark, steps) == [[], [it, None, it], [it], [None], [], None]
    assert verifier.rows(steps.copy).states[0].rows == 0
    assert compare(planned, verifier.baseline(steps.copy)).equal


MAP = "map<string,struct<points:int>>"
_POINTS = "named_struct('points', {})"


@pytest.mark.parametrize("iceberg", [False, True])
def test_a_map_loses_the_persons_entry(spark: SparkSession, spark_estate: SparkEstate, iceberg: bool) -> None:
    both = f"map('{TWO}', {_POINTS.format(1)}, '{UID}', {_POINTS.format(2)})"
    values = f"(1, {both}, 'n'), (2, map('{UID}', {_POINTS.format(3)}), 'n'), (3, NULL, 'n')"
    steps = made(spark, spark_estate, f"map_{iceberg}", MAP, values, of_kind("string", KEY), iceberg=iceberg)
    verifier = Verifier(spark, [Keyring.sets["uid"]])
    planned = verifier.baseline(steps.copy)
    assert mask(steps)["rows_masked"] == 2
    left = [found and {key: value.points for key, value in found.items()} for found in members(spark, steps)]
    assert left == [{str(TWO): 1}, {}, None]
    assert verifier.rows(steps.copy).states[0].rows == 0
    assert compare(planned, verifier.baseline(steps.copy)).equal


WRONG: dict[str, Callable[[str], str]] = {
    "another's element is lost": lambda right: f"filter({right}, x -> x <> {TWO})",
    "a second one of another's is lost": lambda right: f"array_distinct({right})",
    "their order is another": lambda right: f"reverse({right})",
    "all are lost": lambda right: f"slice({right}, 1, 0)",
    "the list is lost": lambda right: f"nullif({right}, {right})",
    "an element is added": lambda right: f"array_append({right}, 1L)",
}


@pytest.mark.parametrize("fault", WRONG)
def test_an_executor_that_takes_more_than_her_elements_is_noticed(
    spark: SparkSession, spark_estate: SparkEstate, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """The step itself sees nothing: none of her elements is left."""
    values = f"(1, array({TWO}L, 7L, {UID}L, {TWO}L, 8L), 'n'), (2, array({TWO}L), 'n')"
    name = "".join(c for c in fault if c.isalnum())
    steps = made(spark, spark_estate, name, "array<bigint>", values, of_kind("bigint"))
    verifier = Verifier(spark, [Keyring.sets["uid"]])
    planned = verifier.baseline(steps.copy)
    right = mask_sql.without
    monkeypatch.setattr(mask_sql, "without", lambda *given: WRONG[fault](right(*given)))
    mask(steps)
    assert verifier.rows(steps.copy).states[0].rows == 0
    told = compare(planned, verifier.baseline(steps.copy))
    assert (told.lost, told.equal) == (0, False)


def test_a_row_that_goes_with_her_element_is_lost(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = made(spark, spark_estate, "rowlost", "array<bigint>", f"(1, array({UID}L), 'n')", of_kind("bigint"))
    verifier = Verifier(spark, [Keyring.sets["uid"]])
    planned = verifier.baseline(steps.copy)
    spark.sql(f"DELETE FROM delta.`{steps.location}`")
    told = compare(planned, verifier.baseline(steps.copy))
    assert (told.lost, told.equal) == (1, False)


def test_what_says_more_of_her_becomes_null_where_she_was(spark: SparkSession, spark_estate: SparkEstate) -> None:
    values = f"(1, array({UID}L, {TWO}L), 'hers'), (2, array({TWO}L), 'other')"
    steps = made(spark, spark_estate, "cleared", "array<bigint>", values, of_kind("bigint"))
    steps = replace(steps, clears=("note",))
    verifier = Verifier(spark, [Keyring.sets["uid"]])
    planned = verifier.baseline(steps.copy)
    mask(steps)
    rows = spark.read.format("delta").load(str(steps.location)).orderBy("id").collect()
    assert [tuple(row) for row in rows] == [(1, [TWO], None), (2, [TWO], "other")]
    assert compare(planned, verifier.baseline(steps.copy)).equal
