"""Where a key stands in a row, whatever the names look like; and the first and last step of a run."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from executors.engine import spark_session
from executors.engine.engine_failures import OnEngine
from executors.engine.match_sql import condition, count
from executors.engine.retries import ATTEMPTS, on_conflict
from executors.registry import build
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    FieldAccess,
    Format,
    JsonAccess,
    KeyPart,
    KeySet,
    Match,
    MatchTerm,
)
from pii_tracer.model.errors import PiiTracerError, RunError
from pii_tracer.model.keys_as_text import joined
from tests.executors.world import EMAIL, UID, Steps, context
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def by(column: str, *access: FieldAccess | JsonAccess, kind: str = "string", keys: str = "uid") -> Match:
    return Match(terms=(MatchTerm(column=column, access=access, key_set=keys, type=kind),))


@pytest.mark.spark
@pytest.mark.parametrize(
    ("expression", "match"),
    [
        (f"CAST({UID} AS BIGINT)", by("c", kind="bigint")),
        (f"CAST({UID} AS DECIMAL(18,0))", by("c", kind="decimal(18,0)")),
        (f"CAST({UID} AS DECIMAL(20,4))", by("c", kind="decimal(20,4)")),
        (f"CAST({UID} AS DOUBLE)", by("c", kind="double")),
        (f"'{UID}'", by("c")),
        (f"'{UID}.0'", by("c")),
        (f"named_struct('d', CAST({UID} AS DOUBLE))", by("c", FieldAccess(name="d"), kind="double")),
        (f"named_struct('a b`c', named_struct('x', {UID}))", by("c", FieldAccess(name="a b`c"), FieldAccess(name="x"))),
        (f'\'{{"user": {{"id": {UID}}}}}\'', by("c", JsonAccess(path=("user", "id")))),
        (f'\'{{"a.b": "{EMAIL}"}}\'', by("c", JsonAccess(path=("a.b",)), keys="email")),
        (f"named_struct('j', '{{\"id\": {UID}}}')", by("c", FieldAccess(name="j"), JsonAccess(path=("id",)))),
    ],
)
def test_a_key_is_found_where_it_stands(
    spark: SparkSession, spark_estate: SparkEstate, expression: str, match: Match
) -> None:
    spark.sql(f"SELECT {expression} AS c UNION ALL SELECT NULL").createOrReplaceTempView("places")
    assert count(context(spark_estate), "places", match) == 1


@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("double", [f"{UID}.5", "1e300", "-1e300", "'NaN'", "'Infinity'", "NULL"]),
        ("float", [str(UID)]),  # nothing above 2 ** 24 is exact: by it somebody else's row would go
        ("decimal(20,4)", [f"{UID}.5", f"{UID}1", f"-{UID}"]),
    ],
)
def test_numbers_that_are_not_whole_or_not_exact_are_nobodys(
    spark: SparkSession, spark_estate: SparkEstate, kind: str, values: list[str]
) -> None:
    rows = " UNION ALL ".join(f"SELECT CAST({value} AS {kind}) AS c" for value in values)
    spark.sql(rows).createOrReplaceTempView("places")
    assert count(context(spark_estate), "places", by("c", kind=kind)) == 0


@pytest.mark.spark
@pytest.mark.parametrize("name", ["it's", "a?b", "back\\slash"])
def test_a_member_that_no_path_can_name_is_refused(spark: SparkSession, spark_estate: SparkEstate, name: str) -> None:
    """Spark answers NULL to a path it cannot parse: the person would count as absent."""
    with pytest.raises(RunError, match="a JSON path cannot contain"):
        count(context(spark_estate), "range(1)", by("id", JsonAccess(path=(name,))))


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["array<bigint>", "map<string,bigint>", "ARRAY<STRING>"])
def test_keys_inside_collections_are_refused(spark: SparkSession, spark_estate: SparkEstate, kind: str) -> None:
    with pytest.raises(RunError, match="not supported"):
        count(context(spark_estate), "range(1)", by("id", kind=kind))


@pytest.mark.spark
def test_keys_are_staged_and_dropped(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = Steps(context(spark_estate), "keys", None, spark_estate.base, Format.PARQUET, None)
    assert steps.once(Action.STAGE_KEYS, key_sets=["uid", "email"]) == {"key_sets": 2, "values": 2}
    with pytest.raises(PiiTracerError, match="empty"):
        steps.once(Action.STAGE_KEYS, key_sets=["nobody"])
    with pytest.raises(PiiTracerError):
        build(steps.ctx)["keys"].check(steps.step(Action.STAGE_KEYS, key_sets=["unknown"]), None)
    view = steps.ctx.key_view("email")
    assert EMAIL not in view
    assert spark.table(view).columns == ["k"]
    # no statement's plan may print a value
    plan = spark.sql(f"SELECT * FROM {view} WHERE k IN (SELECT k FROM {view})")._jdf.queryExecution().toString()
    assert EMAIL not in plan
    steps.once(Action.DROP_KEYS)
    assert view not in {row.tableName for row in spark.sql("SHOW TABLES").collect()}


def test_conflicts_are_retried_within_a_bound() -> None:
    class CommitFailedException(Exception):
        pass

    calls: list[int] = []

    def loses(times: int) -> str:
        calls.append(1)
        if len(calls) <= times:
            raise CommitFailedException
        return "won"

    assert on_conflict(lambda: loses(2), sleep=lambda seconds: None) == "won"
    calls.clear()
    with pytest.raises(RunError, match="conflict"):
        on_conflict(lambda: loses(99), sleep=lambda seconds: None)
    assert len(calls) == ATTEMPTS


def test_other_failures_are_told_without_their_message() -> None:
    def fails() -> None:
        raise ValueError(EMAIL)

    with pytest.raises(RunError) as caught:
        on_conflict(fails)
    assert "ValueError" in str(caught.value)
    assert EMAIL not in str(caught.value)
    assert caught.value.__suppress_context__


def test_an_engine_that_is_gone_is_not_asked_for_its_causes() -> None:
    class Gone:
        def getClass(self) -> None:
            raise ConnectionRefusedError

    class Broken(Exception):
        java_exception = Gone()

    def act() -> None:
        raise Broken

    with pytest.raises(RunError, match=r"^the engine failed: Broken"):
        on_conflict(act)


def test_an_engine_that_is_gone_is_told_whichever_call_meets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        spark_session, "_DYING", 0.0
    )  # this process' own engine lives, and would be waited for each time

    class Dead:
        name = "dead"

        def __getattr__(self, call: str) -> Any:
            def refuse(step: Any, copy: Any) -> None:
                raise ConnectionRefusedError(f"not an answer to {EMAIL}")

            return refuse

    executor: Any = OnEngine(Dead())
    assert executor.name == "dead"
    for call in ("check", "run", "verify", "probe"):
        with pytest.raises(RunError, match=r"^the engine failed: ConnectionRefusedError") as caught:
            getattr(executor, call)(None, None)
        assert EMAIL not in str(caught.value)


def test_what_is_no_failure_of_the_engine_passes_as_it_is() -> None:
    class Full:
        name = "full"

        def run(self, step: Any, copy: Any) -> None:
            raise PermissionError

    executor: Any = OnEngine(Full())  # type: ignore[arg-type]
    with pytest.raises(PermissionError):
        executor.run(None, None)


TENANTS = (None, "4", "5", "44", "1:4", "")
USERS = (None, 1, 4, 17, 44, 117)
WHOLE = "user.(tenant_id, user_id)"


class _Tenants:
    """Key sets of persons who are tuples."""

    def __init__(self, persons: set[tuple[str, str]]) -> None:
        values = tuple(sorted((f"p{n}", joined(person) or "") for n, person in enumerate(sorted(persons))))
        self._keys = KeySet(name=WHOLE, origin="k", weak=False, values=values, columns=("tenant_id", "user_id"))

    def key_set(self, name: str) -> KeySet:
        assert name == WHOLE
        return self._keys


@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "persons"),
    [
        ("bigint", {("4", "17"), ("5", "1")}),
        ("double", {("4", "17"), ("44", "117"), ("1:4", "4")}),
        ("string", {("4", "4"), ("44", "1")}),
    ],
)
def test_rows_of_a_key_of_several_columns_are_those_with_all_of_its_values(
    spark: SparkSession, spark_estate: SparkEstate, kind: str, persons: set[tuple[str, str]]
) -> None:
    """Every pair of values, against a model that looks at both cells; by lists of columns more rows would go."""
    grid = list(product(TENANTS, USERS))
    rows = frame_of_rows(spark, grid, "tenant_id string, user bigint")
    rows.selectExpr("tenant_id", f"CAST(user AS {kind}) AS user_id", "user").createOrReplaceTempView("grid")
    beside = KeyPart(column="user_id", type=kind)
    match = Match(terms=(MatchTerm(column="tenant_id", type="string", key_set=WHOLE, beside=(beside,)),))
    ctx = replace(context(spark_estate), keyring=_Tenants(persons), _views={})
    found = spark.sql(f"SELECT tenant_id, user FROM grid WHERE {condition(ctx, match)}").collect()
    assert {tuple(row) for row in found} == {(t, u) for t, u in grid if (t, str(u)) in persons}
    assert count(ctx, "grid", match) == len(persons)
    by_lists = {(t, u) for t, u in grid if t in {p[0] for p in persons} and str(u) in {p[1] for p in persons}}
    assert len(by_lists) > len(persons)
    ctx.drop_views()
