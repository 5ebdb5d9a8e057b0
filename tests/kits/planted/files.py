"""A value in each place beside the rows of bare files, and in files beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from executors.formats.plain_files.orc_tail import put_notes
from tests.kits.planted.estate import HERS, MAIL, OTHERS, Plant, Planted, beside

_AVRO = {"type": "record", "name": "row", "fields": [{"name": n, "type": "string"} for n in HERS.column_names]}
_WITH_ENTRIES = ("parquet", "orc", "avro")


def write(kind: str, file: Path, rows: pa.Table, note: str | None = None) -> None:
    """Some rows. note: an entry of the file's own metadata."""
    told = None if note is None else {"exported for": note}
    records = rows.to_pylist()
    if kind == "parquet":
        pq.write_table(rows.replace_schema_metadata(told), file)
    elif kind == "avro":
        with file.open("wb") as stream:
            fastavro.writer(stream, _AVRO, records, metadata=told)
    elif kind == "orc":
        orc.write_table(rows, file)
        if note is not None:
            tail: Any = SimpleNamespace(
                user=(_field(5, _field(1, b"exported for") + _field(2, note.encode())),), calendar=()
            )
            put_notes(file, tail)
    elif kind == "csv":
        file.write_text("cust,note\n" + "".join(f"{row['cust']},{row['note']}\n" for row in records))
    else:
        file.write_text("".join(f"{json.dumps(row)}\n" for row in records))


def _field(number: int, content: bytes) -> bytes:
    """A field of Protocol Buffers with bytes, shorter than 128."""
    return bytes([number << 3 | 2, len(content)]) + content


def build(kind: str, base: Path, name: str) -> Path:
    folder = base / "lake" / name
    folder.mkdir(parents=True)
    write(kind, folder / f"a.{kind}", HERS)
    write(kind, folder / f"b.{kind}", OTHERS)
    return folder


def with_entry(kind: str, name: str, rows: pa.Table, folder: Path) -> None:
    write(kind, folder / name, rows, MAIL)


def one_more_line(name: str, line: str, folder: Path) -> None:
    with (folder / name).open("a") as stream:
        stream.write(f"{line}\n")


def renamed(name: str, folder: Path) -> None:
    (folder / name).rename(folder / f"{MAIL}{Path(name).suffix}")


def summary(name: str, folder: Path) -> None:
    pq.write_metadata(HERS.schema.with_metadata({"exported for": MAIL}), folder / name)


def stale_entry(name: str, rows: pa.Table, folder: Path) -> None:
    """A dictionary's entry that no row uses."""
    notes = pa.array([MAIL, *rows["note"].to_pylist()]).dictionary_encode().slice(1)
    pq.write_table(rows.set_column(1, "note", notes), folder / name)


def plants(kind: str, template: Path) -> Mapping[str, Plant]:
    names = {"hers": f"a.{kind}", "others": f"b.{kind}"}
    found: dict[str, Plant] = {f"name of {whose}": partial(renamed, name) for whose, name in names.items()}
    for name in (
        "_SUCCESS",
        "_committed_1",
        "_started_1",
        f".a.{kind}.crc",
        f".b.{kind}.crc",
        ".gone.crc",
        ".a.swp",
        "_metadata",
        "_common_metadata",
        "_temporary/0/x",
        "_spark_metadata/0",
        "_pii_tracer_x",
        "x.tmp",
        "notes.txt",
        "#a#",
        ".DS_Store",
    ):
        found[f"file {name}"] = partial(beside, name)
    if kind in _WITH_ENTRIES:
        for whose, rows in (("hers", HERS), ("others", OTHERS)):
            found[f"entry of {whose}"] = partial(with_entry, kind, names[whose], rows)
    if kind == "parquet":
        for name in ("_metadata", "_common_metadata"):
            found[f"file {name}"] = partial(summary, name)
        for whose, rows in (("hers", HERS), ("others", OTHERS)):
            found[f"dictionary of {whose}"] = partial(stale_entry, names[whose], rows)
    lines = {"csv": f"# {MAIL}", "json": json.dumps({"other": MAIL})}
    if kind in lines:
        found |= {f"line of {whose}": partial(one_more_line, name, lines[kind]) for whose, name in names.items()}
    return found


def planted(kind: str) -> Planted:
    """Those of a kind of file."""
    taken = {r"dictionary of \w+": "files_rewrite"} if kind == "parquet" else {}
    quick = ("entry of hers", "entry of others", "file _SUCCESS", "file _metadata", f"file .b.{kind}.crc")
    return Planted(kind=kind, build=partial(build, kind), plants=partial(plants, kind), taken=taken, quick=quick)
