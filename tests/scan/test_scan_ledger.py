"""The scan ledger: the same bytes are not decoded twice, and whatever happens to it costs time only."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.model.datasets import KeySet
from pii_tracer.model.errors import ScanError
from pii_tracer.scan import scan_ledger
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.hits import FileScan, TreeScan
from pii_tracer.scan.incremental_search import READ_AGAIN, LedgerSearchers
from pii_tracer.scan.key_boundaries import KeyColumns
from pii_tracer.scan.scan_ledger import KEPT, ScanLedger
from pii_tracer.scan.search_workers import THREADS
from pii_tracer.scan.value_forms import Patterns

SECRET = b"k" * 32
HER = "ipsita.nayak@mail.example"
NOW = datetime(2026, 11, 20, 8, tzinfo=timezone.utc)


def patterns_of(*values: str) -> Patterns:
    return Patterns([KeySet(name="email", origin="people.email", weak=False, values=tuple(("s", v) for v in values))])


class Counting:
    """Searches as threads do, and notes what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def search(self, look: Any, things: Iterable[Any], patterns: Patterns) -> Iterator[Any]:
        here = list(things)
        self.asked += [thing[0] for thing in here]
        return THREADS.search(look, here, patterns)


class World:
    """A folder of files, and its ledger."""

    def __init__(self, base: Path) -> None:
        self.root, self.file, self.now, self.told = base / "lake", base / "state" / "ledger.sqlite", NOW, [""]
        self.root.mkdir()
        self.write("a.csv", "id,email\n1,someone@mail.example\n")
        self.write("b.csv", f"id,email\n2,{HER}\n")
        self.write("c.txt", "nobody")

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)

    def ledger(self, secret: bytes = SECRET) -> ScanLedger:
        return ScanLedger(self.file, secret, lambda: self.now, self.told.append)

    def scan(
        self, patterns: Patterns | None = None, sample: int = 0, secret: bytes = SECRET
    ) -> tuple[TreeScan, list[str]]:
        """What is found, and the files that were decoded for it, those read again as a sample left out."""
        counting = Counting()
        searchers = LedgerSearchers(self.ledger(secret), counting, draw=random.Random(sample))
        scanned = scan_tree(self.root, patterns or patterns_of(HER), searchers=searchers)
        decoded = len(counting.asked) - searchers.reading.again
        assert searchers.reading.now + searchers.reading.before == len(scanned.files)
        assert (decoded == 0) == (searchers.reading.now == searchers.reading.again)
        return scanned, counting.asked if decoded else []

    def rows(self) -> list[Any]:
        """All entries as they are written."""
        with sqlite3.connect(self.file) as store:
            found = store.execute("SELECT * FROM scans").fetchall()
        store.close()
        return found

    def forge(self, statement: str, *words: Any) -> None:
        with sqlite3.connect(self.file) as store:
            store.execute(statement, words)
        store.close()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_the_same_bytes_are_decoded_once(world: World) -> None:
    first, decoded = world.scan()
    assert decoded == ["a.csv", "b.csv", "c.txt"]
    second, decoded = world.scan()
    assert decoded == []
    assert second == first
    assert [f.path for f in second.with_person] == ["b.csv"]
    assert oct(world.file.stat().st_mode)[-3:] == "600"


def test_a_changed_and_a_new_file_are_decoded(world: World) -> None:
    world.scan()
    world.write("a.csv", f"id,email\n1,{HER}\n")
    world.write("d.csv", "x\n1\n")
    scanned, decoded = world.scan()
    assert {"a.csv", "d.csv"} <= set(decoded)
    assert [f.path for f in scanned.with_person] == ["a.csv", "b.csv"]


