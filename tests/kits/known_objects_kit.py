"""What every store with versions shows when it is searched again with a scan ledger."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.app.planning.not_keys_check import OtherNumbers
from pii_tracer.app.stored_places import object_reading, row_counts
from pii_tracer.app.stored_places.object_search import search_object_places
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.stores.base import Absent
from pii_tracer.lake.stores.object_places.protocol import versioned_store
from pii_tracer.model.datasets import Format, KeySet, Match, MatchTerm
from pii_tracer.model.errors import ScanError
from pii_tracer.model.hive_text.text_reading_rules import NO_TEXTS
from pii_tracer.model.locations import object_location
from pii_tracer.scan import incremental_search
from pii_tracer.scan.hits import Reading
from pii_tracer.scan.incremental_search import LedgerSearchers
from pii_tracer.scan.scan_ledger import ScanLedger
from pii_tracer.scan.search_workers import THREADS
from pii_tracer.scan.value_forms import Patterns, build_patterns
from pii_tracer.verify.stores.stored_files import PlaceLook
from tests.scan import wide_objects
from tests.verify.conftest import a_copy

HER = "ipsita.nayak@mail.example"
NOW = datetime(2026, 11, 20, 8, tzinfo=timezone.utc)
OBJECTS = 5
LAST = f"out/{OBJECTS - 1}.csv"


def rows(mail: str) -> bytes:
    return f"n,mail\n1,{mail}\n".encode()


def patterns_of(*values: str) -> Patterns:
    return build_patterns([KeySet(name="email", origin="email", weak=False, values=tuple(("s", v) for v in values))])


class First(random.Random):
    """Draws the first of them: the last object is never in the sample."""

    def sample(self, population: Any, k: int, **more: Any) -> list[Any]:
        return list(population)[:k]


@dataclass
class Place:
    """The folder `out` of a store. read: the keys that the last look downloaded to search them. told: by the ledger.

    parts: by key, the sizes of what was read. shapes: whether the ledger keeps them."""

    estate: Estate
    base: Path
    write: Callable[[str, bytes], Any]
    read: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    parts: list[tuple[str, int]] = field(default_factory=list)
    shapes: bool = False

    @classmethod
    def filled(
        cls, estate: Estate, base: Path, write: Callable[[str, bytes], Any], monkeypatch: pytest.MonkeyPatch
    ) -> Place:
        made = cls(estate, base, write)
        true = object_reading.fetch

        def noted(store: Any, version: Any) -> memoryview:
            made.read.append(version.key)
            return true(store, version)

        monkeypatch.setattr(object_reading, "fetch", noted)
        kind: Any = type(versioned_store(made.estate, made.location))
        version_bytes = kind.read_version

        def part(store: Any, version: Any, first: int, at_most: int) -> bytes:
            data = bytes(version_bytes(store, version, first, at_most))
            made.parts.append((version.key, len(data)))
            return data

        monkeypatch.setattr(kind, "read_version", part)
        for number in range(OBJECTS):
            write(f"out/{number}.csv", rows(f"{number:09}.other@mail.exampl"))
        return made

    def refuse_the_last(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """From now on nobody may read the last object."""
        kind: Any = type(versioned_store(self.estate, self.location))
        true = kind.read_version

        def refused(store: Any, version: Any, first: int, at_most: int) -> bytes:
            if version.key == LAST:
                raise Absent("an object cannot be read", "notFound", where=store.name)
            return bytes(true(store, version, first, at_most))

        monkeypatch.setattr(kind, "read_version", refused)

    @property
    def location(self) -> Any:
        return object_location(f"{self.estate.object_stores[0].store}/out")

    def searchers(self, kept: bool) -> LedgerSearchers:
        self.read.clear()
        self.parts.clear()
        ledger = ScanLedger(
            self.base / "ledger.sqlite", b"k" * 32, lambda: NOW, self.told.append, with_shapes=self.shapes
        )
        return LedgerSearchers(ledger if kept else None, THREADS, draw=First())

    def plan(self, *, kept: bool = True, who: str = HER) -> tuple[str, Reading]:
        """What planning sees."""
        patterns = patterns_of(who)
        searchers, inventory = self.searchers(kept), discover(self.estate, self.base)
        given = (inventory, self.estate, patterns, NOW, str, OtherNumbers())
        return repr(search_object_places(*given, searchers=searchers)), searchers.reading  # type: ignore[arg-type]

    def count(self, *, kept: bool = True, values: Sequence[str] = (HER,)) -> tuple[PlaceLook, Reading]:
        """What the verifier sees of a copy whose rows are counted."""
        patterns = patterns_of(*values)
        match = Match(terms=(MatchTerm(column="mail", key_set="email", type="string"),))
        searchers, copy = self.searchers(kept), a_copy(Format.CSV, str(self.location), match=match)
        return object_reading.look(self.estate, copy, patterns, searchers), searchers.reading

    def verify(self, *, kept: bool = True, who: str = HER) -> tuple[str, Reading]:
        """What the verifier sees."""
        patterns = patterns_of(who)
        searchers = self.searchers(kept)
        found = object_reading.look_at(self.estate, self.location, "out", patterns, NO_TEXTS, searchers, alone=True)
        return found.model_dump_json(), searchers.reading


def read_once(place: Place) -> None:
    """Planning reads everything; the verification and the next plan read a sample, and see the same."""
    place.write("out/hers.csv", rows(HER))
    first, reading = place.plan()
    assert (len(place.read), reading.now, reading.before) == (OBJECTS + 1, OBJECTS + 1, 0)
    again, reading = place.plan()
    assert again == first == place.plan(kept=False)[0]
    assert (reading.now, reading.again, reading.by_store, reading.oldest) == (1, 1, OBJECTS, NOW)
    found, reading = place.verify()
    assert (place.read, reading.by_store) == (["out/0.csv"], OBJECTS)
    assert found == place.verify(kept=False)[0]
    assert '"residue":[{' in found


def counted_once(place: Place) -> None:
    """Rows that are nobody's of the persons are summed up by what they hold, and not again in the same bytes."""
    place.write("out/hers.csv", rows(HER) + rows("someone.other@mail.example").partition(b"\n")[2])
    place.plan()
    bare, _ = place.count(kept=False)
    first, reading = place.count()
    assert (len(place.read), reading.before) == (OBJECTS + 1, 0), "planning read the bytes and counted no rows"
    again, reading = place.count()
    assert (place.read, reading.by_store) == (["out/0.csv"], OBJECTS)
    assert again == first == bare
    assert again.rows is not None
    assert [state.rows for state in again.rows.states] == [1]
    others, _ = place.count(values=("someone.other@mail.example",))
    assert others == place.count(kept=False, values=("someone.other@mail.example",))[0] != again


