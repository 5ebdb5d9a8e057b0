"""A hold on some columns of bare folders: the person's rows stay, what nothing holds in them goes, and nothing else."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from executors.formats.plain_files import parquet_rewrite
from executors.formats.plain_files.row_masking import blanked
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format, Match
from pii_tracer.model.errors import RunError
from pii_tracer.model.number_keys import spellings
from pii_tracer.model.plan import Mask
from pii_tracer.run.executor_protocol import Progress
from pii_tracer.verify.row_checks import Verifier, compare
from tests.executors.engine.test_mask import Masked, mask
from tests.executors.formats.plain_files.test_files import parquet
from tests.executors.world import BY_ANY, BY_UID, EMAIL, UID, Keyring, context, rows
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HELD = mask("id", "email", held=("amount",), found_by=("uid",))
KEYS = {"uid": spellings([str(UID)]), "email": frozenset({EMAIL})}
STEP = Action.FILES_MASK_ROWS


@pytest.fixture
def here(spark_estate: SparkEstate, tmp_path: Path) -> SparkEstate:
    return SparkEstate(spark_estate.estate, tmp_path)


def masked(world: SparkEstate, folder: Path, kind: Format, kept: Mask = HELD, match: Match = BY_UID) -> Masked:
    return Masked(context(world), "files", None, folder, kind, match, kept)


def run(steps: Masked) -> dict[str, Any]:
    return steps.all((STEP, {"format": steps.format.value}))[STEP]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# --- Parquet


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "brotli"])
def test_parquet(here: SparkEstate, codec: str) -> None:
    folder = here.folder("pq")
    held, clean = folder / "day=1" / "a.parquet", folder / "day=2" / "b.parquet"
    parquet(held, rows(0, 30, (3, 17)), compression=codec, row_group_size=10)
    parquet(clean, rows(30, 10))
    (held.parent / f".{held.name}.crc").write_bytes(b"stale")
    before, untouched = pq.ParquetFile(held), clean.stat()
    wanted = [row | ({"id": None, "email": None} if row["uid"] == UID else {}) for row in before.read().to_pylist()]
    steps = masked(here, folder, Format.PARQUET)
    assert {r.where for r in steps.bytes().residue} >= {"data: email", "data: rows with values that are not held"}
    facts = run(steps)
    assert (facts["files_rewritten"], facts["rows_masked"]) == (1, 2)
    assert [(f["rows_before"], f["rows_after"]) for f in facts["files"]] == [(30, 30)]
    again = pq.ParquetFile(held)
    assert again.read().to_pylist() == wanted
    assert again.schema.equals(before.schema)
    assert [again.metadata.row_group(n).num_rows for n in range(3)] == [10, 10, 10]
    for n in range(4):
        old, new = (f.metadata.row_group(1).column(n) for f in (before, again))
        assert (new.compression, new.encodings) == (old.compression, old.encodings)
    assert again.metadata.metadata[b"owner"] == b"team 7"
    assert (clean.stat().st_ino, clean.stat().st_mtime_ns) == (untouched.st_ino, untouched.st_mtime_ns)
    assert sorted(contents(folder)) == ["day=1/a.parquet", "day=2/b.parquet"]
    found = steps.bytes()
    assert found.clean, found
    assert {(h.column, h.key_set) for h in found.held} == {("uid", "uid")}
    after = held.stat().st_ino
    assert steps.all((STEP, {"format": "parquet"}), repeat=True)[STEP]["files_rewritten"] == 0
    assert held.stat().st_ino == after, "what is masked is not written again"


def test_parquet_with_every_kind_of_column(here: SparkEstate) -> None:
    """Nested ones, maps, lists, dictionaries and decimals become NULL as a whole; others keep theirs, NULLs included."""
    folder = here.folder("kinds")
    folder.mkdir()
    count, mine = 20, (3, 4, 19)
    table = pa.table(
        {
            "uid": [UID if n in mine else n for n in range(count)],
            "amount": pa.array([Decimal(n) / 4 for n in range(count)], pa.decimal128(9, 2)),
            "who": [{"mail": EMAIL, "tags": [f"t{n}"]} if n % 3 else None for n in range(count)],
            "prices": pa.array([[("k", n), ("l", None)] for n in range(count)], pa.map_(pa.string(), pa.int64())),
            "list": [[n, None] if n % 5 else None for n in range(count)],
            "city": pa.array([f"c{n % 4}" for n in range(count)]).dictionary_encode(),
            "at": pa.array([n * 10**9 for n in range(count)], pa.timestamp("us", tz="UTC")),
            "raw": [bytes([n]) * 3 for n in range(count)],
            "score": [float("nan") if n == 7 else n / 3 for n in range(count)],
        }
    )
    pq.write_table(table, folder / "a.parquet", row_group_size=8)
    gone = ("who", "prices", "list", "city", "at", "raw", "score")
    run(masked(here, folder, Format.PARQUET, mask(*gone, held=("uid", "amount"))))
    again = pq.read_table(folder / "a.parquet")
    assert again.schema.equals(table.schema)
    for n, (old, new) in enumerate(zip(table.to_pylist(), again.to_pylist(), strict=True)):
        assert repr(new) == repr(old | dict.fromkeys(gone) if n in mine else old)


REQUIRED = pa.struct(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("mail", pa.string(), nullable=False),
        pa.field("sum", pa.decimal128(9, 2), nullable=False),
        pa.field("sure", pa.bool_(), nullable=False),
        pa.field("tags", pa.list_(pa.string()), nullable=False),
        pa.field("raw", pa.binary(3), nullable=False),
        pa.field("home", pa.struct([pa.field("city", pa.string(), nullable=False), pa.field("no", pa.int32())]), False),
    ]
)
"""A struct that may be NULL, and whose fields may not: as Spark writes what it makes of columns that are never NULL."""


@pytest.mark.parametrize("mine", [(3, 4), tuple(range(8))])
def test_a_struct_becomes_null_though_its_fields_cannot(here: SparkEstate, mine: tuple[int, ...]) -> None:
    folder = here.folder("structs")
    folder.mkdir()
    who = [
        {"id": n, "mail": EMAIL if n in mine else f"b{n}", "sum": Decimal(n), "sure": True, "tags": [f"{n}"]}
        | {"raw": b"abc", "home": {"city": EMAIL if n in mine else "x", "no": None}}
        for n in range(8)
    ]
    columns = {"uid": [UID if n in mine else n for n in range(8)], "who": pa.array([*who[:6], None, who[7]], REQUIRED)}
    table = pa.table(columns)
    pq.write_table(table, folder / "a.parquet", compression="none")
    steps = masked(here, folder, Format.PARQUET, mask("who", held=("uid",)), BY_UID)
    run(steps)
    again = pq.read_table(folder / "a.parquet")
    assert again.schema.equals(table.schema)
    wanted = [r | ({"who": None} if r["uid"] == UID else {}) for r in table.to_pylist()]
    assert again.to_pylist() == wanted
    assert EMAIL.encode() not in (folder / "a.parquet").read_bytes()
    assert steps.bytes().clean


def test_rows_are_found_across_chunks() -> None:
    """Readers give long columns in pieces."""
    parts = [pa.table({"uid": [UID, n], "note": ["x", f"{n}"]}) for n in (1, 2, 3)]
    table = pa.concat_tables(parts)
    assert table.column("note").num_chunks == 3
    mine = pa.array([False, False, True, False, True, False])
    made = blanked(table, mine, mask("note", held=("uid",)))
    assert made.column("note").to_pylist() == ["x", "1", None, "2", None, "3"]
    assert made.column("uid").to_pylist() == table.column("uid").to_pylist()


def test_a_second_person_is_masked_with_the_first_and_nobody_else(here: SparkEstate) -> None:
    folder = here.folder("two")
    parquet(folder / "a.parquet", rows(0, 9, (2,)))
    steps = masked(here, folder, Format.PARQUET)
    before = pq.read_table(folder / "a.parquet").to_pylist()
    one = parquet_masked(folder / "a.parquet", BY_UID, {"uid": frozenset({str(UID), "1005"})})
    assert one == [r | ({"id": None, "email": None} if r["uid"] in (UID, 1005) else {}) for r in before]
    run(steps)
    assert [r["uid"] for r in pq.read_table(folder / "a.parquet").to_pylist() if r["email"] is None] == [UID]


def parquet_masked(path: Path, match: Match, keys: dict[str, frozenset[str]], kept: Mask = HELD) -> list[Any]:
    target = path.with_name("_target")
    with target.open("w+b") as sink:
        parquet_rewrite.write(lambda **o: pq.ParquetFile(path, **o), sink, match, keys, kept)
    made = pq.ParquetFile(target).read().to_pylist()
    target.unlink()
    return made


def test_a_value_that_only_a_dictionary_holds_is_written_out_of_a_masked_file(here: SparkEstate) -> None:
    """Of a column that goes; of one that is held the dictionary may hold what its rows hold."""
    folder = here.folder("entries")
    folder.mkdir()
    mail = pa.array([EMAIL, "b1@example.net"]).dictionary_encode()
    table = pa.table({"uid": [7, 1], "email": mail, "amount": [1, 2], "id": [5, 6]}).slice(1)
    mine = pa.table({"uid": [UID], "email": pa.nulls(1, mail.type), "amount": [3], "id": pa.nulls(1, pa.int64())})
    with pq.ParquetWriter(folder / "a.parquet", table.schema, compression="zstd") as writer:
        writer.write_table(table)
        writer.write_table(mine)
    steps = masked(here, folder, Format.PARQUET, match=BY_ANY)
    assert {r.where for r in steps.bytes().residue} == {"dictionary page: email"}
    facts = steps.once(STEP, format="parquet")
    assert (facts["rows_masked"], facts["files_rewritten"]) == (0, 1)
    assert steps.bytes().clean, steps.bytes()
    held = masked(here, folder, Format.PARQUET, mask("id", held=("email", "amount"), found_by=("uid",)), BY_ANY)
    parquet(folder / "b.parquet", rows(0, 5, (2,)))
    assert run(held)["files_rewritten"] == 1
    assert held.probe(STEP, format="parquet") is Progress.DONE


def test_a_key_that_is_not_held_goes_with_the_rest(here: SparkEstate) -> None:
    folder = here.folder("keys")
    parquet(folder / "a.parquet", rows(0, 9, (2,)))
    steps = masked(here, folder, Format.PARQUET, mask("id", "email", held=("uid", "amount")), BY_ANY)
    run(steps)
    assert [r["email"] for r in pq.read_table(folder / "a.parquet").to_pylist() if r["uid"] == UID] == [None]
    assert steps.bytes().clean


@pytest.mark.parametrize("kind", [Format.PARQUET, Format.ORC])
def test_a_file_without_the_columns_that_go_is_not_touched(here: SparkEstate, kind: Format) -> None:
    """An older file of a folder that got more columns later."""
    folder = here.folder("older")
    folder.mkdir()
    path, table = folder / f"a.{kind}", pa.table({"uid": [UID, 5], "amount": [1, 2]})
    if kind is Format.PARQUET:
        pq.write_table(table, path)
    else:
        orc.write_table(table, path)
    before = contents(folder)
    steps = masked(here, folder, kind)
    assert steps.once(STEP, format=kind.value)["files_rewritten"] == 0
    assert contents(folder) == before
    assert steps.bytes().clean


# --- refused before anything is touched


def refused(steps: Masked, words: str) -> None:
    before = contents(steps.location)
    with pytest.raises(RunError, match=words) as caught:
        steps.once(STEP, format=steps.format.value)
    assert EMAIL not in str(caught.value)
    assert contents(steps.location) == before


def test_a_row_that_would_be_nobodys(here: SparkEstate) -> None:
    """In the last of the files; the first ones could be masked, and are not."""
    folder = here.folder("nobody")
    parquet(folder / "a.parquet", rows(0, 9, (2,)))
    parquet(folder / "b.parquet", [(99, 4711, EMAIL, 5)])
    refused(masked(here, folder, Format.PARQUET, match=BY_ANY), "1 row is found only by email")
    pq.write_table(pa.table({"email": [EMAIL], "amount": [5]}), folder / "b.parquet")
    refused(masked(here, folder, Format.PARQUET, match=BY_ANY), "1 row is found only by email")


def test_a_required_column(here: SparkEstate) -> None:
    folder = here.folder("required")
    parquet(folder / "a.parquet", rows(0, 9, (2,)))
    table = pq.read_table(folder / "a.parquet")
    schema = table.schema.set(2, pa.field("email", pa.string(), nullable=False))
    pq.write_table(table.cast(schema), folder / "b.parquet")
    refused(masked(here, folder, Format.PARQUET), "email cannot become NULL")
    pq.write_table(table.cast(schema).slice(3), folder / "b.parquet")
    assert run(masked(here, folder, Format.PARQUET))["files_rewritten"] == 1, "there is nobody in that file now"


def test_a_column_that_the_plan_does_not_know(here: SparkEstate) -> None:
    folder = here.folder("unknown")
    parquet(folder / "a.parquet", rows(0, 9, (2,)))
    refused(
        masked(here, folder, Format.PARQUET, mask("id", held=("amount",), found_by=("uid",))), "1 column of this file"
    )
    folder = here.folder("unknown_json")
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps({"uid": UID, EMAIL: 1}))
    refused(masked(here, folder, Format.JSON), "1 column of this file")


def test_a_table_that_reads_the_file_is_not_broken(here: SparkEstate) -> None:
    folder = here.folder("tables")
    parquet(folder / "a.parquet", rows(0, 9, (2,)))
    (folder / "inside" / "_delta_log").mkdir(parents=True)
    refused(masked(here, folder, Format.PARQUET), "folder contains a different table")


# --- Avro and ORC

NULLABLE: dict[str, Any] = {
    "type": "record",
    "name": "row",
    "namespace": "shop.eu",
    "fields": [
        {"name": "uid", "type": ["null", "int", "long"]},
        {"name": "who", "type": [{"type": "record", "name": "p", "fields": [{"name": "m", "type": "string"}]}, "null"]},
        {"name": "email", "type": ["null", "p", "string"]},
        {"name": "amount", "type": "double"},
    ],
}


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2"])
def test_avro(here: SparkEstate, codec: str) -> None:
    """Held fields keep the union's branch that they have; a type that an earlier field names is known to later ones."""
    folder = here.folder("avro")
    folder.mkdir()
    made = [
        {"uid": UID if n in (3, 4) else n, "who": {"m": EMAIL}, "email": {"m": f"{n}"} if n % 2 else "x", "amount": n}
        for n in range(40)
    ]
    with (folder / "a.avro").open("wb") as stream:
        fastavro.writer(stream, NULLABLE, made, codec=codec, sync_interval=60, metadata={"owner": "team 7"})
    steps = masked(here, folder, Format.AVRO, mask("who", "email", held=("amount",), found_by=("uid",)))
    assert not steps.bytes().clean
    head = (folder / "a.avro").read_bytes().split(b"avro.schema")[0]
    with (folder / "a.avro").open("rb") as stream:
        wanted = [r | ({"who": None, "email": None} if r["uid"] == UID else {}) for r in fastavro.reader(stream)]
    assert run(steps)["rows_masked"] == 2
    with (folder / "a.avro").open("rb") as stream:
        assert list(fastavro.reader(stream)) == wanted
    assert (folder / "a.avro").read_bytes().startswith(head)
    strict = masked(here, folder, Format.AVRO, mask("amount", "who", "email", held=("uid",)))
    refused(strict, "amount cannot become NULL")