def test_a_file_that_changes_between_its_digest_and_its_search_is_kept_under_what_was_searched(world: World) -> None:
    class Racing(Counting):
        def search(self, look: Any, things: Iterable[Any], patterns: Patterns) -> Iterator[Any]:
            world.write("a.csv", "id,email\n1,changed@mail.example\n")
            return super().search(look, things, patterns)

    before = (world.root / "a.csv").read_text()
    scan_tree(world.root, patterns_of(HER), searchers=LedgerSearchers(world.ledger(), Racing()))
    world.write("a.csv", before.replace("someone@mail.example", HER))
    assert [f.path for f in world.scan()[0].with_person] == ["a.csv", "b.csv"]


def test_other_values_another_key_and_another_scanner_know_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.scan()
    assert len(world.scan(patterns_of("someone@mail.example"))[1]) == 3
    assert len(world.scan(secret=b"x" * 32)[1]) == 3
    world.scan()
    monkeypatch.setattr(scan_ledger, "scanner_version", lambda: "another")
    assert len(world.scan()[1]) == 3


def test_a_moved_file_is_decoded(world: World) -> None:
    """Its path decides how it is read."""
    world.scan()
    (world.root / "c.txt").rename(world.root / "d.csv")
    assert "d.csv" in world.scan()[1]


def test_what_is_clean_without_key_columns_is_known_with_them(world: World) -> None:
    world.scan()
    comparing = patterns_of(HER).comparing(KeyColumns({"email": {"email"}}))
    _, decoded = world.scan(comparing)
    assert "b.csv" in decoded
    assert len(decoded) <= 2


CLEAN = '{"path":"b.csv","size":45,"sha256":"0","decoded_as":"csv"}'


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        pytest.param("UPDATE scans SET scan = ?", (CLEAN,), id="a finding made clean"),
        pytest.param("UPDATE scans SET scan = ?, mac = zeroblob(32)", (CLEAN,), id="and its seal"),
        pytest.param("UPDATE scans SET at = '2026-11-21T00:00:00.000000Z'", (), id="another time"),
        pytest.param("UPDATE scans SET mac = NULL", (), id="no seal"),
        pytest.param("UPDATE scans SET mac = 'text', scan = 7", (), id="other types"),
        pytest.param("DROP TABLE scans", (), id="no table"),
        pytest.param("ALTER TABLE scans DROP COLUMN at", (), id="another table"),
        pytest.param("DELETE FROM scans", (), id="emptied"),
    ],
)
def test_a_forged_ledger_makes_nothing_clean(world: World, statement: str, words: tuple[Any, ...]) -> None:
    first, _ = world.scan()
    world.forge(statement, *words)
    again, decoded = world.scan()
    assert again == first
    assert len(decoded) == 3


def test_an_entry_under_another_name_counts_for_nothing(world: World) -> None:
    """The clean entry of a file, put in the place of the one with the person."""
    first, _ = world.scan()
    with sqlite3.connect(world.file) as store:
        rows = store.execute("SELECT name, at, scan, mac FROM scans").fetchall()
        clean = next(row for row in rows if "hits" not in row[2])
        (hers,) = (row for row in rows if "hits" in row[2])
        store.execute("UPDATE scans SET at = ?, scan = ?, mac = ? WHERE name = ?", (*clean[1:], hers[0]))
    store.close()
    assert world.scan()[0] == first


def half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("harm", [half, Path.unlink, folder, lambda file: file.write_bytes(b"no database at all" * 99)])
def test_a_damaged_ledger_costs_time_only(world: World, harm: Callable[[Path], None]) -> None:
    first, _ = world.scan()
    harm(world.file)
    again, decoded = world.scan()
    assert again == first
    assert len(decoded) == 3


