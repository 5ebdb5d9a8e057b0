from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.lineage.sources.openlineage.event_log import Added, EventLog
from pii_tracer.model.errors import LineageError
from tests.lineage.conftest import event


def numbered(*numbers: int) -> list[dict]:
    return [event(str(n), "COMPLETE", [], []) for n in numbers]


def stored(folder: Path) -> list[str]:
    lines = [line for f in sorted(folder.glob("*.ndjson")) for line in f.read_text().splitlines()]
    return [json.loads(line)["run"]["runId"] for line in lines]


def test_an_event_is_stored_once_whoever_asks_and_however_it_is_written(tmp_path: Path):
    log = EventLog(tmp_path / "log")
    assert log.append(numbered(1, 2, 1)) == Added(stored=2, known=1)
    reordered = dict(reversed(numbered(1)[0].items()))
    assert EventLog(tmp_path / "log").append([reordered, *numbered(3)]) == Added(stored=1, known=1)
    assert log.append(numbered(3)) == Added(stored=0, known=1)
    assert stored(tmp_path / "log") == ["1", "2", "3"]


def test_a_torn_end_is_cut_and_the_event_can_come_again(tmp_path: Path):
    folder = tmp_path / "log"
    EventLog(folder).append(numbered(1, 2))
    file = folder / "000001.ndjson"
    whole = file.read_bytes()
    for cut in (1, 20, len(whole.splitlines()[1])):
        file.write_bytes(whole[:-cut])
        assert EventLog(folder).append(numbered(2)) == Added(stored=1, known=0, repaired=1)
        assert file.read_bytes() == whole


def test_segments(tmp_path: Path):
    log = EventLog(tmp_path, segment_bytes=1)
    for n in range(3):
        log.append(numbered(n))
    assert [f.name for f in log.segments()] == ["000001.ndjson", "000002.ndjson", "000003.ndjson"]
    assert stored(tmp_path) == ["0", "1", "2"]


def test_a_full_disk_leaves_what_was_there_and_forgets_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = EventLog(tmp_path)
    log.append(numbered(1))
    before = (tmp_path / "000001.ndjson").read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(LineageError, match="cannot be written"):
            log.append(numbered(2))
    assert (tmp_path / "000001.ndjson").read_bytes() == before
    assert log.append(numbered(1, 2)) == Added(stored=1, known=1)


def _write(folder: Path, ready: Any) -> None:
    log = EventLog(folder)
    ready.wait(60)
    for n in range(100):
        log.append(numbered(n))


def test_several_processes_write_each_event_once(tmp_path: Path):
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(3)
    workers = [context.Process(target=_write, args=(tmp_path, ready)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [w.exitcode for w in workers] == [0, 0, 0]
    assert stored(tmp_path) == [str(n) for n in range(100)]
