"""A key that is the beginning of another person's key: her bytes gone and the other's present is clean, in every place
that is decoded; where nobody sees a value's end, the other's key still counts.
"""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.hits import FileScan, Form
from pii_tracer.scan.key_boundaries import LONGER
from pii_tracer.scan.value_forms import build_patterns
from tests.scan.decode.test_places import PLACES, manifest
from tests.scan.support import OTHER_USER, PHONE, avro, parquet, scan

HERS, OTHERS = "P-55102", "P-551020"
KEYS = build_patterns([KeySet(name="uid", origin="uid", weak=False, values=(("s", HERS),))])
SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [{"name": "uid", "type": "string"}, {"name": "note", "type": "string"}],
}


def seen(name: str, data: bytes) -> FileScan:
    result = scan(name, data, KEYS)
    assert not result.unread
    return result


def _table(key: str, told: str = "for {}, paid") -> pa.Table:
    kind = pa.struct([("uid", pa.string())])
    return pa.table(
        {
            "uid": pa.array(["A-1", key, key, "Z-9"] * 20),
            "note": pa.array([told.format(key)] * 80),
            "payload": pa.array([json.dumps({"uid": key})] * 80),
            "nested": pa.array([[{"uid": key}]] * 80, pa.list_(kind)),
        }
    )


def _orc(table: pa.Table, compression: str) -> bytes:
    sink = io.BytesIO()
    orc.write_table(table, sink, compression=compression, dictionary_key_size_threshold=1.0)
    return sink.getvalue()


def _delta(key: str) -> bytes:
    stats = json.dumps({"numRecords": 2, "minValues": {"uid": key}, "maxValues": {"uid": key}})
    add = {"path": f"uid={key}/part-0.parquet", "partitionValues": {"uid": key}, "stats": stats}
    info = {"operation": "DELETE", "operationParameters": {"predicate": f"[\"(uid = '{key}')\"]"}}
    return "\n".join(json.dumps(line) for line in ({"commitInfo": info}, {"add": add})).encode()


def _checkpoint(key: str) -> bytes:
    stats = json.dumps({"minValues": {"uid": key}})
    return parquet(pa.table({"add": [{"path": "a", "stats": stats, "stats_parsed": {"minValues": {"uid": key}}}]}))


