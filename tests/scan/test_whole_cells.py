"""Text keys that begin, end or stand inside another's key, where letters follow: in a column by which the plan deletes, a
cell is compared as a whole, as the delete does. The other present and the person gone is clean; the person is found
beside her, and in every other column what looks like the person counts.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.key_boundaries import KeyColumns
from pii_tracer.scan.value_forms import Patterns, build_patterns
from tests.scan.decode.test_places import MANIFEST
from tests.scan.support import avro, avro_value, hfile, hudi_block, hudi_records, parquet, scan

HERS, ASHAK = "asha.rao", "asha.raok"
OTHERS = (
    ASHAK,
    "kasha.rao",
    "ASHA.RAO2",
    "asha.raoé",
    "éasha.rao",
    "asha.rao20261121",
    "xasha.raox",
    "asha.raoasha.rao",
)
EVERYWHERE = build_patterns([KeySet(name="uid", origin="uid", weak=False, values=(("s", HERS),))])
KEYS = EVERYWHERE.comparing(KeyColumns({"uid": ["uid"], "_hoodie_record_key": ["uid"]}))
ROW = {"type": "record", "name": "r", "fields": [{"name": "uid", "type": "string"}, {"name": "note", "type": "string"}]}


def seen(place: tuple[str, bytes], patterns: Patterns = KEYS) -> FileScan:
    """A scan that read all of the file."""
    result = scan(*place, patterns)
    assert not result.unread
    return result


def keys_and_note(keys: Sequence[str], note: str) -> pa.Table:
    """Rows with the keys in `uid`, others around them, and the note in each."""
    return pa.table({"uid": ["A-1", *keys, "Z-9"] * 20, "note": [note] * (len(keys) * 20 + 40)})


PARQUET: dict[str, dict[str, Any]] = {
    "plain": {"compression": "none", "use_dictionary": False},
    "dictionary": {"compression": "none", "use_dictionary": True},
    "snappy": {"compression": "snappy", "use_dictionary": False},
    "snappy dictionary": {"compression": "snappy"},
    "gzip v2": {"compression": "gzip", "data_page_version": "2.0"},
    "none v2": {"compression": "none", "data_page_version": "2.0", "use_dictionary": False},
    "zstd index": {"compression": "zstd", "write_page_index": True},
    "none index": {"compression": "none", "write_page_index": True},
    "brotli": {"compression": "brotli", "write_statistics": False},
    "lz4": {"compression": "lz4"},
    "delta": {"compression": "none", "use_dictionary": False, "column_encoding": {"uid": "DELTA_BYTE_ARRAY"}},
    "delta length": {"compression": "none", "use_dictionary": False, "column_encoding": {"uid": "DELTA_LENGTH_BYTE_ARRAY"}},
}  # fmt: skip


def _delta(keys: Sequence[str], note: str) -> bytes:
    lines = []
    for number, key in enumerate(keys):
        bounds = {"minValues": {"uid": key, "note": note}, "maxValues": {"uid": key, "note": note}}
        stats = json.dumps({"numRecords": 2, **bounds}, ensure_ascii=False)
        path = f"uid={key}/part-{number}.parquet"
        lines.append({"add": {"path": path, "partitionValues": {"uid": key}, "stats": stats}})
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines).encode()


def _checkpoint(keys: Sequence[str], note: str, compression: str) -> bytes:
    rows = []
    for key in keys:
        bounds = {"minValues": {"uid": key, "note": note}, "maxValues": {"uid": key, "note": note}}
        stats = json.dumps({"numRecords": 2, **bounds}, ensure_ascii=False)
        parsed = {"partitionValues_parsed": {"uid": key}, "stats_parsed": bounds}
        rows.append(
            {"path": f"uid={key}/a", "stats": stats, **parsed, "partitionValues": [("uid", key), ("city", "x")]}
        )
    texts = pa.struct([("uid", pa.string()), ("note", pa.string())])
    kind = pa.struct(
        [
            ("path", pa.string()),
            ("stats", pa.string()),
            ("partitionValues_parsed", pa.struct([("uid", pa.string())])),
            ("stats_parsed", pa.struct([("minValues", texts), ("maxValues", texts)])),
            ("partitionValues", pa.map_(pa.string(), pa.string())),
        ]
    )
    return parquet(pa.table({"add": pa.array(rows, kind)}), compression=compression, write_page_index=True)


def _manifest(keys: Sequence[str], note: str, status: int) -> bytes:
    schema = {
        "type": "struct",
        "fields": [{"id": 1, "name": "uid", "type": "string"}, {"id": 2, "name": "note", "type": "string"}],
    }
    entries = []
    for key in keys:
        items = [{"key": 1, "value": key.encode()}, {"key": 2, "value": note.encode()}]
        file = {"file_path": f"data/uid={key}/a.parquet", "file_size_in_bytes": 1, "lower_bounds": items}
        entries.append({"status": status, "data_file": file})
    return avro(MANIFEST, entries, {"schema": json.dumps(schema)}, "deflate")


TEXT = {"type": "record", "name": "StringWrapper", "fields": [{"name": "value", "type": "string"}]}
BOUNDED = [{"name": "columnName", "type": "string"}, {"name": "minValue", "type": TEXT}]
COLUMN_STATS = {
    "type": "record",
    "name": "HoodieMetadataRecord",
    "fields": [
        {"name": "key", "type": "string"},
        {"name": "ColumnStatsMetadata", "type": {"type": "record", "name": "Stats", "fields": BOUNDED}},
    ],
}


def _column_stats(keys: Sequence[str], note: str) -> bytes:
    entries = []
    for column, values in (("uid", keys), ("note", [note])):
        for value in values:
            stats = {"columnName": column, "minValue": {"value": value}}
            entries.append((b"k", avro_value(COLUMN_STATS, {"key": "k", "ColumnStatsMetadata": stats})))
    return hfile(entries, COLUMN_STATS, gz=True)


def _orc(keys: Sequence[str], note: str, compression: str) -> bytes:
    sink = io.BytesIO()
    orc.write_table(keys_and_note(keys, note), sink, compression=compression, dictionary_key_size_threshold=1.0)
    return sink.getvalue()


def _hudi(keys: Sequence[str], note: str) -> bytes:
    """The rows hold the note alone: the keys stand in the footer, as Hudi's base files have them there."""
    sink, table = io.BytesIO(), pa.table({"note": [note]})
    with pq.ParquetWriter(sink, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"hoodie_min_record_key": keys[0], "hoodie_max_record_key": keys[-1]})
    return sink.getvalue()


