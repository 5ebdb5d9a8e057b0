"""Shapes in the ledger: another person's search decodes less, and whatever happens to the shapes costs time only."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.model.errors import ScanError
from pii_tracer.scan import scan_ledger
from pii_tracer.scan.folder_scan import FileLook, file_digest, scan_tree
from pii_tracer.scan.hits import Reading, TreeScan
from pii_tracer.scan.incremental_search import READ_AGAIN, LedgerSearchers
from pii_tracer.scan.scan_ledger import KEPT, ScanLedger
from pii_tracer.scan.search_workers import THREADS
from pii_tracer.scan.shapes.chunk_skipping import Kind, Shape
from pii_tracer.scan.shapes.chunk_value_tables import written
from pii_tracer.scan.value_forms import Patterns
from tests.scan import drawn_cells

SECRET = b"k" * 32
HIM, HER = "rahul.menon@mail.example", "ipsita.nayak@mail.example"
NOW = datetime(2026, 11, 20, 8, tzinfo=timezone.utc)
FILES = 3
COLUMNS = 4


def patterns_of(value: str) -> Patterns:
    return drawn_cells.patterns_of((value, False))


class World:
    """A folder of Parquet, and its ledger. She is in one column of the last file."""

    def __init__(self, base: Path) -> None:
        self.root, self.file, self.now = base / "lake", base / "state" / "ledger.sqlite", NOW
        self.root.mkdir()
        self.told: list[str] = []
        for number in range(FILES):
            self.write(number, HER if number == FILES - 1 else "someone@mail.example")

    def path(self, number: int) -> Path:
        return self.root / f"{number}.parquet"

    def write(self, number: int, who: str) -> None:
        rows = range(50 + number)
        columns = {
            "id": pa.array(rows, pa.int64()),
            "mail": [who if n == 7 else f"x{n}@mail.example" for n in rows],
            "amount": [n / 3 for n in rows],
            "at": pa.array([n * 10**6 for n in rows], pa.timestamp("us")),
        }
        pq.write_table(pa.table(columns), self.path(number), compression="none", write_statistics=False)

    def ledger(self, secret: bytes = SECRET) -> ScanLedger:
        return ScanLedger(self.file, secret, lambda: self.now, self.told.append, with_shapes=True)

    def scan(self, value: str, sample: int = 0, secret: bytes = SECRET) -> tuple[TreeScan, Reading]:
        searchers = LedgerSearchers(self.ledger(secret), THREADS, draw=random.Random(sample))
        return scan_tree(self.root, patterns_of(value), searchers=searchers), searchers.take_reading()

    def forge(self, statement: str, *words: Any) -> None:
        with sqlite3.connect(self.file) as store:
            store.execute(statement, words)
        store.close()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_for_another_person_only_what_can_hold_her_is_decoded(world: World) -> None:
    _, first = world.scan(HIM)
    assert first == Reading(now=FILES, chunks=FILES * COLUMNS)
    scanned, second = world.scan(HER)
    assert scanned == scan_tree(world.root, patterns_of(HER))
    assert [file.path for file in scanned.with_person] == [f"{FILES - 1}.parquet"]
    left = FILES * COLUMNS - 1
    assert second == Reading(now=FILES, shaped=FILES, chunks=1, left=left, drawn=-(-left // READ_AGAIN))
    assert not second.is_whole
    assert oct(world.file.stat().st_mode)[-3:] == "600"


def test_a_changed_file_is_decoded(world: World) -> None:
    world.scan(HIM)
    world.write(0, HER)
    scanned, reading = world.scan(HER)
    assert [file.path for file in scanned.with_person] == ["0.parquet", f"{FILES - 1}.parquet"]
    assert reading.chunks == COLUMNS + 1


def test_another_key_and_another_scanner_know_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.scan(HIM)
    assert world.scan(HER, secret=b"x" * 32)[1].left == 0
    monkeypatch.setattr(scan_ledger, "scanner_version", lambda: "another")
    assert world.scan(HER)[1].left == 0


def test_without_a_ledger_everything_is_decoded(world: World) -> None:
    world.scan(HIM)
    searchers = LedgerSearchers(None, THREADS)
    scan_tree(world.root, patterns_of(HER), searchers=searchers)
    assert searchers.reading == Reading(now=FILES)


def test_what_searches_elsewhere_gets_no_shapes(world: World) -> None:
    looks: list[Any] = []

    class Elsewhere:
        def search(self, look: Any, things: Iterable[Any], patterns: Patterns) -> Iterator[Any]:
            looks.append(look)
            return THREADS.search(look, things, patterns)

    scan_tree(world.root, patterns_of(HER), searchers=LedgerSearchers(world.ledger(), Elsewhere()))
    assert looks == [FileLook(world.root)]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        pytest.param("UPDATE shapes SET sealed = zeroblob(200)", (), id="zeros"),
        pytest.param("UPDATE shapes SET sealed = substr(sealed, 1, length(sealed) / 2)", (), id="cut"),
        pytest.param("UPDATE shapes SET sealed = x'00'", (), id="hardly there"),
        pytest.param("UPDATE shapes SET sealed = NULL", (), id="nothing"),
        pytest.param("UPDATE shapes SET sealed = 7, at = 8", (), id="other types"),
        pytest.param("UPDATE shapes SET at = '2026-11-21T00:00:00.000000Z'", (), id="another time"),
        pytest.param(
            "UPDATE shapes SET sealed = ?", (written({(0, n): Shape(Kind.NOTHING) for n in range(4)}),), id="open"
        ),
        pytest.param("DROP TABLE shapes", (), id="no table"),
        pytest.param("ALTER TABLE shapes DROP COLUMN at", (), id="another table"),
        pytest.param("DELETE FROM shapes", (), id="emptied"),
    ],
)
def test_a_forged_shape_makes_nothing_clean(world: World, statement: str, words: tuple[Any, ...]) -> None:
    world.scan(HIM)
    world.forge(statement, *words)
    scanned, reading = world.scan(HER)
    assert scanned == scan_tree(world.root, patterns_of(HER))
    assert reading == Reading(now=FILES, chunks=FILES * COLUMNS)


def test_a_shape_under_another_name_counts_for_nothing(world: World) -> None:
    """Another file's shapes, in the place of those of the file with the person."""
    world.scan(HIM)
    with sqlite3.connect(world.file) as store:
        rows = store.execute("SELECT name, at, sealed FROM shapes").fetchall()
        for name, _, _ in rows:
            other = next(row for row in rows if row[0] != name)
            store.execute("UPDATE shapes SET at = ?, sealed = ? WHERE name = ?", (*other[1:], name))
    store.close()
    scanned, reading = world.scan(HER)
    assert [file.path for file in scanned.with_person] == [f"{FILES - 1}.parquet"]
    assert reading.left == 0


