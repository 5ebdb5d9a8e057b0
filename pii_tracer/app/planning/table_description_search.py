"""Tables whose own metadata goes on holding the persons: looked at where the scan found them at all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pii_tracer.lake.careful_reading import Readings
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lake.stores.any_place import AnyPlace, file_of
from pii_tracer.lake.table_descriptions import FOOTERS, NOTES, FileNotes, description, notes_of_files
from pii_tracer.scan.decode.parquet_footer import search_entry
from pii_tracer.scan.decode.table_metadata import PARTITION, digests_of_parts, walk
from pii_tracer.scan.folder_scan import name_tells
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.hits import Form, Hit
from pii_tracer.scan.value_forms import Patterns
from planners.copies.scan_evidence import Evidence, TellingText


def telling_descriptions(
    evidence: Mapping[str, Evidence],
    inventory: Inventory,
    paths: EstatePaths,
    patterns: Patterns,
    readings: Readings,
    say: Callable[[str], None],
) -> dict[str, tuple[TellingText, ...]]:
    """By location of a table: the kinds of place in its metadata that hold a value of the persons, and will do so."""
    found = {}
    rewritten = Rewritten.of(evidence, patterns)
    for state in inventory.tables:
        seen = evidence.get(state.location)
        if seen is None or not (seen.found or seen.weak):
            continue
        texts = readings.table(state, partial(_telling, state, paths, patterns, seen, rewritten), ())
        if texts:
            say(f"{state.table or 'a table'} holds the persons in its own description")
            found[state.location] = tuple(texts)
    return found


Digit = tuple[str, str | None]
"""A short number: its key set, and the column that it is in."""


@dataclass(frozen=True)
class Rewritten:
    """Data files of the estate that steps write again, by their whole paths, values masked.

    whole: those with rows of the persons for certain. digits: by file, the short numbers in columns of its rows.
    """

    whole: Collection[str]
    digits: Mapping[str, Collection[Digit]]

    @classmethod
    def of(cls, evidence: Mapping[str, Evidence], patterns: Patterns) -> Rewritten:
        """What the scan saw in rows."""
        folders = [(patterns.mask(at), seen) for at, seen in evidence.items()]
        digits: dict[str, set[Digit]] = defaultdict(set)
        for at, seen in folders:
            for one in seen.places:
                if one.weak:
                    digits[f"{at}/{one.file}"].add((one.key_set, one.column))
        return cls({f"{at}/{one.file}" for at, seen in folders for one in seen.seen if one.in_rows}, digits)


def _telling(
    state: TableState, paths: EstatePaths, patterns: Patterns, seen: Evidence, rewritten: Rewritten
) -> list[TellingText]:
    texts = [_read(document, place, patterns) for place, document in description(state, paths).items()]
    if seen.weak or not all(one.in_rows for one in seen.seen):
        folder = paths.place(state.location)
        notes = [_staying(one, folder, patterns, rewritten) for one in notes_of_files(state, paths)]
        digits = frozenset[Digit]().union(*(one.digits for one in notes))
        texts.append(TellingText(NOTES, any(one.certain for one in notes), digits))
    return [text for text in texts if text.certain or text.digits]


def _read(document: Any, place: str, patterns: Patterns) -> TellingText:
    hits = _hits(document, place, patterns)
    # rows go by the value of their partition
    digits = {(hit.key_set, hit.column) for hit in hits if hit.weak and hit.where != PARTITION}
    parts = (
        digests_of_parts(document, lambda part: bool(_hits(part, place, patterns))) if hits and place != NOTES else ()
    )
    return TellingText(place, any(not hit.weak for hit in hits), frozenset(digits), frozenset(parts))


def _hits(document: Any, place: str, patterns: Patterns) -> list[Hit]:
    """Without bounds that are cut: they are somebody else's where their file holds nothing
    (`pii_tracer.scan.false_min_max_hits`)."""
    collector = Collector(patterns)
    if place == FOOTERS:
        for text in document:
            search_entry(text.encode("utf-8", "replace"), collector)
    else:
        walk(document, collector, place)
    return [hit for hit in collector.hits() if hit.form is not Form.PREFIX]


def _staying(notes: FileNotes, folder: AnyPlace, patterns: Patterns, rewritten: Rewritten) -> TellingText:
    """What stands in what is said of files of which no step writes one again.

    A file with rows of the persons is written again (one that lies elsewhere, as a shallow clone's, into this table),
    and one goes whose partition is theirs. A short number in a bound of a column is of a row where one of the file's
    rows has it in that column.
    """
    if any(not patterns.is_weak(name) for value in notes.partition for name in patterns.of_cell(value)):
        return TellingText(NOTES, certain=False)
    shown = {path: patterns.mask(str(file_of(folder, path))) for path in notes.files}
    staying = [path for path in notes.files if shown[path] not in rewritten.whole]
    if not staying:
        return TellingText(NOTES, certain=False)
    text = _read(notes.document, NOTES, patterns)
    of_rows = {digit for path in shown.values() for digit in rewritten.digits.get(path, ())}
    return TellingText(
        NOTES, text.certain or any(name_tells(path, patterns) for path in staying), text.digits - of_rows
    )
