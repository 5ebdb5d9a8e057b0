"""Match keys of the persons, resolved from the source before anything is deleted.

A request names a person by one key. The source table knows the person's other identifiers (phone, national id) and the
keys of their rows (payment ids). From these and the recorded expressions come the key sets that copies are searched
and erased with.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

from pii_tracer.config.subjects import Subject, SubjectTable
from pii_tracer.model.datasets import DatasetId, KeySet
from pii_tracer.model.errors import PersonsUnknown
from pii_tracer.model.key_columns import joined, split
from planners.copies.nobodys_values import nobodys
from planners.locate.key_uniqueness import SameKey, same_key
from planners.locate.keys_of_columns import each_of
from planners.locate.sql.spark_functions import (
    INPUT,
    compiled,
    essence,
    is_plain,
)
from planners.locate.sql.whole_numbers import NotComputable

WEAK_DIGITS = 10
"""A number of fewer digits than this is likely to mean something else elsewhere (an id of another table)."""


Evaluated = Callable[[str], str | None]
"""What an expression makes of a value."""


def is_short_number(value: str) -> bool:
    """Whether a value is such a number (see `KeySet.weak`)."""
    return value.isdigit() and len(value) < WEAK_DIGITS


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
    run left nothing of the person.
    """

    request: str
    table: str
    origins: frozenset[str]
    clean: frozenset[str]


@dataclass(frozen=True)
class Keys:
    """What was resolved for the persons of one kind of subject.

    base: per source column, the (reference, value) pairs. others: per source column, the values of everybody else, now
    and formerly, against which a match is checked before it may delete anything.
    former: those of `base` that only former versions of the source have. ambiguous: per source column, how many former
    values are not in `base`, since another key had them, too: nobody can tell whose rows hold them.
    alike: per column of keys, those that other people have now, as the persons have theirs, and that differ only in
    case. Not of former versions: a key whose case was mended is the person's own. Not of identifiers: `Rao@x.example`
    may be the same mailbox as `rao@x.example`. key_only: requests whose person no version of the source has any more;
    recased: those of them whose key it has in another case. unread: what may know more former values. earlier: what
    earlier runs left nobody to know. same_key: by request, the source's current rows of its key, where there are
    several. unseen: the source cannot be read, so that nobody knows what other people have.
    """

    subject: Subject
    base: Mapping[str, tuple[tuple[str, str], ...]] = field(repr=False)
    others: Mapping[str, frozenset[str]] = field(repr=False)
    former: Mapping[str, frozenset[tuple[str, str]]] = field(default_factory=dict, repr=False)
    ambiguous: Mapping[str, int] = field(default_factory=dict)
    alike: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False)
    key_only: frozenset[str] = frozenset()
    recased: frozenset[str] = frozenset()
    unread: tuple[Unread, ...] = ()
    earlier: tuple[Earlier, ...] = ()
    same_key: Mapping[str, SameKey] = field(default_factory=dict)
    unseen: bool = False

    def weak(self, column: str) -> bool:
        """True when any of the column's values is a short number."""
        return any(is_short_number(value) for _, value in self.base[column])


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
    keys = Keys(subject=subject, base={}, others={}, key_only=lost, recased=recased, same_key=several)
    return _joined(keys, found, {column: column for column in found}, subject.categories)


def _not_there(subject: Subject, gone: Sequence[Wanted], recased: Collection[str]) -> PersonsUnknown:
    """The error of persons whom no row has. A UUID is often written in capitals in one system, and not in another."""
    person = gone[0]
    reason = f"the person of request {person.request} is not in {subject.source}: no row has this {subject.key}"
    todo = (
        "check the key in the request; where an earlier run erased the source, resume that run, or plan for what is"
        " left by `--source-erased`"
    )
    if person.request in recased:
        reason += ", and a row has it in another case (capital or small letters)"
        todo = f"write the key in the request as {subject.source} has it, if that is the same person; or else {todo}"
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
        """Of others now, what differs from the persons' values of now only in case."""
        mine = {value for _, value in self.all}
        folded = {value.casefold() for _, value in self.now}
        return frozenset(v for v in self.strange if v.casefold() in folded and v not in mine)

    def clear(self) -> set[tuple[str, str]]:
        """The former values that no other key had at any time."""
        owners: dict[str, set[str]] = {}
        for reference, value in self.all:
            owners.setdefault(value, set()).add(reference)
        return {(r, v) for r, v in self.then - self.now if v not in self.others and owners[v] == {r}}


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
    for column, origin in origins.items():
        of = found[column]
        clear = of.clear()
        base[origin] = tuple(sorted(of.now | clear))
        others[origin] = frozenset(of.others | nobodys(of.all, named.get(column)))
        former[origin] = frozenset(clear)
        ambiguous[origin] = len({v for _, v in of.then - of.now - clear})
        alike[origin] = frozenset() if column in named else of.alike()
    return replace(keys, base=base, others=others, former=former, ambiguous=ambiguous, alike=alike)


