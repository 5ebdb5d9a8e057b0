"""A person leaves every snapshot of an Iceberg table, and every snapshot stays."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.lake.formats.iceberg.history_files import Container, History
from pii_tracer.model.locations import placed
from tests.executors.formats.iceberg.kept_history.people import PARTITIONED, People, brief, grown, without
from tests.executors.world import EMAIL, UID, residue

KINDS = [(2, name) for name in PARTITIONED] + [(1, "by region")]


def document(people: People) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(placed(people.table.metadata_location).read_bytes())
    return found


def entries(people: People) -> dict[int, list[tuple[Any, ...]]]:
    """Of each snapshot's manifests: what each entry says beside its file, which is known by its rows alone."""
    history = History.read(placed(people.table.metadata_location))
    found: dict[int, list[tuple[Any, ...]]] = {}
    for snapshot, lists in history.lists.items():
        (told,) = (s["manifest-list"] for s in history.document["snapshots"] if s["snapshot-id"] == snapshot)
        kept = Container.read(placed(told)).records
        for listed, record in zip(lists, kept, strict=True):
            same = [record.get(n) for n in ("partition_spec_id", "content", "sequence_number", "min_sequence_number")]
            for entry in Container.read(listed.path).records:
                own = [entry.get(n) for n in ("status", "snapshot_id", "sequence_number", "file_sequence_number")]
                ids = ids_in(placed(entry["data_file"]["file_path"]))
                found.setdefault(snapshot, []).append((record["added_snapshot_id"], *same, *own, ids))
    return found


def ids_in(path: Path) -> tuple[int, ...]:
    """Of the rows that are not the person's."""
    import pyarrow.parquet as pq

    table = pq.read_table(path, partitioning=None)
    key = "uid" if "uid" in table.column_names else "person_no"
    return tuple(row["id"] for row in table.select(["id", key]).to_pylist() if row[key] != UID)


def manifests_and_summaries_say_what_the_files_say(people: People) -> None:
    import pyarrow.parquet as pq

    table = people.table
    for snapshot in table.metadata.snapshots:
        live = []
        for manifest in snapshot.manifests(table.io):
            told = manifest.fetch_manifest_entry(table.io, discard_deleted=False)
            by_status = {s: [e for e in told if e.status == s] for s in (0, 1, 2)}
            assert (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count) == (
                len(by_status[1]),
                len(by_status[0]),
                len(by_status[2]),
            )
            assert manifest.added_rows_count == sum(e.data_file.record_count for e in by_status[1])
            assert manifest.manifest_length == placed(manifest.manifest_path).stat().st_size
            live += [e.data_file for e in told if e.status != 2]
            for one, at in zip(manifest.partitions or (), range(9), strict=False):
                values = {e.data_file.partition[at] for e in told}
                assert one.contains_null == (None in values)
                texts = sorted(str(v).encode() for v in values if v is not None)
                assert (one.lower_bound, one.upper_bound) == ((texts[0], texts[-1]) if texts else (None, None))
        for file in live:
            path = placed(file.file_path)
            footer = pq.read_metadata(path)
            assert (file.record_count, file.file_size_in_bytes) == (footer.num_rows, path.stat().st_size)
            keys = pq.read_table(path, partitioning=None).column(1).drop_null().to_pylist()
            if keys:
                bounds = [int.from_bytes(b[2], "little") for b in (file.lower_bounds, file.upper_bounds)]
                assert bounds == [min(keys), max(keys)]
        summary = snapshot.summary
        assert summary is not None
        assert summary["total-records"] == str(sum(f.record_count for f in live))
        assert summary["total-data-files"] == str(len(live))
        assert summary["total-files-size"] == str(sum(f.file_size_in_bytes for f in live))


def test_the_naive_way_leaves_the_person_in_every_older_snapshot(tmp_path: Path) -> None:
    people = grown(People(tmp_path))
    people.table.delete(f"person_no == {UID}")
    held = [name for name, rows in people.told().items() if any(str(UID) in row for row in rows)]
    assert "branch main" not in held
    assert {"tag q1", "tag alone", "branch dev"} < set(held)
    people.sweep()
    assert {Path(name).suffix for name in residue(people.folder)} == {".parquet", ".avro"}


