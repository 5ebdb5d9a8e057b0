"""Bare ORC, Avro and JSON folders in every codec: the person's rows go, every other row stays as it was, in its order."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import orc

from executors.formats.plain_files import avro_rewrite, csv_rewrite, orc_rewrite, parquet_rewrite
from executors.formats.plain_files.arrow_match import RowsError
from executors.formats.plain_files.compression import writing
from executors.formats.plain_files.json_text import json_rewrite
from executors.formats.plain_files.orc_tail import Tail, read_tail
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    FieldAccess,
    Format,
    Match,
    MatchTerm,
)
from pii_tracer.model.errors import RunError
from pii_tracer.model.number_keys import spellings
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.value_forms import build_patterns
from tests.executors.world import BY_UID, EMAIL, UID, Keyring, Steps, context
from tests.scan.support import orc_lz4
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NESTED = Match(terms=(MatchTerm(column="payer", access=(FieldAccess(name="id"),), key_set="uid", type="bigint"),))
KEYS = {"uid": spellings([str(UID)])}
PATTERNS = build_patterns([Keyring.sets["uid"], Keyring.sets["email"]])
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "uid", "type": ["null", "long", "int"]},
        {"name": "email", "type": "string"},
        {"name": "payer", "type": {"type": "record", "name": "p", "fields": [{"name": "id", "type": "long"}]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "score", "type": "double"},
    ],
}
AVRO_CODECS = ("null", "deflate", "snappy", "zstandard", "bzip2", "xz")
JSON_SUFFIXES = ("", ".gz", ".zst", ".bz2", ".deflate", ".snappy")
ORC_CODECS = ("uncompressed", "zlib", "snappy", "zstd")


def row(number: int, mine: bool) -> dict[str, Any]:
    uid = UID if mine else 1000 + number
    return {
        "uid": uid,
        "email": EMAIL if mine else f"b{number}@example.net",
        "payer": {"id": uid},
        "tags": ["a", f"t{number}"],
        "score": number / 3,
    }


ROWS = [row(n, n in (3, 4, 17)) for n in range(40)]


def write_json(path: Path, rows: list[dict[str, Any]]) -> None:
    codec = {".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2", ".deflate": "deflate", ".snappy": "snappy"}
    with writing(path, codec.get(path.suffix, "plain")) as stream:
        for n, item in enumerate(rows):
            # as different writers lay lines out; each must stay as it is
            text = json.dumps(item) if n % 2 else json.dumps(item, separators=(" , ", ":"), sort_keys=True)
            stream.write(text.encode() + (b"\r\n" if n % 3 else b"\n"))


def plain(path: Path) -> bytes:
    """The content, unpacked by other means than the code under test."""
    from pii_tracer.scan.decode.compression import unpack

    found = unpack(path.name, memoryview(path.read_bytes()))
    return found[2] if found else path.read_bytes()


def write_avro(path: Path, rows: list[dict[str, Any]], codec: str = "deflate") -> None:
    """Blocks of a few records; with the packers of the standard library and those that are installed anyway."""
    from tests.scan.support import avro

    if codec in ("snappy", "zstandard"):
        path.write_bytes(avro(SCHEMA, rows, {"owner": "team 7"}, codec))
        return
    with path.open("wb") as stream:
        fastavro.writer(stream, SCHEMA, rows, codec=codec, sync_interval=120, metadata={"owner": "team 7"})


def read_avro(path: Path) -> list[Any]:
    from pii_tracer.scan.decode.avro_container import open_container

    return list(open_container(memoryview(path.read_bytes())).records())


def write_orc(path: Path, rows: list[dict[str, Any]], codec: str = "zlib") -> None:
    orc.write_table(pa.Table.from_pylist(rows), path, compression=codec, stripe_size=1024, batch_size=8)


def scanned(folder: Path) -> tuple[int, tuple[str, ...]]:
    """Files in which the verifier's scanner finds the person, and what it could not read."""
    found = scan_tree(folder, PATTERNS)
    return sum(bool(f.hits) for f in found.files), found.unread