def made(place: str, keys: Sequence[str], note: str = "paid") -> tuple[str, bytes]:
    """A file with some keys in its key column, and a note in another."""
    kind, _, option = place.partition(" ")
    rows = [{"uid": key, "note": note} for key in keys]
    if kind == "parquet":
        return "a.parquet", parquet(keys_and_note(keys, note), **PARQUET[option])
    if kind == "orc":
        return "a.orc", _orc(keys, note, option)
    if kind == "avro":
        return "a.avro", avro(ROW, rows, codec=option)
    if kind == "json":
        documents = [json.dumps(row, ensure_ascii=False) for row in rows]
        return "a.json", ("\n".join(documents) if option == "lines" else f"[{','.join(documents)}]").encode()
    if kind == "csv":
        cell = '"{}"' if option == "quoted" else "{}"
        return "a.csv", ("uid,note\n" + "".join(f"{cell.format(key)},{note}\n" for key in keys)).encode()
    if place == "hudi log":
        return "t/.a.log.1_0", hudi_block(3, hudi_records(ROW, rows), ROW)
    if place == "hudi footer":
        return "a.parquet", _hudi(keys, note)
    return {
        "hudi column stats": (".hoodie/metadata/column_stats/c.hfile", _column_stats(keys, note)),
        "delta log": ("t/_delta_log/00000000000000000001.json", _delta(keys, note)),
        "delta crc": ("t/_delta_log/00000000000000000001.crc", json.dumps({"allFiles": [json.loads(line)["add"] for line in _delta(keys, note).splitlines()]}, ensure_ascii=False).encode()),
        "delta checkpoint": ("t/_delta_log/00000000000000000001.checkpoint.parquet", _checkpoint(keys, note, "snappy")),
        "delta checkpoint, none": ("t/_delta_log/1.checkpoint.parquet", _checkpoint(keys, note, "none")),
        "iceberg manifest": ("metadata/m0.avro", _manifest(keys, note, 1)),
        "iceberg manifest, deleted": ("metadata/m0.avro", _manifest(keys, note, 2)),
    }[place]  # fmt: skip


PLACES = [
    *(f"parquet {option}" for option in PARQUET),
    *(f"orc {option}" for option in ("uncompressed", "zlib", "snappy", "zstd")),
    *(f"avro {codec}" for codec in ("null", "deflate", "snappy", "zstandard")),
    "csv",
    "csv quoted",
    "json",
    "json lines",
    "hudi log",
    "hudi footer",
    "hudi column stats",
    "delta log",
    "delta crc",
    "delta checkpoint",
    "delta checkpoint, none",
    "iceberg manifest",
    "iceberg manifest, deleted",
]


@pytest.mark.parametrize("place", PLACES)
def test_the_person_is_found_beside_the_longer_keys(place: str) -> None:
    """First the danger: in every place the person alone, and among the others, before and behind them."""
    for keys in ([HERS], [*OTHERS, HERS], [HERS, *OTHERS], [HERS.upper(), *OTHERS], [f" {HERS} ", *OTHERS]):
        assert seen(made(place, keys)).hits, keys


@pytest.mark.parametrize("place", PLACES)
def test_the_longer_keys_alone_are_clean(place: str) -> None:
    for keys in (*([key] for key in OTHERS), OTHERS):
        assert [(hit.where, hit.column) for hit in seen(made(place, keys)).hits] == [], keys


@pytest.mark.parametrize("place", PLACES)
def test_without_key_columns_the_longer_keys_count(place: str) -> None:
    assert seen(made(place, [ASHAK]), EVERYWHERE).hits
    assert seen(made(place, [ASHAK]), EVERYWHERE.comparing(KeyColumns({"note": ["uid"]}))).hits
    assert seen(made(place, [ASHAK]), EVERYWHERE.comparing(KeyColumns({"uid": ["another"]}))).hits


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("note", [HERS, ASHAK, f"for {ASHAK}", f"{ASHAK} and kasha.rao"])
def test_another_column_beside_the_longer_keys_counts(place: str, note: str) -> None:
    """A letter behind a name in a sentence proves nothing, not even where the same word is somebody's key."""
    hits = seen(made(place, OTHERS, note)).hits
    assert any(hit.column in ("note", None) or "note" in str(hit.column) for hit in hits)
