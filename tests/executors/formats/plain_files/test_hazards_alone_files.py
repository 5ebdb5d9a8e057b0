"""Hazards of bare folders, of objects' names and of event logs one by one, as in test_hazards_alone.py."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from executors.context import ExecutionContext
from pii_tracer.app.execution.executor_value_search import finds
from pii_tracer.app.planning.value_masking import telling_objects
from pii_tracer.config.estate_file import load_estate
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lake.stores.s3.archive_versions import discover_archives
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    Format,
    KeySet,
    Match,
    MatchTerm,
)
from pii_tracer.model.errors import RunError
from pii_tracer.review.sealed_person_values import KeyRing
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.byte_search import verify_bytes
from tests.app.planning.test_others_rows import (
    HERS,
    KEY,
    MAIL,
    OTHER,
    by_folders,
    estate,
    planned,
    table,
)
from tests.executors.formats.plain_files.test_files import (
    here,
    parquet,
    rewrite,
    steps_for,
)
from tests.executors.stores.s3.s3_runs import (
    KEYS,
    PERSON,
    PREFIX,
    Bucket,
    body,
    users,
)
from tests.executors.world import BY_ANY, EMAIL, UID, Keyring, Steps, context, frame, rows
from tests.leaks import Person, leaks
from tests.planners.smalllake import Lake
from tests.s3support import World, standin, world
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["here", "standin", "world"]

HER_KEYS = KeyRing(
    tuple(KeySet(name=n, origin=n, weak=False, values=(("s", v),)) for n, v in (("cust", KEY), ("email", MAIL)))
)


def test_f2_a_value_in_the_name_of_a_partition_folder(tmp_path: Path) -> None:
    """No step renames: it is a gap before the run, residue after it, and over when its owner has renamed the folder."""
    base = estate(tmp_path, "parquet")
    by_folders(base, "email", HERS, OTHER)
    (gap,) = planned(base)["gaps"]
    assert (gap["kind"], MAIL in str(gap)) == ("object_names", False)

    folder = base / "lake" / "tickets"
    mine = Match(terms=(MatchTerm(column="cust", key_set="cust", type="string"),))
    loaded = load_estate(base / "pii-tracer.yaml")
    ctx = ExecutionContext(loaded, base, HER_KEYS, lambda: datetime.now(timezone.utc))
    steps = Steps(ctx, "files", None, folder, Format.PARQUET, mine)
    assert steps.once(Action.FILES_REWRITE, format="parquet")["rows_deleted"] == 1
    verdict = verify_bytes(steps.copy, build_patterns(HER_KEYS.key_sets), folder)
    assert {residue.where for residue in verdict.residue} == {"file path"}
    assert MAIL not in verdict.model_dump_json()

    (folder / f"email={MAIL}").rename(folder / "email=erased")
    assert verify_bytes(steps.copy, build_patterns(HER_KEYS.key_sets), folder).clean
    assert planned(base)["gaps"] == []


def test_f3b_a_stale_entry_of_another_value_than_the_key(tmp_path: Path) -> None:
    """Her e-mail, in the dictionary of a file without a row of hers; rows are found by the key alone."""
    base = estate(tmp_path, "parquet")
    folder = base / "lake" / "tickets"
    encoded = table(HERS, OTHER)
    encoded = encoded.set_column(1, "email", encoded["email"].dictionary_encode()).slice(1)
    pq.write_table(encoded, folder / "b.parquet")
    mine = Match(terms=(MatchTerm(column="cust", key_set="cust", type="string"),))
    loaded = load_estate(base / "pii-tracer.yaml")
    sets = HER_KEYS.key_sets
    now = datetime.now(timezone.utc)
    ctx = ExecutionContext(loaded, base, HER_KEYS, lambda: now, everything=sets, finds=finds(loaded, base))
    steps = Steps(ctx, "files", None, folder, Format.PARQUET, mine)
    assert not verify_bytes(steps.copy, build_patterns(sets), folder).clean
    assert steps.once(Action.FILES_REWRITE, format="parquet")["rows_deleted"] == 0
    assert verify_bytes(steps.copy, build_patterns(sets), folder).clean
    assert pq.read_table(folder / "b.parquet").to_pylist() == [dict(OTHER)]


def test_f2_a_value_in_the_name_of_an_object(world: World, tmp_path: Path) -> None:
    lake = Bucket(world.endpoint_url, world.new("named"))
    named = f"{PREFIX}uid={PERSON}/a.parquet"
    old = world.put(lake.name, named, body(PERSON, "2"))
    found, _ = discover_archives(lake.estate, lake.clients, lake.base)
    telling = telling_objects(Inventory(tables=(), objects=found), build_patterns(KEYS.key_sets))
    (gap,) = [g for g in Lake(objects=found, named=telling).plan().gaps if g.kind == "object_names"]
    assert PERSON not in gap.model_dump_json()

    plan = lake.plan()  # as if nobody had looked at names
    state = lake.attempt(plan, tmp_path / "journal.jsonl")
    assert state is not None
    assert [failed.reason.startswith("the name of an object contains the person") for failed in state.failed] == [True]

    world.put(lake.name, named, body("2"))
    world.client().delete_object(Bucket=lake.name, Key=named, VersionId=old["version_id"])
    assert users(world.get(lake.name, named)) == ["2"]
    assert {residue.where for copy in plan.copies for residue in lake.verdict(copy).residue} == {"file path"}

    client = world.client()
    client.copy_object(Bucket=lake.name, Key=f"{PREFIX}a.parquet", CopySource={"Bucket": lake.name, "Key": named})
    for key, version in world.versions(lake.name):
        if key == named:
            client.delete_object(Bucket=lake.name, Key=key, VersionId=version)
    assert all(lake.verdict(copy).clean for copy in plan.copies)
    found, _ = discover_archives(lake.estate, lake.clients, lake.base)
    assert telling_objects(Inventory(tables=(), objects=found), build_patterns(KEYS.key_sets)) == {}


def seen(folder: Path) -> set[str]:
    """Where in the files of a folder the person is found."""
    patterns = build_patterns([Keyring.sets["email"], Keyring.sets["uid"]])
    return {hit.where for file in scan_tree(folder, patterns).with_person for hit in file.hits}


def test_f3_what_stands_in_footers(here: SparkEstate) -> None:
    """Bounds go with a rewrite. What the file's job wrote into its footer goes with none: neither ours is begun."""
    folder = here.folder("footers")
    parquet(folder / "a.parquet", rows(0, 20, (3,)), compression="zstd")
    told = pq.read_table(folder / "a.parquet").replace_schema_metadata({"exported for": EMAIL})
    pq.write_table(told, folder / "a.parquet", compression="zstd")
    assert {"statistics", "key-value metadata"} <= seen(folder)
    naive = here.folder("footers_naive")
    naive.mkdir()
    pq.write_table(told.filter(pc.field("uid") != UID), naive / "a.parquet", compression="zstd")
    assert {"statistics", "key-value metadata"} & seen(naive) == {"key-value metadata"}

    steps = steps_for(here, folder, Format.PARQUET, BY_ANY)
    before = (folder / "a.parquet").read_bytes()
    with pytest.raises(RunError, match="key-value metadata in the file's footer contains a value of the person"):
        steps.once(Action.FILES_REWRITE, format="parquet")
    assert (folder / "a.parquet").read_bytes() == before
    pq.write_table(told.replace_schema_metadata({"owner": "team 7"}), folder / "a.parquet", compression="zstd")
    assert "statistics" in seen(folder)
    steps.all(rewrite(steps))
    assert seen(folder) == set()
    assert pq.read_schema(folder / "a.parquet").metadata == {b"owner": b"team 7"}