def erase(world: SparkEstate, folder: Path, kind: Format, match: Match = BY_UID) -> dict[str, Any]:
    steps = Steps(context(world), "files", None, folder, kind, match)
    return steps.all((Action.FILES_REWRITE, {"format": kind.value}))[Action.FILES_REWRITE]


@pytest.fixture
def here(spark_estate: SparkEstate, tmp_path: Path) -> SparkEstate:
    return SparkEstate(spark_estate.estate, tmp_path)


@pytest.mark.parametrize("match", [BY_UID, NESTED], ids=["column", "nested"])
@pytest.mark.parametrize("suffix", JSON_SUFFIXES)
def test_json_lines_stay_byte_for_byte(here: SparkEstate, suffix: str, match: Match) -> None:
    folder = here.folder("json")
    (folder / "day=1").mkdir(parents=True)
    held, clean = folder / "day=1" / f"a.json{suffix}", folder / f"b.json{suffix}"
    write_json(held, ROWS)
    write_json(clean, [row(n, False) for n in range(50, 60)])
    untouched, before = clean.read_bytes(), plain(held).splitlines(keepends=True)
    assert scanned(folder) == (1, ())
    facts = erase(here, folder, Format.JSON, match)
    assert (facts["files_rewritten"], facts["rows_deleted"]) == (1, 3)
    assert scanned(folder) == (0, ())
    assert plain(held) == b"".join(line for n, line in enumerate(before) if n not in (3, 4, 17))
    assert held.read_bytes()[:3] == {".gz": b"\x1f\x8b\x08", ".zst": b"\x28\xb5\x2f", ".bz2": b"BZh"}.get(
        suffix, held.read_bytes()[:3]
    )
    assert clean.read_bytes() == untouched
    assert sorted(p.name for p in folder.rglob("*") if p.is_file()) == [held.name, clean.name]


@pytest.mark.parametrize("match", [BY_UID, NESTED], ids=["column", "nested"])
@pytest.mark.parametrize("codec", AVRO_CODECS)
def test_avro_keeps_header_codec_and_records(here: SparkEstate, codec: str, match: Match) -> None:
    folder = here.folder("avro")
    folder.mkdir()
    held = folder / "a.avro"
    write_avro(held, ROWS, codec)
    head = held.read_bytes().split(b"avro.schema")[0]
    write_avro(folder / "b.avro", [row(n, False) for n in range(50, 60)], codec)
    untouched = (folder / "b.avro").read_bytes()
    assert scanned(folder) == (1, ())
    assert erase(here, folder, Format.AVRO, match)["rows_deleted"] == 3
    assert scanned(folder) == (0, ())
    assert read_avro(held) == [r for n, r in enumerate(ROWS) if n not in (3, 4, 17)]
    assert held.read_bytes().startswith(head)
    assert b"team 7" in held.read_bytes()
    assert (folder / "b.avro").read_bytes() == untouched


@pytest.mark.parametrize("match", [BY_UID, NESTED], ids=["column", "nested"])
@pytest.mark.parametrize("codec", ORC_CODECS)
def test_orc_keeps_schema_codec_and_rows(here: SparkEstate, codec: str, match: Match) -> None:
    folder = here.folder("orc")
    folder.mkdir()
    held = folder / "a.orc"
    write_orc(held, ROWS, codec)
    write_orc(folder / "b.orc", [row(n, False) for n in range(50, 60)], codec)
    untouched, types = (folder / "b.orc").read_bytes(), read_tail(held).types
    assert scanned(folder) == (1, ())
    assert erase(here, folder, Format.ORC, match)["rows_deleted"] == 3
    assert scanned(folder) == (0, ())
    again = orc.ORCFile(held)
    assert again.read().to_pylist() == [r for n, r in enumerate(ROWS) if n not in (3, 4, 17)]
    assert again.compression.lower() == codec
    assert read_tail(held).types == types
    assert (folder / "b.orc").read_bytes() == untouched


def test_orc_with_an_lz4_tail_as_java_writes_it(here: SparkEstate) -> None:
    folder = here.folder("lz4")
    folder.mkdir()
    uids = [UID if n in (3, 4) else n for n in range(50)]
    (folder / "a.orc").write_bytes(orc_lz4(pa.table({"uid": uids, "email": ["a@example.net"] * 50})))
    assert scanned(folder) == (1, ())
    assert erase(here, folder, Format.ORC)["rows_deleted"] == 2
    assert scanned(folder) == (0, ())
    assert orc.ORCFile(folder / "a.orc").read()["uid"].to_pylist() == [uid for uid in uids if uid != UID]


