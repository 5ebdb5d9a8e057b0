"""What counts as clean, as erased and as harm to others: each part of the rule alone."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from pii_tracer.model.datasets import Carries, CopyKind, DatasetId, Strategy
from pii_tracer.model.plan import Examined, Gap
from pii_tracer.scan.hits import Reading
from pii_tracer.verify.verdicts import (
    SINCE,
    Bystanders,
    ByteVerdict,
    CopyVerdict,
    Residue,
    RowVerdict,
    RunVerdict,
    ScannedFile,
    StateBaseline,
    StateRows,
    no_copy_name,
    read_as_a_whole,
    to_be_seen,
    with_since,
    with_unseen,
)
from tests.review.plans import copy, plan

LEFT = Residue(copy_id="c", file="a", where="data: phone", form="text")
CLEAN = ByteVerdict(copy_id="c", root="/c", files=())
FOUND = CLEAN.model_copy(update={"residue": (LEFT,)})
UNREAD = CLEAN.model_copy(update={"unverified": ("b: unread",)})
NO_ROWS = RowVerdict(copy_id="c", states=(StateRows(state="current", rows=0), StateRows(state="v1", rows=None)))
ROWS = RowVerdict(copy_id="c", states=(StateRows(state="current", rows=2), StateRows(state="v1", rows=1)))
UNHARMED = Bystanders(copy_id="c", lost=0, equal=True)
HARMED = Bystanders(copy_id="c", lost=2, equal=False)


def test_bytes_are_clean_where_nothing_is_found_and_nothing_is_unread() -> None:
    assert CLEAN.clean
    assert not FOUND.clean
    assert not UNREAD.clean


@pytest.mark.parametrize(
    ("verdict", "erased"),
    [
        (CopyVerdict(copy_id="c"), False),
        (CopyVerdict(copy_id="c", bystanders=UNHARMED), False),
        (CopyVerdict(copy_id="c", bytes=CLEAN), True),
        (CopyVerdict(copy_id="c", rows=NO_ROWS), True),
        (CopyVerdict(copy_id="c", bytes=CLEAN, rows=NO_ROWS, bystanders=UNHARMED), True),
        (CopyVerdict(copy_id="c", bytes=FOUND), False),
        (CopyVerdict(copy_id="c", bytes=UNREAD), False),
        (CopyVerdict(copy_id="c", rows=ROWS), False),
        (CopyVerdict(copy_id="c", bytes=CLEAN, rows=ROWS), False),
        (CopyVerdict(copy_id="c", bytes=CLEAN, bystanders=HARMED), False),
    ],
)
def test_a_copy_is_erased_where_it_was_looked_at_and_nothing_speaks_against_it(
    verdict: CopyVerdict, erased: bool
) -> None:
    assert verdict.erased is erased
    assert RunVerdict(copies=(verdict,)).erased == (("c",) if erased else ())


def test_a_copy_is_erased_of_others_where_those_are_known_of_whom_something_is_left() -> None:
    known = CopyVerdict(copy_id="c", bytes=FOUND, left_of=("r",))
    assert known.erased_of_others
    assert RunVerdict(copies=(known, CopyVerdict(copy_id="d", bytes=CLEAN))).erased_of_others == ("c",)
    for other in ({"left_of": ()}, {"bystanders": HARMED}, {"bytes": UNREAD}):
        assert not known.model_copy(update=other).erased_of_others


def test_residue_is_that_of_files_and_then_that_of_rows() -> None:
    rows = [Residue(copy_id="c", file="", where=f"rows: {state}", form="row") for state in ("current", "v1")]
    verdict = CopyVerdict(copy_id="c", bytes=FOUND, rows=ROWS)
    assert list(verdict.residue) == [LEFT, *rows]
    assert list(RunVerdict(copies=(verdict, CopyVerdict(copy_id="d", bytes=FOUND))).residue) == [LEFT, *rows, LEFT]
    assert LEFT.as_json() == {"copy": "c", "file": "a", "where": "data: phone", "form": "text"}


def test_rows_left_are_summed_over_the_states_that_can_be_read() -> None:
    assert (ROWS.rows_left, NO_ROWS.rows_left) == (3, 0)
    assert (ROWS.states_with_person, NO_ROWS.states_with_person) == (("current", "v1"), ())


def test_what_a_run_could_not_look_at_is_told_with_its_copy() -> None:
    assert RunVerdict(copies=(CopyVerdict(copy_id="c", bytes=UNREAD),)).unverified == ("c: b: unread",)
    assert CopyVerdict(copy_id="c").unverified == ()


@pytest.mark.parametrize(
    ("bystanders", "told"),
    [
        (UNHARMED, None),
        (Bystanders(copy_id="c", lost=1, equal=True), "1 row of other people is gone or changed"),
        (HARMED, "2 rows of other people are gone or changed"),
        (Bystanders(copy_id="c", lost=0, equal=False), "0 rows of other people are gone or changed"),
        (Bystanders(copy_id="c", lost=0, equal=False, added=3, missing=("v",)), "0 rows of other people are gone"),
        (Bystanders(copy_id="c", lost=1, equal=False, added=3), "1 row of other people is gone or changed"),
        (Bystanders(copy_id="c", lost=0, equal=False, added=3), "3 rows of other people more than before the run"),
        (Bystanders(copy_id="c", lost=0, equal=False, added=1), "1 row of other people more than before the run"),
    ],
)
def test_harm_to_others_is_told_and_new_rows_are_told_apart(bystanders: Bystanders, told: str | None) -> None:
    assert (bystanders.finding is None) if told is None else (bystanders.finding or "").startswith(told)


def test_harm_is_summed_over_the_copies_that_were_compared() -> None:
    harmed = CopyVerdict(copy_id="c", bytes=CLEAN, bystanders=HARMED)
    unharmed = CopyVerdict(copy_id="d", bytes=CLEAN, bystanders=UNHARMED)
    not_compared = CopyVerdict(copy_id="e", bytes=CLEAN)
    assert RunVerdict(copies=(harmed, unharmed, not_compared, harmed)).bystander_rows_lost == 4
    assert not RunVerdict(copies=(harmed, unharmed, not_compared)).checksum_equal
    assert RunVerdict(copies=(unharmed, not_compared)).checksum_equal
    assert StateBaseline(state="current", rows_total=5, rows_person=2, checksum="x").rows_other == 3


def test_files_of_an_earlier_search_are_not_counted_as_decoded() -> None:
    files = tuple(ScannedFile(path=name, size=1, sha256="", decoded_as="csv") for name in "ab")
    looked = CLEAN.model_copy(update={"files": files})
    assert CopyVerdict(copy_id="c", bytes=looked).files_decoded == 2
    assert CopyVerdict(copy_id="c", bytes=looked, reading=Reading(before=1)).files_decoded == 1
    assert CopyVerdict(copy_id="c", rows=ROWS).files_decoded == 0


def test_a_run_says_how_all_its_copies_were_read_and_what_its_stores_did_not_tell() -> None:
    then = datetime(2026, 1, 1, tzinfo=timezone.utc)
    waived = CLEAN.model_copy(update={"not_asked": ("uploads",), "unread_as_waived": ("a.bin",)})
    copies = (
        CopyVerdict(copy_id="c", bytes=waived, reading=Reading(before=1)),
        CopyVerdict(copy_id="d", rows=ROWS),
        CopyVerdict(copy_id="e", bytes=waived, reading=Reading(before=2, left=1, oldest=then)),
    )
    run = RunVerdict(copies=copies)
    assert run.reading == Reading(before=3, left=1, oldest=then)
    assert run.not_asked == ("uploads", "a.bin", "uploads", "a.bin")


def test_what_holds_and_backups_keep_need_not_be_looked_at() -> None:
    seen, held = copy("a"), copy("b", strategy=Strategy.EXEMPT)
    backup, blocked = copy("c", kind=CopyKind.BACKUP), copy("d", strategy=Strategy.BLOCKED)
    assert [of.id for of in to_be_seen(plan(copies=[seen, held, backup, blocked]))] == ["a", "d"]


def test_a_copy_without_a_verdict_is_unverified_at_the_end() -> None:
    done = with_unseen(RunVerdict(copies=(CopyVerdict(copy_id="a", bytes=CLEAN),)), [copy("a"), copy("b")])
    assert done.erased == ("a",)
    unseen = ByteVerdict(copy_id="b", root="/lake/b", files=(), unverified=("the run has no verdict for it",))
    assert done.copies[1:] == (CopyVerdict(copy_id="b", bytes=unseen),)


def test_what_came_after_planning_and_cannot_be_read_keeps_a_run_from_being_complete() -> None:
    new = ByteVerdict(copy_id=f"{SINCE}x", root="/x", files=(), residue=(LEFT,), unverified=("x: unread",))
    known = ByteVerdict(copy_id="(no copy) y", root="/y", files=(), unverified=("y: unread", "z: unread"))
    late = known.model_copy(update={"late": ("z: unread",)})
    assert (new.since, known.since) == (True, False)
    run = RunVerdict(copies=(CopyVerdict(copy_id="c", bytes=CLEAN),))
    told = with_since(run, [new, known, late, CLEAN])
    assert told.copies[0] == run.copies[0]
    assert [(one.copy_id, one.bytes) for one in told.copies[1:]] == [
        (new.copy_id, ByteVerdict(copy_id=new.copy_id, root="/x", files=(), unverified=("x: unread",))),
        (late.copy_id, ByteVerdict(copy_id=late.copy_id, root="/y", files=(), unverified=("z: unread",))),
    ]
    assert with_since(run, [known], no_copies=True).unverified == (
        "(no copy) y: y: unread",
        "(no copy) y: z: unread",
    )
    here = DatasetId(namespace="file", name="/y")
    assert with_since(run, [known.at(here)], whole=(here,)).unverified == (
        "(no copy) y: y: unread",
        "(no copy) y: z: unread",
    )
    assert with_since(run, [known.at("/y")], whole=(here,)).unverified == ()


def test_planning_read_as_a_whole_what_it_examined_and_has_no_gap_about() -> None:
    clean, told = (DatasetId(namespace="file", name=f"/lake/{name}") for name in "ab")
    examined = [Examined(dataset=one, table=None, carries=Carries.KEY, reason="") for one in (clean, told)]
    about = Gap(id="g", dataset=told, kind="unreadable", reason="r", evidence="e")
    assert read_as_a_whole(plan(examined=examined, gaps=[about])) == {clean}


def test_what_is_no_copy_is_called_by_its_table_or_else_by_its_name() -> None:
    place = DatasetId(namespace="file", name="/lake/x")
    known = Examined(dataset=place, table="lake.x", carries=Carries.KEY, reason="")
    assert no_copy_name(known) == "(no copy) lake.x"
    assert no_copy_name(known.model_copy(update={"table": None})) == "(no copy) /lake/x"
    assert CLEAN.at(place) == CLEAN.model_copy(update={"place": place})
    assert CLEAN.at(place).place == place