KILLED = """
import os, signal, sys
from pathlib import Path
from pii_tracer.scan.scan_ledger import ScanLedger
from tests.scan.test_scan_ledger import HER, NOW, SECRET, World

class Killed(ScanLedger):
    moments = 0

    def _opened(self):
        store = super()._opened()
        store.execute("PRAGMA cache_size = 1")  # a page is written when the next is changed, before the end
        store.set_progress_handler(self.moment, 100)
        return store

    def moment(self):
        self.moments -= 1
        if self.moments < 0:
            os.kill(os.getpid(), signal.SIGKILL)

world = World(Path(sys.argv[1]))
clean, whole = (world.root / "a.csv").read_text(), world.scan()[0]

def write(moments):
    ledger = Killed(world.file, SECRET, lambda: NOW, world.told.append)
    ledger.moments, world.ledger = moments, lambda secret: ledger
    world.scan()
    ledger.keep([(ledger.name(str(n), "", "search"), scan) for n in range(40) for scan in whole.files])
    os._exit(0)

kills = within = status = 0
while not kills or os.WIFSIGNALED(status):
    world.file.unlink()
    child = os.fork()
    if not child:
        write(kills)
    _, status = os.waitpid(child, 0)
    within += Path(f"{world.file}-journal").exists()
    assert world.scan()[0] == whole, kills
    world.write("a.csv", clean + HER)
    assert [f.path for f in world.scan()[0].with_person] == ["a.csv", "b.csv"], kills
    world.write("a.csv", clean)
    kills += 1
assert status == 0 and not any(world.told), (status, world.told)
print(kills, within)
"""


def test_a_process_killed_while_it_writes_the_ledger_costs_time_only(tmp_path: Path) -> None:
    """At one moment after another of its statements, pages being written before the transaction ends."""
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kills, within = map(int, done.stdout.split())
    assert kills > 20
    assert within > 10, "killed within a transaction, whose journal was left"


def test_old_entries_are_forgotten(world: World) -> None:
    world.scan()
    world.now += KEPT + timedelta(seconds=1)
    assert len(world.scan()[1]) == 3


def test_what_cannot_be_read_is_never_remembered(world: World) -> None:
    world.write("broken.parquet", "PAR1 and then nothing PAR1")
    (world.root / "link").symlink_to("a.csv")
    world.scan()
    _, decoded = world.scan()
    assert {"broken.parquet", "link"} <= set(decoded)


def test_a_sample_is_read_again_in_each_place(world: World) -> None:
    for number in range(2 * READ_AGAIN):
        world.write(f"more-{number}.txt", f"nobody {number}")
    world.scan()
    searchers = LedgerSearchers(world.ledger(), Counting())
    scan_tree(world.root, patterns_of(HER), searchers=searchers)
    assert searchers.reading.again == searchers.reading.now == 3
    assert searchers.reading.oldest == NOW


def test_a_sample_that_shows_something_else_stops_and_empties_the_ledger(world: World) -> None:
    """An entry that only who has the key can have written."""
    patterns, ledger = patterns_of(HER), world.ledger()
    scanned = scan_tree(world.root, patterns, searchers=LedgerSearchers(ledger, THREADS))
    search = ledger.search_names(patterns)[0]
    lies = [
        (ledger.name(f"{world.root.resolve().as_posix()}\0{f.path}", f.blake3, search), lie)
        for f in scanned.files
        for lie in [FileScan(path=f.path, size=f.size, sha256=f.sha256, blake3=f.blake3, decoded_as="text")]
    ]
    ledger.keep(lies)
    with pytest.raises(ScanError, match="read again"):
        world.scan()
    assert [f.path for f in world.scan()[0].with_person] == ["b.csv"]


def test_encrypted_files_are_opened_each_time(world: World) -> None:
    patterns = patterns_of(HER)
    patterns.file_keys = object()  # type: ignore[assignment]  # any keys: they may be gone the next time
    world.scan(patterns)
    assert not world.file.exists()


def test_sums_of_rows_cannot_be_guessed_from_the_ledger(world: World) -> None:
    ledger = world.ledger()
    ledger.keep_rows([(b"n", "[1, 2, 12345678901234567890]"), (b"m", "[0, 0, 0]")])
    assert ledger.rows_of([b"n", b"m", b"o"]) == {b"n": "[1, 2, 12345678901234567890]", b"m": "[0, 0, 0]"}
    assert b"12345678901234567890" not in world.file.read_bytes()
    assert world.ledger(b"x" * 32).rows_of([b"n"]) == {}
