"""Keys with blanks behind them, as columns of type CHAR have them: no step finds their rows, and planning says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyarrow import orc

from tests.app.planning.test_others_rows import (
    HERS,
    KEY,
    NEIGHBOUR,
    OTHER,
    Row,
    estate,
    planned,
    table,
)

CALM: Row = {**HERS, "email": "none", "note": "nothing"}
"""Nothing in the row but its key: no other value tells that it stays."""


def padded(*rows: Row) -> pa.Table:
    return table(*({**row, "cust": row["cust"].ljust(12)} for row in rows))


def noted(rows: pa.Table, kind: str) -> pa.Table:
    """As Spark writes the files of a table with such a column."""
    told = {"__CHAR_VARCHAR_TYPE_STRING": kind}
    fields = [
        {"name": n, "type": "string", "nullable": True, "metadata": told if n == "cust" else {}}
        for n in rows.column_names
    ]
    schema = json.dumps({"type": "struct", "fields": fields})
    return rows.replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": schema})


def write(base: Path, kind: str, rows: pa.Table) -> None:
    place = base / "lake" / "tickets"
    if kind == "delta":
        write_deltalake(place, rows)
    elif kind == "parquet":
        pq.write_table(rows, place / "a.parquet")
    elif kind == "orc":
        orc.write_table(rows, place / "a.orc")
    else:
        pyarrow.csv.write_csv(rows, place / "a.csv")


def tickets(plan: dict[str, Any]) -> dict[str, Any]:
    (copy,) = [copy for copy in plan["copies"] if copy["table"] == "s.tickets"]
    assert not [s for s in plan["steps"] if s["copy"] == copy["id"]] or copy["strategy"] != "blocked"
    return dict(copy)


@pytest.mark.parametrize("kind", ["parquet", "orc", "csv", "delta"])
@pytest.mark.parametrize("hers", [HERS, CALM])
def test_a_copy_whose_keys_are_padded_is_blocked_by_its_name(tmp_path: Path, kind: str, hers: Row) -> None:
    base = estate(tmp_path, kind)
    write(base, kind, padded(hers, NEIGHBOUR, OTHER))
    plan = planned(base)
    (gap,) = plan["gaps"]
    assert gap["kind"] == "cannot_be_proved"
    assert gap["reason"].startswith("lineage says that cust is a key, but its type is CHAR")
    assert tickets(plan)["strategy"] == "blocked"


def test_what_spark_says_of_a_column_is_enough(tmp_path: Path) -> None:
    """A neighbour's keys fill the width, and nobody's here is padded yet."""
    base = estate(tmp_path, "parquet")
    write(base, "parquet", noted(table(HERS), f"char({len(KEY)})"))
    assert [g["kind"] for g in planned(base)["gaps"]] == ["cannot_be_proved"]
    write(base, "parquet", noted(table(HERS), "varchar(12)"))
    assert planned(base)["gaps"] == []


def test_some_rows_with_blanks_are_a_gap_of_the_column(tmp_path: Path) -> None:
    base = estate(tmp_path, "parquet")
    write(base, "parquet", pa.concat_tables([table(HERS, OTHER), padded(CALM, CALM, NEIGHBOUR)]))
    plan = planned(base)
    (gap,) = plan["gaps"]
    assert (gap["kind"], gap["dataset"]["name"].endswith("/tickets")) == ("value_not_certain", True)
    assert gap["reason"].startswith("in 2 rows of the persons cust has blanks after the value")
    assert tickets(plan)["strategy"] == "delete_by_key"


def test_blanks_of_others_and_of_columns_beside_the_key_are_none(tmp_path: Path) -> None:
    base = estate(tmp_path, "parquet")
    rows = pa.concat_tables([table({**HERS, "email": f"{HERS['email']}   "}), padded(NEIGHBOUR, OTHER)])
    write(base, "parquet", rows)
    assert planned(base)["gaps"] == []


def test_a_quote_that_readers_understand_differently_is_a_gap(tmp_path: Path) -> None:
    """No step can write such a file again: the plan says it, and not the run."""
    base = estate(tmp_path, "csv")
    write(base, "csv", table(HERS, OTHER))
    assert planned(base)["gaps"] == []
    with (base / "lake" / "tickets" / "a.csv").open("a") as stream:
        stream.write(f'""  {"," * (len(HERS) - 1)}\n')
    assert [g["kind"] for g in planned(base)["gaps"]] == ["unreadable"]
