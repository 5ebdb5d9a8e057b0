"""Dropping rows from one object's bytes: the person's go, everybody else's stay as they were."""

from __future__ import annotations

import csv
import datetime
import decimal
import gzip
import io
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from executors.formats.plain_files.arrow_match import RowsError, json_member
from executors.formats.plain_files.parquet_rewrite import _options
from pii_tracer.model.datasets import (
    FieldAccess,
    Format,
    JsonAccess,
    Match,
    MatchTerm,
)
from pii_tracer.model.number_keys import spellings
from tests.executors.formats.plain_files.alone import drop_rows
from tests.s3support import PERSON, WEAK, parquet

KEYS = {"user_id": spellings([PERSON]), "short": spellings([WEAK])}
STRONG = frozenset({PERSON})
HERS = UUID("6f1b2c3d-8a9e-4b7c-a1d2-0e3f4a5b6c7d")
DEEP = pa.struct([("x", pa.list_(pa.list_(pa.float32()))), ("m", pa.map_(pa.string(), pa.float64()))])


def by(column: str, *access: Any, key_set: str = "user_id") -> Match:
    return Match(terms=(MatchTerm(column=column, access=access, key_set=key_set, type="string"),))


def drop(data: bytes, match: Match, kind: Format = Format.PARQUET) -> Any:
    return drop_rows(data, kind, match, KEYS, STRONG)


def rows(data: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(io.BytesIO(data)).to_pylist()
    return found


def test_nanoseconds_beside_what_is_no_number_are_written_again() -> None:
    """What pandas writes. The copy was compared by its print, for which nanoseconds need pandas."""
    nan = float("nan")
    columns = {
        "user_id": pa.array([int(PERSON), 5, 6]),
        "at": pa.array([1, 1_700_000_000_123_456_789, None], pa.timestamp("ns")),
        "score": pa.array([nan, nan, 1.0]),
        "half": pa.array([1, nan, None], pa.float16()),
        "deep": pa.array([{"x": [[nan]], "m": [("k", nan)]}] * 3, DEEP),
        "name": pa.array(["a", "b", "c"]).dictionary_encode(),
    }
    kept = pa.table(columns).slice(1)
    done = pq.read_table(io.BytesIO(drop(parquet(pa.table(columns)), by("user_id")).data))
    assert done["at"].cast(pa.int64()).equals(kept["at"].cast(pa.int64()))
    assert repr(done.drop(["at"]).to_pylist()) == repr(kept.drop(["at"]).to_pylist())


def test_text_in_views_is_written_again_as_such() -> None:
    """What an Arrow schema in the file asks for, as Polars writes it; Arrow takes no single rows out of views."""
    views = pa.array(["a", None, "c"]).cast(pa.string_view())
    columns = {
        "user_id": pa.array([PERSON, "5", "6"]).cast(pa.string_view()),
        "note": views,
        "raw": pa.array([b"a", None, b"c"]).cast(pa.binary_view()),
        "tags": pa.array([["a"], [None], None], pa.list_(pa.string_view())),
        "who": pa.StructArray.from_arrays([views], ["name"]),
    }
    kept = pa.table(columns).to_pylist()[1:]
    done = pq.read_table(io.BytesIO(drop(parquet(pa.table(columns)), by("user_id")).data))
    assert done.schema.types == [column.type for column in columns.values()]
    assert done.to_pylist() == kept


@pytest.mark.parametrize("kind", [Format.PARQUET, Format.CSV])
def test_an_object_without_bytes_holds_nobody(kind: Format) -> None:
    done = drop(b"", by("user_id"), kind)
    assert (done.data, done.rows_before, done.rows_after) == (None, 0, 0)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_compressed_nothing_holds_nobody(pack: Any) -> None:
    done = drop(pack(b""), by("user_id"), Format.CSV)
    assert (done.data, done.rows_before, done.rows_after) == (None, 0, 0)


def test_a_uuid_is_compared_as_it_is_written() -> None:
    column = pa.array([HERS.bytes, UUID(int=HERS.int + 1).bytes, None], pa.uuid())
    match = Match(terms=(MatchTerm(column="sid", key_set="sid", type="extension<arrow.uuid>"),))
    keys = {"sid": frozenset({str(HERS)})}
    done = drop_rows(parquet(pa.table({"sid": column})), Format.PARQUET, match, keys, keys["sid"])
    assert pq.read_table(io.BytesIO(done.data))["sid"].to_pylist() == [UUID(int=HERS.int + 1), None]


def test_schema_codec_metadata_row_groups_and_order_stay() -> None:
    schema = pa.schema(
        [
            pa.field("user_id", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "7"}),
            pa.field("amount", pa.decimal128(10, 2)),
            pa.field("tags", pa.list_(pa.string())),
            pa.field("at", pa.timestamp("us", tz="UTC")),
            pa.field("score", pa.float64()),
        ],
        metadata={"writer": "job 7"},
    )
    at = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    cells = [
        {"user_id": i, "amount": decimal.Decimal("1.50"), "tags": ["a", None], "at": at, "score": float("nan")}
        for i in (5, 3, int(PERSON), 9, int(PERSON), 1)
    ]
    old = pa.Table.from_pylist(cells, schema)
    data = parquet(old, compression={"user_id": "zstd", "amount": "snappy"}, row_group_size=2)
    kept = drop(data, by("user_id"))
    assert (kept.rows_before, kept.rows_after) == (6, 4)
    before, after = pq.ParquetFile(io.BytesIO(data)), pq.ParquetFile(io.BytesIO(kept.data))
    assert after.schema.equals(before.schema)
    assert after.schema_arrow.equals(before.schema_arrow, check_metadata=True)
    assert after.metadata.metadata[b"writer"] == b"job 7"
    assert [after.metadata.row_group(0).column(i).compression for i in (0, 1)] == ["ZSTD", "SNAPPY"]
    assert [row["user_id"] for row in rows(kept.data)] == [5, 3, 9, 1]
    assert PERSON.encode() not in kept.data


