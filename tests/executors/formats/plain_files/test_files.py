"""Bare Parquet and CSV folders: only the files that hold the person change, and nothing else in them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    Format,
    KeySet,
    Match,
    MatchTerm,
)
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import Progress
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.value_forms import build_patterns
from tests.executors.world import BY_ANY, BY_UID, EMAIL, UID, Steps, context, residue, rows
from tests.sparksession import SparkEstate

NAMES = ["id", "uid", "email", "amount"]


@pytest.fixture
def here(spark_estate: SparkEstate, tmp_path: Path) -> SparkEstate:
    return SparkEstate(spark_estate.estate, tmp_path)


def steps_for(world: SparkEstate, folder: Path, kind: Format, match: Match = BY_UID) -> Steps:
    return Steps(context(world), "files", None, folder, kind, match)


def rewrite(steps: Steps) -> tuple[Action, dict[str, Any]]:
    return Action.FILES_REWRITE, {"format": steps.format.value}


def parquet(path: Path, made: list[tuple[int, int, str, int]], **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = list(zip(*made, strict=True))
    table = pa.table(dict(zip(NAMES, columns, strict=True))).replace_schema_metadata({"owner": "team 7"})
    pq.write_table(table, path, **options)


def test_parquet(here: SparkEstate) -> None:
    folder = here.folder("pq")
    held, clean = folder / "day=1" / "a.zstd.parquet", folder / "day=2" / "b.parquet"
    parquet(held, rows(0, 30, (3, 17)), compression="zstd", row_group_size=10)
    parquet(clean, rows(30, 10), compression="snappy")
    (held.parent / f".{held.name}.crc").write_bytes(b"stale")
    untouched = clean.read_bytes()
    kept = [row for row in pq.read_table(held, partitioning=None).to_pylist() if row["uid"] != UID]
    steps = steps_for(here, folder, Format.PARQUET)
    assert residue(folder)
    facts = steps.all(rewrite(steps))[Action.FILES_REWRITE]
    assert (facts["files_rewritten"], facts["rows_deleted"]) == (1, 2)
    assert residue(folder) == []
    again = pq.ParquetFile(held)
    assert again.read().to_pylist() == kept
    assert again.metadata.row_group(0).column(0).compression == "ZSTD"
    assert again.metadata.num_row_groups == 3
    assert again.metadata.metadata[b"owner"] == b"team 7"
    assert clean.read_bytes() == untouched
    assert sorted(p.name for p in folder.rglob("*") if p.is_file()) == ["a.zstd.parquet", "b.parquet"]
    before = held.read_bytes()
    assert steps.all(rewrite(steps), repeat=True)[Action.FILES_REWRITE]["files_rewritten"] == 0
    assert held.read_bytes() == before


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_csv_keeps_header_quoting_and_order(here: SparkEstate, name: str) -> None:
    folder = here.folder("csv")
    folder.mkdir()
    text = (
        "id,uid,email,note\r\n"
        '1,1001,b1@example.net,"two\nlines, one record"\r\n'
        f'2,{UID},{EMAIL},"mine"\r\n'
        '3,1003,b3@example.net,""\r\n'
        f"4,1004,{EMAIL},by mail only\r\n"
    )
    data = text.encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    steps = steps_for(here, folder, Format.CSV, BY_ANY)
    steps.all(rewrite(steps))
    out = (folder / name).read_bytes()
    out = gzip.decompress(out) if name.endswith("gz") else out
    assert out.decode() == (
        'id,uid,email,note\r\n1,1001,b1@example.net,"two\nlines, one record"\r\n3,1003,b3@example.net,""\r\n'
    )
    assert residue(folder) == []


def test_a_key_in_a_partition_path_is_found(here: SparkEstate) -> None:
    """F2: the folder's name is a column; a file without that column is no proof of absence."""
    folder = here.folder("by_uid")
    parquet(folder / f"uid={UID}" / "a.parquet", rows(0, 3))
    by_part = Match(terms=(MatchTerm(column="part_uid", key_set="uid", type="bigint"),))
    steps = steps_for(here, folder, Format.PARQUET, by_part)
    with pytest.raises(RunError, match="column"):
        steps.once(*rewrite(steps)[:1], format="parquet")


def test_files_with_names_that_spark_reads_but_end_otherwise_are_not_passed_over(here: SparkEstate) -> None:
    """Spark reads every file that is not hidden, whatever its name ends in."""
    folder = here.folder("names")
    parquet(folder / "part-0.snappy", rows(0, 5, (2,)))
    parquet(folder / "_day=1" / "part-1", rows(5, 5, (7,)))
    (folder / "_SUCCESS").touch()
    steps = steps_for(here, folder, Format.PARQUET)
    steps.all(rewrite(steps))
    assert residue(folder) == []


def test_a_file_that_is_not_of_the_format_stops_the_step(here: SparkEstate) -> None:
    folder = here.folder("broken")
    folder.mkdir()
    (folder / "a.parquet").write_bytes(b"PAR1 cut off")
    steps = steps_for(here, folder, Format.PARQUET)
    with pytest.raises(RunError, match=r"cannot be read"):
        steps.once(*rewrite(steps)[:1], format="parquet")


