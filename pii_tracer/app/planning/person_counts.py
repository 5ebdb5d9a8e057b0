"""How many current rows of each table are the persons', as far as they can be read without Spark.

A table that cannot be read is a gap. One is none: a table whose every current file is there and was decoded, and whose
format has something that the library does not know. Spark reads it, so that the first step counts its rows before it
erases, and the plan says `rows: null`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pii_tracer.app.planning.short_number_columns import distinct_values
from pii_tracer.lake.careful_reading import Readings
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lake.rows.current_rows import LibraryError, data_files, read_columns
from pii_tracer.lake.rows.rows_of_files import read_part
from pii_tracer.lake.stores.any_place import AnyPlace, opened
from pii_tracer.model.datasets import PLAIN, Match
from pii_tracer.model.errors import EstateError
from planners.copies.classification import match_of
from planners.copies.contradicted_rows import found_by_one_alone, of_another_kind, of_somebody_else, strange
from planners.copies.executor_support import astray
from planners.copies.person_rows import count_of_table, padded
from planners.copies.scan_evidence import Contradicted, Evidence, Padded
from planners.copies.table_match import carriage_of
from planners.locate.subject_survey import Survey, title


@dataclass(frozen=True)
class _Counted:
    """What the rows of a table show of the persons. As `Evidence` has it."""

    rows: int | None = None
    padded: frozenset[Padded] = frozenset()
    contradicted: frozenset[Contradicted] = frozenset()
    strange_keys: frozenset[str] = frozenset()
    keyless: frozenset[str] = frozenset()


_NOT_COUNTED = _Counted()
_WITHOUT = "How many rows are the persons' is not known"


def count_persons(
    evidence: Mapping[str, Evidence],
    surveys: Sequence[Survey],
    inventory: Inventory,
    paths: EstatePaths,
    readings: Readings,
    say: Callable[[str], None],
) -> dict[str, Evidence]:
    """Add the number of the persons' current rows."""
    result = dict(evidence)
    by_location = {s.location: s for s in inventory.tables}
    for found in surveys:
        for state in inventory.tables:
            match = match_of(found, state, by_location)
            if match is not None:
                seen = result[state.location]
                declared = (carriage := carriage_of(found, state, by_location)[0]) is not None and carriage.declared
                count = partial(_rows, state, match, found, seen, paths, say, declared)
                counted = readings.table(state, count, _NOT_COUNTED, _WITHOUT)
                result[state.location] = replace(
                    seen,
                    rows=counted.rows,
                    padded=seen.padded | counted.padded,
                    contradicted=seen.contradicted | counted.contradicted,
                    strange_keys=seen.strange_keys | counted.strange_keys,
                    keyless=seen.keyless | counted.keyless,
                )
    return result


def left_to_spark(state: TableState, seen: Evidence | None, paths: EstatePaths) -> bool:
    """Whether Spark can be expected to read a table that a library failed to read.

    seen: what the search of its files showed. Files of a bare folder are written again without Spark: it never is.
    """
    if state.format in PLAIN or seen is None or seen.unread:
        return False
    try:
        return all(map(_has_bytes, data_files(state, paths)))
    except (EstateError, OSError):
        return False


def _has_bytes(file: AnyPlace) -> bool:
    with opened(file) as stream:
        return bool(stream.read(1))


def _rows(
    state: TableState,
    match: Match,
    found: Survey,
    seen: Evidence,
    paths: EstatePaths,
    say: Callable[[str], None],
    declared: bool,
) -> _Counted:
    if astray(state, [(part.column, part.access) for term in match.terms for part in term.parts]):
        return _NOT_COUNTED  # a gap of its own says that no key stands there
    try:
        table = read_columns(state, sorted(match.columns), paths)
    except LibraryError as error:
        if not left_to_spark(state, seen, paths):
            raise
        say(f"the rows of {title(state)} are counted by Spark, before the first step erases: {error.what}")
        return _NOT_COUNTED
    rows = count_of_table(table, match, found.key_sets)
    alone = found_by_one_alone(table, match, found) if rows else frozenset[Contradicted]()
    counted = _Counted(rows, padded(table, match, found.key_sets), alone)
    return _with_declared(counted, state, match, found, paths) if declared else counted


def _with_declared(counted: _Counted, state: TableState, match: Match, found: Survey, paths: EstatePaths) -> _Counted:
    """What the rows show of a key that the estate file alone says to be the persons'."""
    terms = [term for term in match.terms if not (term.access or term.beside)]
    values = {t: distinct_values(state, t.column, paths) for t in terms}
    if not counted.rows:
        return replace(
            counted, keyless=frozenset(t.column for t in terms if of_another_kind(values[t], t.key_set, found))
        )
    strange_keys = {t.column for t in terms if strange(values[t], t.key_set, found)}
    texts = [c.name for c in state.columns if c.type == "string"]
    columns = sorted({*texts, *match.columns})
    others = of_somebody_else(read_part(state, columns, data_files(state, paths), paths), match, found)
    return replace(counted, contradicted=counted.contradicted | others, strange_keys=frozenset(strange_keys))
