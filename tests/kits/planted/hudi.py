"""A value in each place of a Hudi table's timeline and properties, and of its folder. The table is made by hand.

https://hudi.apache.org/tech-specs/, table version 6: commits are JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.kits.planted.estate import HERS, MAIL, OTHERS, Plant, Planted, Step, beside, leaves, with_value

_AT = "20261101000000000"
_COMMIT = f".hoodie/{_AT}.commit"
_PROPERTIES = ".hoodie/hoodie.properties"
_IDS = ("7d3f3c3e-6a53-4bd6-8b29-5a9b1b1f0c11-0", "8d3f3c3e-6a53-4bd6-8b29-5a9b1b1f0c11-0")
_ROWS = (HERS, OTHERS)
_TOLD = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
    "hoodie.table.recordkey.fields": "cust",
    "hoodie.table.precombine.field": "note",
    "hoodie.table.base.file.format": "PARQUET",
    "hoodie.populate.meta.fields": "true",
    "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.archivelog.folder": "archived",
}


def _file(number: int) -> str:
    return f"{_IDS[number]}_{number}-1-1_{_AT}.parquet"


def base_file(number: int, folder: Path, **told: str) -> None:
    """File group 0 has a row of hers, 1 those of other people. told: more entries of the footer."""
    rows = _ROWS[number]
    size, keys = rows.num_rows, sorted(rows["cust"].to_pylist())
    own = {
        "_hoodie_commit_time": [_AT] * size,
        "_hoodie_commit_seqno": [f"{_AT}_{number}_{row}" for row in range(size)],
        "_hoodie_record_key": rows["cust"],
        "_hoodie_partition_path": [""] * size,
        "_hoodie_file_name": [_file(number)] * size,
    }
    table = pa.table({**own, **{name: rows[name] for name in rows.column_names}})
    footer = {"hoodie_min_record_key": keys[0], "hoodie_max_record_key": keys[-1], **told}
    pq.write_table(table.replace_schema_metadata(footer), folder / _file(number))


def build(base: Path, name: str) -> Path:
    folder = base / "lake" / name
    (folder / ".hoodie").mkdir(parents=True)
    _write_properties(folder, _TOLD)
    fields = [{"name": c, "type": ["null", "string"], "default": None} for c in HERS.column_names]
    stats = [
        {"fileId": _IDS[n], "path": _file(n), "prevCommit": "null", "numWrites": 2, "partitionPath": ""} for n in (0, 1)
    ]
    commit = {
        "partitionToWriteStats": {"": stats},
        "compacted": False,
        "extraMetadata": {"schema": json.dumps({"type": "record", "name": "r", "fields": fields}), "x": "y"},
        "operationType": "BULK_INSERT",
    }
    (folder / _COMMIT).write_text(json.dumps(commit))
    (folder / f"{_COMMIT}.requested").touch()
    (folder / f"{_COMMIT}.inflight").write_text("{}")
    (folder / ".hoodie_partition_metadata").write_text(f"commitTime={_AT}\npartitionDepth=0\n")
    for number in (0, 1):
        base_file(number, folder)
    return folder


def _write_properties(folder: Path, told: Mapping[str, str]) -> None:
    (folder / _PROPERTIES).write_text("".join(f"{name}={value}\n" for name, value in told.items()))


def in_commit(path: tuple[Step, ...], folder: Path) -> None:
    file = folder / _COMMIT
    file.write_text(json.dumps(with_value(json.loads(file.read_text()), path)))


def in_property(name: str, folder: Path) -> None:
    _write_properties(folder, {**_TOLD, name: MAIL})


def in_footer(number: int, folder: Path) -> None:
    base_file(number, folder, told=MAIL)


def plants(template: Path) -> Mapping[str, Plant]:
    commit = json.loads((template / _COMMIT).read_text())
    found: dict[str, Plant] = {
        f"commit {'.'.join(map(str, path))}": partial(in_commit, path) for path in leaves(commit)
    }
    found |= {f"property {name}": partial(in_property, name) for name in (*_TOLD, "more")}
    for name in (
        ".hoodie/.aux/notes",
        ".hoodie/.temp/x/notes.marker",
        ".hoodie/archived/.commits_.archive.1_1-0-1",
        ".hoodie/.schema/x.schemacommit",
        ".hoodie/.index_defs/index.json",
        ".hoodie/.bucket_index/x",
        ".hoodie/.locks/x",
        f"{_COMMIT}.crc",
        f"{_COMMIT}.inflight",
        f"{_PROPERTIES}.backup",
        ".hoodie/metadata/.hoodie/x",
        ".hoodie/metadata/column_stats/x",
        ".hoodie_partition_metadata",
        "notes.txt",
        "_SUCCESS",
        "stray.parquet",
        f".{_file(1)}.crc",
        f"{_file(1)}.tmp",
        f"{_IDS[0]}.bak",
        f".{_IDS[0]}_{_AT}.log.1_0-1-1",
    ):
        found[f"file {name}"] = partial(beside, name)
    return found | {"footer of hers": partial(in_footer, 0), "footer of others": partial(in_footer, 1)}


HUDI = Planted(
    kind="hudi",
    build=build,
    plants=plants,
    taken={r"file \.hoodie/metadata/.*": "hudi_rebuild_metadata", "footer of hers": "hudi_clean"},
    quick=(
        "commit extraMetadata.x",
        "commit extraMetadata.schema.name",
        "property more",
        f"file {_IDS[0]}.bak",
        f"file .{_file(1)}.crc",
        f"file .{_IDS[0]}_{_AT}.log.1_0-1-1",
        "footer of others",
    ),
)
