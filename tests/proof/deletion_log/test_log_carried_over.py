"""A deletion log of an earlier version is carried over when it is opened, the same in every field, or left as it was."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.model.canonical_json import iso
from pii_tracer.model.errors import ProofError
from pii_tracer.proof.deletions import log_schema
from pii_tracer.proof.deletions.deletion_log import DeletionLog
from pii_tracer.proof.deletions.entries import Group, Person
from pii_tracer.proof.deletions.log_schema import Adding, Tables
from tests.proof.deletion_log.earlier_version import stored, write
from tests.proof.deletion_log.test_deletion_log import deed, entry
from tests.review.plans import NOW

PROCESSES = 2


def row(seq: int, request: str = "REQ-1", subject: str = "hmac:00", step: str = "c1/1", **more: Any) -> tuple[Any, ...]:
    known = {**entry(request_id=request, subject=subject, step_id=step).model_dump(mode="json"), "run_at": iso(NOW)}
    return (seq, *{**known, **more}.values())


def test_every_row_keeps_its_number_and_its_fields(tmp_path: Path) -> None:
    """Also rows that this version would not write: the same twice, of two subjects, with holes between numbers."""
    path = tmp_path / "log.db"
    rows = [
        row(7),
        row(8, step="c1/2", reason="wait\u2028s \x00 '", bytes_removed=2**60),
        row(9, "REQ-2", step="c1/2", files_removed="many"),
        row(10, "REQ-2", "hmac:01", format=None, action=None),
        row(12, "REQ-2", "hmac:01", format=None, action=None),
        row(13, "REQ-2", "hmac:01", format=None, action=None),
        row(14),
        row(15, plan_id="q"),
        row(16),
    ]
    write(path, "e", rows, [(iso(NOW), iso(NOW), 6, 6, "sha256:00")])
    before = stored(path, "e")
    log = DeletionLog(path, "e")
    assert stored(path, "e") == before
    assert log.count() == len(rows)
    assert [(done.last_seq, done.rows) for done in log.prunings] == [(6, 6)]
    DeletionLog(path, "e").append([Group([deed(), deed(step_id="c1/9")], [Person("REQ-1", "hmac:00")])])
    assert stored(path, "e")[:-1] == before
    assert stored(path, "e")[-1][0] == 17
    with closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute('DELETE FROM "answers e"')


def test_an_empty_log_and_one_that_lacks_columns(tmp_path: Path) -> None:
    write(tmp_path / "empty.db", "e", [])
    assert DeletionLog(tmp_path / "empty.db", "e").entries() == ()
    path = tmp_path / "log.db"
    write(path, "e", [row(1)])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute('ALTER TABLE "deletions e" DROP COLUMN manifest')
    assert DeletionLog(path, "e").entries() == (entry(),)


def test_each_estate_of_a_file_is_carried_over_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    write(path, "e", [row(1)])
    write(path, "f", [row(1, "REQ-9")])
    assert [e.request_id for e in DeletionLog(path, "e").entries()] == ["REQ-1"]
    assert [e.request_id for e in DeletionLog(path, "f").entries()] == ["REQ-9"]


def test_a_crash_in_the_middle_leaves_the_old_log(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    write(path, "e", [row(n, f"REQ-{n}", step=f"c1/{n}", reason="r" * 400) for n in range(1, 8_001)])
    before = stored(path, "e")
    with ProcessPoolExecutor(1, get_context("spawn")) as pool, pytest.raises(Exception, match="terminated"):
        pool.submit(_killed, path).result()
    assert path.with_name("log.db-journal").stat().st_size > 0, "it was writing"
    with closing(sqlite3.connect(path)) as connection:
        kinds = dict(connection.execute("SELECT name, type FROM sqlite_master"))
    assert kinds["deletions e"] == "table"
    assert "answers e" not in kinds
    assert stored(path, "e") == before
    DeletionLog(path, "e")
    assert stored(path, "e") == before


def _killed(path: Path) -> None:
    answer, told = Adding.answer, 0

    def dying(adding: Adding, *given: Any) -> None:
        nonlocal told
        told += 1
        if told == 7_000:
            os._exit(9)
        answer(adding, *given)

    Adding.answer = dying  # type: ignore[method-assign]
    DeletionLog(path, "e")


def test_processes_that_come_at_once_open_one_after_the_other_and_lose_no_row(tmp_path: Path) -> None:
    """The log is of the earlier version, and each adds rows of its own and one that all know."""
    path = tmp_path / "log.db"
    write(path, "e", [row(n, f"REQ-{n}") for n in range(1, 501)])
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        list(pool.map(_add, [path] * PROCESSES, range(PROCESSES)))
    entries = [(number, one.request_id, one.step_id) for number, one in DeletionLog(path, "e").numbered()]
    assert [number for number, _, _ in entries] == list(range(1, 501 + 20 * PROCESSES + 1))
    assert entries[:500] == [(n, f"REQ-{n}", "c1/1") for n in range(1, 501)]
    rest = sorted((request, step) for _, request, step in entries[500:])
    assert rest == sorted([("ALL", "c1/1"), *_expected()])


def _expected() -> Iterator[tuple[str, str]]:
    yield from ((f"REQ-{of}", f"own/{n}") for of in range(PROCESSES) for n in range(20))


def _add(path: Path, of: int) -> None:
    for n in range(20):
        log = DeletionLog(path, "e")
        log.append([Group([deed()], [Person("ALL", "hmac:00")])])
        log.append([Group([deed(step_id=f"own/{n}")], [Person(f"REQ-{of}", "hmac:00")])])


@pytest.mark.parametrize("kept", [100_000, 3])
def test_plans_that_alternate_row_by_row_cost_as_much_as_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    """By the steps of SQLite's machine, also where not all deeds are kept in mind."""
    monkeypatch.setattr(log_schema, "_DEEDS_KEPT", kept)
    steps = []
    for size in (200, 400):
        path, told = tmp_path / f"{size}.db", [0]
        write(path, "e", [row(n, f"REQ-{n}", plan_id=f"p{n % 2}", step=f"c1/{n % size}") for n in range(1, 2 * size)])
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.set_progress_handler(lambda told=told: told.__setitem__(0, told[0] + 1), 100)
            Tables("e").open(connection)
        steps.append(told[0])
    assert steps[1] < 3 * steps[0]


def test_a_log_that_cannot_be_shrunk_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is whole. The next pruning gives back what is unused, also where it has nothing to remove."""
    path = tmp_path / "log.db"
    write(path, "e", [row(n, f"REQ-{n}", reason="r" * 400) for n in range(1, 500)])
    size = path.stat().st_size

    def full(_: DeletionLog) -> None:
        raise ProofError("disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(DeletionLog, "_shrink", full)
        assert DeletionLog(path, "e").count() == 499
    assert path.stat().st_size >= size
    log = DeletionLog(path, "e")
    assert log.prune(NOW, at=NOW) is None
    assert path.stat().st_size < size / 2


def test_a_name_in_other_letters_is_the_same_estate(tmp_path: Path) -> None:
    """As SQLite compares names: else the old table stood in the view's place, and no row could be added or seen."""
    path = tmp_path / "log.db"
    write(path, "Shop", [row(1)])
    DeletionLog(path, "shop").append([Group([deed(step_id="c1/2")], [Person("REQ-1", "hmac:00")])])
    for name in ("shop", "Shop"):
        assert [number for number, _ in DeletionLog(path, name).numbered()] == [1, 2]