@pytest.mark.parametrize(
    "harm", [lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]), Path.unlink]
)
def test_a_damaged_ledger_costs_time_only(world: World, harm: Callable[[Path], None]) -> None:
    world.scan(HIM)
    harm(world.file)
    scanned, reading = world.scan(HER)
    assert scanned == scan_tree(world.root, patterns_of(HER))
    assert reading.left == 0


def test_old_shapes_are_forgotten(world: World) -> None:
    world.scan(HIM)
    world.now += KEPT + timedelta(seconds=1)
    assert world.scan(HER)[1].left == 0


def test_of_what_cannot_be_read_nothing_is_kept(world: World) -> None:
    broken = world.path(0).read_bytes()
    at = broken.index(b"x3@mail.example")
    world.path(0).write_bytes(broken[: at - 4] + b"\xff\xff\xff\x7f" + broken[at:])  # a text that reaches too far
    scanned, _ = world.scan("x3@mail.example")
    assert scanned.files[0].unread
    with sqlite3.connect(world.file) as store:
        assert store.execute("SELECT count(*) FROM shapes").fetchone() == (FILES - 1,)
    store.close()


def test_a_sample_that_shows_something_else_stops_and_empties_the_ledger(world: World) -> None:
    """Shapes that only who has the key and the file can have written."""
    for number in range(FILES - 1):
        world.path(number).unlink()
    file = world.path(FILES - 1)
    pq.write_table(pa.table({"mail": [HER] * 9}), file)
    data = file.read_bytes()
    world.ledger().keep_shapes(memoryview(data), file_digest(file)[0], written({(0, 0): Shape(Kind.NOTHING)}))
    with pytest.raises(ScanError, match="read again"):
        world.scan(HER)
    scanned, reading = world.scan(HER)
    assert scanned.with_person
    assert reading.left == 0


