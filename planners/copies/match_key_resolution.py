"""Match keys of the persons, resolved from the source before anything is deleted.

A request names a person by one key. The source table knows the person's other identifiers (phone, national id) and the
keys of their rows (payment ids). From these and the recorded expressions come the key sets that copies are searched
and erased with.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

from pii_tracer.config.subjects import Subject, SubjectTable
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import PersonsUnknown
from pii_tracer.model.keys_as_text import joined, split
from pii_tracer.model.number_keys import without_fraction
from planners.copies.nobodys_values import nobodys
from planners.locate.key_uniqueness import SameKey, same_key

MOST_LONGER = 1_000
"""More keys of others that contain a person's are not known apart: the manifest would name everybody."""

_WORD = re.compile(r"[^\W_]+")
"""Letters and digits, as `pii_tracer.scan.key_boundaries` takes a cell apart."""


@dataclass(frozen=True)
class SourceRows:
    """The identifying columns of a source table as text, row by row; None for NULL. Lives in memory only."""

    columns: Mapping[str, Sequence[str | None]]

    def __post_init__(self) -> None:
        if len({len(values) for values in self.columns.values()}) > 1:
            raise ValueError("columns of one table differ in length")

    def __repr__(self) -> str:
        return f"SourceRows({', '.join(self.columns)})"


@dataclass(frozen=True)
class Wanted:
    """A person of a request: keyed reference, and the value of the subject's key."""

    request: str
    reference: str
    key: str = field(repr=False)


@dataclass(frozen=True)
class Unread:
    """Retained versions of a table that nobody read. origins: the columns of which they may know former values."""

    table: DatasetId
    origins: frozenset[str]
    why: str


@dataclass(frozen=True)
class Earlier:
    """What an earlier run took of a person out of a table that knew them.

    origins: source columns of which nobody knows the values of then. clean: the datasets (as text) in which that very
    run left nothing of the person. logged: False where the deletion log has nothing of that run. shows_the_key: a run
    erased the person from the table, and the key is right: its plan found the key in the source, or the run had no
    other person, so that what it erased was found by this very key.
    """

    request: str
    table: str
    origins: frozenset[str]
    clean: frozenset[str]
    logged: bool = True
    shows_the_key: bool = False


@dataclass(frozen=True)
class Keys:
    """What was resolved for the persons of one kind of subject.

    base: per source column, the (reference, value) pairs. others: per source column, the values of everybody else, now
    and formerly, against which a match is checked before it may delete anything.
    former: those of `base` that only former versions of the source have. ambiguous: per source column, how many former
    values are not in `base`, since another key had them, too: nobody can tell whose rows hold them; ambiguous_of: the
    persons (references) who had them.
    alike: per column of keys, those that other people have now, as the persons have theirs, and that differ only in
    case. Not of former versions: a key whose case was mended is the person's own. Not of identifiers: `Rao@x.example`
    may be the same mailbox as `rao@x.example`. key_only: requests whose person no version of the source has any more;
    recased: those of them whose key it has in another case. unread: what may know more former values. earlier: what
    earlier runs left nobody to know. same_key: by request, the source's current rows of its key, where there are
    several. unseen: the source cannot be read, so that nobody knows what other people have. unsearched: by request that
    an earlier run left open, where it found something of the person, if values by which it did are not looked for.
    """

    subject: Subject
    base: Mapping[str, tuple[tuple[str, str], ...]] = field(repr=False)
    others: Mapping[str, frozenset[str]] = field(repr=False)
    former: Mapping[str, frozenset[tuple[str, str]]] = field(default_factory=dict, repr=False)
    ambiguous: Mapping[str, int] = field(default_factory=dict)
    ambiguous_of: frozenset[str] = frozenset()
    alike: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False)
    key_only: frozenset[str] = frozenset()
    recased: frozenset[str] = frozenset()
    unread: tuple[Unread, ...] = ()
    earlier: tuple[Earlier, ...] = ()
    same_key: Mapping[str, SameKey] = field(default_factory=dict)
    unseen: bool = False
    unsearched: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def resolve(
    subject: Subject,
    rows: SourceRows,
    wanted: Sequence[Wanted],
    former: Iterable[SourceRows] = (),
    *,
    source_erased: bool = False,
) -> Keys:
    """Find the persons' identifiers and row keys in the source, and those that its former versions have of them.

    A person whose row was deleted is known from the former versions alone; with `source_erased`, one that no version
    has is known by the key of the request.

    Raises:
        PersonsUnknown: keys of requests are in no version of the source (the message names the first request, never
            a key).
    """
    mentions = {key.column for key in subject.other_keys}
    columns = [column for column in rows.columns if column not in mentions]
    found = _gather(dict.fromkeys(columns, (subject.key,)), rows, former, wanted)
    present = {reference for reference, _ in found[subject.key].all}
    gone = [person for person in wanted if person.reference not in present]
    folded = {value.casefold() for value in found[subject.key].others} if gone else set()
    recased = frozenset(person.request for person in gone if person.key.casefold() in folded)
    if gone and not source_erased:
        raise _not_there(subject, gone, recased)
    found[subject.key].then |= {(person.reference, person.key) for person in gone}
    lost = frozenset(person.request for person in gone)
    identifiers = {i.column: rows.columns[i.column] for i in subject.identifiers}
    alike = same_key(rows.columns[subject.key], identifiers, {person.key for person in wanted})
    several = {person.request: alike[person.key] for person in wanted if person.key in alike}
    written = _written_otherwise(subject, found[subject.key].strange, wanted)
    for person in wanted:
        if same := written.get(person.key):
            known = several.get(person.request, SameKey(rows=1, groups=1, persons=1, columns=()))
            several[person.request] = replace(known, other_texts=len(same))
    keys = Keys(subject=subject, base={}, others={}, key_only=lost, recased=recased, same_key=several)
    return _joined(keys, found, {column: column for column in found}, subject.categories)