@pytest.mark.parametrize("compression", ["zstd", "snappy", "gzip"])
def test_f4_compressed_pages(here: SparkEstate, compression: str) -> None:
    """The person among others, and no bound of a column: no byte of the file shows what it holds."""
    folder = here.folder(compression)
    made = rows(0, 200, (100,))
    parquet(folder / "a.parquet", made, compression=compression, write_statistics=False, use_dictionary=False)
    data = (folder / "a.parquet").read_bytes()
    assert not any(needle in data for needle in (EMAIL.encode(), str(UID).encode(), UID.to_bytes(8, "little")))
    assert seen(folder) == {"data"}
    steps = steps_for(here, folder, Format.PARQUET)
    steps.all(rewrite(steps))
    assert seen(folder) == set()


@pytest.mark.spark
def test_f2b_the_checksum_of_a_rewritten_file(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """Hadoop writes one beside each file; it is of the old bytes, and every reader that compares it fails."""
    naive, folder = spark_estate.folder("f2b_naive"), spark_estate.folder("f2b")
    for place in (naive, folder):
        frame(spark, rows(0, 10, (3,))).write.mode("overwrite").parquet(str(place))
    [part] = naive.glob("part-*.parquet")
    kept = pq.read_table(part).filter(pa.compute.field("uid") != UID)
    pq.write_table(kept, part)
    with pytest.raises(Exception, match=r"(?i)checksum"):
        spark.read.parquet(str(naive)).collect()
    steps = Steps(context(spark_estate), "files", None, folder, Format.PARQUET)
    steps.once(Action.FILES_REWRITE, format="parquet")
    assert spark.read.parquet(str(folder)).count() == 9
    [part] = folder.glob("part-*.parquet")
    assert not (folder / f".{part.name}.crc").exists()


@pytest.mark.spark
def test_e1_a_literal_in_the_event_log(tmp_path: Path) -> None:
    """Written by Spark as it runs, and kept by whoever keeps it: nothing deletes a row of it."""
    made = rows(0, 8, (3, 5))
    columns = dict(zip(("id", "uid", "email", "amount"), zip(*made, strict=True), strict=True))
    write_deltalake(tmp_path / "t", pa.table(columns))
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    subprocess.run([sys.executable, "-m", "tests.executors.logged", str(tmp_path)], check=True, timeout=400)
    person = Person((EMAIL, str(UID)))
    assert leaks(person, [tmp_path / "literal"])
    (log,) = [path for path in (tmp_path / "step").rglob("*") if path.is_file() and "MERGE" in path.read_text()]
    assert "SparkListenerSQLExecutionStart" in log.read_text()
    assert leaks(person, [tmp_path / "step"]) == []
    assert any("BatchScan" in path.read_text() for path in (tmp_path / "partitions").rglob("*") if path.is_file())
    assert leaks(person, [tmp_path / "partitions"]) == []
    assert sorted(pa.table(DeltaTable(tmp_path / "t").to_pyarrow_table())["id"].to_pylist()) == [0, 1, 2, 4, 6, 7]
