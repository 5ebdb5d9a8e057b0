"""Which rows hold a value of the persons and stay: read again where the scan saw one, nowhere else.

A row that the plan's own match does not find is not deleted, so that a value in it stays: beside the key of somebody
else, or in the column of keys itself, written as no match compares it. Whatever the search after the run would find in
such a row is found here, and as it finds it. Only rows of the current state count; a row that was deleted and still
stands in a file goes with its file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pii_tracer.app.persons_apart.values_by_person import ValuesByPerson, whose
from pii_tracer.app.planning.person_counts import left_to_spark
from pii_tracer.app.planning.short_number_columns import BY_POSITION, take_values
from pii_tracer.app.planning.unmatched_rows.place_columns import PlaceColumns, tops_of
from pii_tracer.lake.careful_reading import Readings
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.rows.current_rows import LibraryError, data_files
from pii_tracer.lake.rows.rows_of_files import read_part
from pii_tracer.lake.stores.any_place import AnyPlace
from pii_tracer.model.datasets import Match
from pii_tracer.model.locations import is_remote
from pii_tracer.model.plan import Mention
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.hits import ROWS, FileScan
from pii_tracer.scan.known_columns import key_columns
from pii_tracer.scan.value_forms import Patterns
from planners.copies.classification import match_of, mentions_in
from planners.copies.person_rows import theirs, with_blanks, without_elements
from planners.copies.scan_evidence import (
    PATH,
    Evidence,
    KeyDigits,
    OthersRows,
    Place,
)
from planners.gaps.unexplained_short_numbers import are_keys, known_keys
from planners.locate.not_keys import plain_key_sets
from planners.locate.subject_survey import Survey, title

if TYPE_CHECKING:
    import pyarrow as pa

MOST = 1_000
"""More rows are not counted in one column: what is to be done about them is the same."""

_Unshown = dict[str, frozenset[str]]
"""Labels of fields in a file that readers do not show, or may not: what they call it where they do, in lower case."""

Like = frozenset[tuple[str, str]]
"""Key sets, and labels of columns in lower case, in which short numbers look like the key."""


def places(files: Iterable[FileScan]) -> frozenset[Place]:
    """Where among the rows of files values stand: what else a file holds (bounds, footers) is no row."""
    return frozenset(
        Place(file.path, hit.key_set, hit.column, hit.where == PATH, hit.weak)
        for file in files
        for hit in file.hits
        if (hit.where in ROWS or hit.where == PATH) and (hit.column or not hit.weak)
    )


def others_rows(
    evidence: Mapping[str, Evidence],
    surveys: Sequence[Survey],
    states: Sequence[TableState],
    paths: EstatePaths,
    patterns_at: Callable[[str], Patterns],
    readings: Readings,
    say: Callable[[str], None],
    digits: Mapping[str, tuple[KeyDigits, ...]],
    owners: ValuesByPerson | None,
) -> dict[str, tuple[OthersRows, ...]]:
    """By location of a table in which persons' rows are found by a match: values of theirs in other rows.

    states: the tables, and the bare folders in stores that are erased as tables are. patterns_at: what is looked for in
    the table at a location. digits: by location, short numbers that look like the key; others say nothing. owners:
    asked whose values stand in the rows that are found; nobody asks where None.

    A table that cannot be read is a gap; one that only Spark reads, or whose keys it alone compares, is said.
    """
    found: dict[str, tuple[OthersRows, ...]] = {}
    by_location = {s.location: s for s in states}
    for survey in surveys:
        for state in states:
            match, mentions = match_of(survey, state, by_location), mentions_in(survey, state, by_location)
            if match is None and not mentions:
                continue
            like = frozenset((d.key_set, d.place.lower()) for d in digits.get(state.location, ()))
            rows = _Rows(state, match, mentions, survey, patterns_at(state.location), like, owners)
            seen = {
                root: [p for p in evidence[root].places if rows.counts(p.key_set, p.column, weak=p.weak)]
                for root in _roots(state, by_location)
            }
            look = partial(_look_at, rows, seen, evidence.get(state.location), paths, say)
            readings.table(state, look, None, _UNTOLD)
            found[state.location] = (*found.get(state.location, ()), *rows.told)
    return found


_UNTOLD = "Rows of others may hold the persons' values; where they do, these stay"


def _look_at(
    rows: _Rows,
    seen: Mapping[str, Iterable[Place]],
    whole: Evidence | None,
    paths: EstatePaths,
    say: Callable[[str], None],
) -> None:
    try:
        columns, files = _wanted(rows.state, rows.places, seen, rows.patterns, paths)
        if columns and files:
            say(f"finding out whose rows of {title(rows.state)} hold the persons beside the key")
            rows.read(columns, files, paths)
        for file, labels in _unshown(rows, seen, paths).items():
            rows.stay(file, labels, paths)
    except LibraryError as error:
        if not (isinstance(error, _OnlySparkError) or left_to_spark(rows.state, whole, paths)):
            raise
        say(f"cannot find out whether rows of others in {title(rows.state)} hold the persons: {error.what}")


def _roots(state: TableState, by_location: Mapping[str, TableState]) -> list[str]:
    """The table's folder, and those of the tables whose files it reads as a shallow clone."""
    roots = [state.location]
    origin = by_location.get(state.clone_of or "")
    while origin is not None and origin.location not in roots:
        roots.append(origin.location)
        origin = by_location.get(origin.clone_of or "")
    return roots


