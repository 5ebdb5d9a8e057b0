"""What the scan ledger keeps, and the sample of what it knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from pii_tracer.model.errors import ScanError
from pii_tracer.scan import scan_ledger
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.incremental_search import LedgerSearchers
from pii_tracer.scan.scan_ledger import KEPT
from pii_tracer.scan.search_workers import THREADS
from pii_tracer.scan.value_forms import Patterns
from tests.scan.test_scan_ledger import HER, Counting, World, patterns_of, world

__all__ = ["world"]


class Rewriting(Counting):
    """Somebody writes over each file before it is read."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def search(self, look: Any, things: Iterable[Any], patterns: Patterns) -> Iterator[Any]:
        here = list(things)
        for name, _ in here:
            self._world.write(name, "written since")
        return super().search(look, here, patterns)


def test_what_the_sample_confirms_is_not_written_again(world: World) -> None:
    world.scan()
    before = world.rows()
    world.now += timedelta(days=1)
    world.scan()
    assert world.rows() == before


def test_the_ledger_keeps_the_newest_entries_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_ledger, "MOST", 10)
    monkeypatch.setattr(scan_ledger, "_SWEPT_AFTER", 4)
    ledger, kept = world.ledger(), list[bytes]()
    for number in range(40):
        kept.append(ledger.name(str(number), "", ""))
        ledger.keep([(kept[-1], FileScan(path="", size=0, sha256="", decoded_as=""))])
        assert len(world.rows()) <= 10 + 5
        world.now += timedelta(seconds=1)
    assert set(kept[-10:]) <= ledger.of(kept).keys()


def test_what_is_too_old_goes_though_the_process_lives_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_ledger, "_SWEPT_AFTER", 4)
    ledger = world.ledger()
    for number in range(20):
        ledger.keep([(ledger.name(str(number), "", ""), FileScan(path="", size=0, sha256="", decoded_as=""))])
        world.now += KEPT / 5
    assert len(world.rows()) < 12


def test_a_sample_counts_what_was_compared(world: World) -> None:
    """The file that is drawn is written over before it is read, so that another one is."""
    world.scan()

    searchers = LedgerSearchers(world.ledger(), Rewriting(world))
    scan_tree(world.root, patterns_of(HER), searchers=searchers)
    assert (searchers.reading.now, searchers.reading.before, searchers.reading.again) == (1, 2, 1)


def test_a_sample_that_cannot_be_compared_does_not_count(world: World) -> None:
    world.scan()

    class Gone(Counting):
        def search(self, look: Any, things: Iterable[Any], patterns: Patterns) -> Iterator[Any]:
            for name in ("a.csv", "b.csv", "c.txt"):
                (world.root / name).unlink()
            return super().search(look, things, patterns)

    searchers = LedgerSearchers(world.ledger(), Gone())
    assert scan_tree(world.root, patterns_of(HER), searchers=searchers).unread
    assert searchers.reading.again == 0


def test_another_one_of_the_sample_is_compared(world: World) -> None:
    """Every entry is a lie that only who has the key can have written, and the first that is drawn was written over."""
    patterns, ledger = patterns_of(HER), world.ledger()
    scanned = scan_tree(world.root, patterns, searchers=LedgerSearchers(ledger, THREADS))
    search = ledger.search_names(patterns)[0]
    lies = [f.model_copy(update={"decoded_as": "a lie"}) for f in scanned.files]
    ledger.keep([(ledger.name(f"{world.root.resolve().as_posix()}\0{f.path}", f.blake3, search), f) for f in lies])

    with pytest.raises(ScanError, match="read again"):
        scan_tree(world.root, patterns, searchers=LedgerSearchers(world.ledger(), Rewriting(world)))
