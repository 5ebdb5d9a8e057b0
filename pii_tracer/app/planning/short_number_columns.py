"""Short numbers in places that no lineage explains: the columns they stand in are read, and compared with the source's.

Only places in which the scan saw the persons' digits are read, and of these only as much as the question needs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache, partial
from itertools import product
from typing import TYPE_CHECKING, Any

from pii_tracer.lake.careful_reading import Readings
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.plain_files.data_file import StoredFile, csv_header
from pii_tracer.lake.formats.plain_files.rows import folder_files, rows_of_file
from pii_tracer.lake.formats.plain_files.store_folder import Bare
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lake.rows.current_rows import data_files, guarded
from pii_tracer.lake.rows.rows_of_files import names_in_files, read_part
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Carries, Format, Match
from pii_tracer.model.errors import EstateError
from pii_tracer.scan.decode.cells.json_members import json_leaves
from planners.copies.classification import match_of
from planners.copies.scan_evidence import (
    Digits,
    Evidence,
    KeyDigits,
    Why,
)
from planners.copies.table_match import carriage_of
from planners.gaps.unexplained_short_numbers import (
    Names,
    are_keys,
    by_name,
    key_names,
    known_keys,
    tops,
    unexplained,
    without_values,
    worth_reading,
)
from planners.locate.key_location import Carriage
from planners.locate.sql.shared_rows import mentions_of
from planners.locate.subject_survey import Survey, title

if TYPE_CHECKING:
    import pyarrow as pa

DISTINCT = 10_000
"""So many different values of a column are compared with the source's keys."""

ROWS = 1_000_000
"""So many rows are read to find them."""

BY_POSITION = re.compile(r"_c(\d+)")
"""What the scan calls a column of a CSV file whose header it does not trust."""

Say = Callable[[str], None]
Known = Callable[[str], frozenset[str]]
"""Everybody's values of a key set, by its name."""


def key_digits(
    evidence: Mapping[str, Evidence],
    surveys: Sequence[Survey],
    graph: LineageGraph,
    inventory: Inventory,
    paths: EstatePaths,
    readings: Readings,
    say: Say,
) -> dict[str, tuple[KeyDigits, ...]]:
    """By location: short numbers that no lineage explains and that look like the persons' key."""
    found: dict[str, tuple[KeyDigits, ...]] = {}
    by_location = {s.location: s for s in inventory.tables}
    for survey in surveys:
        matches = [m for state in inventory.tables for m in _matches(survey, state, by_location)]
        names, known = key_names(survey, matches), cache(partial(known_keys, survey))
        for state in inventory.tables:
            carriage, _ = carriage_of(survey, state, by_location)
            if state.format is Format.STREAM_CHECKPOINT or (carriage and not (carriage.found_in or _none(carriage))):
                continue
            if digits := unexplained(survey, graph, carriage, evidence.get(state.location)):
                judge = partial(_judged, _Place(survey, state, paths, say, known), state, digits, paths, names)
                told = readings.table(state, judge, _unjudged(digits))
                found[state.location] = (*found.get(state.location, ()), *told)
    return found


def _matches(survey: Survey, state: TableState, by_location: Mapping[str, TableState]) -> Iterator[Match]:
    """By what a table's rows are found, and what names the persons in rows of others."""
    carriage, _ = carriage_of(survey, state, by_location)
    if match := match_of(survey, state, by_location):
        yield match
    if carriage:
        yield from (mention.match for mention in mentions_of(survey, state, carriage))


def unread_digits(
    evidence: Mapping[str, Evidence], surveys: Sequence[Survey], graph: LineageGraph, states: Iterable[TableState]
) -> dict[str, tuple[KeyDigits, ...]]:
    """The same of tables whose values nobody compares (folders in HDFS): whatever no lineage explains."""
    found: dict[str, tuple[KeyDigits, ...]] = {}
    for survey, state in product(surveys, states):
        carriage = survey.carriages.get(state.dataset)
        if carriage and not (carriage.found_in or _none(carriage)):
            continue
        if digits := unexplained(survey, graph, carriage, evidence.get(state.location)):
            found[state.location] = (*found.get(state.location, ()), *_unjudged(digits))
    return found