def counted_in_other_bytes(place: Place) -> None:
    """As many rows of other people, of which one was changed."""
    first, _ = place.count()
    place.write(LAST, rows("000000009.other@mail.exampl"))
    then, _ = place.count()
    assert LAST in place.read
    assert then == place.count(kept=False)[0]
    assert then.baseline is not None
    assert first.baseline is not None
    assert [s.rows_total for s in then.baseline.states] == [s.rows_total for s in first.baseline.states]
    assert then.baseline != first.baseline


def rows_of_an_unread_object_are_not_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an object that is known, and that nobody may read any more."""
    whole, _ = place.count()
    place.refuse_the_last(monkeypatch)
    found, reading = place.count()
    assert reading.by_store
    assert found == place.count(kept=False)[0] != whole


def kept_though_the_search_stops(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of the last object cannot be read; then they can."""
    monkeypatch.setattr(row_counts, "_KEPT_AFTER", 2)
    monkeypatch.setattr(incremental_search, "_PART", 2)
    true = row_counts.rows_in

    def unreadable(copy: Any, name: str, *given: Any) -> Any:
        if name.endswith(LAST):
            raise ScanError("the rows of an object cannot be read", where=name, todo="")
        return true(copy, name, *given)

    with monkeypatch.context() as broken:
        broken.setattr(row_counts, "rows_in", unreadable)
        with pytest.raises(ScanError, match="rows"):
            place.count()
    found, reading = place.count()
    assert reading.by_store >= 2
    assert found == place.count(kept=False)[0]


