"""Real tables: a logical delete hides the person from the current state, and everything else still has them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.model.datasets import (
    Format,
    JsonAccess,
    KeySet,
    Match,
    MatchTerm,
)
from pii_tracer.model.errors import ScanError
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.byte_search import verify_bytes
from pii_tracer.verify.formats.base import State
from pii_tracer.verify.row_checks import Verifier, compare
from tests.scan.support import BOTH, OTHER_PHONE, OTHER_USER, PHONE, PHONES, USER, USERS
from tests.sparksession import SparkEstate
from tests.verify.conftest import MATCH, NESTED, HudiTables, Tables, a_copy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

STRANGER = build_patterns(
    [
        KeySet(name="phone", origin="phone", weak=False, values=(("s", OTHER_PHONE),)),
        KeySet(name="user_id", origin="user_id", weak=True, values=(("s", str(OTHER_USER)),)),
    ]
)


@pytest.fixture
def verifier(spark: SparkSession) -> Verifier:
    return Verifier(spark, [PHONES, USERS])


def test_iceberg_merge_on_read_delete_erases_nothing(tables: Tables, verifier: Verifier) -> None:
    found = {state.state: state.rows for state in verifier.rows(tables.iceberg).states}
    assert found.pop("current") == 0
    assert found.pop("branch audit") == 1
    assert found.pop("tag q3") == 1
    assert sorted(found.values()) == [0, 1]
    verdict = verify_bytes(tables.iceberg, BOTH, Path(tables.iceberg.location))
    files = {item.file.split("/")[0] for item in verdict.residue}
    assert files == {"data", "metadata"}
    assert any(item.where == "manifest entry, bounds: phone" for item in verdict.residue)
    assert not verdict.unverified
    assert any(name.path.startswith("metadata/.") for name in verdict.files)


def test_a_ref_is_looked_at_by_itself(tables: Tables, verifier: Verifier) -> None:
    copy = tables.iceberg.model_copy(update={"facts": {"ref": "q3", "ref_kind": "tag"}})
    assert [(s.state, s.rows) for s in verifier.rows(copy).states] == [("tag q3", 1)]
    (state,) = verifier.baseline(copy).states
    assert (state.state, state.rows_total, state.rows_person) == ("tag q3", 3, 1)


def test_a_table_that_is_gone_is_named_and_told(tables: Tables, verifier: Verifier, tmp_path: Path) -> None:
    """It was renamed in its catalog, or its folder went, since the plan was made."""
    renamed = tables.iceberg.model_copy(update={"table": f"{tables.iceberg.table}_of_before"})
    removed = tables.delta.model_copy(update={"location": str(tmp_path / "gone")})
    for copy in (renamed, removed):
        for look in (verifier.rows, verifier.baseline):
            with pytest.raises(ScanError, match="cannot be read") as told:
                look(copy)
            assert told.value.where == (copy.table or copy.location)
            assert "plan again" in str(told.value.todo) or "repair" in str(told.value.todo)


def test_delta_merge_leaves_versions_changes_and_bytes(tables: Tables, verifier: Verifier) -> None:
    found = {state.state: state.rows for state in verifier.rows(tables.delta).states}
    assert found["current"] == 0
    assert found["version 1"] == 1
    assert found["changes of version 2"] == 1
    verdict = verify_bytes(tables.delta, BOTH, Path(tables.delta.location))
    where = {item.where for item in verdict.residue}
    assert {"data: phone", "statistics: phone"} <= where
    assert any(item.file.startswith("_change_data/") for item in verdict.residue)
    assert not verdict.unverified


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_hudi_delete_leaves_slices_logs_and_metadata(hudi_tables: HudiTables, verifier: Verifier, kind: str) -> None:
    copy = getattr(hudi_tables, kind)
    found = verifier.rows(copy)
    assert found.states[0].rows == 0
    assert found.rows_left >= 1
    verdict = verify_bytes(copy, BOTH, Path(copy.location))
    where = {item.where for item in verdict.residue}
    assert "data: phone" in where
    assert "log block hfile key: _hoodie_record_key" in where
    assert "statistics: phone" in where
    assert not verdict.unverified
    if kind == "mor":
        assert "log block delete: _hoodie_record_key" in where


def test_a_person_who_never_was_there_is_not_found(tables: Tables) -> None:
    """The clean twin of all of the above: no hit anywhere and nothing unread."""
    for copy in (tables.iceberg, tables.delta, tables.nested, tables.csv):
        assert verify_bytes(copy, STRANGER, Path(copy.location)).clean


def test_a_person_who_never_was_in_hudi_is_not_found(hudi_tables: HudiTables) -> None:
    for copy in (hudi_tables.cow, hudi_tables.mor):
        assert verify_bytes(copy, STRANGER, Path(copy.location)).clean


def test_nested_keys_and_files(tables: Tables, verifier: Verifier) -> None:
    assert [s.rows for s in verifier.rows(tables.nested).states] == [1]
    assert [s.rows for s in verifier.rows(tables.csv).states] == [1]
    (state,) = verifier.baseline(tables.nested).states
    assert (state.rows_total, state.rows_person) == (3, 1)


def test_the_baseline_sees_one_changed_value_of_somebody_else(
    spark: SparkSession, spark_estate: SparkEstate, verifier: Verifier
) -> None:
    def write(name: str, rows: list[tuple[int, str | None, str | None]]) -> Path:
        folder = spark_estate.folder(f"verify/{name}")
        frame = frame_of_rows(spark, rows, "user_id bigint, name string, phone string")
        frame.coalesce(1).write.mode("overwrite").parquet(str(folder))
        return folder

    rows: list[tuple[int, str | None, str | None]] = [(1, "a", "p"), (USER, "x", PHONE), (2, None, "b"), (2, None, "b")]
    folder = write("baseline", rows)
    copy = a_copy(Format.PARQUET, folder)
    before = verifier.baseline(copy)
    assert (before.states[0].rows_total, before.states[0].rows_person) == (4, 1)
    for changed, lost, equal in (
        ([rows[3], rows[2], rows[0]], 0, True),
        ([rows[0], rows[2]], 1, False),
        ([rows[0], rows[2], (2, "b", None)], 0, False),
        ([rows[0], (1, "a", "p"), (1, "a", "p")], 0, False),
    ):
        write("baseline", changed)
        found = compare(before, verifier.baseline(copy))
        assert (found.lost, found.equal) == (lost, equal), changed


@pytest.mark.parametrize("kind", ["bigint", "double", "decimal(20,2)", "string"])
def test_a_number_is_the_same_key_in_whatever_type_it_is_kept(
    spark: SparkSession, spark_estate: SparkEstate, verifier: Verifier, kind: str
) -> None:
    folder = spark_estate.folder(f"verify/kept-as-{kind.partition('(')[0]}")
    text = "CAST(n AS DECIMAL(20,1))" if kind == "string" else "n"  # `4711.0`
    rows = f"SELECT CAST({text} AS {kind}) AS user_id FROM VALUES ({USER}), ({USER} + 1), (NULL) AS t(n)"
    spark.sql(rows).coalesce(1).write.mode("overwrite").parquet(str(folder))
    term = MatchTerm(column="user_id", key_set="user_id", type=kind)
    copy = a_copy(Format.PARQUET, folder).model_copy(update={"match": Match(terms=(term,))})
    (state,) = verifier.baseline(copy).states
    assert (state.rows_total, state.rows_person) == (3, 1)


def test_a_lost_tag_counts_with_all_its_rows(tables: Tables, verifier: Verifier) -> None:
    before = verifier.baseline(tables.iceberg)
    assert [s.state for s in before.states] == ["current", "branch audit", "tag q3"]
    after = before.model_copy(update={"states": before.states[:2]})
    found = compare(before, after)
    assert (found.lost, found.equal, found.missing) == (2, False, ("tag q3",))
    assert compare(before, verifier.baseline(tables.iceberg)).equal


def test_keys_never_stand_in_a_spark_plan(tables: Tables, spark: SparkSession, verifier: Verifier) -> None:
    state = State("current", lambda: spark.read.table("lake.verify.t"))
    frame = verifier._flag(state, state.load(), MATCH.terms)
    plan = frame._jdf.queryExecution().toString()
    assert PHONE not in plan
    assert str(USER) not in plan


def test_what_cannot_be_compared_is_an_error(tables: Tables, verifier: Verifier) -> None:
    with pytest.raises(ScanError, match="no rows that could be identified"):
        verifier.rows(tables.iceberg.model_copy(update={"match": None}))
    renamed = Match(terms=(MatchTerm(column="gone", key_set="phone", type="string"),))
    with pytest.raises(ScanError, match="key column is missing"):
        verifier.rows(tables.iceberg.model_copy(update={"match": renamed}))
    quoted = Match(
        terms=(MatchTerm(column="phone", access=(JsonAccess(path=("o'k",)),), key_set="phone", type="string"),)
    )
    with pytest.raises(ScanError, match="quote"):
        verifier.rows(tables.iceberg.model_copy(update={"match": quoted}))
    with pytest.raises(ScanError, match="no table name"):
        verifier.rows(tables.iceberg.model_copy(update={"table": None}))
    with pytest.raises(ScanError, match="current state") as caught:
        verifier.rows(a_copy(Format.PARQUET, "/nowhere/at/all"))
    assert PHONE not in str(caught.value)


@pytest.mark.slow
def test_an_older_state_may_lack_a_field_of_a_struct(
    spark: SparkSession, spark_estate: SparkEstate, verifier: Verifier
) -> None:
    """The field came later: the older version has no person, and the newer one is counted by it."""
    folder = spark_estate.folder("verify/later_field")
    spark.sql("SELECT named_struct('name', 'Asha') AS payer").write.format("delta").save(str(folder))
    later = spark.sql(f"SELECT named_struct('name', 'Ravi', 'id', {USER}L) AS payer")
    later.write.format("delta").mode("append").option("mergeSchema", "true").save(str(folder))
    match = Match(terms=(NESTED.terms[0],))
    states = verifier.rows(a_copy(DELTA, folder, match=match)).states
    found = {state.state: (state.rows, state.reason) for state in states}
    assert found["current"] == (1, None)
    assert found["version 0"] == (None, "none of the key columns is in this state")