def _written_otherwise(subject: Subject, strange: Iterable[str], wanted: Sequence[Wanted]) -> dict[str, set[str]]:
    """By key of a request the others that are the same but for fractions of zeros."""

    def plain(key: str) -> str:
        if not subject.several_columns or "." not in key:
            return without_fraction(key)
        return joined([without_fraction(part) for part in split(key)]) or key

    numbers = {plain(person.key): set[str]() for person in wanted}
    for other in strange:
        if (number := plain(other)) in numbers:
            numbers[number].add(other)
    return {person.key: numbers[plain(person.key)] for person in wanted}


def _not_there(subject: Subject, gone: Sequence[Wanted], recased: Collection[str]) -> PersonsUnknown:
    """The error of persons whom no row has. A UUID is often written in capitals in one system, and not in another."""
    person = gone[0]
    reason = f"{subject.source} does not contain the person of request {person.request}: no row has this {subject.key}"
    todo = (
        "check the key in the request. If an earlier run erased the source, resume that run, or plan the rest with "
        "`--source-erased`"
    )
    if person.request in recased:
        reason += ". A row has the key in a different case (capital or small letters)"
        todo = (
            f"if that row is the same person's, write the key in the request as {subject.source} has it. Otherwise "
            f"{todo}"
        )
    missing = tuple(sorted(wanted.request for wanted in gone))
    return PersonsUnknown(reason, where=f"request {person.request}", todo=todo, requests=missing)


def with_table(
    keys: Keys,
    table: SubjectTable,
    rows: SourceRows,
    wanted: Sequence[Wanted],
    former: Iterable[SourceRows] = (),
) -> Keys:
    """The persons' identifiers and row keys of a further table, beside those that are known. They may have no rows.

    An identifier is of the person of `key`; a record key of each whose row it is. Where the table is keyed by another
    column of the source (`of`), whose rows they are is told by the persons' values of that one, but for those that
    somebody else has, too.
    """
    if table.of is not None:
        told_by = {person.reference: person for person in wanted}
        clear = [pair for pair in keys.base[table.of] if pair[1] not in keys.others[table.of]]
        wanted = [replace(told_by[reference], key=value) for reference, value in clear if reference in told_by]
    told = {i.column: (table.key,) for i in table.identifiers}
    found = _gather(told | dict.fromkeys(table.record_keys, table.owners or (table.key,)), rows, former, wanted)
    columns = tuple(found)
    origins = {column: table.origin(column) for column in columns}
    return _joined(keys, found, origins, table.categories)


@dataclass
class _Column:
    """The values of a column: of the persons now, of the persons formerly, of everybody else at any time.

    strange: of others now.
    """

    now: set[tuple[str, str]] = field(default_factory=set)
    then: set[tuple[str, str]] = field(default_factory=set)
    others: set[str] = field(default_factory=set)
    strange: set[str] = field(default_factory=set)

    @property
    def all(self) -> set[tuple[str, str]]:
        return self.now | self.then

    def alike(self) -> frozenset[str]:
        """Of others now, what a search for the persons' values of now would find them in (`lookalikes`)."""
        mine = {value for _, value in self.all}
        return lookalikes((value for _, value in self.now), self.strange) - mine

    def clear(self) -> set[tuple[str, str]]:
        """The former values that no other key had at any time."""
        owners: dict[str, set[str]] = {}
        for reference, value in self.all:
            owners.setdefault(value, set()).add(reference)
        return {(r, v) for r, v in self.then - self.now if v not in self.others and owners[v] == {r}}


