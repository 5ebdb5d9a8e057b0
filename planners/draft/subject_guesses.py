"""Which table may be where a kind of person is known from, and which further tables have its key."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pii_tracer.model.datasets import Column
from planners.draft.column_guesses import (
    NAMES_PERSONS,
    PERSONS,
    SHARE,
    Guess,
    category_of,
    has_uuids,
    key_strength,
    kind_of_person,
    may_be_record_key,
    names_another_kind,
    names_somebody_else,
    words_of,
)
from planners.draft.lineage_hints import TableLineage

MOST_FURTHER = 200
"""Further tables that a draft names."""
_LONG = 5
"""Letters of a value from which on it is no number that every table has."""
_FEWEST_PAIRS = 20
"""Persons with one number each by which it may be another number of theirs: of two it is by chance."""


@dataclass(frozen=True)
class SampledTable:
    """A table as far as a draft looks at it. name: in Spark SQL. sample: values by column; empty where none were read.

    listed: values that stand in lists and maps, by the name that the estate file has for the place.
    rows: how many were read, of which a sample may hold fewer values. in_objects: it is a bare folder in S3, which
    cannot tell who the persons are. by_lineage: it is one in HDFS or in an object store, whose keys only lineage tells.

    Fields of structs are among the columns, by the name that the estate file has for them. tops: the column that each
    of them is in.
    """

    name: str
    columns: tuple[Column, ...]
    sample: Mapping[str, Sequence[object]]
    rows: int = 0
    clone: bool = False
    in_objects: bool = False
    by_lineage: bool = False
    listed: Mapping[str, Sequence[object]] = field(default_factory=dict)
    tops: Mapping[str, str] = field(default_factory=dict)

    def top(self, column: str) -> str:
        """The table's column that a column or field is in: lineage of events knows no others."""
        return self.tops.get(column, column)

    def values(self, column: str) -> Sequence[object]:
        """The sampled values of a column."""
        return self.sample.get(column, ())

    def is_whole(self, column: str) -> bool:
        """Whether the sample has the column's value of every row."""
        return self.rows > 0 and len(self.values(column)) == self.rows


@dataclass(frozen=True)
class FurtherTable:
    """A table with the key. shared: the part of its sampled keys that the source has; None where not sampled.

    by_lineage: as of `SampledTable`.
    """

    table: str
    key: str
    shared: float | None
    by_lineage: bool = False


@dataclass(frozen=True)
class Mentioned:
    """A column of another table with the source's values, by whatever name. of: the identifier; None: the key.

    in_list: it is in a list or a map, so that such a row is everybody's in it.
    """

    table: str
    column: str
    of: str | None
    shared: float
    in_list: bool = False


@dataclass(frozen=True)
class SubjectGuess:
    """A table that may know persons. identifiers: by column. unique: each sampled key stands once.

    others: columns that identify either the row's person or somebody else; only their owner knows.
    record_keys: columns whose values stand once each, in a table with several rows of a person.
    """

    name: str
    source: str
    key: str
    unique: bool
    identifiers: Mapping[str, Guess]
    further: tuple[FurtherTable, ...] = ()
    mentioned: tuple[Mentioned, ...] = ()
    record_keys: tuple[str, ...] = ()
    others: Mapping[str, Guess] = field(default_factory=dict)


def guess_subjects(tables: Sequence[SampledTable], lineage: TableLineage | None = None) -> list[SubjectGuess]:
    """Tables that may know persons, the most likely one first: with further tables, for the first alone.

    A table counts that has a column like a key and one that identifies by itself; clones do not, nor folders whose keys
    only lineage tells. Those that cannot be a source come last. Of tables that are as likely, one with more rows comes
    first: it knows more persons. A table that jobs make of another one with its persons comes behind that one.
    """
    found = [
        (table.in_objects, -score, -table.rows, guess.source, guess)
        for table in tables
        if not (table.clone or table.by_lineage)
        for score, guess in _of(table)
    ]
    ranked = [guess for *_, guess in sorted(found, key=lambda item: item[:4])]
    if not ranked:
        return []
    by_name = {table.name: table for table in tables}
    first = _origin(ranked, by_name, lineage) if lineage else ranked[0]
    others = [guess for guess in ranked if guess is not first]
    return [_with_further(first, tables, lineage), *others]


