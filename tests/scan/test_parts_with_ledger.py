"""Objects of which a part is read, with the ledger of scans: what is said of them is what was done."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from pii_tracer.model.errors import ScanError
from pii_tracer.scan import incremental_search
from pii_tracer.scan.hits import FileScan, Reading
from pii_tracer.scan.incremental_search import READ_AGAIN, KeptShapes, LedgerSearchers
from pii_tracer.scan.scan_ledger import KEPT, ScanLedger
from pii_tracer.scan.search_workers import THREADS, KnownByStore, Stamp, place_in_store
from pii_tracer.scan.shapes import objects_read_before
from pii_tracer.scan.shapes.objects_read_before import Keeper
from pii_tracer.scan.shapes.partial_object_reads import search_in_parts, search_whole
from pii_tracer.scan.value_forms import Patterns
from tests.scan.wide_objects import HER, HIM, KEY, LARGE, Known, Stored, columns, parquet, patterns_of, plain, small

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Held(KnownByStore):
    """Objects in memory, of which the store says that they are the same. refused: objects that cannot be read any more,
    once they were read so often."""

    objects: dict[str, bytes]
    refused: dict[str, int] = field(default_factory=dict)
    keeper: Keeper | None = None
    at_once: int = 1
    only_here: ClassVar = True

    def __call__(self, thing: str, patterns: Patterns) -> FileScan:
        if thing in self.refused:
            self.refused[thing] -= 1
            if self.refused[thing] < 0:
                return FileScan(path=thing, size=0, sha256="", decoded_as="", unread=("refused",))
        told, data = self.told(thing), self.objects[thing]
        assert told is not None
        alone = search_in_parts(thing, Stored(data, told), patterns, None, self.keeper)
        if alone is None:
            alone = search_whole(thing, memoryview(data), told, patterns, None, self.keeper)
        return alone.model_copy(update={"of_bytes": alone})

    def stamp(self, thing: str) -> Stamp:
        return len(self.objects[thing]), ""

    def place(self, thing: str) -> str | None:
        return place_in_store("held", thing)

    def identity(self, thing: str) -> str | None:
        return "the same"

    def again(self, thing: str, known: FileScan, patterns: Patterns) -> FileScan | None:
        return known

    def keeping(self, keeper: Keeper) -> Held:
        return replace(self, keeper=keeper)


class Lake:
    """Objects and their ledger."""

    def __init__(self, base: Path) -> None:
        self.file, self.told = base / "ledger.sqlite", list[str]()
        self.now = self.begin = datetime(2026, 11, 20, 8, tzinfo=timezone.utc)

    def search(self, look: Held, who: str, seed: int = 1) -> tuple[list[FileScan], Reading]:
        ledger = ScanLedger(self.file, b"k" * 32, lambda: self.now, self.told.append, with_shapes=True)
        searchers = LedgerSearchers(ledger, THREADS, draw=random.Random(seed))
        found = [scan for _, scan in searchers.search(look, list(look.objects), patterns_of(who))]
        return found, searchers.reading


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    small(monkeypatch)
    return Lake(tmp_path)


def objects(many: int = 3) -> dict[str, bytes]:
    return {f"{n}.parquet": parquet(columns(first={1: f"number {n}"})) for n in range(many)}


def test_it_says_when_pages_that_were_not_read_were_last_read(lake: Lake) -> None:
    look = Held(objects())
    lake.search(look, HIM)
    lake.now += 80 * DAY
    _, planned = lake.search(look, HER)
    assert (planned.in_parts, planned.before, planned.oldest) == (3, 0, lake.begin)
    lake.now += 5 * DAY
    _, verified = lake.search(look, HER)
    assert (verified.in_parts, verified.before, verified.oldest) == (2, 2, lake.begin)


def test_what_was_read_in_parts_is_forgotten_with_the_first_search(lake: Lake) -> None:
    look = Held(objects())
    lake.search(look, HIM)
    lake.now += KEPT - DAY
    assert lake.search(look, HER)[1].in_parts == 3
    lake.now += 2 * DAY
    _, then = lake.search(look, HER)
    assert (then.now, then.before, then.in_parts, then.oldest) == (3, 0, 0, None)


def test_what_was_read_whole_is_known_from_then_on(lake: Lake) -> None:
    look = Held(objects())
    lake.search(look, HIM)
    lake.now += DAY
    _, again = lake.search(look, HIM)
    assert (again.before, again.in_parts, again.oldest) == (2, 0, lake.begin)


def mixed(**changed: dict[int, str]) -> bytes:
    """Two wide texts, and many columns of numbers that are read whatever is left out."""
    drawn = np.random.default_rng(1)
    wide = columns(**changed)
    rows = len(wide["first"])
    numbers = {f"n{i}": pa.array(drawn.integers(10**6, 10**6 + 1000, rows), pa.int64()) for i in range(60)}
    return parquet(wide | numbers, compression="none")


def test_the_sample_has_chunks_that_were_not_read(lake: Lake) -> None:
    """However many others there are, whose bytes were read anyway."""
    look = Held({"0.parquet": mixed()})
    lake.search(look, HIM)
    _, reading = lake.search(look, HER)
    assert reading.in_parts == 1
    assert 0 < reading.unfetched < reading.left / READ_AGAIN * 2
    assert reading.refetched == 1
    assert reading.drawn == -(-(reading.left - reading.unfetched) // READ_AGAIN) + 1


def test_a_store_that_changes_a_page_is_found_out_by_that_sample(lake: Lake) -> None:
    true, cell = mixed(), columns()["second"][200]
    lied = true.replace(cell.encode(), (HER + cell[len(HER) :]).encode())
    assert plain(lied).hits
    caught = 0
    for seed in range(12):
        lake.file.unlink(missing_ok=True)
        lake.search(Held({"0.parquet": true}), HIM)
        try:
            found, reading = lake.search(Held({"0.parquet": lied}), HER, seed)
        except ScanError:
            caught += 1
        else:
            assert not found[0].hits
            assert reading.in_parts
    assert caught >= 1, "one of four chunks is drawn"


def test_chunks_that_could_not_be_compared_are_not_counted(lake: Lake) -> None:
    look = Held(objects(1), refused={"0.parquet": 2})
    lake.search(look, HIM)
    _, reading = lake.search(look, HER)
    assert reading.in_parts == 1
    assert (reading.drawn, reading.refetched) == (0, 0)


def test_others_are_drawn_where_none_of_the_sample_could_be_compared(lake: Lake) -> None:
    for seed in range(6):
        lake.file.unlink(missing_ok=True)
        look = Held(objects(2), refused={"0.parquet": 2})
        lake.search(look, HIM)
        _, reading = lake.search(look, HER, seed)
        assert reading.refetched == 1, seed


def test_each_object_has_its_own_sample_where_bytes_are_the_same(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incremental_search, "READ_AGAIN", 1)
    look = Held(dict.fromkeys(("a.parquet", "b.parquet"), parquet()))
    lake.search(look, HIM)
    asked = dict[str, int]()
    before = KeptShapes.read_again

    def noting(kept: KeptShapes, told: str) -> Collection[Any]:
        places = before(kept, told)
        asked[told] = len(places)
        return places

    monkeypatch.setattr(KeptShapes, "read_again", noting)
    monkeypatch.setattr(random.Random, "sample", lambda self, population, k, **more: list(population)[: k // 2 + 1])
    _, reading = lake.search(look, HER)
    assert reading.left > reading.drawn == sum(asked.values())
    assert len(set(asked.values())) == 2


def test_nothing_is_said_of_a_sample_where_nothing_was_left_out(lake: Lake) -> None:
    _, reading = lake.search(Held(objects(1)), HIM)
    assert (reading.left, reading.unfetched, reading.drawn, reading.refetched) == (0, 0, 0, 0)


def test_an_object_with_another_end_costs_what_is_known_of_it_and_nothing_else(lake: Lake) -> None:
    held = objects()
    lake.search(Held(held), HIM)
    held["1.parquet"] = held["1.parquet"][:-30] + b"x" + held["1.parquet"][-29:]
    _, reading = lake.search(Held(held), HER)
    assert reading.in_parts == 2
    assert not lake.told
    assert lake.search(Held(held), HIM)[1].before == 2, "the entries are there"


@dataclass
class Watched(Stored):
    """Notes how many parts were asked for at the same time."""

    now: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def part(self, first: int, at_most: int) -> bytes:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.02)
        with self.lock:
            self.now -= 1
        return super().part(first, at_most)


def test_several_parts_are_asked_for_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    known, data = Known(tmp_path), parquet()
    known.read_whole(Stored(data))
    stored = Watched(data)
    assert known.read(stored) == plain(data)
    assert stored.most > 1


def test_an_object_with_small_pages_is_read_whole_in_one_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request for each page would take longer than the pages. What is known saves decoding all the same."""
    monkeypatch.setattr(objects_read_before, "_HOLE", 1 << 15)
    known, data = Known(tmp_path), parquet(columns(LARGE), data_page_size=30_000, write_batch_size=20)
    stored = Stored(data)
    known.read_whole(stored)
    assert known.read(stored) is None
    assert not stored.read
    keeper = known.keeper()
    found = search_whole(KEY, memoryview(data), stored.told, patterns_of(HER), None, keeper)
    assert found == plain(data)
    assert keeper.reading.left


def test_an_outline_that_is_too_large_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incremental_search, "LARGEST", 5_000)
    small(monkeypatch)
    known, data = Known(tmp_path), parquet()
    stored = Stored(data)
    known.read_whole(stored)
    assert known.read(stored) is None
    assert not stored.read
    made = list[Any]()
    monkeypatch.setattr(KeptShapes, "keep_outline", lambda *given: made.append(given))
    assert known.read_whole(stored, HER) == plain(data)
    assert not made
    assert known.file.stat().st_size < 50_000