@pytest.mark.parametrize(("version", "partitions"), KINDS)
def test_every_snapshot_stays_without_the_person(tmp_path: Path, version: int, partitions: str) -> None:
    people = grown(People(tmp_path, version, partitions))
    before, old, listed = people.told(), document(people), entries(people)
    facts = people.erase()
    after = people.told()
    assert after == without(before) != before
    assert facts["snapshots"] == len(old["snapshots"]) >= 8
    assert facts["rows_deleted"] >= 4
    # nothing of the rest has changed: ids, parents, times, sequence numbers, references, schemas, the log of snapshots
    new = document(people)
    changed = {"snapshots", "metadata-log", "last-updated-ms", "statistics", "partition-statistics"}
    assert {k: v for k, v in new.items() if k not in changed} == {k: v for k, v in old.items() if k not in changed}
    apart = {"manifest-list", "summary"}
    assert [{k: v for k, v in s.items() if k not in apart} for s in new["snapshots"]] == [
        {k: v for k, v in s.items() if k not in apart} for s in old["snapshots"]
    ]
    assert new["metadata-log"] == []
    # entries of files that had nobody but the person are gone; the others say what they said
    assert entries(people) == {
        snapshot: left for snapshot, told in listed.items() if (left := [entry for entry in told if entry[-1]])
    }
    manifests_and_summaries_say_what_the_files_say(people)
    people.sweep()
    assert residue(people.folder) == []
    assert people.told() == after
    # once more it finds nothing to do
    assert people.erase()["files_rewritten"] == 0
    assert document(people) == new


def test_readers_meanwhile_see_the_old_history_or_the_new_one(tmp_path: Path) -> None:
    people = brief(People(tmp_path))
    before = people.told()
    after = without(before)
    seen, over, failed = [], threading.Event(), []

    def read() -> None:
        while not over.is_set():
            try:
                seen.append(people.told())
            except Exception as error:
                failed.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        people.erase()
        # one read may have begun before; the next has not
        begun, until = len(seen), time.monotonic() + 60
        while len(seen) < begun + 2 and not failed and time.monotonic() < until:
            time.sleep(0.01)
    finally:
        over.set()
        thread.join()
    assert not failed
    assert seen[-1] == after
    assert all(told in (before, after) for told in seen)


def test_the_table_goes_on_afterwards(tmp_path: Path) -> None:
    people = brief(People(tmp_path))
    people.erase()
    people.sweep()
    before = people.told()
    people.append([(30, 1030, "b30@example.net")])
    people.table.delete("id == 4")
    after = people.told()
    assert {name: after[name] for name in before if name != "branch main"} == {
        name: rows for name, rows in before.items() if name != "branch main"
    }
    assert len(after["branch main"]) == len(before["branch main"])
    table = people.table
    table.manage_snapshots().set_current_snapshot(ref_name="q1").commit()
    assert people.told()["branch main"] == before["tag q1"]


def test_statistics_of_the_person_leave_the_metadata(tmp_path: Path) -> None:
    people = brief(People(tmp_path))
    table = people.table
    snapshot = table.metadata.snapshots[0].snapshot_id
    sketch = people.folder / "metadata" / "sketch.puffin"
    sketch.write_bytes(b"PFA1" + EMAIL.encode())
    told = document(people)
    told["statistics"] = [
        {
            "snapshot-id": snapshot,
            "statistics-path": f"file://{sketch}",
            "file-size-in-bytes": sketch.stat().st_size,
            "file-footer-size-in-bytes": 4,
            "blob-metadata": [],
        }
    ]
    placed(table.metadata_location).write_text(json.dumps(told))
    assert people.erase()["statistics_dropped"] == 1
    people.sweep()
    assert residue(people.folder) == []
    assert not sketch.exists()


def test_bounds_in_entries_of_lost_files_go(tmp_path: Path) -> None:
    """A deleted file that no snapshot reads any more still stands in a manifest, with the person's bounds (I4b)."""
    people = People(tmp_path)
    people.append([(2, UID, EMAIL), (3, 1003, "b3@example.net")])
    people.table.delete("id == 2")
    table = people.table
    table.maintenance.expire_snapshots().by_id(table.metadata.snapshots[0].snapshot_id).commit()
    people.sweep()
    history = History.read(placed(people.table.metadata_location))
    lost = [e for told in history.manifests.values() for e in told if e.path not in history.live]
    assert lost
    assert [Path(name).suffix for name in residue(people.folder)] == [".avro"]
    before = people.told()
    assert people.erase()["entries_of_lost_files_dropped"] == len(lost)
    people.sweep()
    assert residue(people.folder) == []
    assert people.told() == before


def test_a_column_that_had_no_bounds_gets_no_bounds(tmp_path: Path) -> None:
    """Its owner did not want values of it in manifests, and so it stays, whatever the table says now."""
    people = People(tmp_path, properties={"write.metadata.metrics.column.email": "none"})
    people.append([(1, UID, EMAIL), (2, 1002, "b2@example.net")])
    with people.table.transaction() as change:
        change.remove_properties("write.metadata.metrics.column.email")
    people.erase()
    table = people.table
    (snapshot,) = table.metadata.snapshots
    (manifest,) = snapshot.manifests(table.io)
    (entry,) = manifest.fetch_manifest_entry(table.io)
    assert 2 in entry.data_file.lower_bounds
    assert 3 not in entry.data_file.lower_bounds
