"""A value in each place of a Delta table's log, and of its folder."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from tests.kits.planted.estate import HERS, MAIL, OTHERS, Plant, Planted, Step, beside, leaves, with_value

LOG = "_delta_log"
UUID = "7d3f3c3e-6a53-4bd6-8b29-5a9b1b1f0c11"
_GONE = {
    "path": "gone.parquet",
    "deletionTimestamp": time.time_ns() // 1_000_000 - 3_600_000,
    "dataChange": True,
    "extendedFileMetadata": True,
    "partitionValues": {},
    "size": 5,
    "tags": {"a": "b"},
    "stats": '{"minValues": {"note": "b"}}',
}
_MORE: tuple[dict[str, Any], ...] = (
    {"txn": {"appId": "loader", "version": 1, "lastUpdated": 1}},
    {"domainMetadata": {"domain": "desk", "configuration": '{"a": "b"}', "removed": False}},
    {"remove": _GONE},
    {"commitInfo": {"operation": "WRITE", "operationParameters": {"predicate": "x"}, "userMetadata": "y"}},
)


def build(base: Path, name: str) -> Path:
    """Commit 0 adds a file with a row of hers, commit 1 one of other people, commit 2 has the other actions."""
    first, place = base / "delta-template", base / "lake" / name
    if not first.exists():
        write_deltalake(first, HERS, description="d", name="n", configuration={"delta.enableChangeDataFeed": "false"})
        write_deltalake(first, OTHERS, mode="append")
        _write(first, 2, list(_MORE))
    shutil.copytree(first, place)
    return place


def _write(folder: Path, version: int, actions: list[dict[str, Any]]) -> None:
    (folder / LOG / f"{version:020}.json").write_text("\n".join(map(json.dumps, actions)))


def actions_of(folder: Path, version: int) -> list[dict[str, Any]]:
    """The actions of a commit."""
    return [json.loads(line) for line in (folder / LOG / f"{version:020}.json").read_text().splitlines()]


def in_action(version: int, number: int, path: tuple[Step, ...], folder: Path) -> None:
    actions = actions_of(folder, version)
    actions[number] = with_value(actions[number], path)
    _write(folder, version, actions)


def others_file(folder: Path) -> str:
    """The live file without a row of hers."""
    return next(str(action["add"]["path"]) for action in actions_of(folder, 1) if "add" in action)


def renamed(folder: Path) -> None:
    """The file of other people gets the value as its name."""
    actions, name = actions_of(folder, 1), others_file(folder)
    (folder / name).rename(folder / f"{MAIL}.parquet")
    _write(folder, 1, [{"add": a["add"] | {"path": f"{MAIL}.parquet"}} if "add" in a else a for a in actions])


def beside_others(pattern: str, folder: Path) -> None:
    beside(pattern.format(others_file(folder)), folder)


def in_footer(folder: Path) -> None:
    file = folder / others_file(folder)
    pq.write_table(pq.read_table(file).replace_schema_metadata({"exported for": MAIL}), file)


def stale_entry(folder: Path) -> None:
    """A dictionary's entry that no row of the other people's file uses."""
    notes = pa.array([MAIL, "a", "z"]).dictionary_encode().slice(1)
    pq.write_table(OTHERS.set_column(1, "note", notes), folder / others_file(folder))


def plants(template: Path) -> Mapping[str, Plant]:
    found: dict[str, Plant] = {}
    for version in range(3):
        for number, action in enumerate(actions_of(template, version)):
            for path in leaves(action):
                found[f"{version} {'.'.join(map(str, path))}"] = partial(in_action, version, number, path)
    for name in (
        "_last_checkpoint",
        ".00000000000000000003.json.x.tmp",
        f"_commit_{UUID}.json.tmp",
        "00000000000000000000.crc",
        "_sidecars/x.parquet",
        f"_commits/{0:020}.{UUID}.json",
        "notes.txt",
        "_commits/notes.txt",
        "old/00000000000000000000.json",
    ):
        found[f"log {name}"] = partial(beside, f"{LOG}/{name}")
    for name in (
        "notes.txt",
        ".x.swp",
        "_SUCCESS",
        "_change_data/x.parquet",
        "_delta_index/x",
        "_symlink_format_manifest/notes.txt",
        "_checkpoints/0/x",
        "_spark_metadata/0",
        ".gone.parquet.crc",
    ):
        found[f"file {name}"] = partial(beside, name)
    found["crc of others"] = partial(beside_others, ".{}.crc")
    found["name of others"] = renamed
    found["footer of others"] = in_footer
    found["dictionary of others"] = stale_entry
    return found


DELTA = Planted(
    kind="delta",
    build=build,
    plants=plants,
    taken={
        r"\d commitInfo\..*": "delta_clean_log",
        r"\d ((?!metaData|add)\w+\.)?unheard_of": "delta_clean_log",
        r"2 remove\..*": "delta_clean_log",
        r"0 add\.(stats\.|partitionValues\.|unheard_of).*": "delta_delete_rows",
        r"log (_last_checkpoint|\.0.*\.tmp|_commit_.*\.tmp|0.*\.crc|_sidecars/.*|_commits/0.*)": "delta_clean_log",
        r"file (_SUCCESS|_change_data/.*|_delta_index/.*)": "delta_vacuum",
    },
    refused=(r"0 metaData\.schemaString\.fields\.\d\.type", r"0 metaData\.schemaString\.fields\.1\.name"),
    quick=(
        "0 metaData.id",
        "0 metaData.format.options.unheard_of",
        "1 add.stats.minValues.note",
        "1 add.stats.maxValues.note",
        "1 add.partitionValues.unheard_of",
        "2 txn.appId",
        "2 remove.path",
        "2 commitInfo.userMetadata",
        "file _symlink_format_manifest/notes.txt",
        "log notes.txt",
        "crc of others",
        "name of others",
        "dictionary of others",
    ),
)
