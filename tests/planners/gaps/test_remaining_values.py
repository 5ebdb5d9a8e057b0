"""Gaps of values that stay: in rows of other people, and in names of files."""

from __future__ import annotations

from typing import Any

import pytest

from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lineage.graph.canonical_facts import collect
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Column, Format, Match, MatchTerm, Strategy
from pii_tracer.model.plan import Gap, HeldColumn, Mask
from planners.copies.scan_evidence import Evidence, OthersRows, Place
from planners.gaps.remaining_values import others_rows, remaining_values, telling_names
from planners.locate.subject_survey import World
from planners.step_drafts import CopyDraft
from tests.planners.gaps.test_written_again import BOTH, BY_KEY, HERS, MART, STRAY, at, draft, edge, state

FOUND_BY = Match(
    terms=(
        MatchTerm(column="uid", key_set="user.uid", type="bigint"),
        MatchTerm(column="mail", key_set="user.mail", type="string"),
    )
)
STAYS = ". Or waive this gap; then the run ends with residue"


def world(others: dict[str, tuple[OthersRows, ...]], *places: Place) -> World:
    graph = LineageGraph(collect(columns={}, edges=[], memberships=[], jobs=[], gaps=[], aliases={}))
    seen = {"/w/raw": Evidence(files=1, files_with_person=1, bytes=1, places=frozenset(places))} if places else {}
    return World(graph, Inventory(tables=()), seen, lambda _: False, others=others)


def raw(strategy: Strategy = Strategy.DELETE_BY_KEY, **changes: Any) -> CopyDraft:
    made = draft("raw", strategy, "note")
    return CopyDraft(copy=made.copy.model_copy(update={"match": FOUND_BY, **changes}), state=made.state)


def told(*rows: OthersRows, item: CopyDraft | None = None) -> list[Gap]:
    return list(others_rows([item or raw()], world({"/w/raw": rows})))


def test_rows_of_others_are_told_column_by_column() -> None:
    one, two = told(OthersRows(column="note", rows=1), OthersRows(column="text", rows=1_200, more=True))
    assert (one.id, one.dataset, two.id) == ("gap-others_rows-raw-note", at("raw"), "gap-others_rows-raw-text")
    assert one.reason == (
        "1 row that is not the persons' contains them in note: the plan finds rows by mail, uid, so this value would remain"
    )
    assert two.reason == (
        "1,200 or more rows that are not the persons' contain them in text: the plan finds rows by mail, uid, so"
        " these values would remain"
    )
    assert one.evidence.startswith("ask the owner to clear the value in these rows")
    assert one.evidence.endswith(STAYS)


def test_a_column_that_the_table_dropped_is_told_as_such() -> None:
    (gap,) = told(OthersRows(column="old", rows=2, dropped=True))
    assert "contain them in old (a dropped column): the plan" in gap.reason
    assert gap.evidence.startswith("files without rows of the persons still contain this column")


def test_a_key_in_another_writing_is_told_as_one() -> None:
    one, many = told(OthersRows(column="uid", rows=1, key=True), OthersRows(column="uid", rows=2, key=True))
    assert one.reason.startswith("in 1 row uid has a value of the persons in a different form")
    assert one.reason.endswith("The plan compares whole values, so this row would remain")
    assert many.reason.startswith("in 2 rows uid has")
    assert many.reason.endswith("so these rows would remain")
    assert one.evidence.startswith("if the rows are the persons', ask the owner to write the key as the source has it")
    assert one.evidence.endswith(STAYS)


@pytest.mark.parametrize(
    ("offers", "offered"),
    [
        (None, ""),
        ("other_keys", "add the column under `other_keys`"),
        ("not_keys", "declare the column under `not_keys`"),
    ],
)
def test_what_the_estate_file_can_say_of_a_column_is_offered(offers: Any, offered: str) -> None:
    (gap,) = told(OthersRows(column="note", rows=1, offers=offers))
    assert offered in gap.evidence
    assert ("_keys" in gap.evidence) is bool(offered)


@pytest.mark.parametrize(("offers", "offered"), [(None, False), ("other_keys", True), ("not_keys", False)])
def test_elements_of_a_list_are_offered_by_their_name_and_never_as_a_whole_column(offers: Any, offered: bool) -> None:
    columns = (Column(name="other", type="string"), Column(name="Tags", type="array<string>"))
    item = raw()
    assert item.state is not None
    listed = CopyDraft(copy=item.copy, state=item.state.model_copy(update={"columns": columns}))
    (gap,) = told(OthersRows(column="tags", rows=1, offers=offers), item=listed)
    assert ("add `Tags.element` under `tables` or `other_keys`" in gap.evidence) is offered
    assert "not_keys" not in gap.evidence


@pytest.mark.parametrize("strategy", [Strategy.MASK_COLUMNS, Strategy.RESTORE_REWRITE_ARCHIVE])
def test_whatever_loses_rows_by_a_match_is_looked_at(strategy: Strategy) -> None:
    assert len(told(OthersRows(column="note", rows=1), item=raw(strategy))) == 1