def test_partition_values_stay_out_of_facts_and_messages(here: SparkEstate) -> None:
    folder = here.folder("values")
    parquet(folder / f"mail={EMAIL}" / "a.parquet", rows(0, 5, (2,)))
    steps = steps_for(here, folder, Format.PARQUET)
    assert steps.once(*rewrite(steps)[:1], format="parquet")["files"][0]["file"] == "mail=…/a.parquet"
    (folder / f"mail={EMAIL}" / "b.parquet").write_bytes(b"PAR1 cut off")
    with pytest.raises(RunError) as caught:
        steps.once(*rewrite(steps)[:1], format="parquet")
    assert EMAIL not in str(caught.value)


@pytest.mark.parametrize("kind", [ICEBERG, DELTA, HUDI])
def test_other_formats_are_refused(here: SparkEstate, kind: Format) -> None:
    folder = here.folder("other")
    folder.mkdir()
    steps = steps_for(here, folder, kind)
    with pytest.raises(RunError, match="not supported yet"):
        steps.once(*rewrite(steps)[:1], format=kind.value)


def test_a_table_inside_the_folder_stops_the_step_before_anything_is_written(here: SparkEstate) -> None:
    """Its files hold the person, too, but they are its log's: written again in place, the table could not be read."""
    folder = here.folder("around")
    parquet(folder / "a.parquet", rows(0, 5, (2,)))
    write_deltalake(str(folder / "t"), pa.table(dict(zip(NAMES, zip(*rows(5, 5, (7,)), strict=True), strict=True))))
    before = {p: p.read_bytes() for p in folder.rglob("*.parquet")}
    steps = steps_for(here, folder, Format.PARQUET)
    with pytest.raises(RunError, match="folder contains a different table"):
        steps.all(rewrite(steps))
    assert {p: p.read_bytes() for p in folder.rglob("*.parquet")} == before


def test_probe_reads_only(here: SparkEstate) -> None:
    folder = here.folder("probe")
    parquet(folder / "a.parquet", rows(0, 5, (2,)))
    left = folder / "_pii_tracer_a.parquet"
    left.write_bytes(b"half")
    before = {p: p.read_bytes() for p in folder.iterdir()}
    steps = steps_for(here, folder, Format.PARQUET)
    assert steps.probe(*rewrite(steps)[:1], format="parquet") is Progress.PARTIAL
    assert {p: p.read_bytes() for p in folder.iterdir()} == before
    steps.once(*rewrite(steps)[:1], format="parquet")
    assert [p.name for p in folder.iterdir()] == ["a.parquet"]


def test_an_entry_of_a_dictionary_that_no_row_uses_is_written_out_of_the_file(here: SparkEstate) -> None:
    """F3b: filtered by Arrow, the row is gone and its value stays in the file; no reader of rows would ever see it."""
    folder = here.folder("entries")
    folder.mkdir()
    mail = pa.array([EMAIL, "b1@example.net", "b2@example.net"]).dictionary_encode()
    pq.write_table(pa.table({"uid": [UID, 1, 2], "email": mail}).slice(1), folder / "a.parquet", compression="zstd")
    assert EMAIL not in pq.read_table(folder / "a.parquet")["email"].to_pylist()
    patterns = build_patterns([KeySet(name="email", origin="email", weak=False, values=(("subj_1", EMAIL),))])
    (before,) = scan_tree(folder, patterns).with_person
    assert {hit.where for hit in before.hits} == {"dictionary page"}
    steps = steps_for(here, folder, Format.PARQUET, BY_ANY)
    assert steps.all(rewrite(steps))[Action.FILES_REWRITE]["rows_deleted"] == 0
    after = scan_tree(folder, patterns)
    assert (after.with_person, after.unread) == ((), ())
    assert pq.read_table(folder / "a.parquet")["uid"].to_pylist() == [1, 2]


def test_a_folder_whose_column_was_renamed_since_the_plan_is_left_alone(here: SparkEstate) -> None:
    folder = here.folder("renamed")
    parquet(folder / "a.parquet", rows(0, 5, (2,)))
    renamed = pq.read_table(folder / "a.parquet").rename_columns(["id", "user", "mail", "amount"])
    pq.write_table(renamed, folder / "b.parquet")
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    steps = steps_for(here, folder, Format.PARQUET)
    with pytest.raises(RunError, match="no column of the match"):
        steps.once(*rewrite(steps)[:1], format="parquet")
    after = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert after["b.parquet"] == before["b.parquet"]
    assert after.keys() == before.keys()


def test_a_disk_that_refuses_the_new_file_loses_nothing(here: SparkEstate) -> None:
    """The place of the new file is taken by a folder: what the system answers is told, and the old file stays."""
    folder = here.folder("refused")
    parquet(folder / "a.parquet", rows(0, 5, (2,)))
    before = (folder / "a.parquet").read_bytes()
    (folder / "_pii_tracer_a.parquet").mkdir()
    steps = steps_for(here, folder, Format.PARQUET)
    with pytest.raises(RunError, match="the operating system rejects the change: Is a directory"):
        steps.once(*rewrite(steps)[:1], format="parquet")
    assert (folder / "a.parquet").read_bytes() == before
