"""The log reader on hand-written logs: what a real engine writes only now and then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.lake.formats.delta.log_files import is_cleared, leftovers, tombstones_with
from pii_tracer.lake.formats.delta.transaction_log import live_files, read_log
from pii_tracer.model.errors import EstateError

_LONE = "7d3f3c3e-6a53-4bd6-8b29-5a9b1b1f0c11"
SCHEMA = json.dumps({"type": "struct", "fields": [{"name": "uid", "type": "long", "nullable": True, "metadata": {}}]})
PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
METADATA = {"metaData": {"id": "x", "schemaString": SCHEMA, "partitionColumns": [], "configuration": {}}}


def add(path: str, **more: Any) -> dict[str, Any]:
    return {"add": {"path": path, "size": 1, "stats": '{"numRecords": 2}', "partitionValues": {}, **more}}


def remove(path: str, **more: Any) -> dict[str, Any]:
    return {"remove": {"path": path, **more}}


def commit(table: Path, version: int, *actions: dict[str, Any]) -> None:
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    text = "\n".join(json.dumps(a) for a in actions)
    (log / f"{version:020}.json").write_text(text, encoding="utf-8")


def checkpoint(table: Path, name: str, *actions: dict[str, Any]) -> None:
    keys = ("add", "remove", "metaData", "protocol")
    rows: list[dict[str, Any]] = [{k: a.get(k) for k in keys} for a in actions]
    for row in rows:
        for action, member in (("add", "partitionValues"), ("metaData", "configuration")):
            if row[action]:
                row[action] = {**row[action], member: None}
    present = [k for k in keys if any(row[k] for row in rows)]
    table.joinpath("_delta_log").mkdir(parents=True, exist_ok=True)
    pq.write_table(
        pa.Table.from_pylist([{k: row[k] for k in present} for row in rows]), table / "_delta_log" / f"{name}.parquet"
    )


def names(table: Path) -> list[str]:
    return [f.path.name for f in live_files(table)]


def test_replay(tmp_path: Path) -> None:
    commit(tmp_path, 0, PROTOCOL, METADATA, add("a"), add("b"))
    commit(tmp_path, 1, add("c"), remove("a"))
    snapshot = read_log(tmp_path)
    assert (snapshot.version, snapshot.earliest) == (1, 0)
    assert names(tmp_path) == ["b", "c"]


def test_a_new_deletion_vector_replaces_the_file_wherever_the_removal_stands(tmp_path: Path) -> None:
    vector = {
        "storageType": "u",
        "pathOrInlineDv": "^-aqEH.-t@S}K{vb[*k^",
        "offset": 1,
        "sizeInBytes": 1,
        "cardinality": 1,
    }
    for version, order in enumerate((1, -1)):
        table = tmp_path / str(version)
        commit(table, 0, PROTOCOL, METADATA, add("a"))
        commit(table, 1, *[add("a", deletionVector=vector), remove("a")][::order])
        (file,) = live_files(table)
        assert (file.deletion_vector, file.rows, file.deleted_rows) == (True, 2, 1)


def test_paths_are_decoded_once_and_absolute_ones_are_external(tmp_path: Path) -> None:
    commit(tmp_path / "t", 0, PROTOCOL, METADATA, add("day=a%2520b/p.parquet"), add((tmp_path / "x y").as_uri()))
    inner, outer = live_files(tmp_path / "t")
    assert (inner.path, inner.external) == (tmp_path / "t" / "day=a%20b" / "p.parquet", False)
    assert (outer.path, outer.external) == (tmp_path / "x y", True)


def test_a_path_that_climbs_out_is_external(tmp_path: Path) -> None:
    commit(tmp_path / "t", 0, PROTOCOL, METADATA, add("../other/p.parquet"))
    assert live_files(tmp_path / "t")[0].external


def test_checkpoint_stands_for_what_was_cleaned_away(tmp_path: Path) -> None:
    checkpoint(tmp_path, f"{4:020}.checkpoint", PROTOCOL, METADATA, add("a"), add("b"))
    commit(tmp_path, 5, remove("a"))
    snapshot = read_log(tmp_path)
    assert (snapshot.version, snapshot.earliest) == (5, 4)
    assert names(tmp_path) == ["b"]


def test_an_incomplete_checkpoint_does_not_count(tmp_path: Path) -> None:
    commit(tmp_path, 0, PROTOCOL, METADATA, add("a"))
    commit(tmp_path, 1, add("b"))
    checkpoint(tmp_path, f"{1:020}.checkpoint.{1:010}.{2:010}", PROTOCOL, METADATA, add("wrong"))
    assert names(tmp_path) == ["a", "b"]
    checkpoint(tmp_path, f"{1:020}.checkpoint.{2:010}.{2:010}", add("also"))
    assert names(tmp_path) == ["also", "wrong"]


def test_the_log_remembers_a_clone_whose_files_are_all_its_own(tmp_path: Path) -> None:
    clone = {"commitInfo": {"operation": "CLONE", "operationParameters": {"source": "delta.`/a b/c`"}}}
    commit(tmp_path, 0, PROTOCOL, METADATA, clone, add("a"))
    checkpoint(tmp_path, f"{0:020}.checkpoint", PROTOCOL, METADATA, add("a"))
    assert read_log(tmp_path).cloned_from == "delta.`/a b/c`"


def test_without_statistics_the_rows_are_unknown(tmp_path: Path) -> None:
    commit(tmp_path, 0, PROTOCOL, METADATA, add("a", stats=None))
    assert live_files(tmp_path)[0].rows is None


@pytest.mark.parametrize("damage", ["hole", "torn", "empty", "no metadata", "wrong kind"])
def test_a_damaged_log_is_an_error_and_never_a_smaller_table(tmp_path: Path, damage: str) -> None:
    commit(tmp_path, 0, PROTOCOL, METADATA, add("a"))
    commit(tmp_path, 1, add("b"))
    commit(tmp_path, 2, add("c"))
    log = tmp_path / "_delta_log"
    if damage == "hole":
        (log / f"{1:020}.json").unlink()
    elif damage == "torn":
        (log / f"{2:020}.json").write_text('{"add": {"path": "c', encoding="utf-8")
    elif damage == "empty":
        for path in log.iterdir():
            path.unlink()
    elif damage == "no metadata":
        commit(tmp_path, 0, PROTOCOL)
    else:
        (log / f"{2:020}.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(EstateError, match="Delta log cannot be read"):
        read_log(tmp_path)


@pytest.mark.parametrize(
    ("name", "spent"),
    [
        (f".{1:020}.json.{_LONE}.tmp", True),
        (f"..{1:020}.json.{_LONE}.tmp.crc", True),
        (f"_commits/{1:020}.{_LONE}.json", True),
        (f"_staged_commits/{1:020}.{_LONE}.json", True),
        (f"{1:020}.checkpoint.parquet.tmp", True),
        (f".{9:020}.json.{_LONE}.tmp", False),
        (f"_commit_{_LONE}.json.tmp", False),
        (f"_staged_commits/{9:020}.{_LONE}.json", None),
        ("notes.json", None),
        ("notes.tmp", None),
        (".notes.json.tmp", None),
        ("_commits/notes.json", None),
    ],
)
def test_what_writers_left_in_a_log(tmp_path: Path, name: str, spent: bool | None) -> None:
    """Certain below the checkpoint; by its age where it can be a running writer's; a stranger's file never."""
    commit(tmp_path, 0, PROTOCOL, METADATA, add("a"))
    place = tmp_path / "_delta_log" / name
    place.parent.mkdir(exist_ok=True)
    place.write_text("{}")
    assert leftovers(tmp_path, 5) == ([] if spent is None else [(place, spent)])
    if spent is not None:
        assert is_cleared(place.relative_to(tmp_path / "_delta_log").parts)


def test_tombstones_tell_a_person_in_their_tags(tmp_path: Path) -> None:
    commit(tmp_path, 0, PROTOCOL, METADATA, add("a"))
    rows = [PROTOCOL, METADATA, remove("b", tags={"asked_by": "for rao@x.example"})]
    (tmp_path / "_delta_log" / f"{0:020}.checkpoint.{_LONE}.json").write_text("\n".join(map(json.dumps, rows)))
    assert tombstones_with(tmp_path, {"rao@x.example"}) == 1
    assert tombstones_with(tmp_path, {"asha@x.example"}) == 0


@pytest.mark.parametrize(
    "told", [{"path": "of%20rao@x.example.parquet"}, {"stats": '{"minValues": {"a": "rao@x.example"}}'}]
)
def test_tombstones_tell_a_person_in_their_path_and_statistics(tmp_path: Path, told: dict[str, str]) -> None:
    commit(tmp_path, 0, PROTOCOL, METADATA, add("a"))
    rows = [PROTOCOL, METADATA, {"remove": {**remove("b")["remove"], **told}}]
    (tmp_path / "_delta_log" / f"{0:020}.checkpoint.{_LONE}.json").write_text("\n".join(map(json.dumps, rows)))
    assert tombstones_with(tmp_path, {"rao@x.example"}) == 1
    assert tombstones_with(tmp_path, {"ao@x.example"}) == 0