def _judged(
    place: _Place, state: TableState, digits: Sequence[Digits], paths: EstatePaths, names: Names
) -> tuple[KeyDigits, ...]:
    return tuple(place.judged(_spelled(state, digits, paths), names))


def _unjudged(digits: Sequence[Digits]) -> tuple[KeyDigits, ...]:
    return tuple(KeyDigits(one.key_set, one.place, Why.UNREAD) for one in digits)


def _none(carriage: Carriage) -> bool:
    return carriage.carries is Carries.NONE


def _spelled(state: TableState, digits: Sequence[Digits], paths: EstatePaths) -> tuple[Digits, ...]:
    """Digits with the names that CSV files have for columns which the scan, on its guard, calls by their position.

    What a format writes beside the columns is made of them.
    """
    if made := format_of(state.format).added_columns:
        return tuple(d for d in digits if not (d.column or "").startswith(made)) or tuple(digits)
    if state.format is not Format.CSV or not any(BY_POSITION.fullmatch(d.column or "") for d in digits):
        return tuple(digits)
    try:
        headers = guarded(state, lambda: {_header(file) for file in folder_files(state, paths)})
    except EstateError:  # then they keep the names that say nothing
        return tuple(digits)
    found = set[Digits]()
    for one in digits:
        match = BY_POSITION.fullmatch(one.column or "")
        names = {header[int(match[1])] for header in headers if int(match[1]) < len(header)} if match else set()
        found |= {replace(one, column=name) for name in names} or {one}
    return tuple(sorted(found, key=repr))


def _header(file: StoredFile) -> tuple[str, ...]:
    return csv_header(file)[0] if file.text is None else tuple(column.name for column in file.text.columns)


class _Place:
    """One table or folder in which digits stand that nothing explains."""

    def __init__(self, survey: Survey, state: TableState, paths: EstatePaths, say: Say, known: Known) -> None:
        self._known = known
        self._survey = survey
        self._state = state
        self._paths = paths
        self._say = say

    def judged(self, digits: Sequence[Digits], names: Names) -> Iterator[KeyDigits]:
        """Those of the digits that look like the key."""
        named = [d for d in digits if by_name(self._survey, d, names)]
        open_ = [d for d in digits if d not in named and worth_reading(self._survey, d, names)]
        values = self._values([d.column for d in open_ if d.column])
        for one in named:
            yield KeyDigits(one.key_set, one.place, Why.NAME)
        for one in open_:
            seen = values.get((one.column or "").lower())
            if seen:
                if are_keys(seen, self._known(one.key_set)):
                    yield KeyDigits(one.key_set, one.place, Why.VALUES)
            elif without_values(self._survey, one):
                yield KeyDigits(one.key_set, one.place, Why.UNREAD)

    def _values(self, labels: Iterable[str]) -> dict[str, set[str]]:
        """By label, in lower case: the first distinct values of its column, as text; none where they cannot be read."""
        wanted = {label.lower() for label in labels}
        if not wanted:
            return {}
        try:
            known = names_in_files(self._state, self._paths)
            columns = {label: _columns(label, known) for label in wanted}
            if not any(columns.values()):
                return {}
            self._say(f"comparing the values of {title(self._state)} with the keys of the source")
            return self._read(columns)
        except EstateError as error:
            self._say(f"columns of {title(self._state)} cannot be compared with the keys: {error.what}")
            return {}

    def _read(self, columns: Mapping[str, frozenset[str]]) -> dict[str, set[str]]:
        """Values by label. A label that no value has (it was written under another shape) means its whole column."""
        seen: dict[str, set[str]] = {}
        rows = 0
        names = sorted(frozenset().union(*columns.values()))
        for batch in read_part(self._state, names, data_files(self._state, self._paths), self._paths):
            guarded(self._state, partial(take_values, batch, seen))
            rows += batch.num_rows
            if rows >= ROWS or all(len(values) >= DISTINCT for values in seen.values()):
                break
        return {label: _under(label, tops_, seen) for label, tops_ in columns.items()}


