"""Columns of another system's numbers: exactly their cells are left out, and the same number elsewhere still counts."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.folder_scan import scan_bytes, scan_tree
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.known_columns import key_columns
from pii_tracer.scan.value_forms import Patterns

KEY, MAIL = "7340219981", "asha.rao@mail.example"
SETS = (
    KeySet(name="rider.id", origin="id", weak=False, values=(("s", KEY),)),
    KeySet(name="rider.mail", origin="mail", weak=False, values=(("s", MAIL),)),
)
PATTERNS = Patterns(SETS).leaving_out({"Driver": {"rider.id"}})
OTHERS = [{"driver": int(KEY) + n, "note": f"n{n}"} for n in (1, 2)]
HERE = [{"driver": int(KEY), "note": "paid"}, *OTHERS]
TEXT = [{**row, "driver": str(row["driver"])} for row in HERE]


def _parquet(rows: list[dict[str, Any]], **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out, **options)
    return out.getvalue()


def _with_metadata() -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"driver": [KEY]}).replace_schema_metadata({"k": KEY}), out)
    return out.getvalue()


def _orc(rows: list[dict[str, Any]], compression: str = "zlib") -> bytes:
    out = io.BytesIO()
    orc.write_table(pa.Table.from_pylist(rows), out, compression=compression)
    return out.getvalue()


def _avro(rows: list[dict[str, Any]]) -> bytes:
    out = io.BytesIO()
    kinds = {int: "long", str: "string"}
    fields = [{"name": n, "type": kinds[type(v)]} for n, v in rows[0].items()]
    fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, rows)
    return out.getvalue()


def _csv(rows: list[dict[str, Any]]) -> bytes:
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    return "\n".join(lines).encode() + b"\n"


def _lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _delta(rows: list[dict[str, Any]]) -> bytes:
    numbers = [row["driver"] for row in rows]
    bounds = {"minValues": {"driver": min(numbers)}, "maxValues": {"driver": max(numbers)}}
    add = {"path": "part-0.parquet", "size": 9, "partitionValues": {"driver": KEY}, "stats": json.dumps(bounds)}
    partition = {**add, "path": f"driver={KEY}/part-1.parquet"}
    return "".join(json.dumps({"add": entry}) + "\n" for entry in (add, partition)).encode()


PARQUET = {
    "parquet": {},
    "parquet, plain": {"use_dictionary": False, "compression": "none"},
    "parquet, page index": {"write_page_index": True, "compression": "none", "use_dictionary": False},
    "parquet, pages of version 2": {"data_page_version": "2.0", "compression": "gzip"},
}
FILES: dict[str, tuple[str, bytes]] = {
    **{
        f"{name} of {kind}": ("f.parquet", _parquet(rows, **options))
        for name, options in PARQUET.items()
        for kind, rows in (("numbers", HERE), ("text", TEXT))
    },
    **{
        f"orc, {packed}, of {kind}": ("f.orc", _orc(rows, packed))
        for packed in ("zlib", "uncompressed", "zstd")
        for kind, rows in (("numbers", HERE), ("text", TEXT))
    },
    "avro": ("f.avro", _avro(HERE)),
    "avro of text": ("f.avro", _avro(TEXT)),
    "csv": ("f.csv", _csv(HERE)),
    "csv, gzip": ("f.csv.gz", gzip.compress(_csv(HERE))),
    "json lines": ("f.json", _lines(HERE)),
    "json lines of text": ("f.json", _lines(TEXT)),
    "delta's log": ("t/_delta_log/00000000000000000001.json", _delta(HERE)),
    "delta's log of text": ("t/_delta_log/00000000000000000001.json", _delta(TEXT)),
    "folder": (f"t/driver={KEY}/f.csv", b"a,b\n1,2\n"),
}


def _scan(name: str, data: bytes, patterns: Patterns = PATTERNS) -> FileScan:
    return scan_bytes(name, data, patterns)


@pytest.mark.parametrize("case", sorted(FILES))
def test_cells_of_such_a_column_are_left_out_and_counted(case: str) -> None:
    """They are hits without the owner's word, and none with it, in rows, bounds, pages and folders alike."""
    name, data = FILES[case]
    assert _scan(name, data, Patterns(SETS)).hits
    found = _scan(name, data)
    assert (found.hits, found.unread) == ((), ())
    assert {(hit.key_set, hit.column.lower()) for hit in found.left if hit.column} == {("rider.id", "driver")}
    # and so where the plan has key columns of its own
    assert not _scan(name, data, PATTERNS.comparing(key_columns(None))).hits


ELSEWHERE = {
    "another column": lambda rows: [{**rows[0], "note": KEY}, *rows[1:]],
    "an identifier in it": lambda rows: [{**rows[0], "driver": MAIL}, *rows[1:]],
    "more than the number in it": lambda rows: [{**rows[0], "driver": f"call {KEY}"}, *rows[1:]],
    "a column that is called alike": lambda rows: [{**row, "driver_": row["driver"]} for row in rows],
}
WRITERS = {"f.parquet": _parquet, "f.avro": _avro, "f.orc": _orc, "f.csv": _csv, "f.json": _lines}


