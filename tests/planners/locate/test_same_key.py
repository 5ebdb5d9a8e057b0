"""Rows of one key: one person's or several persons', against a slow and simple answer."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pii_tracer.config.subjects import Identifier, Subject
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lineage.graph.canonical_facts import collect
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Column, DatasetId
from pii_tracer.model.plan import Gap
from planners.copies.match_key_resolution import SourceRows, Wanted, resolve
from planners.gaps.tenant_keys import keys_of_several
from planners.locate.key_uniqueness import SameKey, same_key
from planners.locate.subject_survey import Survey, World
from sample_lineage.people import populate

Row = tuple[str, str | None, str | None]
"""Key, mail, phone."""

KEY, OTHER = "7", "8"
CELLS = st.sampled_from([None, "", " ", "a", "A", "b", "c ", "d"])
ROWS = st.lists(st.tuples(st.sampled_from([KEY, KEY, OTHER, ""]), CELLS, CELLS), max_size=9)


def judged(rows: list[Row], wanted: tuple[str, ...] = (KEY,)) -> dict[str, SameKey]:
    return same_key([r[0] for r in rows], {"mail": [r[1] for r in rows], "phone": [r[2] for r in rows]}, set(wanted))


def classes(numbers: list[int], joined: set[tuple[int, int]]) -> int:
    """How many classes these are, by all ways of any length (Warshall)."""
    ways = {(a, b) for a, b in joined} | {(b, a) for a, b in joined} | {(a, a) for pair in joined for a in pair}
    names = sorted({a for pair in ways for a in pair} | set(numbers))
    ways |= {(a, a) for a in names}
    for by, a, b in product(names, names, names):
        if (a, by) in ways and (by, b) in ways:
            ways.add((a, b))
    return len({frozenset(b for b in numbers if (a, b) in ways) for a in numbers})


def slowly(rows: list[Row]) -> SameKey | None:
    """The same by comparing each row with each."""

    def cells(row: Row) -> dict[str, str]:
        told = {"mail": (row[1] or "").strip().lower(), "phone": (row[2] or "").strip().lower()}
        return {column: value for column, value in told.items() if value}

    mine = [cells(row) for row in rows if row[0] == KEY]
    theirs = [cells(row) for row in rows if row[0] == OTHER]

    def alike(a: dict[str, str], b: dict[str, str], column: str, of_others: bool) -> bool:
        """Whether two rows have the same there, where that counts although others have it, or they do not."""
        value = a.get(column)
        return (
            value is not None and value == b.get(column) and (of_others or all(t.get(column) != value for t in theirs))
        )

    def joined(anyway: str) -> set[tuple[int, int]]:
        pairs = product(range(len(mine)), repeat=2)
        return {
            (i, j)
            for i, j in pairs
            if any(alike(mine[i], mine[j], column, column == anyway) for column in ("mail", "phone"))
        }

    if len(mine) < 2:
        return None
    persons = {
        column: classes([n for n, row in enumerate(mine) if column in row], joined(column))
        for column in ("mail", "phone")
    }
    return SameKey(
        rows=len(mine),
        groups=classes(list(range(len(mine))), joined("")),
        persons=max(1, *persons.values()),
        columns=tuple(column for column, number in sorted(persons.items()) if number > 1),
    )


@given(ROWS)
@example([(KEY, "a", "b"), (KEY, "c", "b"), (OTHER, None, "b")])
@example([(KEY, "a", "b"), (KEY, None, "d"), (KEY, "c", "d")])
@example([(KEY, "a", "b"), (KEY, "c", "b"), ("", None, "b")])
@example([(KEY, None, ""), (KEY, None, None)])
def test_it_is_what_comparing_each_with_each_gives(rows: list[Row]) -> None:
    assert judged(rows).get(KEY) == slowly(rows)


@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows: list[Row], chance: random.Random) -> None:
    mixed = list(rows)
    chance.shuffle(mixed)
    assert judged(mixed) == judged(rows)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=2, max_size=12))
def test_persons_of_whom_each_has_kept_something_are_counted(said: list[tuple[int, int]]) -> None:
    """Each has one address for ever and any number of phones, none of which is anybody else's."""
    rows: list[Row] = [(KEY, f"p{person}@x.example", f"{person}-{phone}") for person, phone in said]
    persons = len({person for person, _ in said})
    found = judged(rows)[KEY]
    assert (found.persons, found.groups) == (persons, persons)


@given(ROWS)
def test_requests_for_both_persons_are_judged_as_each_alone(rows: list[Row]) -> None:
    both = judged(rows, (KEY, OTHER))
    assert both == judged(rows) | judged(rows, (OTHER,))