def lookalikes(mine: Iterable[str], others: Iterable[str]) -> frozenset[str]:
    """Of other keys those that a search for some values takes for them: in another case, or with more words before or
    behind (`asha` in `Asha`, `asha-rao` and `v. asha`).

    Blanks and signs make no other key of a value, nor does anything of one without a letter: `4711.0` is 4711. None of
    the longer ones where they are very many: these are no keys of single people (`ACME` in `ACME-4711`).
    """
    folded = {value.casefold() for value in mine}
    values: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for value in folded:
        if any(map(str.isalpha, value)):
            words = tuple(_WORD.findall(value))
            values.setdefault(words[0], []).append((words, value))
    shortest = min((len(value) for known in values.values() for _, value in known), default=0)
    same = set[str]()
    longer: dict[str, set[str]] = {}
    for other in others:
        text = other.casefold()
        if text in folded:
            same.add(other)
        elif values and len(text) > shortest:
            for value in _held(text, values):
                found = longer.setdefault(value, set())
                if len(found) <= MOST_LONGER:
                    found.add(other)
    return frozenset(same.union(*(found for found in longer.values() if len(found) <= MOST_LONGER)))


def _held(text: str, values: Mapping[str, Sequence[tuple[tuple[str, ...], str]]]) -> Iterator[str]:
    """The values that are in a text beside other words. values: by their first word."""
    words = tuple(_WORD.findall(text))
    for at, word in enumerate(words):
        for known, value in values.get(word, ()):
            if len(known) < len(words) and words[at : at + len(known)] == known and value in text:
                yield value


def _gather(
    owners: Mapping[str, Sequence[str]], rows: SourceRows, former: Iterable[SourceRows], wanted: Sequence[Wanted]
) -> dict[str, _Column]:
    """The values of columns. owners: by column, those with the keys of whom a row is."""
    by_key = {person.key: person.reference for person in wanted}
    found = {column: _Column() for column in owners}
    for current, version in _versions(rows, former):
        whose = {of: _whose(version, of, by_key) for of in {tuple(of) for of in owners.values()}}
        for column, of in found.items():
            mine, strange = whose[tuple(owners[column])]
            values = version.columns[column]
            theirs = of.now if current else of.then
            theirs.update((reference, value) for n, reference in mine if (value := values[n]))
            others = {*filter(None, compress(values, strange))}
            of.others |= others
            if current:
                of.strange = others
    return found


def _whose(
    rows: SourceRows, owners: Sequence[str], by_key: Mapping[str, str]
) -> tuple[list[tuple[int, str]], list[bool]]:
    """The persons' rows by number, each with whose it is, and of every row whether it is somebody else's."""
    mine: list[tuple[int, str]] = []
    strange: list[bool] = []
    for number, keys in enumerate(zip(*(rows.columns[owner] for owner in owners), strict=True)):
        references = [by_key[key] for key in keys if key and key in by_key]
        if references:
            mine += [(number, reference) for reference in references]
        # a row without a key (a guest's order) may be anybody's, also the person's: it makes nothing shared
        strange.append(not references and any(keys))
    return mine, strange


def _versions(rows: SourceRows, former: Iterable[SourceRows]) -> Iterable[tuple[bool, SourceRows]]:
    yield True, rows
    for version in former:
        yield False, version


def _joined(keys: Keys, found: Mapping[str, _Column], origins: Mapping[str, str], named: Mapping[str, str]) -> Keys:
    base, others, alike = dict(keys.base), dict(keys.others), dict(keys.alike)
    former, ambiguous = dict(keys.former), dict(keys.ambiguous)
    doubtful = set(keys.ambiguous_of)
    for column, origin in origins.items():
        of = found[column]
        clear = of.clear()
        base[origin] = tuple(sorted(of.now | clear))
        others[origin] = frozenset(of.others | nobodys(of.all, named.get(column)))
        former[origin] = frozenset(clear)
        left = of.then - of.now - clear
        ambiguous[origin] = len({value for _, value in left})
        doubtful |= {reference for reference, _ in left}
        alike[origin] = frozenset() if column in named else of.alike()
    told = frozenset(doubtful)
    return replace(keys, base=base, others=others, former=former, ambiguous=ambiguous, ambiguous_of=told, alike=alike)