@pytest.mark.spark
def test_what_spark_wrote_spark_reads_again(spark: SparkSession, here: SparkEstate) -> None:
    """User metadata, calendar and timestamps included."""
    frame = spark.range(60).selectExpr(
        "id", f"if(id % 20 = 3, {UID}L, id) uid", "named_struct('id', id) payer", "cast(id as decimal(12, 2)) amount",
        "timestamp_seconds(id * 86400) at", "date_add(date'0999-01-01', cast(id as int)) day", "array(id) list",
        "map('k', id) map", "cast(null as string) nothing",
    )  # fmt: skip
    for kind, codecs in (
        (Format.ORC, ("none", "snappy", "zlib", "zstd")),
        (Format.JSON, ("none", "gzip", "snappy", "bzip2")),
    ):
        for codec in codecs:
            folder = here.base / f"{kind}_{codec}"
            frame.coalesce(2).write.option("compression", codec).format(kind.value).save(str(folder))
            schema = spark.read.format(kind.value).load(str(folder)).schema
            wanted = sorted(
                map(
                    str, spark.read.schema(schema).format(kind.value).load(str(folder)).where(f"uid != {UID}").collect()
                )
            )
            assert erase(here, folder, kind)["rows_deleted"] == 3
            assert scanned(folder)[0] == 0
            spark.catalog.clearCache()
            again = spark.read.format(kind.value).load(str(folder))
            assert again.schema == schema
            assert sorted(map(str, again.collect())) == wanted
            if kind is Format.ORC:
                assert all(orc.ORCFile(p).metadata["org.apache.spark.version"] for p in folder.glob("*.orc"))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    mine=st.lists(st.booleans(), max_size=30),
    kind=st.sampled_from([Format.JSON, Format.AVRO, Format.ORC, Format.PARQUET, Format.CSV]),
)
def test_every_other_row_is_kept_in_order(
    mine: list[bool], kind: Format, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    rows = [row(n, flag) for n, flag in enumerate(mine)]
    kept = [item for item, flag in zip(rows, mine, strict=True) if not flag]
    path, target = folder / f"a.{kind}", folder / f"b.{kind}"
    schema = pa.Table.from_pylist(ROWS).schema
    flat = ["uid,email", *(f"{r['uid']},{r['email']}" for r in rows)]
    if kind is Format.PARQUET:
        pq.write_table(pa.Table.from_pylist(rows, schema), path, row_group_size=4)
        old, new = (lambda **o: pq.ParquetFile(path, **o)), (lambda **o: pq.ParquetFile(target, **o))
        seen = parquet_rewrite.survey(old, BY_UID, KEYS, frozenset())
        with target.open("w+b") as sink:
            parquet_rewrite.write(old, sink, BY_UID, KEYS)
        parquet_rewrite.compare(old, new, BY_UID, KEYS)
        assert (seen.before, seen.after) == (len(rows), len(kept))
        assert pq.read_table(target).to_pylist() == kept
        return
    makers: dict[Format, tuple[Any, Callable[[], object], Callable[[], Any], Any]] = {
        Format.JSON: (
            json_rewrite,
            lambda: write_json(path, rows),
            lambda: [json.loads(x) for x in plain(target).splitlines()],
            kept,
        ),
        Format.AVRO: (avro_rewrite, lambda: write_avro(path, rows), lambda: read_avro(target), kept),
        Format.ORC: (
            orc_rewrite,
            lambda: orc.write_table(pa.Table.from_pylist(rows, schema), path),
            lambda: orc.read_table(target).to_pylist(),
            kept,
        ),
        Format.CSV: (
            csv_rewrite,
            lambda: path.write_text("\n".join(flat)),
            lambda: [line.split(",")[0] for line in target.read_text().splitlines()[1:]],
            [str(r["uid"]) for r in kept],
        ),
    }
    module, make, read, wanted = makers[kind]
    make()
    assert module.survey(path, BY_UID, KEYS)[:2] == (len(rows), len(kept))
    module.write(path, target, BY_UID, KEYS)
    module.compare(path, target, BY_UID, KEYS)
    assert read() == wanted


def test_what_was_written_is_compared_before_it_counts(tmp_path: Path) -> None:
    """A writer that loses or changes somebody else's row is found out."""
    write_json(tmp_path / "a.json", ROWS)
    write_avro(tmp_path / "a.avro", ROWS)
    write_orc(tmp_path / "a.orc", ROWS)
    (tmp_path / "a.csv").write_text("uid,x\n" + "".join(f"{r['uid']},1\n" for r in ROWS))
    kept = [r for n, r in enumerate(ROWS) if n not in (3, 4, 17)]
    for wrong in (kept[:-1], [*kept, kept[0]], [*kept[1:], kept[0]], [kept[0] | {"score": 7.0}, *kept[1:]]):
        write_json(tmp_path / "b.json", wrong)
        write_avro(tmp_path / "b.avro", wrong)
        write_orc(tmp_path / "b.orc", wrong)
        (tmp_path / "b.csv").write_text(
            "uid,x\n" + "".join(f"{r['uid']},{1 if r['score'] != 7 else 2}\n" for r in wrong)
        )
        for module, name in (
            (json_rewrite, "json"),
            (avro_rewrite, "avro"),
            (orc_rewrite, "orc"),
            (csv_rewrite, "csv"),
        ):
            with pytest.raises(RowsError):
                module.compare(tmp_path / f"a.{name}", tmp_path / f"b.{name}", BY_UID, KEYS)


def test_a_cell_of_csv_may_hold_a_document(here: SparkEstate) -> None:
    folder = here.folder("documents")
    folder.mkdir()
    kept = f'uid,doc\n7,"{"x, y" * 60_000}"\n'
    (folder / "a.csv").write_text(f"{kept}{UID},{'z' * 200_000}\n")
    erase(here, folder, Format.CSV)
    assert (folder / "a.csv").read_text() == kept


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", b'{\n "uid": 1\n}\n{\n "uid": 1\n}\n'),
        ("a.json", b'[{"uid": 1}]\n[{"uid": 1}]\n'),
        ("a.json", b'{"uid": 1, "uid": 2}\n'),
        ("a.json", b'{"id": 1}\n'),
        ("a.json.gz", gzip.compress(b'{"uid": 1}\n' * 99, mtime=0)[:-9]),
        ("a.json.zst", zstandard.compress(b'{"uid": 1}\n' * 99)[:-3]),
        ("a.json.bz2", bz2.compress(b'{"uid": 1}\n' * 99)[:-3]),
        ("a.json.deflate", zlib.compress(b'{"uid": 1}\n' * 99)[:-5]),
        ("a.json.snappy", b"\x00\x00\x01\x00\x00\x00\x00\x05abcde"),
        ("a.json.lz4", b"\x04\x22\x4d\x18rest"),
        ("a.avro", b"Obj\x01nothing"),
        ("a.orc", b"ORC nothing"),
    ],
)
def test_files_that_cannot_be_read_whole_stop_the_step(here: SparkEstate, name: str, content: bytes) -> None:
    folder = here.folder("bad")
    folder.mkdir()
    (folder / name).write_bytes(content)
    kind = Format(name.split(".")[1])
    with pytest.raises(RunError):
        erase(here, folder, kind)
    assert [p.read_bytes() for p in folder.iterdir()] == [content]


