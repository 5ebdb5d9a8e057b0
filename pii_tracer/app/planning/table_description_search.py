"""Tables whose own metadata goes on holding the persons: looked at where the scan found them at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

from pii_tracer.lake.careful_reading import Readings
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lake.stores.any_place import AnyPlace, file_of
from pii_tracer.lake.table_descriptions import NOTES, FileNotes, description, notes_of_files
from pii_tracer.scan.decode.table_metadata import walk
from pii_tracer.scan.folder_scan import name_tells
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.hits import Form
from pii_tracer.scan.value_forms import Patterns
from planners.copies.scan_evidence import Evidence


def telling_descriptions(
    evidence: Mapping[str, Evidence],
    inventory: Inventory,
    paths: EstatePaths,
    patterns: Patterns,
    readings: Readings,
    say: Callable[[str], None],
) -> dict[str, tuple[str, ...]]:
    """By location of a table: the kinds of place in its metadata that hold a value of the persons, and will do so."""
    found = {}
    going = {f"{patterns.mask(at)}/{one.file}" for at, seen in evidence.items() for one in seen.seen if one.in_rows}
    for state in inventory.tables:
        seen = evidence.get(state.location)
        if seen is None or not seen.found:
            continue
        places = readings.table(state, partial(_telling, state, paths, patterns, seen, going), ())
        if places:
            say(f"{state.table or 'a table'} holds the persons in its own description")
            found[state.location] = tuple(places)
    return found


def _telling(
    state: TableState, paths: EstatePaths, patterns: Patterns, seen: Evidence, going: Collection[str]
) -> list[str]:
    """going: the files of the estate that hold rows of the persons, by their whole paths, values masked."""
    places = [place for place, document in description(state, paths).items() if _tells(document, place, patterns)]
    if all(one.in_rows for one in seen.seen):
        return places  # no note of any file holds a value
    if any(_stays(notes, paths.place(state.location), patterns, going) for notes in notes_of_files(state, paths)):
        places.append(NOTES)
    return places


def _tells(document: object, place: str, patterns: Patterns) -> bool:
    collector = Collector(patterns)
    walk(document, collector, place)
    # a bound that is cut is somebody else's where its file holds nothing (`pii_tracer.scan.truncated_bounds`)
    return any(not hit.weak and hit.form is not Form.PREFIX for hit in collector.hits())


def _stays(notes: FileNotes, folder: AnyPlace, patterns: Patterns, going: Collection[str]) -> bool:
    """Whether a value stands in what is said of files of which no step writes one again.

    A file with rows of the persons is written again (one that lies elsewhere, as a shallow clone's, into this table),
    and one goes whose partition is theirs.
    """
    if any(patterns.of_cell(value) for value in notes.partition):
        return False
    staying = [path for path in notes.files if patterns.mask(str(file_of(folder, path))) not in going]
    if not staying:
        return False
    return any(name_tells(path, patterns) for path in staying) or _tells(notes.document, NOTES, patterns)
