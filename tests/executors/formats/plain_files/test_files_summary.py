"""F7: `_metadata` repeats the footers of a Parquet folder, with the person's values; `_common_metadata` holds a schema."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from executors.engine.local_files import swap
from executors.formats.plain_files import executor, parquet_summary_files
from pii_tracer.lake.discovery import discover
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import Progress
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.hits import TreeScan
from pii_tracer.scan.value_forms import build_patterns
from planners.formats.plain_files.steps import folder_steps
from planners.step_drafts import CopyDraft
from tests.executors.formats.plain_files.test_files import (
    NAMES,
    here,
    rewrite,
    steps_for,
)
from tests.executors.formats.plain_files.test_files_mask import masked
from tests.executors.formats.plain_files.test_files_mask import run as mask_rows
from tests.executors.world import UID, Keyring, rows
from tests.sparksession import SparkEstate

__all__ = ["here"]

PARTS = {"day=1/a.parquet": (2, 3), "day=1/b.parquet": (), "day=2/c.parquet": ()}
"""Files of five rows each, and which of them are the person's."""


def dataset(folder: Path) -> pa.Schema:
    """Files, a summary of all of them and one of each day's, as jobs write them beside the schema alone."""
    seen: dict[str, list[tuple[str, pq.FileMetaData]]] = {}
    for number, (name, mine) in enumerate(PARTS.items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.table(dict(zip(NAMES, zip(*rows(5 * number, 5, mine), strict=True), strict=True)))
        pq.write_table(table, path)
        for place in (folder, path.parent):
            seen.setdefault(str(place), []).append((path.relative_to(place).as_posix(), pq.read_metadata(path)))
    for place, parts in seen.items():
        for name, meta in parts:
            meta.set_file_path(name)
        pq.write_metadata(table.schema, Path(place) / "_metadata", [meta for _, meta in parts])
    pq.write_metadata(table.schema, folder / "_common_metadata")
    return table.schema


def naive(path: Path) -> None:
    table = pq.read_table(path, partitioning=None)
    pq.write_table(table.filter(pc.not_equal(table["uid"], UID)), path)


def seen(folder: Path) -> TreeScan:
    return scan_tree(folder, build_patterns([Keyring.sets["email"], Keyring.sets["uid"]]))


def names(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def through_the_summary(folder: Path) -> list[int]:
    """As a reader that trusts it."""
    import pyarrow.dataset as ds

    return sorted(ds.parquet_dataset(folder / "_metadata").to_table(columns=["id"])["id"].to_pylist())


def test_rows_taken_out_of_the_files_stay_in_the_summary(here: SparkEstate) -> None:
    """The hazard itself, and that a reader by the summary is broken by it."""
    folder = here.folder("hazard")
    dataset(folder)
    assert through_the_summary(folder) == list(range(15))
    naive(folder / "day=1/a.parquet")
    found = seen(folder)
    assert [file.path for file in found.with_person] == ["_metadata", "day=1/_metadata"]
    assert {hit.where for file in found.with_person for hit in file.hits} == {"statistics", "raw bytes"}
    assert found.unread == ()
    with pytest.raises((OSError, pa.ArrowException)):
        through_the_summary(folder)


def test_the_summaries_of_a_rewritten_file_go_and_no_other(here: SparkEstate) -> None:
    folder = here.folder("summary")
    schema = dataset(folder)
    (folder / "._metadata.crc").write_bytes(b"stale")
    others = {name: (folder / name).read_bytes() for name in ("_common_metadata", "day=2/_metadata", "day=2/c.parquet")}
    facts = (steps := steps_for(here, folder, Format.PARQUET)).all(rewrite(steps))[Action.FILES_REWRITE]
    assert (facts["files_rewritten"], facts["rows_deleted"], facts["summaries_removed"]) == (1, 2, 2)
    assert names(folder) == sorted({*PARTS, *others})
    assert {name: (folder / name).read_bytes() for name in others} == others
    assert pq.read_schema(folder / "_common_metadata").equals(schema)
    assert (seen(folder).with_person, seen(folder).unread) == ((), ())
    assert sorted(pq.read_table(folder)["id"].to_pylist()) == [n for n in range(15) if n not in (2, 3)]


def test_a_mask_makes_it_stale_too(here: SparkEstate) -> None:
    folder = here.folder("masked")
    dataset(folder)
    steps = masked(here, folder, Format.PARQUET)
    facts = mask_rows(steps)
    assert (facts["rows_masked"], facts["summaries_removed"]) == (2, 2)
    assert "_metadata" not in names(folder)
    verdict = steps.bytes()
    assert (verdict.residue, verdict.unverified) == ((), ())


@pytest.mark.parametrize("before", [True, False])
def test_a_kill_leaves_no_summary_beside_files_that_it_does_not_describe(
    here: SparkEstate, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    folder = here.folder("killed")
    dataset(folder)
    steps = steps_for(here, folder, Format.PARQUET)

    def die(path: Path, temporary: Path, state: tuple[int, ...]) -> None:
        if not before:
            swap(path, temporary, state)
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(executor, "swap", die)
        with pytest.raises(KeyboardInterrupt):
            steps.once(*rewrite(steps)[:1], format="parquet")
    assert "_metadata" not in names(folder)
    assert steps.probe(*rewrite(steps)[:1], format="parquet") is (Progress.PARTIAL if before else Progress.DONE)
    steps.once(*rewrite(steps)[:1], format="parquet")
    assert (seen(folder).with_person, seen(folder).unread) == ((), ())


@pytest.mark.parametrize("how", ["written again", "removed"])
def test_one_that_is_stale_already_goes_though_no_file_holds_the_person_any_more(here: SparkEstate, how: str) -> None:
    folder = here.folder("late")
    dataset(folder)
    file = folder / "day=1/a.parquet"
    naive(file) if how == "written again" else file.unlink()
    steps = steps_for(here, folder, Format.PARQUET)
    assert steps.probe(*rewrite(steps)[:1], format="parquet") is Progress.PARTIAL
    facts = steps.all(rewrite(steps))[Action.FILES_REWRITE]
    assert (facts["files_rewritten"], facts["summaries_removed"]) == (0, 2)
    assert (seen(folder).with_person, seen(folder).unread) == ((), ())


def test_a_folder_without_the_person_keeps_its_summary(here: SparkEstate) -> None:
    folder = here.folder("clean")
    dataset(folder)
    held = {name: (folder / name).read_bytes() for name in names(folder)}
    pq.write_table(pa.table({"uid": [1, 2]}), folder / "day=2/d.parquet")  # what is said of the others is still right
    assert parquet_summary_files.stale(folder) == []
    assert parquet_summary_files.remove_stale(folder) == 0
    assert {name: (folder / name).read_bytes() for name in held} == held


@pytest.mark.parametrize("content", [b"PAR1 cut off", b"PARE0000PARE"])
def test_a_summary_that_cannot_be_read_is_refused_before_anything_is_written(here: SparkEstate, content: bytes) -> None:
    folder = here.folder("unread")
    dataset(folder)
    (folder / "_metadata").write_bytes(content)
    before = {name: (folder / name).read_bytes() for name in names(folder)}
    steps = steps_for(here, folder, Format.PARQUET)
    with pytest.raises(RunError, match="summary of a Parquet folder cannot be read"):
        steps.once(*rewrite(steps)[:1], format="parquet")
    assert {name: (folder / name).read_bytes() for name in names(folder)} == before


def test_files_of_that_name_that_are_no_summary_stay(here: SparkEstate) -> None:
    """Rows of its own, or no Parquet at all: what they are is not known, and the scan reads them."""
    folder = here.folder("named")
    dataset(folder)
    pq.write_table(pa.table({"uid": [5]}), folder / "_metadata")
    (folder / "day=1/_metadata").write_text("notes")
    steps = steps_for(here, folder, Format.PARQUET)
    assert "summaries_removed" not in steps.all(rewrite(steps))[Action.FILES_REWRITE]
    assert {"_metadata", "day=1/_metadata"} <= set(names(folder))


def test_the_plan_says_that_it_goes(here: SparkEstate) -> None:
    folder = here.folder("planned")
    dataset(folder)
    for number, summarised in enumerate((True, False)):
        (state,) = discover(here.estate, here.base).tables
        copy = steps_for(here, folder, Format.PARQUET).copy
        step = next(s for s in folder_steps(CopyDraft(copy=copy, state=state)) if s.action is Action.FILES_REWRITE)
        assert ("F7" in step.hazards, "_metadata" in step.reason) == (summarised, summarised), number
        for path in folder.rglob("_metadata"):
            path.unlink()