@pytest.mark.parametrize(
    ("rows", "persons", "columns"),
    [
        pytest.param([("a", "1"), ("b", "2")], 2, ("mail", "phone"), id="two tenants"),
        pytest.param([("a", "1"), ("a", "2"), ("b", "2")], 1, (), id="by way of the row between"),
        pytest.param([("a", None), (None, "2")], 1, (), id="nothing to compare"),
        pytest.param([("a", "0"), ("b", "0")], 2, ("mail",), id="a phone that others have, too"),
        pytest.param([("a", "0"), (None, "0")], 1, (), id="it does not part them either"),
        pytest.param([("a", "0"), ("a", "1")], 1, (), id="the address connects"),
    ],
)
def test_what_counts(rows: list[tuple[str | None, str | None]], persons: int, columns: tuple[str, ...]) -> None:
    found = judged([*((KEY, *row) for row in rows), (OTHER, "z", "0")])[KEY]
    assert (found.persons, found.columns) == (persons, columns)


def test_as_many_rows_as_a_guests_key_has_are_judged_at_once() -> None:
    """100,000 persons: anything that compares each with each would take minutes."""
    number = 100_000
    rows: list[Row] = [(KEY, f"{n}@x.example", f"{n // 2}") for n in range(number)]
    assert judged(rows)[KEY].persons == number // 2


AT = DatasetId(namespace="file", name="/w/users")
MAIL = Identifier(column="mail", category="email")


def gaps(
    row_key: tuple[str, ...],
    kind: str = "bigint",
    keys: tuple[str, ...] = (KEY, KEY, OTHER),
    mails: tuple[str, ...] = (),
) -> list[Gap]:
    """kind: the type of the source's column `more`. mails: of its rows, where it has any."""
    names = (("uid", "bigint"), ("event", "string"), ("mail", "string"), ("more", kind))
    state = TableState(
        dataset=AT,
        table="app.users",
        location="/w/users",
        format=HUDI,
        snapshot="1",
        columns=tuple(Column(name=name, type=type_) for name, type_ in names),
        row_key=row_key,
    )
    identifiers = (MAIL,) if mails else ()
    subject = Subject(name="user", source="app.users", key="uid", record_keys=("event",), identifiers=identifiers)
    columns = {"uid": keys, "event": tuple(str(n) for n in range(len(keys)))} | ({"mail": mails} if mails else {})
    keys_found = resolve(subject, SourceRows(columns), [Wanted("R", "subj_1", KEY)])
    graph = LineageGraph(collect(columns={}, edges=[], memberships=[], jobs=[], gaps=[], aliases={}))
    world = World(graph, Inventory(tables=(state,)), {}, lambda _: False)
    return keys_of_several(Survey(subject, AT, {}, keys_found, {}), world)


def test_a_key_that_the_table_itself_takes_for_a_part_of_one_is_a_gap() -> None:
    (gap,) = gaps(("More", "UID", "event"))
    assert (
        "no identifier shows that they belong to one person. app.users also distinguishes its rows by More"
        in gap.reason
    )
    assert gap.evidence == "current rows of app.users with the key of R: 2; the table's key of a row: More, UID, event"


@pytest.mark.parametrize("row_key", [(), ("uid",), ("more",), ("more", "event"), ("uid", "event")])
def test_other_keys_of_rows_say_nothing(row_key: tuple[str, ...]) -> None:
    """A record key of the subject is one person's by itself."""
    assert gaps(row_key) == []


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamp_ntz"])
def test_since_when_a_row_holds_tells_no_persons_apart(kind: str) -> None:
    assert gaps(("uid", "more"), kind) == []


def test_identifiers_that_connect_the_rows_go_before_what_the_table_says() -> None:
    assert gaps(("uid", "more"), mails=("a@x.example", "A@x.example", "b@x.example")) == []


def test_identifiers_that_differ_are_told_with_what_the_table_says() -> None:
    (gap,) = gaps(("uid", "more"), mails=("a@x.example", "c@x.example", "b@x.example"))
    assert "look like 2 persons: no value in mail connects them" in gap.reason
    assert "as `key: [more, uid]`" in gap.reason
    assert gap.evidence.endswith("the table's key of a row: uid, more")


def test_one_row_of_a_key_is_one_persons_whatever_the_table_says() -> None:
    assert gaps(("uid", "more"), keys=(KEY, OTHER)) == []


def test_no_person_of_the_sample_estate_looks_like_several() -> None:
    paid = populate(datetime(2026, 11, 20, 9, tzinfo=timezone.utc)).payments
    identifiers: dict[str, list[str | None]] = {name: [getattr(p, name) for p in paid] for name in ("pan", "phone")}
    keys = [str(p.user_id) for p in paid]
    found = same_key(keys, identifiers, set(keys))
    assert len(found) > 100
    assert {(same.groups, same.persons) for same in found.values()} == {(1, 1)}