def test_an_object_that_spark_wrote_comes_out_as_spark_wrote_it() -> None:
    """INT96 timestamps, decimals as integers, nested types, and Spark's own key-value metadata."""
    data = (Path(__file__).parent / "data" / "spark35.parquet").read_bytes()
    kept = drop_rows(data, Format.PARQUET, by("user_id"), {"user_id": frozenset({"2"})}, frozenset())
    before, after = pq.ParquetFile(io.BytesIO(data)), pq.ParquetFile(io.BytesIO(kept.data))
    assert str(after.schema).splitlines()[2:] == str(before.schema).splitlines()[2:]
    assert {after.schema.column(i).physical_type for i in range(len(after.schema))} >= {"INT96", "INT32", "INT64"}
    assert after.metadata.metadata == before.metadata.metadata
    assert after.metadata.row_group(0).column(0).compression == "ZSTD"
    assert rows(kept.data) == [row for row in rows(data) if row["user_id"] != 2]


def test_a_layout_that_cannot_be_written_again_is_refused() -> None:
    """Arrow writes all timestamps of a file in one way; a file with both kinds would come out changed."""
    both = {"a": pa.array([1], pa.timestamp("us")), "user_id": [PERSON]}
    sink = io.BytesIO()
    schema = pa.schema([("a", pa.timestamp("us")), ("user_id", pa.string())])
    with pq.ParquetWriter(sink, schema, use_deprecated_int96_timestamps=True) as writer:
        writer.write_table(pa.table(both))
    source = pq.ParquetFile(sink)
    options = _options(source, compliant=True) | {"use_deprecated_int96_timestamps": False}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("executors.formats.plain_files.parquet_rewrite._options", lambda *_: options)
        with pytest.raises(RowsError, match="cannot be written back"):
            drop(sink.getvalue(), by("user_id"))


def test_int96_timestamps_stay_int96() -> None:
    """Spark 3.5 writes timestamps as INT96."""
    old = pa.table({"user_id": [PERSON, "2"], "at": pa.array([1, 1_700_000_000_000_123], pa.timestamp("us"))})
    data = parquet(old, use_deprecated_int96_timestamps=True)
    kept = drop(data, by("user_id"))
    written = pq.ParquetFile(io.BytesIO(kept.data))
    assert written.schema.equals(pq.ParquetFile(io.BytesIO(data)).schema)
    assert rows(kept.data) == rows(data)[1:]


def test_a_dictionary_column_does_not_keep_the_dropped_value() -> None:
    """Filtering an Arrow table keeps its dictionary, and Parquet writes it out: the naive way leaves the person."""
    old = pa.table({"user_id": pa.array([PERSON, "2", "3"]).dictionary_encode()})
    naive = parquet(old.filter(pa.array([False, True, True])), compression="none")
    assert PERSON.encode() in naive
    kept = drop(parquet(old, compression="none"), by("user_id"))
    assert PERSON.encode() not in kept.data
    assert [row["user_id"] for row in rows(kept.data)] == ["2", "3"]
    # and an object that somebody else left like that is written anew
    mended = drop(naive, by("user_id"))
    assert mended.stale
    assert PERSON.encode() not in mended.data
    hidden = drop(parquet(old.filter(pa.array([False, True, True])), compression="zstd"), by("user_id"))
    assert hidden.stale


