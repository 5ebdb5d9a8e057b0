"""Bare folders that the system does not let us read or write, or of which a file is broken: told, nothing lost, resumed.

Permissions do not bind root: the step runs as another user (`tests/unprivileged.py`).
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from executors.registry import build
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import Progress
from pii_tracer.run.masked_place_names import shown_path
from tests.executors.formats.plain_files.test_files import here, parquet, steps_for
from tests.executors.formats.plain_files.test_files_formats import (
    ROWS,
    write_avro,
    write_json,
    write_orc,
)
from tests.executors.formats.plain_files.test_files_kept import lines
from tests.executors.world import Steps, residue, rows
from tests.sparksession import SparkEstate
from tests.unprivileged import NOBODY, open_folder, unprivileged

__all__ = ["here", "open_folder"]

REWRITE = Action.FILES_REWRITE


@pytest.fixture
def there(spark_estate: SparkEstate, open_folder: Path) -> SparkEstate:
    """A world whose files belong to the user as whom the step runs."""
    return SparkEstate(spark_estate.estate, open_folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def give(folder: Path) -> None:
    """Everything below belongs to the user as whom the step runs."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY if os.geteuid() == 0 else -1, -1)


def refused(steps: Steps, act: str = "run") -> RunError:
    step = steps.step(REWRITE, format=steps.format.value)
    executor: Any = build(steps.ctx)["files"]
    with unprivileged(), pytest.raises(RunError) as caught:
        getattr(executor, act)(step, steps.copy)
    return caught.value


@pytest.mark.parametrize(("what", "shut"), [("day=2", 0o555), ("day=2", 0), ("day=2/b.csv", 0)])
def test_what_the_system_refuses_is_named_and_resumed_when_it_is_mended(
    there: SparkEstate, what: str, shut: int
) -> None:
    """The first folder is done, the second cannot be: where it cannot even be read, the first is not touched either."""
    folder = there.folder("days")
    for name in ("day=1/a.csv", "day=2/b.csv"):
        lines(folder / name)
    give(folder)
    steps, before = steps_for(there, folder, Format.CSV), contents(folder)
    closed = folder / what
    mode = closed.stat().st_mode
    closed.chmod(shut)
    try:
        error = refused(steps)
        assert error.what == "the operating system rejects the change: Permission denied"
        assert str(error.where).startswith(f"{folder}/day=…")
        assert "pii-tracer resume" in str(error.todo)
        if not shut:
            assert refused(steps, "verify").what == error.what, "whoever is in there is not taken for gone"
    finally:
        closed.chmod(mode)
    after = contents(folder)
    assert after["day=2/b.csv"] == before["day=2/b.csv"]
    assert (after["day=1/a.csv"] == before["day=1/a.csv"]) == (not shut)
    assert after.keys() == before.keys()
    with unprivileged():
        assert steps.probe(REWRITE, format="csv") is Progress.PARTIAL
        steps.once(REWRITE, format="csv")
    assert residue(folder) == []
    assert [(p.read_text().count("\n")) for p in sorted(folder.rglob("*.csv"))] == [5, 5]


CSV = ["id,uid,email,amount\n", *(",".join(map(str, row)) + "\n" for row in rows(0, 40, (3, 4)))]
WRITERS: dict[str, Callable[[Path], Any]] = {
    "a.parquet": lambda path: parquet(path, rows(0, 40, (3, 4))),
    "a.orc": lambda path: write_orc(path, ROWS),
    "a.avro": lambda path: write_avro(path, ROWS),
    "a.csv.gz": lambda path: path.write_bytes(gzip.compress("".join(CSV).encode(), mtime=0)),
    "a.json.gz": lambda path: write_json(path, ROWS),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_became_corrupt_leaves_the_others_alone_until_it_is_mended(here: SparkEstate, name: str) -> None:
    """Not one file is written before all are read."""
    folder = here.folder("broken")
    folder.mkdir()
    good, bad = folder / name, folder / f"b{name[1:]}"
    for path in (good, bad):
        WRITERS[name](path)
    whole = bad.read_bytes()
    middle = len(whole) // 2
    bad.write_bytes(whole[:middle] + bytes(64) + whole[middle + 64 : -9])
    steps, before = steps_for(here, folder, Format(name.split(".")[1])), contents(folder)
    step = steps.step(REWRITE, format=steps.format.value)
    for act in ("run", "verify"):
        with pytest.raises(RunError) as caught:
            getattr(build(steps.ctx)["files"], act)(step, steps.copy)
        assert str(caught.value.where).endswith(f"/{shown_path(bad.name)}")
        assert caught.value.todo
    assert contents(folder) == before
    bad.write_bytes(whole)
    steps.all((REWRITE, {"format": steps.format.value}))
    assert residue(folder) == []


@pytest.mark.parametrize("name", WRITERS)
def test_what_a_dead_writer_left_is_searched_and_empty_files_hold_nobody(here: SparkEstate, name: str) -> None:
    folder = here.folder("half")
    left = folder / "_temporary" / "0" / "task_1" / name
    left.parent.mkdir(parents=True)
    for path in (folder / name, left):
        WRITERS[name](path)
    for place in (folder, left.parent):
        (place / f"empty{name[1:]}").write_bytes(b"")
    steps = steps_for(here, folder, Format(name.split(".")[1]))
    facts = steps.all((REWRITE, {"format": steps.format.value}))[REWRITE]
    assert facts["files_rewritten"] == 2
    assert residue(folder) == []