def made(place: str, key: str, told: str = "for {}, paid") -> tuple[str, bytes]:
    """told: how a text around the key reads."""
    kind, _, option = place.partition(" ")
    if kind == "parquet":
        options: dict[str, Any] = {
            "plain": {"compression": "none", "use_dictionary": False},
            "dictionary": {"compression": "none", "use_dictionary": True},
            "snappy": {"compression": "snappy", "use_dictionary": False},
            "zstd": {"compression": "zstd", "write_page_index": True},
            "delta": {"compression": "none", "use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
            "footer": {"compression": "zstd", "store_schema": False},
        }[option]
        table = _table(key, told)
        if option == "footer":
            table = table.replace_schema_metadata({"note": told.format(key)})
        return "a.parquet", parquet(table, **options)
    if kind == "orc":
        return "a.orc", _orc(_table(key, told), option)
    if kind == "avro":
        row = {"uid": key, "note": told.format(key)}
        return "a.avro", avro(SCHEMA, [row, {"uid": "0", "note": "0"}], metadata={"last": key}, codec=option)
    texts = {
        "csv": ("a.csv", f'uid,note\n{key},"{told.format(key)}"\n{key},{key}\n'),
        "json": ("a.json", json.dumps({"uid": key, "more": [{"t": told.format(key)}]})),
        "ndjson": ("a.json", "\n".join(json.dumps({"uid": k}) for k in (key, "x"))),
    }
    if kind in texts:
        name, text = texts[kind]
        return name, text.encode()
    return {
        "delta log": ("t/_delta_log/00000000000000000001.json", _delta(key)),
        "delta checkpoint": ("t/_delta_log/00000000000000000001.checkpoint.parquet", _checkpoint(key)),
        "iceberg manifest": ("metadata/m0.avro", manifest(1, {3: key.encode()})),
        "iceberg manifest, deleted": ("metadata/m0.avro", manifest(2, {3: key.encode()})),
        "path": (f"t/uid={key}/a.txt", b"-"),
    }[place]


DECODED = [
    *(f"parquet {option}" for option in ("plain", "dictionary", "snappy", "zstd", "delta", "footer")),
    *(f"orc {option}" for option in ("uncompressed", "zlib", "snappy", "zstd")),
    *(f"avro {codec}" for codec in ("null", "deflate", "snappy", "zstandard")),
    "csv",
    "json",
    "ndjson",
    "delta log",
    "delta checkpoint",
    "iceberg manifest",
    "iceberg manifest, deleted",
    "path",
]


@pytest.mark.parametrize("place", DECODED)
def test_red_with_her_key_green_with_the_longer_one(place: str) -> None:
    assert seen(*made(place, HERS)).hits
    assert seen(*made(place, OTHERS)).hits == ()


@pytest.mark.parametrize("place", DECODED)
def test_both_keys_in_one_place_is_red(place: str) -> None:
    """The other's key in the same file must not hide hers."""
    if place.startswith(("parquet", "orc")):
        both = pa.concat_tables([_table(OTHERS), _table(HERS), _table(OTHERS)])
        sink = io.BytesIO()
        if place.startswith("orc"):
            orc.write_table(both, sink, compression=place.split()[1])
            assert seen("a.orc", sink.getvalue()).hits
        else:
            assert seen("a.parquet", parquet(both, compression="none", use_dictionary="dict" in place)).hits
    else:
        assert seen(*made(place, f"{OTHERS} {HERS}")).hits


@pytest.mark.parametrize("place", sorted(set(PLACES) - {
    # ends are not seen here, or the form has none
    "parquet binary", "hudi log delete block, kryo", "hudi log delete block", "puffin blob", "text", "text, hidden file",
    "text, upper case", "url-encoded", "url-encoded, plus", "hex", "base64, alignment 0", "base64, alignment 1",
    "base64, alignment 2", "utf-16", "text in iso 8859-1",
        # nothing proves the encoding: the bytes are searched, too
        "csv in windows-1252",
    # the value is in Arrow's own base64 of the schema as well
    "parquet key-value metadata",
    # made by putting bytes of another length in place of others
    "parquet statistics only",
}))  # fmt: skip
def test_every_decoded_place_is_clean_of_a_longer_number(place: str) -> None:
    name, data = PLACES[place](f"{PHONE}0", OTHER_USER)
    assert scan(name, data).hits == ()


@pytest.mark.parametrize(
    "text",
    [
        HERS,
        f"x{OTHERS}",
        f"{HERS}20261121",
        f"{HERS}0a",
        f"{HERS}a",
        f"{HERS}é",
        f"{HERS}.0",
        f"{HERS}-0",
        f"{OTHERS} {HERS}",
        HERS.lower() + ",",
    ],
)
def test_what_still_counts_in_a_cell(text: str) -> None:
    for name, data in (("a.csv", f"a,b\n{text},2\n".encode()), ("a.parquet", parquet(pa.table({"c": [text]})))):
        assert seen(name, data).hits, name


def test_joined_fields_without_a_delimiter_keep_counting() -> None:
    """A record of fields by position: the amount behind the key is no part of it."""
    for name in ("a.txt", "a.log", "a.csv"):
        assert seen(name, f"{HERS}12 Bengaluru\n".encode()).hits


def test_a_packed_record_in_a_binary_cell_keeps_counting() -> None:
    packed = b"\x07" + HERS.encode() + b"0" + b"q" * 48
    assert seen("a.parquet", parquet(pa.table({"c": [packed]}))).hits


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_raw_bytes_outside_of_what_was_decoded_keep_counting(compression: str) -> None:
    """Her key with a length byte behind it that looks like a digit, in bytes that no reader gives, beside the other's."""
    plain = parquet(_table(OTHERS), compression=compression)
    footer = len(plain) - 8 - int.from_bytes(plain[-8:-4], "little")
    hidden = plain[:footer] + b"\x07" + HERS.encode() + b"0" + b" q" * 24 + plain[footer:]
    assert seen("a.parquet", plain).hits == ()
    assert seen("a.parquet", hidden).strong


def test_cut_bounds_of_her_long_key_are_found_and_of_the_others_are_not() -> None:
    hers, others = "ACCOUNT-0000000000001234567", "ACCOUNT-0000000000091234567"
    patterns = build_patterns([KeySet(name="uid", origin="uid", weak=False, values=(("s", hers),))])
    cut = scan("metadata/m0.avro", manifest(1, {3: hers[:16].encode()}), patterns)
    assert {hit.form for hit in cut.hits} == {Form.PREFIX}
    assert scan("metadata/m0.avro", manifest(1, {3: others.replace("A", "B", 1)[:16].encode()}), patterns).hits == ()
    stats = json.dumps(
        {"add": {"path": "a", "stats": json.dumps({"maxValues": {"uid": (hers * 2)[:32] + "\U0010ffff"}})}}
    )
    long = build_patterns([KeySet(name="uid", origin="uid", weak=False, values=(("s", hers * 2),))])
    assert scan("t/_delta_log/1.json", stats.encode(), long).hits


@given(st.text("0123456789", max_size=LONGER + 3), st.text("ab 0-", max_size=2), st.text("ab -", max_size=2))
def test_the_key_counts_unless_a_few_digits_only_lengthen_it(digits: str, before: str, after: str) -> None:
    text = before + HERS + digits + after
    word_before = before[-1:].isalnum()
    lengthened = 0 < len(digits) <= LONGER and not after[:1].isalnum() and not word_before
    assert bool(scan("a.csv", f"a,b\n{text},1\n".encode(), KEYS).hits) is not lengthened


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_dictionary_entries_that_no_row_uses_are_found(compression: str) -> None:
    """Arrow keeps filtered-out values in the dictionary, and the writer writes them."""
    for key, clean in ((HERS, False), (OTHERS, True)):
        column = pa.array([key, "A-1", OTHERS]).dictionary_encode()
        table = pa.table({"uid": column, "s": pa.StructArray.from_arrays([column], ["uid"])}).slice(1)
        result = seen("a.parquet", parquet(table, compression=compression))
        assert (result.hits == ()) is clean
        assert clean or any(hit.where == "dictionary page" for hit in result.hits)