@pytest.mark.parametrize("longer", ["asha.raok", "kasha.rao", "asha.rao2", "asha.raoé"])
def test_bounds_of_another_with_a_longer_key_leave_nothing_of_the_person(longer: str) -> None:
    """In the columns that the match compares; a bound of another column may be the person and something beside it."""
    keys = {"handle": frozenset({"asha.rao"})}

    def stale(table: dict[str, list[str]], match: Match) -> bool:
        return drop_rows(parquet(pa.table(table)), Format.PARQUET, match, keys, keys["handle"]).stale

    handle, other = by("handle", key_set="handle"), by("other", key_set="handle")
    assert not stale({"handle": [longer, "z"], "other": ["x", "y"]}, handle)
    assert stale({"handle": [longer, "z"], "other": ["x", "y"]}, other)
    assert stale({"handle": [longer, "z"], "other": ["x", longer]}, handle)
    assert stale({"handle": ["asha.rao, kasha.rao", "z"], "other": ["x", "y"]}, handle)
    assert stale({"handle": [f"{longer} asha.rao", "z"], "other": ["x", "y"]}, handle)


def test_nested_fields_json_members_and_weak_keys() -> None:
    old = pa.table(
        {
            "who": pa.array([{"id": int(PERSON)}, {"id": 2}, None], pa.struct([("id", pa.int64())])),
            "doc": ['{"a": {"id": 2}}', '{"a": {"id": ' + PERSON + "}}", "not json"],
            "Short": pa.array([1, 2, int(WEAK)], pa.int32()),
        }
    )
    data = parquet(old)
    assert [r["Short"] for r in rows(drop(data, by("who", FieldAccess(name="ID"))).data)] == [2, int(WEAK)]
    assert [r["Short"] for r in rows(drop(data, by("doc", JsonAccess(path=("a", "id")))).data)] == [1, int(WEAK)]
    assert [r["Short"] for r in rows(drop(data, by("short", key_set="short")).data)] == [1, 2]
    both = Match(terms=by("doc", JsonAccess(path=("a", "id"))).terms + by("gone", key_set="short").terms)
    kept = drop(data, both)
    assert kept.missing == ("gone",)


def test_types_that_spark_writes_otherwise_are_refused() -> None:
    with pytest.raises(RowsError, match="the step cannot compare"):
        drop(parquet(pa.table({"user_id": [datetime.datetime(2026, 1, 1)]})), by("user_id"))


@pytest.mark.parametrize("kind", [pa.float64(), pa.decimal128(20, 2), pa.string()])
def test_a_number_is_the_same_key_in_whatever_type_it_is_kept(kind: pa.DataType) -> None:
    values = [decimal.Decimal(f"{PERSON}.0"), decimal.Decimal(f"{PERSON}.5"), None]
    table = pa.table({"user_id": pa.array(values, pa.decimal128(20, 1)).cast(kind)})
    assert [r["user_id"] for r in rows(drop(parquet(table), by("user_id")).data)] == table["user_id"].to_pylist()[1:]


def test_an_object_without_any_match_column_is_refused_not_called_clean() -> None:
    with pytest.raises(RowsError, match="no column of the match"):
        drop(parquet(pa.table({"other": [PERSON]})), by("user_id"))
    with pytest.raises(RowsError, match="no column of the match"):
        drop(b"other\n1\n", by("user_id"), Format.CSV)


@pytest.mark.parametrize("data", [b"P", b"PAR1 " + PERSON.encode() + b" PAR1"])
def test_a_broken_object_is_an_error_without_its_content(data: bytes) -> None:
    with pytest.raises(RowsError) as caught:
        drop(data, by("user_id"))
    assert PERSON not in str(caught.value)


def test_when_all_rows_go_an_empty_object_with_the_schema_stays() -> None:
    kept = drop(parquet(pa.table({"user_id": [PERSON]})), by("user_id"))
    assert pq.read_table(io.BytesIO(kept.data)).schema.names == ["user_id"]
    assert kept.rows_after == 0


CSV = f'user_id,note\r\n1,"a, ""b""\r\nc"\r\n{PERSON},x\r\n"3",é\r\n'


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.ZstdCompressor().compress])
def test_csv_lines_of_others_are_kept_byte_for_byte(pack: Any) -> None:
    kept = drop(pack(CSV.encode()), by("USER_ID"), Format.CSV)
    unpack = {bytes: bytes, gzip.compress: gzip.decompress}.get(pack, zstandard.ZstdDecompressor().decompress)
    wanted = CSV.replace(f"{PERSON},x\r\n", "").encode()
    if pack is not bytes and pack is not gzip.compress:
        assert zstandard.ZstdDecompressor().decompressobj().decompress(kept.data) == wanted
    else:
        assert unpack(kept.data) == wanted
    assert (kept.rows_before, kept.rows_after) == (3, 2)


