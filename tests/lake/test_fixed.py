"""Which columns cannot become NULL, and what expires by itself, as the tables themselves tell it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.delta.table_state import delta_state
from pii_tracer.lake.formats.iceberg.table_state import iceberg_state, schema_defaults
from pii_tracer.lake.formats.plain_files.data_file import data_file
from pii_tracer.lake.formats.plain_files.table_state import folder_state
from pii_tracer.lake.inventory import Expiry
from tests.lake.formats.test_folders import estate


def column(name: str, *, nullable: bool = True, **metadata: Any) -> dict[str, Any]:
    told = {f"delta.{key}": value for key, value in metadata.items()}
    return {"name": name, "type": "long", "nullable": nullable, "metadata": told}


def test_delta_tells_what_cannot_become_null(tmp_path: Path) -> None:
    fields = [
        column("free"),
        column("needed", nullable=False),
        column("made", generationExpression="free + 1"),
        {**column("numbered"), "metadata": {"delta.identity.start": 1}},
        {**column("filled"), "metadata": {"CURRENT_DEFAULT": "2", "EXISTS_DEFAULT": "1"}},
    ]
    schema = json.dumps({"type": "struct", "fields": fields})
    actions = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "x",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema,
                "partitionColumns": [],
                "configuration": {},
            }
        },
    ]
    log = tmp_path / "warehouse" / "t" / "_delta_log" / "00000000000000000000.json"
    log.parent.mkdir(parents=True)
    log.write_text("\n".join(map(json.dumps, actions)))
    state = delta_state(tmp_path / "warehouse" / "t", EstatePaths(estate(), tmp_path)).state
    assert state.fixed == {"needed": "NOT NULL", "made": "a generated column", "numbered": "an identity column"}
    assert state.defaults == (("filled", "2"), ("filled", "1"))


def test_files_of_a_bare_folder_tell_what_cannot_become_null(tmp_path: Path) -> None:
    """In any of them: a column that one of the files needs cannot become NULL in the folder."""

    def found(name: str) -> dict[str, str]:
        folder = tmp_path / "warehouse" / name
        files = tuple(f for f in (data_file(p) for p in sorted(folder.iterdir())) if f)
        state = folder_state(folder, files, EstatePaths(estate(), tmp_path)).state
        return state.fixed if state else {}

    for name in ("parquet", "avro", "csv", "json"):
        (tmp_path / "warehouse" / name).mkdir(parents=True)
    free = pa.table({"id": [1], "note": ["x"]})
    needed = free.cast(pa.schema([("id", pa.int64()), pa.field("note", pa.string(), nullable=False)]))
    pq.write_table(free, tmp_path / "warehouse" / "parquet" / "a.parquet")
    assert found("parquet") == {}
    pq.write_table(needed, tmp_path / "warehouse" / "parquet" / "b.parquet")
    assert found("parquet") == {"note": "NOT NULL"}
    fields = [{"name": "id", "type": ["null", "long"]}, {"name": "note", "type": "string"}]
    with (tmp_path / "warehouse" / "avro" / "a.avro").open("wb") as stream:
        fastavro.writer(stream, {"type": "record", "name": "r", "fields": fields}, [{"id": 1, "note": "x"}])
    assert found("avro") == {"note": "NOT NULL"}
    (tmp_path / "warehouse" / "csv" / "a.csv").write_text("id,note\n1,x\n")
    (tmp_path / "warehouse" / "json" / "a.json").write_text('{"id": 1, "note": "x"}\n')
    assert (found("csv"), found("json")) == ({}, {})


def iceberg(tmp_path: Path) -> tuple[Any, Path]:
    """A table with two snapshots; a tag on the first."""
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField, StringType

    (tmp_path / "warehouse").mkdir()
    catalog = SqlCatalog("t", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("prod")
    fields = NestedField(1, "id", LongType(), required=True), NestedField(2, "note", StringType())
    schema = Schema(*fields, identifier_field_ids=[1])
    table = catalog.create_table("prod.t", schema)
    types = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("note", pa.string())])
    for number in (1, 2):
        table.append(pa.table({"id": [number], "note": ["x"]}, schema=types))
    return table, tmp_path / "warehouse" / "prod" / "t"


def test_iceberg_tells_what_cannot_become_null_and_when_a_tag_lapses(tmp_path: Path) -> None:
    table, folder = iceberg(tmp_path)
    first, second = table.metadata.snapshots
    day = 86_400_000
    table.manage_snapshots().create_tag(first.snapshot_id, "q3", max_ref_age_ms=3 * day).commit()
    table.manage_snapshots().create_tag(second.snapshot_id, "ever").commit()
    state = iceberg_state(folder, EstatePaths(estate(), tmp_path)).state
    assert (state.fixed, state.row_key) == ({"id": "NOT NULL"}, ("id",))
    when = datetime.fromtimestamp(first.timestamp_ms / 1000, timezone.utc) + timedelta(days=3)
    assert {r.name: r.lapses for r in state.refs} == {"ever": None, "q3": when.isoformat()}


def test_iceberg_tells_whether_anything_expires_its_snapshots(tmp_path: Path) -> None:
    table, folder = iceberg(tmp_path)
    paths = EstatePaths(estate(), tmp_path)
    first = table.metadata.snapshots[0]
    due = datetime.fromtimestamp(first.timestamp_ms / 1000, timezone.utc)
    assert iceberg_state(folder, paths).state.expiry == Expiry(ran=False, due=(due + timedelta(days=5)).isoformat())
    with table.transaction() as change:
        change.set_properties({"history.expire.max-snapshot-age-ms": "86400000"})
    assert iceberg_state(folder, paths).state.expiry == Expiry(ran=False, due=(due + timedelta(days=1)).isoformat())
    with table.transaction() as change:
        change.set_properties({"history.expire.min-snapshots-to-keep": "2"})
    assert iceberg_state(folder, paths).state.expiry == Expiry(ran=False), "both are to be kept"
    table.maintenance.expire_snapshots().by_id(first.snapshot_id).commit()
    assert iceberg_state(folder, paths).state.expiry == Expiry(ran=True)


def test_iceberg_tells_what_new_rows_and_old_ones_get() -> None:
    """PyIceberg writes no table of version 3 yet: the fields are read as its metadata has them."""
    from pyiceberg.types import BooleanType, ListType, LongType, MapType, NestedField, StringType, StructType

    inner = StructType(NestedField(3, "id", LongType(), write_default=8))
    fields = (
        NestedField(1, "id", LongType(), initial_default=1, write_default=2),
        NestedField(2, "who", inner),
        NestedField(4, "note", StringType(), write_default="it's"),
        NestedField(5, "on", BooleanType(), initial_default=True, write_default=True),
        NestedField(6, "free", LongType()),
        NestedField(7, "list", ListType(8, inner)),
        NestedField(9, "map", MapType(10, StringType(), 11, inner)),
    )
    told = [("id", "2"), ("id", "1"), ("who", "8"), ("note", "'it''s'"), ("on", "'True'"), ("on", "'True'")]
    told += [("list", "8"), ("map", "8")]
    assert list(schema_defaults(fields)) == told
