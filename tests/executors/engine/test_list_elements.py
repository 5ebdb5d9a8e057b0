"""Elements of lists and maps by real statements: what goes, what stays, and what the verifier says of a wrong one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from executors.engine import mask_sql
from pii_tracer.lake.formats.delta.vocabulary import DELTA, DELTA_MASK_ROWS
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG, ICEBERG_MASK_ROWS
from pii_tracer.model.datasets import Access, ElementAccess, FieldAccess, Match, MatchTerm, Strategy
from pii_tracer.model.errors import ScanError
from pii_tracer.model.plan import Copy, Mask, Mention
from pii_tracer.verify.row_checks import Verifier, compare
from pii_tracer.verify.verdicts import Baseline
from tests.executors.world import UID, Keyring, Steps, context
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TWO = 990_000_008
ELEMENT, KEY = ElementAccess(name="element"), ElementAccess(name="key")


@dataclass(frozen=True)
class Lists(Steps):
    """Steps of a table with lists or maps of users, of which no row is one user's."""

    terms: tuple[MatchTerm, ...] = ()
    clears: tuple[str, ...] = ()

    @property
    def copy(self) -> Copy:
        mask = Mask(columns=self.clears, held=(), found_by=("id",))
        mentions = tuple(Mention(match=Match(terms=(term,)), mask=mask) for term in self.terms)
        return super().copy.model_copy(
            update={"strategy": Strategy.CLEAR_MENTIONS, "match": None, "mentions": mentions}
        )

    def mask(self) -> list[int]:
        """How many rows each step changed."""
        action = ICEBERG_MASK_ROWS if self.table else DELTA_MASK_ROWS
        more = {} if self.table else {"materialise": False}
        steps = [(action, {"mention": number, **more}) for number in range(len(self.terms))]
        return [self.all(step)[action]["rows_masked"] for step in steps]

    def read(self, spark: SparkSession) -> list[tuple[Any, ...]]:
        found = spark.table(self.table) if self.table else spark.read.format("delta").load(str(self.location))
        return [tuple(row) for row in found.orderBy("id").collect()]


def made(
    spark: SparkSession,
    world: SparkEstate,
    name: str,
    columns: Mapping[str, tuple[str, MatchTerm]],
    rows: list[str],
    *,
    iceberg: bool = False,
    clears: tuple[str, ...] = (),
) -> Lists:
    """A table. rows: as SQL tells them, without their number, and with a note at the end."""
    folder = world.base / "warehouse" / "lake" / "lists" / name if iceberg else world.folder(f"lists/{name}")
    table = f"lake.lists.{name}" if iceberg else None
    using = "iceberg" if iceberg else "delta"
    kinds = ", ".join(f"{column} {kind}" for column, (kind, _) in columns.items())
    spark.sql(f"CREATE TABLE {table or f'delta.`{folder}`'} (id INT, {kinds}, note STRING) USING {using}")
    values = ", ".join(f"({n}, {row})" for n, row in enumerate(rows))
    cast = ", ".join(f"CAST({column} AS {kind}) AS {column}" for column, (kind, _) in columns.items())
    names = ", ".join(columns)
    spark.sql(
        f"INSERT INTO {table or f'delta.`{folder}`'} SELECT id, {cast}, note FROM VALUES {values} AS t(id, {names}, note)"
    )
    terms = tuple(term for _, term in columns.values())
    form = ICEBERG if iceberg else DELTA
    return Lists(context(world), using, table, folder, form, None, terms, clears)


def by(column: str, kind: str, *way: Access) -> MatchTerm:
    return MatchTerm(column=column, access=way or (ELEMENT,), key_set="uid", type=kind)


def verifier(spark: SparkSession) -> Verifier:
    return Verifier(spark, [Keyring.sets["uid"]])


