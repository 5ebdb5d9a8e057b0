"""Tables whose own description holds the persons: looked at where the scan found them at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pii_tracer.lake.careful_reading import Readings
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lake.table_descriptions import description
from pii_tracer.scan.decode.table_metadata import walk
from pii_tracer.scan.hit_collector import Collector
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
    """By location of a table: the kinds of place in its description that hold a value of the persons."""
    found = {}
    for state in inventory.tables:
        seen = evidence.get(state.location)
        if seen is None or not seen.found:
            continue
        places = readings.table(state, partial(_telling, state, paths, patterns), ())
        if places:
            say(f"{state.table or 'a table'} holds the persons in its own description")
            found[state.location] = tuple(places)
    return found


def _telling(state: TableState, paths: EstatePaths, patterns: Patterns) -> list[str]:
    places = []
    for place, document in description(state, paths).items():
        collector = Collector(patterns)
        walk(document, collector, place)
        if any(not hit.weak for hit in collector.hits()):
            places.append(place)
    return places
