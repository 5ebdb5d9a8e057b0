"""Folders whose files have a key as different types: what readers see alike is erased, all else is blocked by name."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from tests.app.planning.test_others_rows import planned
from tests.cli.small import declared, request

KEY = 55102
WHOLE = pa.array([KEY, 8])
DAY = date(2120, 11, 13)


def estate(base: Path, format_: str) -> Path:
    for name in ("people", "visits"):
        (base / "lake" / name).mkdir(parents=True)
    pq.write_table(pa.table({"uid": WHOLE, "city": ["Pune", "Goa"]}), base / "lake" / "people" / "a.parquet")
    tables = declared("lake", {"s.people": "parquet", "s.visits": format_})
    (base / "pii-tracer.yaml").write_text(tables + "  - {name: user, source: s.people, key: uid}\n")
    (base / "jobs.sql").write_text("INSERT INTO s.visits (uid, n) SELECT uid, city AS n FROM s.people;\n")
    (base / "request.yaml").write_text(request("user", str(KEY)))
    (base / "policy.yaml").write_text("version: 1\n")
    return base


def visits(base: Path, format_: str, *files: pa.Array) -> dict[str, Any]:
    """A plan for a folder of files with these keys."""
    folder = estate(base, format_) / "lake" / "visits"
    for number, cells in enumerate(files):
        rows = pa.table({"uid": cells, "n": ["x", "y"]})
        if format_ == "orc":
            orc.write_table(rows, folder / f"{number}.orc")
        else:
            pq.write_table(rows, folder / f"{number}.parquet")
    return planned(base)


def blocked(plan: dict[str, Any]) -> bool:
    gaps = [gap["kind"] for gap in plan["gaps"]]
    copy = next(copy for copy in plan["copies"] if copy["table"] == "s.visits")
    assert (gaps == ["cannot_be_proved"]) is (copy["strategy"] == "blocked"), (gaps, copy["strategy"])
    return bool(gaps)


APART = {
    "double": pa.array([float(KEY), 8.5]),
    "float": pa.array([float(KEY), 8.5], pa.float32()),
    "decimal": pa.array([Decimal(KEY), Decimal(8)], pa.decimal128(10, 0)),
    "string": pa.array([str(KEY), "8"]),
    "date": pa.array([DAY, None]),
    "bool": pa.array([True, False]),
}


@pytest.mark.parametrize("format_", ["parquet", "orc"])
@pytest.mark.parametrize("other", sorted(APART))
def test_a_key_that_files_have_as_types_between_which_readers_differ_is_blocked(
    tmp_path: Path, format_: str, other: str
) -> None:
    assert blocked(visits(tmp_path / "1", format_, WHOLE, APART[other]))
    assert blocked(visits(tmp_path / "2", format_, APART[other], WHOLE))


@pytest.mark.parametrize(
    ("one", "other", "kind", "rows"),
    [
        (WHOLE.cast(pa.int32()), WHOLE, "bigint", 2),
        (pa.array(["x", str(KEY)]), pa.array([str(KEY), "y"], pa.large_string()), "string", 2),
        (pa.array(["x", str(KEY)]), pa.array([str(KEY), "y"]).dictionary_encode(), "string", 2),
        (pa.nulls(2), WHOLE, "bigint", 1),
    ],
)
def test_a_key_that_all_readers_see_alike_is_erased(
    tmp_path: Path, one: pa.Array, other: pa.Array, kind: str, rows: int
) -> None:
    plan = visits(tmp_path, "parquet", one, other)
    assert not blocked(plan)
    copy = next(copy for copy in plan["copies"] if copy["table"] == "s.visits")
    assert (copy["match"]["terms"][0]["type"], copy["found"]["rows"]) == (kind, rows)


@pytest.mark.parametrize(
    ("kinds", "apart"),
    [
        (["long", "double"], True),
        (["long", ["null", "string"]], True),
        ([["null", "long", "string"]], True),
        (["int", ["null", "long"]], False),
        ([["int", "long"]], False),
    ],
)
def test_avro_files_and_unions(tmp_path: Path, kinds: list[Any], apart: bool) -> None:
    folder = estate(tmp_path, "avro") / "lake" / "visits"
    for number, kind in enumerate(kinds):
        fields = [{"name": "uid", "type": kind}, {"name": "n", "type": "string"}]
        schema = fastavro.parse_schema({"type": "record", "name": "r", "fields": fields})
        uid = str(KEY) if kind == ["null", "string"] else KEY
        with (folder / f"{number}.avro").open("wb") as stream:
            fastavro.writer(stream, schema, [{"uid": uid, "n": "x"}])
    assert blocked(planned(tmp_path)) is apart


def test_only_the_field_with_the_key_has_to_be_alike(tmp_path: Path) -> None:
    """A struct that got a field later is one to every reader."""
    small = pa.array([{"uid": KEY}, {"uid": 8}])
    large = pa.array([{"uid": KEY, "by": "x"}, {"uid": 9, "by": "y"}])
    text = pa.array([{"uid": str(KEY)}, {"uid": "9"}])
    for base, other in ((tmp_path / "1", large), (tmp_path / "2", text)):
        estate(base, "parquet")
        (base / "jobs.sql").write_text(
            "INSERT INTO s.visits (who) SELECT named_struct('uid', uid) AS who FROM s.people;\n"
        )
        for number, cells in enumerate((small, other)):
            pq.write_table(pa.table({"who": cells}), base / "lake" / "visits" / f"{number}.parquet")
    assert not blocked(planned(tmp_path / "1"))
    assert blocked(planned(tmp_path / "2"))