def better_folder(
    tables: Sequence[SampledTable], guessed: Sequence[SubjectGuess], lineage: TableLineage | None = None
) -> SubjectGuess | None:
    """A folder that looks more like the table of the persons than the guessed source does, and cannot be one: the guess
    is then of somebody or something else. None where the folder has the source's key, or jobs make it of the source.
    """
    folders = [(score, table.name, guess) for table in tables if table.by_lineage for score, guess in _of(table)]
    if not folders:
        return None
    score, _, folder = max(folders, key=lambda one: one[:2])
    if guessed:
        first = guessed[0]
        source = next(table for table in tables if table.name == first.source)
        further = {table.table for table in first.further if table.shared}
        made = lineage.made_of(folder.source) if lineage else frozenset[str]()
        if folder.source in further or first.source in made or score <= max(mine for mine, _ in _of(source)):
            return None
    return folder


def _origin(ranked: Sequence[SubjectGuess], tables: Mapping[str, SampledTable], lineage: TableLineage) -> SubjectGuess:
    """From the most likely table to the one that jobs made it of, and so on, as far as its persons are there."""
    first, seen = ranked[0], set[str]()
    while first.source not in seen:
        seen.add(first.source)
        above, mine = lineage.made_of(first.source), _keys(tables[first.source], first.key)
        first = next((up for up in ranked if up.source in above - seen and _knows(tables[up.source], up, mine)), first)
    return first


def _knows(table: SampledTable, guess: SubjectGuess, keys: Collection[str]) -> bool:
    """Whether a table that can be a source has nearly all of some keys."""
    if table.in_objects or not keys or not table.is_whole(guess.key):
        return False
    return len(_keys(table, guess.key).intersection(keys)) >= SHARE * len(keys)


def _keys(table: SampledTable, column: str) -> set[str]:
    return {str(value) for value in table.values(column) if value is not None}


def _of(table: SampledTable) -> list[tuple[float, SubjectGuess]]:
    told = {
        column.name: guess
        for column in table.columns
        if (guess := category_of(column.name, column.type, table.values(column.name)))
    }
    others = {name: guess for name, guess in told.items() if names_somebody_else(name)}
    identifiers = {name: guess for name, guess in told.items() if name not in others}
    keys = [
        (strength + unique, -place, column.name, bool(unique))
        for place, column in enumerate(table.columns)
        if column.name not in told and (strength := key_strength(column.name, column.type, table.values(column.name)))
        for unique in [_is_unique(table, column.name)]
    ]
    if not keys and any(_is_unique(table, name) for name in identifiers):
        keys = _numbers_in_other_languages(table, told)
    if not keys or not identifiers:
        return []
    strength, _, key, unique = max(keys)
    kind = kind_of_person(key, table.name)
    others |= _other_numbers(table, key, kind, [name for _, _, name, _ in keys if name != key])
    named = any(word in (person, f"{person}s") for word in words_of(table.name).split() for person in PERSONS)
    score = 3 * strength + 2 * len({g.category for g in identifiers.values()}) + 2 * named + 4 * unique
    records = tuple(
        column.name
        for column in table.columns
        if not unique
        and column.name not in {*told, *others}
        and may_be_record_key(column.name, column.type)
        and _is_unique(table, column.name)
    )
    return [(score, SubjectGuess(kind, table.name, key, unique, identifiers, record_keys=records, others=others))]


def _numbers_in_other_languages(table: SampledTable, identifiers: Collection[str]) -> list[tuple[int, int, str, bool]]:
    """Of a table in which each mail stands once, columns called as numbers are whose values stand once, too:
    `kunden_nr` names no person in the words that are known here."""
    return [
        (1, -place, column.name, True)
        for place, column in enumerate(table.columns)
        if column.name not in identifiers
        and may_be_record_key(column.name, column.type)
        and _is_unique(table, column.name)
    ]


def _other_numbers(table: SampledTable, key: str, kind: str, others: Collection[str]) -> dict[str, Guess]:
    """Columns that may have another number of the same persons: every row has one, each stands with one key, and each
    key with one of them. Other tables may have that number alone.

    A bare `id` counts only if it has UUIDs, and small numbers do not. What is called as somebody else's number is none,
    nor what has another row's key: then a row names two persons.
    """
    found = {}
    kinds = {column.name: column.type for column in table.columns}
    keys = _keys(table, key)
    for name in others if table.is_whole(key) else ():
        if names_somebody_else(name) or names_another_kind(name, kind):
            continue
        values = table.values(name)
        pairs = _pairs(table, key, name)
        one_to_one = len(pairs) == len({mine for mine, _ in pairs}) == len({theirs for _, theirs in pairs})
        if not (table.is_whole(name) and len(pairs) >= _FEWEST_PAIRS and one_to_one) or None in values:
            continue
        if any(theirs != mine and theirs in keys for mine, theirs in pairs):
            continue
        by_name = key_strength(name, kinds[name]) == NAMES_PERSONS
        if (by_name or has_uuids(values)) and min(len(theirs) for _, theirs in pairs) >= _LONG:
            found[name] = Guess("account_id", "name" if by_name else "values")
    return found