USER_ID, WHO, ID = FieldAccess(name="USER-ID"), FieldAccess(name="who"), FieldAccess(name="id")
KINDS: dict[str, tuple[str, MatchTerm, str, str]] = {
    "n": ("array<bigint>", by("N", "bigint"), f"{UID}", f"{TWO}"),
    "t": ("array<string>", by("t", "string"), f"'{UID}'", "'x'"),
    "fraction": ("array<string>", by("fraction", "string"), f"'{UID}.0'", f"'{UID}0'"),
    "d": ("array<decimal(20,2)>", by("d", "decimal(20,2)"), f"{UID}.00", f"{UID}.50"),
    "f": ("array<double>", by("f", "double"), f"{UID}D", f"{UID}.5D"),
    "s": (
        "array<struct<`user-id`:bigint,seat:int>>",
        by("s", "bigint", ELEMENT, USER_ID),
        f"named_struct('user-id', {UID}L, 'seat', 1)",
        f"named_struct('user-id', {TWO}L, 'seat', 1)",
    ),
    "deep": (
        "array<struct<who:struct<id:string>>>",
        by("deep", "string", ELEMENT, WHO, ID),
        f"named_struct('who', named_struct('id', '{UID}'))",
        "named_struct('who', CAST(NULL AS struct<id:string>))",
    ),
}
"""By column: its type, how it is looked into, the person as an element, and somebody else."""