@dataclass(frozen=True)
class Derived:
    """A key set, and what of the persons is not in it.

    shared: how many values are not, since they belong to other people too: they cannot tell whose a row is.
    unsure: persons for whom what the expression gives is not certain; why: the first reason, without any value.
    left: former values that are not in the key set, since the expression makes somebody else's the same.
    """

    keys: KeySet
    shared: int
    unsure: int = 0
    why: str = ""
    left: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def blind(self) -> bool:
        """Whether nobody of the persons could be found by it."""
        return bool(self.unsure or self.shared) and not self.keys.values


def derive(keys: Keys, column: str, expression: str) -> Derived:
    """The key set for a source column put through a recorded expression.

    Values that another person of the source has too, after the expression, are left out: a phone of a family, or an
    expression that throws too much away.

    Raises:
        NotComputable: the expression does not parse.
    """
    several = keys.subject.several_columns if column == keys.subject.key else ()
    evaluated = _compiled(keys, column, expression)
    core = expression if several else essence(expression)
    kernel = None if core == INPUT else _compiled(keys, column, core)
    values: set[tuple[str, str]] = set()
    inputs: set[str] = set()
    unsure: dict[str, str] = {}
    former = keys.former.get(column, frozenset())
    left = _equal({value for _, value in former}, keys.others[column], kernel)
    pairs = {pair for pair in keys.base[column] if pair not in former or pair[1] not in left}
    if keys.unseen and not (several or is_plain(expression)):
        unsure = {reference: "its source cannot be read: others may have the same" for reference, _ in pairs}
        pairs = set()
    for reference, value in sorted(pairs):
        try:
            result = evaluated(value)
        except NotComputable as error:
            unsure.setdefault(reference, error.what)
            continue
        if result:
            values.add((reference, result))
            inputs.add(value)
    # `007` is another text once it was a number
    plain = (bool(several) or is_plain(expression)) and values == pairs
    shared = _shared(inputs, keys.others[column], evaluated, kernel)
    alike = _alike({value for _, value in values}, keys.alike.get(column, frozenset()), evaluated)
    values = {pair for pair in values if pair[1] not in shared}
    mine = {value for _, value in values}
    weak = any(map(is_short_number, mine))
    key_set = KeySet(
        name=column if plain else f"{column}|{expression}",
        origin=column,
        expression=None if plain else expression,
        weak=weak,
        values=tuple(sorted(values)),
        others=alike,
        columns=several,
    )
    return Derived(
        keys=key_set, shared=len(shared), unsure=len(unsure), why=min(unsure.values(), default=""), left=left
    )


def _alike(mine: set[str], alike: frozenset[str], evaluated: Callable[[str], str | None]) -> tuple[str, ...]:
    """What the expression gives for others' keys, where that, too, differs from the persons' only in case."""
    folded = {value.casefold() for value in mine}
    results = (_quiet(evaluated, value) for value in alike)
    return tuple(sorted({r for r in results if r and r not in mine and r.casefold() in folded}))


def everybodys(keys: Keys, column: str, expression: str) -> frozenset[str]:
    """The values of everybody, the persons included, of now and of former versions, after an expression."""
    values = keys.others[column] | {value for _, value in keys.base[column]}
    if expression == INPUT:
        return values
    evaluated = _compiled(keys, column, expression)
    return frozenset(result for value in values if (result := _quiet(evaluated, value)))


def _compiled(keys: Keys, column: str, expression: str) -> Evaluated:
    """An expression over a source column; over the subject's key where that has several columns, over each of them."""
    number = len(keys.subject.several_columns)
    if not number or column != keys.subject.key or expression == INPUT:
        return compiled(expression)
    each = [compiled(part) for part in each_of(expression, number)]
    return lambda text: joined([part(value) for part, value in zip(each, split(text), strict=True)])


def _equal(mine: set[str], others: frozenset[str], evaluated: Evaluated | None) -> frozenset[str]:
    """Those of the persons' values that somebody else's value equals after the expression; None for none."""
    if not mine or evaluated is None:
        return frozenset(mine & others)
    results = {_quiet(evaluated, value) for value in others} - {None}
    return frozenset(value for value in mine if _quiet(evaluated, value) in results)


def _shared(mine: set[str], others: frozenset[str], evaluated: Evaluated, kernel: Evaluated | None) -> frozenset[str]:
    """Those results of the expression that somebody else's value has, too.

    kernel: the expression without what tells any two inputs apart, in which equal results are sought.
    """
    return frozenset(result for value in _equal(mine, others, kernel) if (result := _quiet(evaluated, value)))


def _quiet(evaluated: Callable[[str], str | None], value: str) -> str | None:
    """Another person's value may not be computable (a malformed phone): it then matches nothing."""
    try:
        return evaluated(value)
    except NotComputable:
        return None
