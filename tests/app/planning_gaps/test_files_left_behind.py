"""What verification would find after the run, and no step takes away, is said by the plan, with file and way out.

The files and the search are verification's own: `test_planning_and_verification_search_the_same_files`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from executors.formats.delta.sweep_rules import spent_leftovers
from pii_tracer.app.planning.folder_search import scan_estate
from pii_tracer.config.estate_file import load_estate
from pii_tracer.lake.careful_reading import Readings
from pii_tracer.lake.discovery import discover
from pii_tracer.model.datasets import Format, KeySet
from pii_tracer.model.plan import Copy
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.byte_search import verify_bytes
from planners.copies.scan_evidence import Seen
from planners.formats.base import FormatPlanner
from planners.formats.hudi.planner import HudiPlanner
from planners.formats.plain_files.planner import PlainFilesPlanner
from tests.app.planning.test_others_rows import HERS, MAIL, OTHER, Row, estate, planned, table, tickets

UUID = "7d3f3c3e-6a53-4bd6-8b29-5a9b1b1f0c11"


def gaps(base: Path) -> list[tuple[str, str, str]]:
    return [(g["kind"], g["evidence"], g["reason"]) for g in planned(base)["gaps"]]


def commit(base: Path, *actions: dict[str, Any]) -> None:
    """One more commit to the table."""
    log = base / "lake" / "tickets" / "_delta_log"
    version = len(list(log.glob("*.json")))
    (log / f"{version:020}.json").write_text("\n".join(map(json.dumps, actions)))


def live(base: Path) -> dict[str, Any]:
    log = base / "lake" / "tickets" / "_delta_log"
    lines = (log / f"{0:020}.json").read_text().splitlines()
    return next(action["add"] for action in map(json.loads, lines) if "add" in action)


@pytest.mark.parametrize(
    ("actions", "told", "to_do"),
    [
        (
            lambda base: [{"txn": {"appId": f"loader of {MAIL}", "version": 1, "lastUpdated": 1}}],
            "ids of writers",
            "delta.setTransactionRetentionDuration",
        ),
        (lambda base: [{"add": {**live(base), "tags": {"asked_by": MAIL}}}], "tags of live files", "UPDATE"),
        (
            lambda base: [{"domainMetadata": {"domain": "desk", "configuration": MAIL, "removed": False}}],
            "metadata domains",
            "by the tool that wrote them",
        ),
    ],
)
def test_what_every_checkpoint_of_a_delta_table_repeats(
    tmp_path: Path, actions: Callable[[Path], list[dict[str, Any]]], told: str, to_do: str
) -> None:
    base = estate(tmp_path)
    tickets(base, HERS, OTHER)
    assert gaps(base) == []
    commit(base, *actions(base))
    [(kind, way, reason)] = gaps(base)
    assert kind == "table_text"
    assert told in reason
    assert to_do in way


def test_a_writers_id_that_the_table_lets_go_is_no_gap(tmp_path: Path) -> None:
    base = estate(tmp_path)
    tickets(base, HERS, OTHER, configuration={"delta.setTransactionRetentionDuration": "interval 1 days"})
    commit(base, {"txn": {"appId": f"loader of {MAIL}", "version": 1, "lastUpdated": 1}})
    assert gaps(base) == []


def test_a_domain_that_was_removed_is_no_gap(tmp_path: Path) -> None:
    base = estate(tmp_path)
    tickets(base, HERS, OTHER)
    commit(base, {"domainMetadata": {"domain": "desk", "configuration": MAIL, "removed": False}})
    commit(base, {"domainMetadata": {"domain": "desk", "configuration": MAIL, "removed": True}})
    assert gaps(base) == []


@pytest.mark.parametrize(
    ("name", "stays"),
    [
        (f".{3:020}.json.{UUID}.tmp", False),
        (f"_commit_{UUID}.json.tmp", False),
        (f"{3:020}.checkpoint.parquet.tmp", False),
        (f"_commits/{3:020}.{UUID}.json", False),
        (f"_staged_commits/{3:020}.{UUID}.json", False),
        ("notes.json", True),
        ("notes.tmp", True),
        ("old/00000000000000000001.json", True),
        (f".{3:020}.json.swp", True),
        ("_commits/notes.json", True),
    ],
)
def test_files_of_a_delta_log(tmp_path: Path, name: str, stays: bool) -> None:
    base = estate(tmp_path)
    tickets(base, HERS, OTHER)
    file = base / "lake" / "tickets" / "_delta_log" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"add": {"path": "x", "size": 1, "stats": json.dumps({"minValues": {"email": MAIL}})}}))
    found = gaps(base)
    assert [(kind, where) for kind, where, _ in found] == ([("left_behind", f"_delta_log/{name}")] if stays else [])
    assert all("ask its owner to remove it" in reason for _, _, reason in found)


def stale(*rows: Row) -> pa.Table:
    """Rows of others, taken out of a table in which she was: her e-mail is an entry of the dictionary still."""
    encoded = table(HERS, *rows)
    mails = encoded["email"].dictionary_encode()
    return encoded.set_column(1, "email", mails).slice(1)


def test_a_stale_dictionary_entry_in_a_table(tmp_path: Path) -> None:
    base = estate(tmp_path)
    tickets(base, HERS)
    tickets(base, OTHER)
    assert gaps(base) == []
    files = sorted((base / "lake" / "tickets").glob("*.parquet"), key=lambda f: MAIL.encode() in f.read_bytes())
    pq.write_table(stale(OTHER), files[0])
    [(kind, where, reason)] = gaps(base)
    assert (kind, where) == ("left_behind", files[0].name)
    assert "dictionary page" in reason
    assert "rewrite this file" in reason


@pytest.mark.parametrize("name", [".rows.csv.swp", "_rows.csv~", ".#rows", "_old/notes.txt"])
def test_hidden_files_of_a_bare_folder(tmp_path: Path, name: str) -> None:
    base = estate(tmp_path, "csv")
    place = base / "lake" / "tickets"
    (place / "rows.csv").write_text(f"cust,email,note\nP-55102,{MAIL},x\nP-3,c@x.example,y\n")
    assert gaps(base) == []
    (place / name).parent.mkdir(exist_ok=True)
    (place / name).write_text(f"wrote {MAIL}\n")
    assert [(kind, where) for kind, where, _ in gaps(base)] == [("left_behind", name)]


def test_a_stale_dictionary_entry_in_a_bare_folder_has_a_step(tmp_path: Path) -> None:
    base = estate(tmp_path, "parquet")
    pq.write_table(table(HERS, OTHER), base / "lake" / "tickets" / "a.parquet")
    pq.write_table(stale(OTHER), base / "lake" / "tickets" / "b.parquet")
    plan = planned(base)
    assert plan["gaps"] == []
    assert "files_rewrite" in {step["action"] for step in plan["steps"]}


def test_planning_and_verification_search_the_same_files(tmp_path: Path) -> None:
    """On a table with everything in it: whatever verification would report, planning has seen."""
    base = estate(tmp_path)
    tickets(base, HERS)
    place = base / "lake" / "tickets"
    for name in (".x.swp", "_y/~z", "_delta_log/.a.tmp", "_delta_log/_commits/b.json", "_change_data/c", "#d#"):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(MAIL)
    pq.write_table(stale(OTHER), place / "e.parquet")
    patterns = build_patterns([KeySet(name="email", origin="email", values=(("R", MAIL),), weak=False)])
    found = discover(load_estate(base / "pii-tracer.yaml"), base)
    seen = {one.file for one in scan_estate(found, patterns, Readings(), lambda _: None)[str(place)].seen}
    copy = Copy.model_construct(
        id="c", location=str(place), other_keys=(), mask=None, match=None, mentions=(), facts={}
    )
    assert {residue.file for residue in verify_bytes(copy, patterns, place).residue} == seen
    assert len(seen) == 9  # six leftovers, the file with her row, the stale one, and the commit with her bounds


@pytest.mark.parametrize(("feature", "kinds"), [("variantType", 1), ("timeCrystals", 2), ("deletionVectors", 0)])
@pytest.mark.parametrize("side", ["readerFeatures", "writerFeatures"])
def test_a_feature_that_the_spark_at_hand_does_not_know(tmp_path: Path, feature: str, kinds: int, side: str) -> None:
    base = estate(tmp_path)
    tickets(base, HERS, OTHER)
    told = {"readerFeatures": [], "writerFeatures": [], side: [feature]}
    commit(base, {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **told}})
    found = [(kind, reason) for kind, _, reason in gaps(base) if kind == "unknown_version"]
    assert len(found) == kinds
    assert all(feature in reason for _, reason in found)


_GROUP = "7d3f3c3e-6a53-4bd6-8b29-5a9b1b1f0c11-0"


@pytest.mark.parametrize(
    ("file", "places", "stays"),
    [
        (".hoodie/timeline/20261101000000000_20261101000001000.commit", {"engine metadata"}, True),
        (".hoodie/20261101000000000.deltacommit", {"engine metadata"}, True),
        (".hoodie/.aux/notes", {"text"}, True),
        (".hoodie/metadata/column_stats/x.hfile", {"log block hfile"}, False),
        (f"day=1/{_GROUP}_0-1-2_20261101000000000.parquet", {"data"}, False),
        (f"day=1/.{_GROUP}_20261101000000000.log.1_0-1-2", {"log block data"}, False),
        (f"day=1/{_GROUP}_0-1-2_20261101000000000.parquet", {"dictionary page"}, True),
        (".rows.csv.swp", {"text"}, True),
    ],
)
def test_what_no_procedure_of_hudi_takes_away(file: str, places: set[str], stays: bool) -> None:
    """A commit's `extraMetadata` is one of the engine's notes; the metadata table is built anew."""
    item: Any = SimpleNamespace(rebuild_sql=None, state=SimpleNamespace(write_mode="mor"))
    assert bool(HudiPlanner().left_behind(item, Seen(file, frozenset(places)))) is stays


@pytest.mark.parametrize(
    ("places", "stays"),
    [
        ({"data"}, False),
        ({"data", "dictionary page of numbers"}, False),
        ({"dictionary page", "statistics"}, False),
        ({"dictionary page of numbers"}, True),
        ({"dictionary page", "dictionary page of numbers"}, True),
    ],
)
def test_what_the_rewrite_of_a_bare_parquet_file_takes_away(places: set[str], stays: bool) -> None:
    item: Any = SimpleNamespace(rebuild_sql=None, copy=SimpleNamespace(format=Format.PARQUET), state=None)
    seen = Seen("day=1/part-0.parquet", frozenset(places))
    assert bool(PlainFilesPlanner().left_behind(item, seen)) is stays


def test_a_format_that_says_nothing_of_a_file_leaves_it_to_its_owner() -> None:
    """A new format's planner has to say what its steps take away, or each find beside rows is a gap."""
    item: Any = SimpleNamespace(rebuild_sql=None)
    assert FormatPlanner().left_behind(item, Seen("log/1.json", frozenset({"text", "engine metadata"}))) is None
    assert FormatPlanner().left_behind(item, Seen("log/1.json", frozenset({"engine metadata"}))) is not None


@pytest.mark.parametrize(("hours", "going"), [(0, {"new", "old", "below"}), (24, {"old", "below"})])
def test_leftovers_of_a_running_writer_stay_for_a_day(tmp_path: Path, hours: int, going: set[str]) -> None:
    base = estate(tmp_path)
    tickets(base, HERS, OTHER)
    place = base / "lake" / "tickets"
    for name in (f"_new_{UUID}.json.tmp", f"_old_{UUID}.json.tmp", f".{0:020}.json.below.tmp"):
        (place / "_delta_log" / name).write_text("{}")
    os.utime(place / "_delta_log" / f"_old_{UUID}.json.tmp", (1, 1))
    left = [path.name for path in spent_leftovers(place, 1, hours)]
    assert {word for word in ("new", "old", "below") for name in left if word in name} == going