@pytest.mark.parametrize("name", sorted(WRITERS))
@pytest.mark.parametrize("how", sorted(ELSEWHERE))
def test_the_same_number_elsewhere_still_counts(how: str, name: str) -> None:
    """Beside a cell that is left out, in the same file, too."""
    assert _scan(name, WRITERS[name](ELSEWHERE[how](TEXT))).hits


SMUGGLED = {
    "a member that is told twice": ("f.json", b'{"note":"%s","note":"x","driver":"%s"}\n' % ((KEY.encode(),) * 2)),
    "the same of numbers": ("f.json", b'{"driver":%s,"driver":%s}\n' % ((KEY.encode(),) * 2)),
    "a cell in escapes": ("f.json", b'{"driver":"\\u00374%s","note":"%s","note":""}\n' % (b"x", KEY.encode())),
    "inside of JSON": ("f.csv", b'driver,note\n"{""driver"": %s}",x\n' % KEY.encode()),
    "a row with more cells": ("f.csv", f"driver,note\n{KEY},x,y\n".encode()),
    "no header": ("f.csv", f"{KEY},x\n1,y\n".encode()),
    "a list": ("f.json", json.dumps({"driver": {"id": KEY}}).encode()),
    "behind the rows": ("f.parquet", _parquet(TEXT, compression="none")[:-8] + KEY.encode()),
    "metadata of the file": ("f.parquet", _with_metadata()),
    "a predicate": ("_delta_log/1.json", json.dumps({"commitInfo": {"predicate": f"driver = {KEY}"}}).encode()),
    "a folder of another column": (f"driver_{KEY}/note={KEY}/f.csv", b"a,b\n1,2\n"),
    "a name of a file": (f"driver={KEY}.csv", b"a,b\n1,2\n"),
}


@pytest.mark.parametrize("case", sorted(SMUGGLED))
def test_what_is_not_provably_such_a_cell_counts(case: str) -> None:
    """A place that no decoder gives as a cell of the column is never left out."""
    name, data = SMUGGLED[case]
    found = _scan(name, data)
    assert found.hits or found.unread


def test_bounds_of_another_column_with_the_very_text(tmp_path: Path) -> None:
    """In the footer of a file whose rows were filtered, a stale bound of a neighbour is not the declared column's."""
    data = bytearray(_parquet([{"driver": KEY, "note": "9999999999"}], compression="none", use_dictionary=False))
    where = data.rfind(b"9999999999")  # a bound of `note`
    data[where : where + 10] = KEY.encode()
    (tmp_path / "f.parquet").write_bytes(data)
    assert scan_tree(tmp_path, PATTERNS).with_person


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_short_numbers_are_left_out_in_the_column_and_seen_beside_it(name: str) -> None:
    weak = KeySet(name="rider.id", origin="id", weak=True, values=(("s", "734021"),))
    patterns = Patterns([weak]).leaving_out({"driver": {"rider.id"}})
    rows = [{"driver": "734021", "note": "paid"}, {"driver": "734099", "note": "no"}]
    assert _scan(name, WRITERS[name](rows), Patterns([weak])).hits
    assert not _scan(name, WRITERS[name](rows), patterns).hits
    beside = [{"driver": "734021", "note": "734021"}, *rows[1:]]
    assert {hit.column for hit in _scan(name, WRITERS[name](beside), patterns).hits} >= {"note"}


@pytest.mark.parametrize("partitions", [None, ["driver"]], ids=["bounds", "partitions"])
@pytest.mark.parametrize("kind", [int, str])
def test_a_delta_table_with_a_checkpoint(tmp_path: Path, kind: type, partitions: list[str] | None) -> None:
    """Its bounds may be cut, and stand in statistics and page indexes of the checkpoint itself once more."""
    _table(
        tmp_path / "clean", [{"driver": kind(KEY), "other": kind(9)}, {"driver": kind(9), "other": kind(8)}], partitions
    )
    clean = scan_tree(tmp_path / "clean", PATTERNS)
    assert ([(f.path, f.hits) for f in clean.files if f.hits], clean.unread) == ([], ())
    assert any(file.left for file in clean.files)
    both = [*partitions, "other"] if partitions else None
    rows = [{"driver": kind(KEY), "other": kind(KEY)}, {"driver": kind(9), "other": kind(8)}]
    _table(tmp_path / "beside", rows, both)
    assert [
        f.path for f in scan_tree(tmp_path / "beside", PATTERNS).with_person if f.path.endswith("checkpoint.parquet")
    ]


def _table(place: Path, rows: list[dict[str, Any]], partitions: list[str] | None) -> None:
    for n in range(2):
        write_deltalake(
            place, pa.Table.from_pylist([{**row, "n": n} for row in rows]), mode="append", partition_by=partitions
        )
    DeltaTable(place).create_checkpoint()