def other_sums_are_found_out(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the ledger says of rows is compared in the sample, even where it was written with the estate's key."""
    with monkeypatch.context() as forged:
        forged.setattr(row_counts, "_written", lambda told: json.dumps([told.persons, told.others, told.sum + 1]))
        place.count()
    with pytest.raises(ScanError, match="read again"):
        place.count()


def read_in_parts(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large object, for another person; she is in it, then she is not, and in what was written since she is."""
    wide_objects.small(monkeypatch)
    place.shapes = True
    for which, cells in (("first", {5: f"of {HER}"}), ("second", {})):
        key, data = f"out/{which}.parquet", wide_objects.parquet(wide_objects.columns(first=cells))
        place.write(key, data)
        for look in (place.plan, place.verify):
            (place.base / "ledger.sqlite").unlink(missing_ok=True)
            look(who=wide_objects.HIM)
            found, reading = look()
            assert reading.in_parts == 1 + (which == "second")
            assert sum(size for name, size in place.parts if name == key) < len(data) + reading.drawn * len(data)
            assert key not in place.read
            assert found == look(kept=False)[0]
    place.write("out/second.parquet", wide_objects.parquet(wide_objects.columns(second={5: f"of {HER}"})))
    assert '"residue":[{' in found, "she is in the first"
    found, _ = place.verify()
    assert "out/second.parquet" in place.read
    assert found.count('"file":"second.parquet"')
    assert found == place.verify(kept=False)[0]


def replaced_between_two_parts(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The listed version is read as a whole, or it is unverified."""
    wide_objects.small(monkeypatch)
    place.shapes, key = True, "out/wide.parquet"
    place.write(key, wide_objects.parquet())
    place.verify(who=wide_objects.HIM)
    kind: Any = type(versioned_store(place.estate, place.location))
    true, asked = kind.read_version, list[int]()

    def replaced(store: Any, version: Any, first: int, at_most: int) -> bytes:
        data = bytes(true(store, version, first, at_most))
        if version.key == key:
            asked.append(first)
            if len(asked) == 2:
                place.write(key, wide_objects.parquet(wide_objects.columns(second={5: f"of {HER}"})))
        return data

    monkeypatch.setattr(kind, "read_version", replaced)
    found, reading = place.verify()
    assert len(asked) >= 2
    unverified = found.partition('"unverified":[')[2].partition("]")[0]
    assert bool(reading.in_parts) is ("wide.parquet" not in unverified)
    assert '"residue":[{' in place.verify()[0]


def found_in_other_bytes(place: Place) -> None:
    """As many bytes are written over an object."""
    place.write(LAST, rows("ipsita.nayak@mail.exampla"))
    place.verify()
    place.write(LAST, rows(HER))
    found, _ = place.verify()
    assert LAST in place.read
    assert found == place.verify(kept=False)[0]
    assert '"residue":[{' in found


def found_beside_known_bytes(place: Place, change: Callable[[str], Any]) -> None:
    """change: makes her address metadata of an object."""
    place.verify()
    change(LAST)
    found, _ = place.verify()
    assert found == place.verify(kept=False)[0]
    assert '"residue":[{' in found


def unread_as_without_the_ledger(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody may read an object any more, or it goes between the listing and the search."""
    place.verify()
    place.refuse_the_last(monkeypatch)
    found, _ = place.verify()
    assert found == place.verify(kept=False)[0]
    assert LAST.removeprefix("out/") in found.partition('"unverified":[')[2].partition("]")[0]