def distinct_values(state: TableState, column: str, paths: EstatePaths) -> frozenset[str]:
    """The first distinct values of a column, as text.

    Raises:
        EstateError: its rows cannot be read.
    """
    seen: dict[str, set[str]] = {}
    rows = 0
    for batch in read_part(state, [column], data_files(state, paths), paths):
        guarded(state, partial(take_values, batch, seen))
        rows += batch.num_rows
        if rows >= ROWS or any(len(values) >= DISTINCT for values in seen.values()):
            break
    return frozenset().union(*seen.values())


def distinct_in_files(bare: Bare, column: str) -> frozenset[str]:
    """As `distinct_values`, of a bare folder in a store.

    Raises:
        EstateError: its rows cannot be read, or a file does not have the column.
    """
    seen: dict[str, set[str]] = {}
    rows = 0
    for file in bare.files:
        for batch in guarded(bare.state, partial(_batches_of, file, column)):
            guarded(bare.state, partial(take_values, batch, seen))
            rows += batch.num_rows
        if rows >= ROWS or any(len(values) >= DISTINCT for values in seen.values()):
            break
    return frozenset().union(*seen.values())


def _batches_of(file: StoredFile, column: str) -> list[pa.RecordBatch]:
    table = rows_of_file(file, [column])
    names = [name for name in table.column_names if name.lower() == column.lower()]
    if not names:
        raise EstateError(
            "a file does not have the column", where=str(file.path), todo="check the values of the column by hand"
        )
    return list(table.select(names).to_batches())


def _columns(label: str, known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The columns of now that the top-level column of a label is."""
    return next((known[top] for top in tops(label) if top in known), frozenset())


def _under(label: str, columns: frozenset[str], seen: Mapping[str, set[str]]) -> set[str]:
    if label in seen:
        return seen[label]
    starts = tuple(f"{name.lower()}." for name in columns)
    mine = [v for name, v in seen.items() if name in {c.lower() for c in columns} or name.startswith(starts)]
    return set().union(*mine)


def take_values(batch: pa.RecordBatch, seen: dict[str, set[str]]) -> None:
    """Add the distinct values of a batch to those seen, by label."""
    import pyarrow.compute as pc

    from pii_tracer.scan.decode.arrow import leaf_arrays

    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        for label, leaf in leaf_arrays(column, name):
            if len(seen.get(label.lower(), ())) >= DISTINCT:
                leaf = _with_members(leaf)
            for value in pc.unique(leaf).to_pylist():
                for inner, text in _texts(label, value):
                    mine = seen.setdefault(inner.lower(), set())
                    if len(mine) < DISTINCT:
                        mine.add(text)


def _with_members(leaf: pa.Array) -> pa.Array:
    """The values that may be JSON: of a label with enough values only their members are new."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(leaf.type):
        leaf = leaf.dictionary_decode()
    kind = leaf.type
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind):  # numbers, dates
        return leaf.slice(0, 0)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return leaf.filter(pc.match_substring_regex(leaf, r"^\s*[{\[]")) if any(is_(kind) for is_ in texts) else leaf


def _texts(label: str, value: Any) -> Iterator[tuple[str, str]]:
    """A value as text, and where it is text with JSON the members of it."""
    if isinstance(value, (bytes, bytearray)):
        value = bytes(value).decode("utf-8", "replace")
    if isinstance(value, str):
        members = list(json_leaves(value))
        for member, leaf in members:
            if not isinstance(leaf, str) or not leaf.lstrip().startswith(("{", "[")):
                yield from _texts(f"{label}.{member}", leaf)
        if not members and value.strip():
            yield label, value.strip()
    elif value is not None and not isinstance(value, bool):
        yield label, _number(value)


def _number(value: Any) -> str:
    """A whole number without a fraction."""
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return str(int(value))
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        return str(int(value))
    return str(value)