def test_compressed_csv_of_several_members_loses_nobody() -> None:
    parts = [b"user_id\n1\n", PERSON.encode() + b"\n2\n"]
    pack = zstandard.ZstdCompressor().compress
    kept = drop(b"".join(map(pack, parts)), by("user_id"), Format.CSV)
    assert zstandard.ZstdDecompressor().decompressobj().decompress(kept.data) == b"user_id\n1\n2\n"
    kept = drop(b"".join(map(gzip.compress, parts)), by("user_id"), Format.CSV)
    assert gzip.decompress(kept.data) == b"user_id\n1\n2\n"


def test_csv_as_spark_escapes_it() -> None:
    text = f'user_id,note\n1,"say \\"hi, you\\""\n{PERSON},"\\"x"\n2,z\n'
    kept = drop(text.encode(), by("user_id"), Format.CSV)
    assert kept.data.decode() == 'user_id,note\n1,"say \\"hi, you\\""\n2,z\n'


def test_a_backslash_outside_of_quotes_is_one_of_the_keys_characters() -> None:
    """As Spark writes and reads it, in a file in which quotes are escaped by backslashes."""
    text = 'user_id,note\nback\\slash,"say \\"hi\\""\nbackslash,x\n'
    keys = {"k": frozenset({"back\\slash"})}
    match = Match(terms=(MatchTerm(column="user_id", key_set="k", type="string"),))
    kept = drop_rows(text.encode(), Format.CSV, match, keys, frozenset())
    assert kept.data is not None
    assert kept.data.decode() == "user_id,note\nbackslash,x\n"
    other = drop_rows(text.encode(), Format.CSV, match, {"k": frozenset({"backslash"})}, frozenset())
    assert other.data is not None
    assert other.data.decode() == 'user_id,note\nback\\slash,"say \\"hi\\""\n'


def test_a_whole_number_is_the_same_however_csv_has_it() -> None:
    others = f"1.0,a\n{PERSON}.5,b\n0{PERSON}.0,c\n,d\n"
    kept = drop(f"user_id,note\n{PERSON}.0,x\n{others}{PERSON}.00,y\n".encode(), by("user_id"), Format.CSV)
    assert kept.data.decode() == f"user_id,note\n{others}"


def test_csv_that_does_not_add_up_is_refused() -> None:
    with pytest.raises(RowsError, match="number of fields"):
        drop(f"user_id,note\n1,2,3\n{PERSON},x\n".encode(), by("user_id"), Format.CSV)


USERS = st.lists(st.sampled_from(["1", "2", PERSON, PERSON + "0", " " + PERSON, ""]), max_size=12)


# Python's csv module takes NUL only from 3.11 on; before that a file with one is refused
NOTES = st.lists(st.text(st.characters(exclude_characters="\x00"), max_size=8), min_size=12, max_size=12)


@settings(max_examples=60, deadline=None)
@given(users=USERS, notes=NOTES, group=st.integers(1, 5))
def test_only_the_persons_rows_go(users: list[str], notes: list[str], group: int) -> None:
    """Against the plainest model: a list filtered in Python."""
    notes = [note.encode("utf-8", "replace").decode() for note in notes[: len(users)]]
    wanted = [(user, note) for user, note in zip(users, notes, strict=True) if user != PERSON]
    old = parquet(
        pa.table({"user_id": pa.array(users, pa.string()), "n": pa.array(notes, pa.string())}), row_group_size=group
    )
    kept = drop(old, by("user_id"))
    assert [(row["user_id"], row["n"]) for row in rows(kept.data or old)] == wanted
    sink = io.StringIO(newline="")
    csv.writer(sink).writerows([("user_id", "n"), *zip(users, notes, strict=True)])
    kept = drop(sink.getvalue().encode(), by("user_id"), Format.CSV)
    text = sink.getvalue() if kept.data is None else kept.data.decode()
    assert list(csv.reader(io.StringIO(text, newline="")))[1:] == [list(pair) for pair in wanted]


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ('{"a": 1.50}', ("a",), "1.50"),
        ('{"a": true}', ("a",), "true"),
        ('{"a": null}', ("a",), None),
        ('{"a": {"b": "x"}}', ("a", "b"), "x"),
        ('{"a": [1]}', ("a", "b"), None),
        ("nothing", ("a",), None),
        (None, ("a",), None),
    ],
)
def test_json_members(text: str | None, path: tuple[str, ...], value: str | None) -> None:
    assert json_member(text, path) == value
