"""What it takes to read the deletion log."""

from __future__ import annotations

import sqlite3
import tracemalloc
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from pii_tracer.proof.deletions import deletion_log, log_reading
from pii_tracer.proof.deletions.deletion_log import DeletionLog
from pii_tracer.proof.deletions.entries import EntryState, Group, Person, Selection
from pii_tracer.proof.deletions.log_reading import Answer
from tests.proof.deletion_log.grouped import groups
from tests.proof.deletion_log.test_deletion_log import deed, entry
from tests.review.plans import NOW


def test_what_is_newest_of_a_request_is_asked_once_a_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the request comes up: the answers that are fetched are twice those that there are."""
    log, persons, times = DeletionLog(tmp_path / "log.db", "e"), [Person(f"REQ-{n}", "hmac:00") for n in range(5)], 20
    for n in range(times):
        log.append([Group([deed(evidence=str(n)), deed(step_id=f"c1/{n + 2}")], persons)])
    fetched = 0

    def counted(*cells: object) -> Answer:
        nonlocal fetched
        fetched += 1
        return Answer(*cells)  # type: ignore[arg-type]

    monkeypatch.setattr(log_reading, "PAGE", 5)
    monkeypatch.setattr(log_reading, "Answer", counted)
    newest = [entry for _, entry in log.numbered(Selection(newest=True))]
    assert len(newest) == len(persons) * (times + 1)
    assert {one.evidence for one in newest if one.step_id == "c1/1"} == {str(times - 1)}
    assert fetched == 2 * len(persons) * times


def test_a_page_of_long_lists_is_not_in_memory_as_a_whole(tmp_path: Path) -> None:
    log = DeletionLog(tmp_path / "log.db", "e")
    log.append([Group([deed(step_id=f"c1/{n}") for n in range(100)], [Person(f"REQ-{n}", "hmac") for n in range(500)])])
    tracemalloc.start()
    try:
        assert sum(1 for _ in log.rows()) == 100 * 500
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 2**21


def test_a_person_who_is_asked_for_twice_has_each_deed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion_log, "_PERSONS_AT_ONCE", 1)
    log = DeletionLog(tmp_path / "log.db", "e")
    log.append(groups([entry()]))
    assert log.newest_of(["hmac:00", "hmac:01", "hmac:00"]) == {"hmac:00": (deed(),)}


def test_estates_of_any_name_have_their_own_tables_in_a_file(tmp_path: Path) -> None:
    """Also those whose tables would be called like something of another one."""
    path = tmp_path / "log.db"
    DeletionLog(path, "e")
    with closing(sqlite3.connect(path)) as connection:
        indexes = connection.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
        names = ["e", *(name.partition(" ")[2] for (name,) in indexes)]
    for name in names:
        log = DeletionLog(path, name)
        log.append(groups([entry(request_id=name)]))
        assert [one.request_id for one in log.entries()] == [name]
    assert len(set(names)) == 7


def test_a_number_of_the_view_is_found_by_its_text(tmp_path: Path) -> None:
    """As in the table of an earlier version."""
    DeletionLog(tmp_path / "log.db", "e").append(groups([entry(), entry(step_id="c1/2")]))
    with closing(sqlite3.connect(tmp_path / "log.db")) as connection:
        rows = connection.execute("SELECT step_id FROM \"deletions e\" WHERE seq = '2'").fetchall()
    assert rows == [("c1/2",)]


_NOTHING = {"copy_id": "", "step_id": "", "dataset": "", "format": None, "action": None}


@pytest.mark.parametrize("state", [EntryState.CONFIRMED, EntryState.DEFERRED])
def test_a_search_that_left_a_gap_out_ends_nothing_that_was_kept(tmp_path: Path, state: EntryState) -> None:
    log = DeletionLog(tmp_path / "log.db", "e")
    gap = _NOTHING | {"plan_id": "q", "copy_id": "gap-1"}
    log.append(groups([entry(state=EntryState.EXEMPT), entry(**gap, state=state), entry(**_NOTHING, plan_id="q")]))
    assert log.still_held() == {"REQ-1"}
    log.append(groups([entry(**_NOTHING, plan_id="r")]))
    assert log.still_held() == frozenset()
    log.append(groups([entry(**_NOTHING, plan_id="r", state=EntryState.DEFERRED)]))
    assert log.still_held() == {"REQ-1"}, "she was found again"


def test_an_older_plan_that_is_looked_at_again_ends_no_search_that_a_later_one_left_open(tmp_path: Path) -> None:
    log, late = DeletionLog(tmp_path / "log.db", "e"), NOW + timedelta(days=9)
    log.append(groups([entry(state=EntryState.DEFERRED)]))
    log.append(groups([entry(**_NOTHING, plan_id="q", state=EntryState.DEFERRED), entry()]))
    assert log.prune(late, at=late) is None
    log.append(groups([entry(**_NOTHING, plan_id="r")]))
    assert getattr(log.prune(late, at=late), "rows", 0) == 4