def test_the_persons_elements_go_and_all_others_stay_in_order(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """As in columns, whole numbers are compared without their fraction, and names in any case."""

    def row(make: Callable[[str, str, str], str]) -> str:
        cells = [make(kind, one, two) for kind, _, one, two in KINDS.values()]
        return ", ".join(
            [*(f"CAST({cell} AS {kind})" for cell, (kind, *_) in zip(cells, KINDS.values(), strict=True)), "'n'"]
        )

    rows = [
        row(lambda kind, one, two: f"array({one})"),
        row(lambda kind, one, two: f"array({two}, {one}, CAST(NULL AS {kind[6:-1]}), {two}, {one})"),
        row(lambda kind, one, two: f"array({two})"),
        row(lambda kind, one, two: f"array(CAST(NULL AS {kind[6:-1]}))"),
        row(lambda kind, one, two: "array()"),
        row(lambda kind, one, two: "NULL"),
    ]
    columns = {name: (kind, term) for name, (kind, term, *_) in KINDS.items()}
    steps = made(spark, spark_estate, "kinds", columns, rows)
    others = steps.read(spark)[2][1:-1]
    check = verifier(spark)
    planned = check.baseline(steps.copy)
    assert check.rows(steps.copy).states[0].rows == 2

    assert steps.mask() == [2] * len(KINDS)

    lists = list(zip(*(row[1:-1] for row in steps.read(spark)), strict=True))
    assert lists == [([], [it, None, it], [it], [None], [], None) for (it,) in others]
    assert check.rows(steps.copy).states[0].rows == 0
    assert compare(planned, check.baseline(steps.copy)).equal


@pytest.mark.parametrize("iceberg", [False, True])
def test_a_map_loses_the_persons_entry(spark: SparkSession, spark_estate: SparkEstate, iceberg: bool) -> None:
    def points(number: int) -> str:
        return f"named_struct('points', {number})"

    rows = [f"map('{TWO}', {points(1)}, '{UID}', {points(2)}), 'n'", f"map('{UID}', {points(3)}), 'n'", "NULL, 'n'"]
    columns = {"scores": ("map<string,struct<points:int>>", by("scores", "string", KEY))}
    steps = made(spark, spark_estate, "scores", columns, rows, iceberg=iceberg)
    check = verifier(spark)
    planned = check.baseline(steps.copy)
    assert steps.mask() == [2]
    left = [found and {key: value.points for key, value in found.items()} for _, found, _ in steps.read(spark)]
    assert left == [{str(TWO): 1}, {}, None]
    assert check.rows(steps.copy).states[0].rows == 0
    assert compare(planned, check.baseline(steps.copy)).equal


NUMBERS = ("array<bigint>", by("members", "bigint"), f"array({TWO}L, NULL, 7L, {UID}L, {TWO}L, NULL)")
SEATS = (
    "array<struct<user_id:bigint,a:int,b:int>>",
    by("members", "bigint", ELEMENT, FieldAccess(name="user_id")),
    f"array(named_struct('user_id', {UID}L, 'a', 1, 'b', 7), named_struct('user_id', {TWO}L, 'a', NULL, 'b', 7), NULL)",
)
WRONG: dict[str, tuple[tuple[str, MatchTerm, str], Callable[[str], str]]] = {
    "lost": (NUMBERS, lambda right: f"filter({right}, x -> x <> {TWO})"),
    "once": (NUMBERS, lambda right: f"array_distinct({right})"),
    "order": (NUMBERS, lambda right: f"reverse({right})"),
    "null": (NUMBERS, lambda right: f"nullif({right}, {right})"),
    "nulls": (NUMBERS, lambda right: f"filter({right}, x -> x IS NOT NULL)"),
    "null_struct": (SEATS, lambda right: f"filter({right}, x -> x IS NOT NULL)"),
    "fields_swapped": (
        SEATS,
        lambda right: (
            f"transform({right}, x -> IF(x IS NULL, x, named_struct('user_id', x.user_id, 'a', x.b, 'b', x.a)))"
        ),
    ),
}
"""A column, and what a wrong step leaves of it: another's element is lost, or one of two, or what is no element; their
order is another; the list is lost; what stands in another's element is lost, or elsewhere."""


@pytest.mark.parametrize("fault", WRONG)
def test_an_executor_that_takes_more_than_her_elements_is_noticed(
    spark: SparkSession, spark_estate: SparkEstate, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """The step itself sees nothing: none of her elements is left."""
    (kind, term, cell), wrong = WRONG[fault]
    steps = made(spark, spark_estate, fault, {"members": (kind, term)}, [f"{cell}, 'n'", f"{cell}, 'n'"])
    check = verifier(spark)
    planned = check.baseline(steps.copy)
    right = mask_sql.without
    monkeypatch.setattr(mask_sql, "without", lambda *given: wrong(right(*given)))
    steps.mask()
    assert check.rows(steps.copy).states[0].rows == 0
    told = compare(planned, check.baseline(steps.copy))
    assert (told.lost, told.equal) == (0, False)


def test_a_baseline_of_an_earlier_version_is_not_compared(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """Naively the run would end with other people's rows changed that nobody changed."""
    steps = made(spark, spark_estate, "earlier", {"members": NUMBERS[:2]}, [f"{NUMBERS[2]}, 'n'"])
    check = verifier(spark)
    planned = check.baseline(steps.copy)
    earlier = planned.model_dump()
    for state in earlier["states"]:
        del state["way"]
    assert check.baseline(steps.copy, planned) == planned
    with pytest.raises(ScanError, match=r"of an earlier version of pii-tracer, .* Finish this run with that version"):
        check.baseline(steps.copy, Baseline.model_validate(earlier))


def test_what_says_more_of_her_becomes_null_where_she_was_and_the_row_stays(
    spark: SparkSession, spark_estate: SparkEstate
) -> None:
    columns = {"members": ("array<bigint>", by("members", "bigint"))}
    rows = [f"array({UID}L), 'hers'", f"array({TWO}L), 'other'"]
    steps = made(spark, spark_estate, "cleared", columns, rows, clears=("note",))
    check = verifier(spark)
    planned = check.baseline(steps.copy)
    steps.mask()
    assert steps.read(spark) == [(0, [], None), (1, [TWO], "other")]
    assert compare(planned, check.baseline(steps.copy)).equal
    spark.sql(f"DELETE FROM delta.`{steps.location}` WHERE id = 0")
    told = compare(planned, check.baseline(steps.copy))
    assert (told.lost, told.equal) == (1, False)
