"""What counts as a value, and what only looks like one."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.hits import Form
from pii_tracer.scan.value_forms import build_patterns
from tests.scan.decode.test_places import manifest
from tests.scan.support import BOTH, HASHES, LONG, PHONE, STRONG, USER, parquet, places, scan

TINY = build_patterns([KeySet(name="user_id", origin="user_id", weak=True, values=(("s", "12"),))])
NAMES = build_patterns(
    [
        KeySet(name="name", origin="name", weak=False, values=(("s", "Zoë Ångström"),)),
        KeySet(name="code", origin="code", weak=False, values=(("s", "Lin"),)),
    ]
)


@pytest.mark.parametrize(
    "text",
    [
        "id 8841302 paid",
        "8841302",
        "id=8841302;",
        "user8841302 left",
        "8841302.0",
        "id: 8.841302E6,",
        f"sha256 {hashlib.sha256(b'8841302').hexdigest()}",
    ],
)
def test_weak_numbers_count_between_boundaries(text: str) -> None:
    assert scan("notes.log", text.encode()).weak


@pytest.mark.parametrize(
    "text",
    [
        "18841302",
        "88413020",
        "3.8841302",
        "8841302.5",
        "trace 00f8841302ab00f8841302ab00f8841302",
        "token QUJD8841302REVGR0hJSktM",
    ],
)
def test_weak_numbers_inside_other_things_do_not_count(text: str) -> None:
    assert not scan("notes.log", text.encode()).hits


def test_weak_numbers_in_raw_binary_do_not_count() -> None:
    data = b"\x00\xff\xfe" + struct.pack("<q", USER) + b" 8841302 " + base64.b64encode(b"8841302" * 3)
    assert not scan("a.bin", data).hits


def test_weak_numbers_in_engine_metadata_count_only_as_data() -> None:
    log = {"add": {"path": "p", "size": USER, "modificationTime": USER, "stats": json.dumps({"numRecords": USER})}}
    info = {"commitInfo": {"operationMetrics": {"numOutputBytes": str(USER)}, "timestamp": USER}}
    lines = (json.dumps(log) + "\n" + json.dumps(info)).encode()
    assert not scan("_delta_log/00000000000000000003.json", lines).hits
    assert scan("elsewhere/3.json", lines).weak
    assert not scan("m0.avro", manifest(1, {})).hits


def test_a_partition_folder_in_metadata_belongs_to_its_column() -> None:
    log = {"add": {"path": f"merchant_id={USER}/p.parquet", "partitionValues": {"merchant_id": str(USER)}}}
    hits = places(scan("_delta_log/3.json", json.dumps(log).encode()))
    assert {column for _, _, column in hits} == {"merchant_id"}


def test_a_recorded_predicate_belongs_to_its_column() -> None:
    info = {"commitInfo": {"operationParameters": {"predicate": f'["(merchant_id#192L = {USER})"]'}}}
    assert {c for _, _, c in places(scan("_delta_log/3.json", json.dumps(info).encode()))} == {"merchant_id"}


def test_tiny_numbers_count_as_whole_cells_only() -> None:
    assert not scan("a.log", b"decimal(12,2) 12 times", TINY).hits
    assert scan("a.csv", b"id,v\n12,x\n", TINY).weak
    assert scan("a.csv", b"id,v\n12.0,x\n", TINY).weak  # a column of numbers in which some are missing
    assert scan("a.parquet", parquet(pa.table({"p": ["12.00"]})), TINY).weak
    assert not scan("a.csv", b"id,v\n12.05,x\n112.0,x\n-12.0,x\n", TINY).hits
    assert scan("a.json", b'{"id": 12}', TINY).weak
    assert scan("a.parquet", parquet(pa.table({"p": ['{"user": {"id": 12}}']})), TINY).weak
    assert scan("a.parquet", parquet(pa.table({"p": ["12"]})), TINY).weak
    info = {"commitInfo": {"operationParameters": {"predicate": '["(id#192L = 12)"]'}}, "schema": "decimal(12,2)"}
    assert [h.column for h in scan("_delta_log/3.json", json.dumps(info).encode(), TINY).hits] == ["id"]


def test_a_number_of_a_gigabyte_is_nobody() -> None:
    """Made a whole number, it would take minutes."""
    line = f'{{"a": 1e999999999, "b": -1E+999999999, "c": {USER}e0}}\n'.encode()
    assert {column for _, _, column in places(scan("a.json", line))} == {"c"}


def test_short_words_count_between_boundaries() -> None:
    assert scan("a.log", b"dear Lin, hello", NAMES).hits
    assert not scan("a.log", b"Linux, Berlin, linen", NAMES).hits


@pytest.mark.parametrize(
    "text", ["zoë ångström", "ZOË ÅNGSTRÖM", "Zoe\u0308 A\u030angstro\u0308m", '"Zo\\u00eb \\u00c5ngstr\\u00f6m"']
)
def test_names_in_any_case_and_normal_form(text: str) -> None:
    assert {hit.key_set for hit in scan("a.log", text.encode(), NAMES).hits} == {"name"}


def test_cut_bounds_of_long_values() -> None:
    patterns = build_patterns([HASHES])
    lower, upper = LONG[:16], LONG[:15] + chr(ord(LONG[15]) + 1)
    for bound in (lower, upper):
        hits = scan("m0.avro", manifest(2, {3: bound.encode()}), patterns).hits
        assert [hit.form for hit in hits] == [Form.PREFIX]
    for other in (LONG[:15] + "0", LONG[:14], "f" * 16):
        assert not scan("m0.avro", manifest(2, {3: other.encode()}), patterns).hits
    for bound in (LONG[:32], LONG[:32] + "\x7f", LONG[:32] + "\U0010ffff"):
        line = {"add": {"path": "p", "stats": json.dumps({"maxValues": {"h": bound}})}}
        assert scan("_delta_log/1.json", json.dumps(line).encode(), patterns).hits
    assert not scan("notes.log", lower.encode(), patterns).hits


def test_keys_from_data_are_not_repeated_as_labels() -> None:
    stranger = "+91 90000 77777"
    data = json.dumps({stranger: {"phone": PHONE}, PHONE: 1}).encode()
    result = scan("a.json", data)
    assert result.strong
    assert stranger not in result.model_dump_json()
    assert PHONE not in result.model_dump_json()
    headerless = scan("a.csv", f"{stranger},Bengaluru\nx,{PHONE}\n".encode())
    assert [hit.column for hit in headerless.hits] == ["_c1"]


def test_dates_are_searched_as_text() -> None:
    import datetime

    patterns = build_patterns([KeySet(name="born", origin="born", weak=False, values=(("s", "1990-02-28"),))])
    table = pa.table({"d": pa.array([datetime.date(1990, 2, 28)])})
    assert scan("a.parquet", parquet(table, write_statistics=False), patterns).hits


def test_position_deletes_are_row_numbers() -> None:
    table = pa.table({"file_path": ["data/a.parquet"], "pos": [USER]})
    assert not scan("data/x-deletes.parquet", parquet(table)).hits


_WORD = rb"[0-9A-Za-z\x80-\xff]"
_PHONE = re.escape(PHONE).encode()
_HELD = re.compile(rb"(?<=%s)%s|%s(?!\d{1,5}(?!%s))" % (_WORD, _PHONE, _PHONE, _WORD))


def _holds(text: str) -> bool:
    """The rule as one pattern: the value, unless it only begins a number that is somewhat longer."""
    return _HELD.search(text.encode()) is not None


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12)
CELLS = st.one_of(
    WORDS,
    st.just(PHONE),
    st.tuples(WORDS, WORDS).map(lambda w: w[0] + PHONE + w[1]),
    st.tuples(WORDS, st.integers(0, 10**7)).map(lambda w: f"{w[0]} {PHONE}{w[1]}"),
    st.just(json.dumps({"phone": PHONE})),
    st.none(),
)
NUMBERS = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.sampled_from([USER, USER - 1, -USER, USER * 10]))
CODECS = st.sampled_from(["none", "snappy", "gzip", "zstd", "lz4", "brotli"])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows=st.lists(st.tuples(CELLS, NUMBERS, st.lists(CELLS, max_size=3)), max_size=12),
    codec=CODECS,
    dictionary=st.booleans(),
    statistics=st.booleans(),
)
def test_parquet_agrees_with_a_slow_obvious_search(
    rows: list[tuple[str | None, int | None, list[str | None]]], codec: str, dictionary: bool, statistics: bool
) -> None:
    table = pa.table(
        {
            "text": pa.array([r[0] for r in rows], pa.string()),
            "number": pa.array([r[1] for r in rows], pa.int64()),
            "nested": pa.array([[{"t": v} for v in r[2]] for r in rows], pa.list_(pa.struct([("t", pa.string())]))),
        }
    )
    options = {"compression": codec, "use_dictionary": dictionary, "write_statistics": statistics, "row_group_size": 5}
    result = scan("a.parquet", parquet(table, **options))
    assert not result.unread
    texts = [r[0] for r in rows] + [value for r in rows for value in r[2]]
    assert bool(result.strong) == any(_holds(text) for text in texts if text)
    cells = {h.column: h.count for h in result.hits if h.where == "data"}
    expected = sum(1 for r in rows if r[1] == USER)
    assert cells.get("number", 0) == expected


@settings(deadline=None)
@given(before=st.binary(max_size=40), after=st.binary(max_size=40), value=st.text("abcdef0123456789+ ñ漢", min_size=8))
def test_any_embedding_of_a_strong_value_is_found(before: bytes, after: bytes, value: str) -> None:
    patterns = build_patterns([KeySet(name="k", origin="k", weak=False, values=(("s", value),))])
    body = before + value.encode() + after
    assert patterns.raw(body)
    assert patterns.raw(base64.b64encode(body))
    assert patterns.raw(base64.urlsafe_b64encode(body))
    assert patterns.raw(body.hex().upper().encode())
    assert value not in patterns.mask(value)


@settings(deadline=None)
@given(data=st.binary(max_size=200))
def test_hostile_bytes_never_break_a_scan(data: bytes) -> None:
    for head in (
        b"",
        b"PAR1",
        b"ORC",
        b"Obj\x01",
        b"#HUDI#",
        b"PFA1",
        b"DATABLK*",
        b"\x1f\x8b",
        b"\x28\xb5\x2f\xfd",
        b"{",
    ):
        scan("a.bin", head + data, STRONG)
    scan("_delta_log/1.json", data, BOTH)


@pytest.mark.parametrize(
    "value", ["andré.zoë@x.example", "+919845012345", "o'neil+news@x.example", "名字四个@x.example"]
)
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("markup", [False, True])
def test_escapes_of_json_in_json(value: str, depth: int, markup: bool) -> None:
    def written(text: str) -> bytes:
        for level in range(depth):
            text = json.dumps({"v": text})
            for sign in "+&'<>`" if markup and level == 0 else "":
                text = text.replace(sign, f"\\u{ord(sign):04X}")
        return text.encode()

    patterns = build_patterns([KeySet(name="u.mail", origin="u.mail", weak=False, values=(("s", value),))])
    twin = value[0] + ("8" if value[1].isdigit() else "q") + value[2:]
    assert patterns.raw(written(value))
    assert not patterns.raw(written(twin))
