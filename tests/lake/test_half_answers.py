"""One object of many that refuses to be read: a gap for it, and the others are read all the same."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from pii_tracer.app.planning.folder_search import scan_estate
from pii_tracer.lake.careful_reading import Readings
from pii_tracer.lake.discovery import discover
from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.value_forms import build_patterns
from tests.lake.catalogs.test_catalogs import (
    ROWS,
    SQL,
    estate,
    kinds,
    sql_catalog,
    table,
)
from tests.unprivileged import open_folder, unprivileged

__all__ = ["open_folder"]


@pytest.fixture
def base(open_folder: Path) -> Path:
    (open_folder / "warehouse" / "plain").mkdir(parents=True)
    pq.write_table(ROWS, open_folder / "warehouse" / "plain" / "1.parquet")
    return open_folder


def locations(found: object) -> set[str]:
    return {Path(s.location).name for s in found.tables}  # type: ignore[attr-defined]


def test_folders_and_files_that_are_denied(base: Path) -> None:
    closed = base / "warehouse" / "closed"
    closed.mkdir()
    pq.write_table(ROWS, closed / "1.parquet")
    denied = base / "warehouse" / "half" / "denied.parquet"
    denied.parent.mkdir()
    pq.write_table(ROWS, denied)
    write_deltalake(base / "warehouse" / "delta", ROWS)
    hidden = base / "warehouse" / "_hidden"
    hidden.mkdir()
    pq.write_table(ROWS, hidden / "x.parquet")
    deeper = base / "warehouse" / "_trash" / "old" / "deeper"
    deeper.mkdir(parents=True)
    pq.write_table(ROWS, deeper / "x.parquet")
    view = base / "warehouse" / "view" / "metadata"
    view.mkdir(parents=True)
    (view / "v1.metadata.json").write_text('{"view-uuid": "1"}')
    (within := view.parent / "shut").mkdir()
    shut = (closed, base / "warehouse" / "delta" / "_delta_log", hidden, deeper, within)
    for path in (*shut, denied):
        path.chmod(0)
    try:
        with unprivileged():
            found = discover(estate(), base)
    finally:
        for path in shut:
            path.chmod(0o755)
    assert "plain" in locations(found)
    unreadable = {evidence for kind, evidence in kinds(found) if kind == "unreadable"}
    assert {*map(str, shut)} <= unreadable
    assert any(place.startswith(str(denied.parent)) for place in unreadable)


def test_a_file_of_a_table_that_cannot_be_opened_is_unread_and_the_rest_is_scanned(base: Path) -> None:
    write_deltalake(base / "warehouse" / "delta", ROWS)
    (data,) = (base / "warehouse" / "delta").glob("*.parquet")
    shut = base / "warehouse" / "delta" / "shut"
    shut.mkdir()
    keys = (KeySet(name="k", origin="t.name", weak=False, values=(("s", "nobody.is.here@example.org"),)),)
    assert not scan_estate(discover(estate(), base), build_patterns(keys), Readings(), lambda _: None)[
        str(base / "warehouse" / "delta")
    ].unread
    data.chmod(0)
    shut.chmod(0)
    try:
        with unprivileged():
            found = discover(estate(), base)
            seen = scan_estate(found, build_patterns(keys), Readings(), lambda _: None)
    finally:
        data.chmod(0o644)
        shut.chmod(0o755)
    assert locations(found) == {"plain", "delta"}
    assert seen[str(base / "warehouse" / "delta")].unread
    assert not seen[str(base / "warehouse" / "plain")].unread


def test_links_that_lead_nowhere_outside_or_to_each_other(base: Path) -> None:
    lake = base / "warehouse"
    (lake / "nowhere").symlink_to(lake / "gone")
    (lake / "outside").symlink_to("/etc")
    (lake / "one").symlink_to(lake / "two")
    (lake / "two").symlink_to(lake / "one")
    found = discover(estate(), base)
    assert locations(found) == {"plain"}
    assert kinds(found) == [("outside_link", str(lake / name)) for name in ("nowhere", "one", "outside", "two")]


def test_a_pipe_is_not_opened(base: Path) -> None:
    os.mkfifo(base / "warehouse" / "plain" / "pipe.parquet")
    found = discover(estate(), base)
    assert locations(found) == {"plain"}
    assert kinds(found) == [("unreadable", str(base / "warehouse" / "plain" / "pipe.parquet"))]


def test_a_name_that_is_not_text_is_a_gap_that_can_be_written_down(base: Path) -> None:
    name = os.fsencode(base / "warehouse") + b"/caf\xe9"
    Path(os.fsdecode(name)).mkdir()
    shutil.copy(base / "warehouse" / "plain" / "1.parquet", Path(os.fsdecode(name)) / "1.parquet")
    found = discover(estate(), base)
    assert locations(found) == {"plain"}
    assert kinds(found) == [("unreadable", str(base / "warehouse") + "/caf\\xe9")]
    assert found.digest()


def test_metadata_of_versions_to_come(base: Path) -> None:
    lake = base / "warehouse"
    made = table(sql_catalog(base), "prod.future")
    current = Path(made.metadata_location.removeprefix("file://"))
    current.write_text(json.dumps(json.loads(current.read_text()) | {"format-version": 4}))
    write_deltalake(lake / "newer", ROWS)
    (log,) = (lake / "newer" / "_delta_log").glob("*.json")
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    features = {"readerFeatures": ["timeCrystals"], "writerFeatures": ["timeCrystals"]}
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    lines = [{"protocol": protocol | features} if "protocol" in line else line for line in lines]
    log.write_text("\n".join(json.dumps(line) for line in lines))
    found = discover(estate(core=SQL), base)
    assert {"plain", "newer"} <= locations(found)
    told = dict(kinds(found))
    assert set(told) == {"unreadable", "unknown_version"}
    assert told["unreadable"].endswith("/prod/future")
    (version,) = [g for g in found.gaps if g.kind == "unknown_version"]
    assert "timeCrystals" in version.reason


def test_a_folder_of_two_formats_and_a_table_inside_a_table(base: Path) -> None:
    made = table(sql_catalog(base), "prod.people")
    place = Path(made.location().removeprefix("file://"))
    write_deltalake(place, ROWS)
    write_deltalake(place / "copies" / "inner", ROWS)
    found = discover(estate(core=SQL), base)
    assert ("two_formats", str(place)) in kinds(found)
    assert ("nested_table", str(place / "copies" / "inner")) in kinds(found)


@pytest.mark.parametrize("codec", ["zstd", "none"])
def test_row_groups_in_another_file_and_under_another_codec_are_a_copy(base: Path, codec: str) -> None:
    """Neither size nor checksum tells: the file has rows of others before, and is packed in another way."""
    lake = base / "warehouse"
    more = pa.table({"uid": pa.array([7, 8], pa.int64()), "name": ["x", "y"]})
    (lake / "merged").mkdir()
    with pq.ParquetWriter(lake / "merged" / "all.parquet", ROWS.schema, compression=codec) as writer:
        writer.write_table(more)
        writer.write_table(ROWS)
    (lake / "other").mkdir()
    pq.write_table(more.append_column("n", pa.array([1, 2])), lake / "other" / "1.parquet", compression=codec)
    (lake / "one").mkdir()
    pq.write_table(ROWS.slice(0, 1), lake / "one" / "1.parquet", compression=codec)  # one row proves nothing
    os.utime(lake / "plain" / "1.parquet", (1, 1))
    states = {Path(s.location).name: s.same_files_as for s in discover(estate(), base).tables}
    assert states == {"plain": None, "merged": str(lake / "plain"), "other": None, "one": None}


def test_hidden_places_that_no_scan_reaches(base: Path) -> None:
    lake = base / "warehouse"
    lonely = lake / "lonely"
    for place in (lonely, lake / "_trash" / "deep", lake / "plain" / "_spark_metadata", lake / "bare"):
        place.mkdir(parents=True)
    shutil.copy(lake / "plain" / "1.parquet", lonely / "_backup.parquet")
    (lake / ".export.zip").write_bytes(b"PK")
    (lake / "_trash" / "deep" / "dump.bin").write_bytes(b"x")
    # beside data they are scanned with it; markers and checksums hold nothing
    (lake / "plain" / "_note.bin").write_bytes(b"x")
    (lake / "plain" / "_spark_metadata" / "0").write_bytes(b"x")
    (lake / "bare" / "_SUCCESS").write_bytes(b"")
    (lake / "bare" / "._SUCCESS.crc").write_bytes(b"x")
    found = discover(estate(), base)
    assert locations(found) == {"plain"}
    assert kinds(found) == [
        ("hidden_data", str(lake / ".export.zip")),
        ("hidden_data", str(lake / "_trash")),
        ("hidden_data", str(lonely / "_backup.parquet")),
    ]
