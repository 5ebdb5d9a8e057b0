"""Each part of the rule of what a hold on columns keeps, without a plan around it."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from pii_tracer.lake.inventory import GENERATED
from pii_tracer.model.datasets import Column, CopyKind, FieldAccess, KeyPart, Match, MatchTerm, Strategy
from pii_tracer.model.legal_holds import Hold
from pii_tracer.model.plan import HeldColumn, Mask, Mention, PlannedColumn
from planners.holds.column_holds import (
    described,
    first_end,
    fixed_columns,
    last_end,
    mask_of,
    named_columns,
)
from planners.step_drafts import CopyDraft
from tests.planners.gaps.test_written_again import draft
from tests.planners.smalllake import hold

COLUMNS = tuple(Column(name=name, type="string") for name in ("Uid", "Amount", "Note", "Text"))
BY_UID = Match(terms=(MatchTerm(column="UID", key_set="user.uid", type="string"),))
EARLY, LATE = (datetime(year, 1, 1, tzinfo=timezone.utc) for year in (2028, 2031))


def held_by(*names: str, end: str = "2031-01-01T00:00:00Z", **more: Any) -> Hold:
    return Hold.model_validate(hold("prod.raw", **{"columns": list(names), "until": end, **more}))


def item(
    strategy: Strategy = Strategy.DELETE_BY_KEY, columns: tuple[Column, ...] = COLUMNS, **changes: Any
) -> CopyDraft:
    made = draft("raw", strategy, "x")
    copy, state = {"match": BY_UID}, {"columns": columns}
    for name, value in changes.items():
        (state if name in ("fixed", "partition_columns") else copy)[name] = value
    assert made.state is not None
    return CopyDraft(copy=made.copy.model_copy(update=copy), state=made.state.model_copy(update=state))


def mask(given: CopyDraft, *parts: tuple[Hold, tuple[str, ...]]) -> Mask | str:
    return mask_of(given, parts or [(held_by("Amount"), ("Amount",))])


def test_columns_and_categories_of_one_hold_are_both_kept_as_the_table_spells_them() -> None:
    told = (PlannedColumn(name="AMOUNT", category="Money"), PlannedColumn(name="gone", category="money"))
    both = held_by("note", "NOTE", "uid", categories=["MONEY"])
    assert named_columns(both, item()) == (("Note", "Uid"), ("column of the category MONEY",))
    assert named_columns(both, _with(told)) == (
        ("Note", "Uid", "Amount", "gone"),
        (),
    )


def _with(told: tuple[PlannedColumn, ...], columns: tuple[Column, ...] = COLUMNS) -> CopyDraft:
    made = item(columns=columns)
    return CopyDraft(copy=made.copy.model_copy(update={"columns": told}), state=made.state)


def test_what_is_not_there_is_told_with_what_could_be_held() -> None:
    columns = (Column(name="Who", type="struct<phone:string>"), *COLUMNS)
    given = item(columns=columns)
    wanted, missing = named_columns(held_by("who.phone", "other.phone", "none"), given)
    assert wanted == ("who.phone", "other.phone", "none")
    assert missing == (
        "column who.phone (a hold cannot keep a single field: hold `who`)",
        "column other.phone",
        "column none",
    )
    deep = CopyDraft(copy=_with((PlannedColumn(name="note", category="phone"),)).copy, state=given.state)
    assert named_columns(held_by("who.home.phone", categories=["phone"]), deep) == (
        ("who.home.phone", "Note"),
        ("column who.home.phone (a hold cannot keep a single field: hold `who`)",),
    )
    assert named_columns(held_by("none"), CopyDraft(copy=given.copy, state=None)) == (("none",), ())


def test_a_category_inside_a_struct_is_told_and_one_outside_is_not() -> None:
    columns = (Column(name="Who", type="struct<phone:string>"), *COLUMNS)
    told = (PlannedColumn(name="who", category="phone"), PlannedColumn(name="note", category="phone"))
    wanted, missing = named_columns(held_by(categories=["phone"]), _with(told, columns))
    assert wanted == ("Who", "Note")
    assert missing == ("separate column for the category phone, which lies inside who",)


def test_what_no_hold_keeps_becomes_null_and_the_key_stays_where_none_is_held() -> None:
    one, two = held_by("Amount", id="H2"), held_by("Amount", "Uid", id="H1", end="2028-01-01T00:00:00Z")
    assert mask(item(), (one, ("Amount",))) == Mask(
        columns=("Note", "Text"), held=(HeldColumn(name="Amount", holds=("H2",), until=LATE),), found_by=("Uid",)
    )
    assert mask(item(), (one, ("Amount",)), (two, ("Amount", "Uid"))) == Mask(
        columns=("Note", "Text"),
        held=(
            HeldColumn(name="Uid", holds=("H1",), until=EARLY),
            HeldColumn(name="Amount", holds=("H1", "H2"), until=LATE),
        ),
        found_by=(),
    )


@pytest.mark.parametrize("strategy", [Strategy.DELETE_BY_KEY, Strategy.REWRITE_REF])
def test_copies_whose_rows_are_changed_one_by_one_can_be_masked(strategy: Strategy) -> None:
    assert isinstance(mask(item(strategy)), Mask)


NOT_BY_ROWS = "no step can change single rows of the person in this dataset"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (item(Strategy.REBUILD), NOT_BY_ROWS),
        (item(kind=CopyKind.KEY), NOT_BY_ROWS),
        (item(match=None), NOT_BY_ROWS),
        (CopyDraft(copy=item().copy, state=None), NOT_BY_ROWS),
        (
            item(mentions=(Mention(match=BY_UID, mask=Mask(columns=("Note",), held=(), found_by=())),)),
            "a row of this dataset can name several persons, and a hold cannot keep it for only one of them",
        ),
        (
            item(
                match=Match(
                    terms=(BY_UID.terms[0].model_copy(update={"beside": (KeyPart(column="Note", type="string"),)}),)
                )
            ),
            "its rows are found by a key of several columns, and no step keeps single columns of such rows",
        ),
        (
            item(match=Match(terms=(BY_UID.terms[0].model_copy(update={"access": (FieldAccess(name="id"),)}),))),
            "no held column shows whose row it is, and UID.id is part of a column that also contains other data",
        ),
        (
            item(fixed={"AMOUNT": GENERATED}),
            "Amount is held, but computed from other columns, and would change when these become NULL",
        ),
        (
            item(fixed={"AMOUNT": GENERATED, "UID": GENERATED}),
            "Uid, Amount is held, but computed from other columns, and would change when these become NULL",
        ),
        (
            item(fixed={"NOTE": "NOT NULL"}, partition_columns=("TEXT",)),
            "Note is NOT NULL; Text is a partition column: it cannot become NULL; if it may be kept, add it to the"
            " hold",
        ),
    ],
)
def test_a_copy_that_cannot_be_masked_is_kept_and_the_reason_told(given: CopyDraft, why: str) -> None:
    assert mask(given) == why


def test_what_stays_may_be_generated_where_nothing_becomes_null_or_fixed_otherwise() -> None:
    all_held = (held_by("Uid"), ("Uid", "Amount", "Note", "Text"))
    assert isinstance(mask(item(fixed={"amount": GENERATED}), all_held), Mask)
    assert isinstance(mask(item(fixed={"amount": "NOT NULL", "uid": "NOT NULL"})), Mask)


def test_a_struct_that_is_held_shows_whose_row_it_is() -> None:
    inside = Match(terms=(BY_UID.terms[0].model_copy(update={"access": (FieldAccess(name="id"),)}),))
    found = mask(item(match=inside), (held_by("Uid"), ("Uid",)))
    assert isinstance(found, Mask)
    assert (found.columns, found.found_by) == (("Amount", "Note", "Text"), ())


def test_ends_of_holds() -> None:
    early, late, never = (
        held_by("a", end=end) for end in ("2028-01-01T05:30:00+05:30", "2031-01-01T00:00:00Z", "indefinite")
    )
    assert last_end([early]) == EARLY
    assert last_end([early]).tzinfo is timezone.utc  # type: ignore[union-attr]
    assert last_end([late, early]) == LATE
    assert last_end([late, never]) is None
    columns = [HeldColumn(name="a", holds=("H",), until=until) for until in (None, LATE, EARLY)]
    assert first_end(Mask(columns=(), held=tuple(columns), found_by=())) == EARLY
    assert first_end(Mask(columns=(), held=(columns[0],), found_by=())) is None


def test_columns_that_cannot_become_null_are_known_in_small_letters() -> None:
    state = item(fixed={"NOTE": "NOT NULL"}, partition_columns=("TEXT",)).state
    assert state is not None
    assert fixed_columns(state) == {"note": "NOT NULL", "text": "a partition column"}


def test_people_are_told_what_stays_and_what_goes() -> None:
    columns = tuple(HeldColumn(name=name, holds=("H",), until=None) for name in ("a", "b"))
    made = Mask(columns=("c", "d"), held=columns, found_by=())
    assert described(made, ["one", "two"]) == "kept: a, b (one; two); in the person's rows c, d become NULL"
    assert described(made.model_copy(update={"found_by": ("u", "v")}), ["one"]) == (
        "kept: a, b (one); u, v is also kept, because no held column shows whose row it is; in the person's"
        " rows c, d become NULL"
    )