def _wanted(
    state: TableState, match: Match, seen: Mapping[str, Iterable[Place]], patterns: Patterns, paths: EstatePaths
) -> tuple[frozenset[str], frozenset[AnyPlace]]:
    """The columns to look at, and the files to look at them in: only where a value stands."""
    columns, names = frozenset[str](), set[tuple[str, str]]()
    if not any(seen.values()):
        return columns, frozenset()
    known = PlaceColumns(state, match, paths)
    for root, places_ in seen.items():
        for place in places_:
            if meant := known.meant(place):
                columns |= meant
                names.add((_real(root), place.file))
    return columns, frozenset(path for path, name in _named(state, seen, patterns, paths) if name in names)


def _named(
    state: TableState, seen: Mapping[str, Iterable[Place]], patterns: Patterns, paths: EstatePaths
) -> Iterator[tuple[AnyPlace, tuple[str, str]]]:
    """The table's data files of now, each with the folder and the name by which the scan knows it."""
    here = _real(state.location)
    roots = [_real(root) for root in seen]
    for path in data_files(state, paths):
        real = str(path.resolve())
        inside = next((root for root in roots if real.startswith(f"{root}/")), None)
        name = real.removeprefix(f"{inside}/") if inside else path.name  # a file that the table has from elsewhere
        yield path, (inside or here, patterns.mask(name))


def _unshown(rows: _Rows, seen: Mapping[str, Iterable[Place]], paths: EstatePaths) -> dict[AnyPlace, _Unshown]:
    """By file that has them, the fields with a value that the table dropped, or may have: files keep these until they
    are written again."""
    if format_of(rows.state.format).purges_dropped or not any(seen.values()):
        return {}
    known, labels = PlaceColumns(rows.state, rows.places, paths), dict[tuple[str, str], _Unshown]()
    for root, places_ in seen.items():
        for place in places_:
            if place.column and (shown := known.shown(place)) != {True}:
                there = labels.setdefault((_real(root), place.file), {})
                there[place.column] = frozenset(known.names_now(place)) if True in shown else frozenset()
    if not labels:
        return {}
    files = _named(rows.state, seen, rows.patterns, paths)
    return {path: labels[name] for path, name in files if name in labels}


def _real(location: str) -> str:
    """A folder, links followed."""
    return location if is_remote(location) else str(Path(location).resolve())


class _OnlySparkError(LibraryError):
    """The rows can be read, and keys of such a type are compared by Spark alone."""