def test_avro_that_is_cut_short_or_has_another_sync_marker(tmp_path: Path) -> None:
    write_avro(tmp_path / "a.avro", ROWS)
    data = (tmp_path / "a.avro").read_bytes()
    for broken in (data[:-1], data[:-20], data[:-16] + b"x" * 16, data + b"\x02"):
        (tmp_path / "b.avro").write_bytes(broken)
        with pytest.raises(RowsError):
            avro_rewrite.survey(tmp_path / "b.avro", BY_UID, KEYS)


def test_avro_union_branches_stay_what_they_are(tmp_path: Path) -> None:
    """Written again by a library, an `int` could become a `long`: records are copied, not written again."""
    rows = [{"uid": ("int", 5), "email": "", "payer": {"id": 1}, "tags": [], "score": 0.0}, row(1, True)]
    with (tmp_path / "a.avro").open("wb") as stream:
        fastavro.writer(stream, SCHEMA, rows)
    avro_rewrite.write(tmp_path / "a.avro", tmp_path / "b.avro", BY_UID, KEYS)
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, fastavro.parse_schema(SCHEMA), rows[0])
    assert sink.getvalue()[:1] == b"\x04"
    assert sink.getvalue() in (tmp_path / "b.avro").read_bytes()


def test_numbers_however_they_are_written(tmp_path: Path) -> None:
    lines = [
        f'{{"uid": {UID}.0}}',
        f'{{"uid": "{UID}"}}',
        f'{{"UID": {UID}}}',
        f'{{"uid": {UID}1}}',
        '{"uid": null}',
        "{}",
    ]
    (tmp_path / "a.json").write_text("\n".join(lines))
    assert json_rewrite.survey(tmp_path / "a.json", BY_UID, KEYS)[:2] == (6, 3)