def _is_unique(table: SampledTable, column: str) -> int:
    values = [value for value in table.values(column) if value is not None]
    return int(table.is_whole(column) and len(values) > 1 and len(set(map(str, values))) == len(table.values(column)))


def _with_further(guess: SubjectGuess, tables: Sequence[SampledTable], lineage: TableLineage | None) -> SubjectGuess:
    """Tables with a column that is called as the key is, in any case; not a bare `id`, which every table has. Columns
    that lineage leads to are left out: the key is found there without a declaration.
    """
    source = next(table for table in tables if table.name == guess.source)
    known = {str(value) for value in source.values(guess.key) if value is not None}
    name = words_of(guess.key)
    keyed = lineage.reached(guess.source, [source.top(guess.key)]) if lineage else frozenset[tuple[str, str]]()
    further = []
    for table in sorted((table for table in tables if table.name != guess.source), key=lambda table: table.name):
        for column in table.columns:
            if words_of(column.name) != name or key_strength(column.name, column.type) < 2:
                continue
            if (table.name, table.top(column.name).lower()) in keyed:
                break
            keys = {str(value) for value in table.values(column.name) if value is not None}
            shared = len(keys & known) / len(keys) if keys and known and source.is_whole(guess.key) else None
            further.append(FurtherTable(table.name, column.name, shared, table.by_lineage))
            break
    named = {guess.source, *(table.table for table in further)}
    others = [
        t if t.name not in named else replace(t, columns=())  # its lists may name further persons in a row
        for t in tables
        if not (t.clone or t.by_lineage)
    ]
    personal = [source.top(column) for column in (guess.key, *guess.identifiers, *guess.others)]
    told = lineage.reached(guess.source, personal) if lineage else frozenset[tuple[str, str]]()
    tops = {table.name: table.tops for table in others}
    mentioned = [
        m
        for m in _mentioned(guess, source, others)
        if (m.table, tops[m.table].get(m.column, m.column).lower()) not in told
    ]
    return replace(guess, further=tuple(further[:MOST_FURTHER]), mentioned=tuple(mentioned[:MOST_FURTHER]))


def _mentioned(guess: SubjectGuess, source: SampledTable, others: Sequence[SampledTable]) -> list[Mentioned]:
    """Columns whose values are nearly all the source's, as far as all of the source's were read."""
    known = {
        None if column == guess.key else column: {str(value) for value in source.values(column) if value is not None}
        for column in (guess.key, *guess.identifiers, *guess.others)
        if source.is_whole(column)
    }
    found = []
    for table in sorted(others, key=lambda table: table.name):
        places = [(column.name, table.values(column.name), False) for column in table.columns]
        for name, sampled, in_list in [*places, *((name, there, True) for name, there in table.listed.items())]:
            values = {str(value) for value in sampled if value is not None}
            if not values or min(map(len, values)) < _LONG:
                continue
            shares = [(of, len(values & there) / len(values)) for of, there in known.items()]
            of, shared = max(shares, key=_share, default=(None, 0.0))
            if shared >= SHARE:
                found.append(Mentioned(table.name, name, of, shared, in_list))
    by_name = {table.name: table for table in others}
    return [one for one in found if not _said_again(one, found, guess, source, by_name[one.table])]


def _said_again(
    one: Mentioned, found: Sequence[Mentioned], guess: SubjectGuess, source: SampledTable, table: SampledTable
) -> bool:
    """Whether a column names by an identifier whom another column of the row names by the key already."""
    if one.of is None or one.in_list:
        return False
    pairs = _pairs(source, guess.key, one.of)
    for other in found:
        if other.table == one.table and other.of is None and not other.in_list:
            mine = _pairs(table, other.column, one.column)
            if mine and len(mine & pairs) >= SHARE * len(mine):
                return True
    return False


def _pairs(table: SampledTable, one: str, other: str) -> set[tuple[str, str]]:
    """What stands in both columns of a row."""
    rows = zip(table.values(one), table.values(other), strict=False)
    return {(str(mine), str(theirs)) for mine, theirs in rows if mine is not None and theirs is not None}


def _share(item: tuple[str | None, float]) -> float:
    return item[1]