def test_a_known_file_of_the_sample_is_decoded_whole(world: World) -> None:
    """What the ledger says of the same person is not checked against shapes alone."""
    world.scan(HIM)
    world.scan(HER)
    _, again = world.scan(HER)
    assert again.before == FILES - 1
    assert again.again == 1
    assert again.chunks == COLUMNS
    assert again.left == 0


def test_nothing_of_a_value_can_be_read_in_the_ledger_nor_opened_without_the_file(world: World) -> None:
    """One distinct value, in a column of its own."""
    pq.write_table(pa.table({"mail": [HER] * 3, "id": [8_841_302] * 3}), world.path(0))
    world.scan(HIM)
    kept = world.file.read_bytes()
    assert not any(value in kept for value in (HER.encode(), b"8841302", (8_841_302).to_bytes(8, "little"), b'"text"'))
    data, digest = world.path(0).read_bytes(), file_digest(world.path(0))[0]
    assert world.ledger().shapes(memoryview(data), digest) is not None
    assert world.ledger().shapes(memoryview(data[:-9] + b"otherwise"), digest) is None
    assert world.ledger(b"x" * 32).shapes(memoryview(data), digest) is None


def told_of(world: World, many: int) -> list[bytes]:
    """Contents of so many files that are kept, by the first letter of their names."""
    ends = [memoryview(f"{n}".encode()) for n in range(many)]
    kept = [world.ledger().shapes(end, f"{n}") for n, end in enumerate(ends)]
    return [one[0] for one in kept if one is not None]


def keep(world: World, *contents: bytes, ledger: Callable[[World], ScanLedger] = World.ledger) -> None:
    made = ledger(world)
    for n, content in enumerate(contents):
        made.keep_shapes(memoryview(f"{n}".encode()), f"{n}", content)
        world.now += timedelta(seconds=1)


def test_shapes_that_are_too_large_are_not_kept_and_the_others_stay(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_ledger, "LARGEST", 1_000)
    keep(world, b"a" * 1_000, b"b" * 1_001, b"c")
    assert told_of(world, 3) == [b"a" * 1_000, b"c"]


@pytest.mark.skipif(not hasattr(sqlite3.Connection, "setlimit"), reason="this Python cannot lower SQLite's limit")
def test_shapes_that_sqlite_cannot_keep_do_not_empty_the_ledger(world: World) -> None:
    class Small(ScanLedger):
        def _opened(self) -> sqlite3.Connection:
            store = super()._opened()
            store.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 5_000)
            return store

    told = list[str]()
    keep(
        world,
        b"a" * 1_000,
        b"b" * 10_000,
        ledger=lambda world: Small(world.file, SECRET, lambda: world.now, told.append),
    )
    assert told_of(world, 2) == [b"a" * 1_000]
    assert not told


def test_the_newest_shapes_are_kept_where_all_take_too_many_bytes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_ledger, "MOST_BYTES", 2_500)
    monkeypatch.setattr(scan_ledger, "_SWEPT_AFTER_BYTES", 0)
    keep(world, b"a" * 1_000, b"b" * 1_000, b"c" * 1_000)
    assert told_of(world, 3) == [b"b" * 1_000, b"c" * 1_000]


def test_a_file_that_ends_otherwise_costs_its_own_shapes_only(world: World) -> None:
    keep(world, b"a", b"b")
    assert world.ledger().shapes(memoryview(b"otherwise"), "0") is None
    assert told_of(world, 2) == [b"b"]