def test_orc_times_of_another_zone_are_refused() -> None:
    stamped = Tail(
        types=(b"\x22\x02\x08\x09",), user=(), calendar=(), zones=frozenset({b"Asia/Kolkata"}), dictionaries=False
    )
    assert not stamped.safe_timestamps
    assert Tail(stamped.types, (), (), frozenset({b"Etc/UTC"}), False).safe_timestamps
    assert Tail((b"\x22\x02\x08\x04",), (), (), stamped.zones, False).safe_timestamps


def test_a_parquet_file_is_read_by_row_group(tmp_path: Path) -> None:
    """Memory of a rewrite follows the row group and not the file."""
    path, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    with pq.ParquetWriter(path, pa.schema([("uid", pa.int64()), ("text", pa.string())]), compression="zstd") as writer:
        for group in range(24):
            uids = [UID if n == 5 else group * 10_000 + n for n in range(10_000)]
            writer.write_table(pa.table({"uid": uids, "text": [f"{n:>100}" for n in uids]}))
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        opened = lambda **options: pq.ParquetFile(path, **options)  # noqa: E731
        assert parquet_rewrite.survey(opened, BY_UID, KEYS, frozenset()).after == 24 * 9_999
        with target.open("w+b") as sink:
            parquet_rewrite.write(opened, sink, BY_UID, KEYS)
    finally:
        pa.set_memory_pool(before)
    assert pq.read_metadata(target).num_rows == 24 * 9_999
    whole = 24 * 10_000 * 116
    assert pool.max_memory() < whole / 3


class _Counted(io.BytesIO):
    taken = 0

    def read(self, size: int | None = -1) -> bytes:
        piece = super().read(size)
        self.taken += len(piece)
        return piece


@pytest.mark.parametrize(
    ("kind", "statistics", "few"),
    [(pa.int64(), True, True), (pa.int32(), True, True), (pa.int64(), False, False), (pa.string(), True, False)],
)
def test_row_groups_whose_bounds_leave_the_keys_out_are_not_read(
    kind: pa.DataType, statistics: bool, few: bool
) -> None:
    """Bounds of whole numbers only; a file without bounds is read, and one beside the bounds is never passed over."""
    sink = io.BytesIO()
    uids = pa.array(range(UID - 30_000, UID + 30_000)).cast(kind)
    table = pa.table({"uid": uids, "text": [f"{n:>50}" for n in range(60_000)]})
    pq.write_table(
        table, sink, row_group_size=1_000, write_statistics=statistics, compression="none", use_dictionary=False
    )
    read = _Counted(sink.getvalue())
    keys = {"uid": frozenset({str(UID), str(UID - 30_000), str(UID + 29_999), "0012", "A-1"})}
    seen = parquet_rewrite.survey(lambda **options: pq.ParquetFile(read, **options), BY_UID, keys, frozenset())
    assert (seen.before, seen.after) == (60_000, 59_997)
    column = 60_000 * (4 if kind == pa.int32() else 8)
    assert (read.taken < column / 2) is few