class _Rows:
    """Counts, column by column, the rows of one table that are not the persons' and hold them."""

    def __init__(
        self,
        state: TableState,
        match: Match | None,
        mentions: Sequence[Mention],
        survey: Survey,
        patterns: Patterns,
        like: Like,
        owners: ValuesByPerson | None,
    ) -> None:
        self.state = state
        self._owners = owners
        self._match = match or Match(terms=())
        self._mentions = mentions
        self.places = Match(terms=(*self._match.terms, *(t for m in mentions for t in m.match.terms)))
        plain = [term for term in self.places.terms if not term.beside]
        self._key_columns = frozenset(term.column.lower() for term in plain)
        self._keys = frozenset((term.key_set, term.place.lower()) for term in plain)
        self._like = like | self._keys
        self._more_than_its_key: set[str] = set()
        self._key_sets = survey.key_sets
        self._compared = key_columns(self.places)
        self.patterns = patterns.comparing(self._compared)
        self._survey = survey
        self._counts: Counter[str] = Counter()
        self._dropped: set[str] = set()
        self._persons: dict[str, set[str]] = {}
        self._more_than_keys: set[str] = set()
        self._values: dict[str, set[str]] = {}

    @property
    def told(self) -> tuple[OthersRows, ...]:
        """What was found, by column; of dropped ones, of which no reader tells the rows, that it is there."""
        found = sorted(self._counts.items())
        rows = (
            OthersRows(
                name,
                min(n, MOST),
                n >= MOST,
                self._offers(name),
                frozenset(self._persons.get(name, ())),
                key=name.lower() not in self._more_than_its_key,
            )
            for name, n in found
        )
        return (*rows, *(OthersRows(name, 1, more=True, dropped=True) for name in sorted(self._dropped)))

    def _offers(self, label: str) -> Literal["other_keys", "not_keys"] | None:
        """What can be said of a column in which nothing but keys was found, by all that stands in it."""
        values = self._values.get(label.lower(), ())
        if label in self._more_than_keys or label.lower() not in self._more_than_its_key or not values:
            return None
        known = frozenset[str]().union(*(known_keys(self._survey, name) for name in plain_key_sets(self._survey)))
        return "other_keys" if are_keys(values, known) else "not_keys"

    def counts(self, key_set: str, column: str | None, *, weak: bool) -> bool:
        """Whether a value that was seen there is the persons': of a short number only in a column of keys, or in one
        that looks like it."""
        label = (column or "").lower()
        known = not weak or (key_set, label) in self._like or BY_POSITION.fullmatch(label) is not None
        return key_set in self._key_sets and known

    def read(self, columns: frozenset[str], files: Collection[AnyPlace], paths: EstatePaths) -> None:
        """Read columns of files, all at once: a file and what changes its rows may be given together only.

        Raises:
            EstateError: a reader does not know the table's features, or only Spark can compare the keys.
        """
        names = {c.name.lower(): c.name for c in self.state.columns}
        keys = {names.get(name.lower(), name) for name in self.places.columns}
        for batch in read_part(self.state, sorted(columns | keys), files, paths):
            self._look(batch, columns)
            take_values(batch.select(sorted(columns)), self._values)

    def stay(self, file: AnyPlace, labels: _Unshown, paths: EstatePaths) -> None:
        """Count what dropped fields of a file hold, where none of its rows is the persons': no step writes it again.

        Where a field of now has the label, too, and readers show the value in it, it is not the dropped one's.

        Raises: as `read`.
        """
        names = {c.name.lower(): c.name for c in self.state.columns}
        keys = sorted({names.get(name.lower(), name) for name in self._match.columns})
        if self._match.terms:
            batches = read_part(self.state, keys, [file], paths)
            if any(self._found(batch, self._match).true_count for batch in batches):
                return
        tops = {names[top] for now in labels.values() for label in now for top in tops_of(label) if top in names}
        shown = {
            label.lower()
            for batch in (read_part(self.state, sorted(tops), [file], paths) if tops else ())
            for label in self._labels(batch)
        }
        self._dropped.update(label for label, now in labels.items() if now.isdisjoint(shown))

    def _look(self, batch: pa.RecordBatch, columns: Collection[str]) -> None:
        import pyarrow.compute as pc

        mine = self._found(batch, self._match)
        others = [(mention, self._found(batch, mention.match)) for mention in self._mentions if mention.mask.columns]
        for mention in self._mentions:
            if mention.match.lists:
                batch = self._without(batch, mention.match)
        for name in sorted(columns):
            gone = mine
            if name.lower() in self._key_columns:  # a gap of its own
                gone = pc.or_(gone, with_blanks(batch, self._match, self._key_sets))
            for mention, named in others:
                if name.lower() in {column.lower() for column in mention.mask.columns}:
                    gone = pc.or_(gone, named)
            self._count(batch.filter(pc.invert(gone)).select([name]))

    def _without(self, batch: pa.RecordBatch, match: Match) -> pa.RecordBatch:
        """A batch as its lists and maps are when they have lost the persons' elements."""
        left = without_elements(batch, match, self._key_sets)
        if left is None:
            raise _OnlySparkError(
                "only Spark can find the persons' elements",
                where=title(self.state),
                todo="find the owners of these elements with Spark",
            )
        return left

    def _found(self, batch: pa.RecordBatch, match: Match) -> pa.BooleanArray:
        found = theirs(batch, match, self._key_sets)
        if found is None:
            raise _OnlySparkError(
                "only Spark can find out whose its rows are",
                where=title(self.state),
                todo="find the owners of these rows with Spark",
            )
        return found

    def _count(self, rows: pa.RecordBatch) -> None:
        """Half by half, so that few rows among many are found by the fast look at all of them."""
        labels = self._labels(rows) if rows.num_rows else frozenset()
        if not labels or all(self._counts[label] >= MOST for label in labels):
            return
        if rows.num_rows == 1:
            self._counts.update(labels)
            self._ask_whose(rows, labels)
            return
        half = rows.num_rows // 2
        self._count(rows.slice(0, half))
        self._count(rows.slice(half))

    def _ask_whose(self, row: pa.RecordBatch, labels: Collection[str]) -> None:
        """Keep whose values stand in these columns of a row that holds some."""
        from pii_tracer.scan.decode.arrow import search_batch

        if self._owners is None:
            return
        looked = Collector(self._owners.patterns.comparing(self._compared))
        search_batch(row, looked, "data")
        for hit in looked.hits():
            label = hit.column or row.schema.names[0]
            if label in labels:
                self._persons.setdefault(label, set()).update(whose([hit.key_set], self._key_sets))

    def _labels(self, rows: pa.RecordBatch) -> frozenset[str]:
        from pii_tracer.scan.decode.arrow import search_batch

        looked = Collector(self.patterns)
        search_batch(rows, looked, "data")
        hits = [hit for hit in looked.hits() if self.counts(hit.key_set, hit.column, weak=hit.weak)]
        keys = plain_key_sets(self._survey)
        self._more_than_keys.update(hit.column or "" for hit in hits if hit.key_set not in keys)
        labels = ((hit.key_set, (hit.column or "").lower()) for hit in hits)
        self._more_than_its_key.update(label for key_set, label in labels if (key_set, label) not in self._keys)
        return frozenset(hit.column or rows.schema.names[0] for hit in hits)
