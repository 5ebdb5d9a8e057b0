"""A forged, a cut or a half-written ledger makes no object clean: it costs time only."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.s3support import World, standin, world
from tests.verify.s3ledger import HER, LAST, OBJECTS, Place, rows

__all__ = ["standin", "world"]

CLEAN = '{"path":"","size":45,"sha256":"0","decoded_as":"csv"}'
FORGED: Sequence[tuple[str, tuple[Any, ...]]] = [
    ("UPDATE scans SET scan = ?", (CLEAN,)),
    ("UPDATE scans SET scan = ?, mac = zeroblob(32)", (CLEAN,)),
    ("UPDATE scans SET mac = NULL", ()),
    ("UPDATE scans SET at = '2026-11-21T00:00:00.000000Z'", ()),
    ("DELETE FROM scans", ()),
]


@pytest.mark.parametrize(("statement", "words"), FORGED)
def test_a_forged_ledger_makes_no_object_clean(world: World, tmp_path: Path, statement: str, words: Any) -> None:
    place = Place(world, tmp_path, False)
    place.put(LAST, rows(HER))
    first, _ = place.verify()
    with sqlite3.connect(place.ledger.file) as store:
        store.execute(statement, words)
    store.close()
    again, reading = place.verify()
    assert again == first
    assert reading.now == place.whole == OBJECTS


def test_an_entry_of_another_version_counts_for_nothing(world: World, tmp_path: Path) -> None:
    """The clean entry of an object, put in the place of the one with the person."""
    place = Place(world, tmp_path, True)
    place.put(LAST, rows(HER))
    first, _ = place.verify()
    with sqlite3.connect(place.ledger.file) as store:
        entries = store.execute("SELECT name, at, scan, mac FROM scans").fetchall()
        clean = next(entry for entry in entries if "hits" not in entry[2])
        (hers,) = (entry for entry in entries if "hits" in entry[2])
        store.execute("UPDATE scans SET at = ?, scan = ?, mac = ? WHERE name = ?", (*clean[1:], hers[0]))
    store.close()
    assert place.verify()[0] == first


def test_a_ledger_that_was_cut_costs_time_only(world: World, tmp_path: Path) -> None:
    place = Place(world, tmp_path, False)
    place.put(LAST, rows(HER))
    first, _ = place.verify()
    place.ledger.file.write_bytes(place.ledger.file.read_bytes()[:5000])
    assert place.verify()[0] == first
    assert place.whole == OBJECTS


KILLED = """
import os, signal, sys
from pathlib import Path
from pii_tracer.scan.scan_ledger import ScanLedger
from tests.s3support import World
from tests.verify.s3ledger import HER, LAST, NOW, Place, rows

class Killed(ScanLedger):
    moments = 0

    def _opened(self):
        store = super()._opened()
        store.execute("PRAGMA cache_size = 1")  # a page is written when the next is changed, before the end
        store.set_progress_handler(self.moment, 400)
        return store

    def moment(self):
        self.moments -= 1
        if self.moments < 0:
            os.kill(os.getpid(), signal.SIGKILL)

place = Place(World(sys.argv[1]), Path(sys.argv[2]), False)
place.put(LAST, rows(HER))
whole, keep, entries = place.verify(kept=False)[0], ScanLedger.keep, []
ScanLedger.keep = lambda self, scans, since: entries.extend(scans)
place.verify()
ScanLedger.keep = keep
kills = within = status = 0
while not kills or os.WIFSIGNALED(status):
    place.ledger.file.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        ledger = Killed(place.ledger.file, b"k" * 32, lambda: NOW, place.told.append)
        ledger.moments = kills
        ledger.keep([*((os.urandom(32), scan) for _ in range(20) for _, scan in entries), *entries])
        os._exit(0)
    _, status = os.waitpid(child, 0)
    within += Path(f"{place.ledger.file}-journal").exists()
    assert place.verify()[0] == whole, kills
    kills += 1
assert place.whole == 1 and not place.told, "the last entries are whole, and known"
print(kills, within)
"""


def test_a_process_killed_while_it_writes_what_objects_hold_costs_time_only(world: World, tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, world.endpoint_url, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kills, within = map(int, done.stdout.split())
    assert kills > 8
    assert within > 2, "killed within a transaction, whose journal was left"