@pytest.mark.parametrize(
    "item",
    [raw(Strategy.REBUILD), raw(origin="c-other"), CopyDraft(copy=raw().copy, state=None)],
)
def test_what_loses_no_rows_by_a_match_of_its_own_is_not_told(item: CopyDraft) -> None:
    assert told(OthersRows(column="note", rows=1), item=item) == []


def test_a_table_without_such_rows_hides_none_of_another() -> None:
    other = CopyDraft(copy=draft("other", Strategy.DELETE_BY_KEY, "note").copy, state=state("other", "note"))
    rows = {"/w/raw": (OthersRows(column="note", rows=1),)}
    for items in ([other, raw()], [raw(), other]):
        assert [gap.dataset for gap in others_rows(items, world(rows))] == [at("raw")]


@pytest.mark.parametrize(
    ("label", "held"), [("note", True), ("NOTE", True), ("Note.text", True), ("notes", False), ("other", False)]
)
def test_a_column_that_is_held_is_no_gap(label: str, held: bool) -> None:
    mask = Mask(columns=("other",), held=(HeldColumn(name="Note", holds=("H",), until=None),), found_by=("uid",))
    gaps = told(OthersRows(column=label, rows=1), item=raw(Strategy.MASK_COLUMNS, mask=mask))
    assert bool(gaps) is not held


IN_NAME = Place(file="uid=7/a.csv", key_set="user.uid", column=None, of_path=True)


def folder(strategy: Strategy = Strategy.DELETE_BY_KEY, fmt: Format = Format.CSV, **changes: Any) -> CopyDraft:
    made = raw(strategy)
    assert made.state is not None
    return CopyDraft(copy=made.copy, state=made.state.model_copy(update={"format": fmt, **changes}))


def test_names_of_files_that_hold_the_persons_are_a_gap_of_the_folder() -> None:
    (gap,) = telling_names([folder()], world({}, IN_NAME))
    assert (gap.id, gap.dataset) == ("gap-object_names-raw", at("raw"))
    assert gap.reason == "names of files or folders contain values of the persons, and no step changes names"
    assert gap.evidence.startswith("ask the owner to rename them, then plan again")


@pytest.mark.parametrize(
    ("item", "place"),
    [
        (folder(Strategy.MASK_COLUMNS), IN_NAME),
        (folder(Strategy.REBUILD), IN_NAME),
        (folder(fmt=DELTA), IN_NAME),
        (CopyDraft(copy=folder().copy, state=None), IN_NAME),
        (folder(), Place(file="a.csv", key_set="user.uid", column="uid")),
        (folder(), Place(file="7.csv", key_set="user.uid", column=None, of_path=True, weak=True)),
    ],
)
def test_names_are_no_gap_where_steps_take_the_files_or_names_hold_nothing_for_certain(
    item: CopyDraft, place: Place
) -> None:
    assert telling_names([item], world({}, place)) == ()
    assert [gap.id for gap in telling_names([item, folder()], world({}, IN_NAME))][-1:] == ["gap-object_names-raw"]


def test_a_folder_of_others_that_is_named_by_the_persons_is_told_once() -> None:
    item = folder(partition_columns=("uid",))
    assert telling_names([item], world({"/w/raw": (OthersRows(column="uid", rows=1),)}, IN_NAME)) == ()
    assert len(telling_names([item], world({"/w/raw": (OthersRows(column="note", rows=1),)}, IN_NAME))) == 1
    assert telling_names([item], world({})) == ()


def test_every_kind_of_what_stays_is_told() -> None:
    """A rebuilt table that is filled from where she stays, and a bare folder with a name and a file nobody could read."""
    way = [edge("raw.mail", "mart.mail")]
    graph = LineageGraph(collect(columns={}, edges=way, memberships=[], jobs=[], gaps=[], aliases={}))
    bare = CopyDraft(
        copy=draft("bare", Strategy.DELETE_BY_KEY, "x").copy,
        state=state("bare", "x").model_copy(update={"format": Format.CSV}),
    )
    seen = {f"/w/{name}": Evidence(1, 1, 1, places=frozenset({HERS})) for name in BOTH}
    seen["/w/bare"] = Evidence(1, 1, 1, places=frozenset({IN_NAME}), unread=("a.csv: encrypted",))
    items = [MART, BY_KEY, bare]
    assert MART.state is not None
    assert BY_KEY.state is not None
    world = World(graph, Inventory(tables=(MART.state, BY_KEY.state)), seen, lambda _: False, others=STRAY)
    assert [gap.id for gap in remaining_values(items, world)] == [
        "gap-others_rows-raw-MAIL",
        "gap-others_rows-mart-mail",
        "gap-object_names-bare",
        "gap-not_scanned-bare",
    ]