def test_orc(here: SparkEstate) -> None:
    folder = here.folder("orc")
    folder.mkdir()
    columns = dict(zip(("id", "uid", "email", "amount"), zip(*rows(0, 40, (3, 17)), strict=True), strict=True))
    orc.write_table(pa.table(columns), folder / "a.orc", compression="zlib", stripe_size=1024, batch_size=8)
    wanted = [
        r | ({"id": None, "email": None} if r["uid"] == UID else {})
        for r in orc.read_table(folder / "a.orc").to_pylist()
    ]
    steps = masked(here, folder, Format.ORC)
    assert not steps.bytes().clean
    assert run(steps)["rows_masked"] == 2
    assert orc.read_table(folder / "a.orc").to_pylist() == wanted
    assert steps.bytes().clean, steps.bytes()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        Format.PARQUET,
        Format.CSV,
        *(pytest.param(kind, marks=pytest.mark.nightly) for kind in (Format.ORC, Format.JSON)),
    ],
)
def test_what_spark_wrote_spark_reads_again(spark: SparkSession, here: SparkEstate, kind: Format) -> None:
    """NULL where it was to be, for Spark too; everybody else and what is held as before, by the verifier's own sums."""
    folder, nested = here.base / str(kind), kind is not Format.CSV
    kept = [f"if(id % 20 = 3, {UID}L, id) uid", "cast(id as decimal(12, 2)) amount"]
    goes = {"id": "id", "text": "cast(id as string)", "at": "timestamp_seconds(id * 86400)"}
    goes |= {"payer": "named_struct('id', id)", "list": "array(id)", "map": "map('k', id)"} if nested else {}
    # Spark requires a column in Parquet that can never be NULL
    nullable = [f"if(id < 0, null, {expression}) {name}" for name, expression in goes.items()]
    columns = [*kept, """concat('a "', id, '", b') said""", *nullable]
    reader = spark.read.format(kind.value).option("header", "true")
    spark.range(60).selectExpr(*columns).coalesce(1).write.option("header", "true").format(kind.value).save(str(folder))
    before = reader.load(str(folder))
    gone = tuple(name for name in before.columns if name not in ("uid", "amount", "said"))
    steps = masked(here, folder, kind, mask(*gone, held=("amount", "said"), found_by=("uid",)))
    verifier = Verifier(spark, (Keyring.sets["uid"],))
    baseline, schema = verifier.baseline(steps.copy), before.schema
    wanted = sorted(
        str([None if row["uid"] in (UID, str(UID)) and name in gone else row[name] for name in before.columns])
        for row in before.collect()
    )
    assert verifier.rows(steps.copy).rows_left == 3
    assert run(steps)["rows_masked"] == 3
    spark.catalog.clearCache()
    again = spark.read.schema(schema).format(kind.value).option("header", "true").load(str(folder))
    assert sorted(str([row[name] for name in before.columns]) for row in again.collect()) == wanted
    assert (verifier.rows(steps.copy).rows_left, verifier.rows(steps.copy).states[0].held) == (0, 3)
    assert compare(baseline, verifier.baseline(steps.copy)).equal
    assert steps.bytes().clean, steps.bytes()


# --- after a crash


def test_probe_and_resume(here: SparkEstate) -> None:
    """Half of the files masked is not done; the others are then, and none twice."""
    folder = here.folder("half")
    for name in ("a", "b"):
        parquet(folder / f"{name}.parquet", rows(0, 9, (2,)))
    one = here.folder("one")
    one.mkdir()
    (folder / "a.parquet").rename(one / "a.parquet")
    run(masked(here, one, Format.PARQUET))
    (one / "a.parquet").rename(folder / "a.parquet")
    steps = masked(here, folder, Format.PARQUET)
    assert steps.probe(STEP, format="parquet") is Progress.PARTIAL
    done = (folder / "a.parquet").stat().st_ino
    assert run(steps)["files_rewritten"] == 1
    assert (folder / "a.parquet").stat().st_ino == done
