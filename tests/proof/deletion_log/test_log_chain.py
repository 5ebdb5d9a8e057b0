"""A row of the deletion log that was changed or removed is noticed, by whatever way; what the log does itself is not."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from pii_tracer.model.errors import ProofError
from pii_tracer.proof.deletions.deletion_log import DeletionLog, check_log, log_in
from pii_tracer.proof.deletions.entries import EntryState, Group, Person
from pii_tracer.proof.deletions.log_chain import LogChain, end_file
from tests.proof.deletion_log import earlier_version
from tests.proof.deletion_log.grouped import groups
from tests.proof.deletion_log.test_deletion_log import PAIR, deed, entry
from tests.review.plans import NOW

CHANGES = {
    "another state": "UPDATE \"deeds e\" SET state = 'deferred' WHERE deed = 1",
    "another time": "UPDATE \"deeds e\" SET run_at = '2020-01-01T00:00:00.000000Z' WHERE deed = 2",
    "another person": "UPDATE \"persons e\" SET subject = 'hmac:99' WHERE person = 1",
    "another request": "UPDATE \"persons e\" SET request_id = 'REQ-99' WHERE person = 2",
    "the first row": 'DELETE FROM "answers e" WHERE seq = 1',
    "a row between": 'DELETE FROM "answers e" WHERE seq = 3',
    "the last row": 'DELETE FROM "answers e" WHERE seq = (SELECT max(seq) FROM "answers e")',
    "all rows": 'DELETE FROM "answers e"',
    "a person": 'DELETE FROM "persons e" WHERE person = 1',
    "a deed": 'DELETE FROM "deeds e" WHERE deed = 1',
    "a deed of a list": 'DELETE FROM "lists e" WHERE list = 1 AND place = 1',
    "one more deed": 'INSERT INTO "lists e" VALUES (1, 7, 1)',
    "one more row": 'INSERT INTO "answers e" SELECT 99, person, list FROM "answers e" WHERE seq = 1',
    "a row exchanged": 'UPDATE "answers e" SET person = 3 - person WHERE seq IN (1, 3)',
    "a pruning that was none": "INSERT INTO \"prunings e\" VALUES ('2026-01-01T00:00:00.000000Z', "
    "'2030-01-01T00:00:00.000000Z', 99, 1, 'sha256:00')",
    "the last link": 'DELETE FROM "links e" WHERE link = (SELECT max(link) FROM "links e")',
    "the first link": 'DELETE FROM "links e" WHERE link = 1',
    "all links": 'DELETE FROM "links e"',
    "the chain": 'DROP TABLE "links e"',
    "the chain and all rows": 'DROP TABLE "links e"; DELETE FROM "answers e"',
    "the end of both": 'DELETE FROM "answers e" WHERE seq = (SELECT max(seq) FROM "answers e"); '
    'DELETE FROM "links e" WHERE link = (SELECT max(link) FROM "links e")',
}


def logged(path: Path) -> DeletionLog:
    log = DeletionLog(path, "e")
    log.append([PAIR, Group([deed(), deed(step_id="c1/2")], [Person("REQ-2", "hmac:02")])])
    log.append(groups([entry(state=EntryState.CONFIRMED)]))
    return log


def by_hand(path: Path, statements: str) -> None:
    """As somebody who can write the file does it: without the triggers, which are there again afterwards."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        guards = list(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"))
        for name, _ in guards:
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.executescript(statements)
        for _, sql in guards:
            with suppress(sqlite3.OperationalError):  # of a table that was dropped
                connection.execute(sql)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_noticed(tmp_path: Path, name: str) -> None:
    path = tmp_path / "log.db"
    logged(path).check()
    by_hand(path, CHANGES[name])
    with pytest.raises(ProofError, match="the deletion log was changed"):
        DeletionLog(path, "e").check()
    with suppress(ProofError):  # nobody reads all rows before each addition, and none covers a change up
        DeletionLog(path, "e").append(groups([entry(step_id="c9/1")]))
    with pytest.raises(ProofError, match="the deletion log was changed"):
        check_log(path, "e", None)
    with pytest.raises(ProofError, match="the deletion log was changed"):
        DeletionLog(path, "e").prune(NOW + timedelta(days=9_000), NOW)


@pytest.mark.parametrize("gone", ["log", "end"])
def test_a_file_that_is_gone_is_noticed(tmp_path: Path, gone: str) -> None:
    path = tmp_path / "deletion_log.sqlite"
    logged(path)
    (path if gone == "log" else end_file(path)).unlink()
    with pytest.raises(ProofError, match=r"the deletion log (is missing|was changed)"):
        log_in(tmp_path, "e")
    assert path.exists() == (gone != "log")


def test_a_log_that_was_put_back_with_its_end_lacks_what_a_run_has_written(tmp_path: Path) -> None:
    path = tmp_path / "deletion_log.sqlite"
    logged(path)
    for file in (path, end_file(path)):
        shutil.copy(file, tmp_path / f"{file.name}.old")
    log = DeletionLog(path, "e")
    before = log.head
    log.append(groups([entry(step_id="c9/1")]))
    log.check(before)
    log.check(log.head)
    head = log.head
    for file in (path, end_file(path)):
        shutil.copy(tmp_path / f"{file.name}.old", file)
    with pytest.raises(ProofError, match="lacks rows that a run wrote"):
        DeletionLog(path, "e").check(head)


def test_an_end_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    logged(path)
    for odd in (b"", b"[]", b'{"e": 3}', b"{" * 100_000):
        end_file(path).write_bytes(odd)
        with pytest.raises(ProofError, match="where the deletion log ends cannot be read"):
            DeletionLog(path, "e")


def test_a_crash_before_the_end_was_kept_is_no_change(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = logged(path)
    end = end_file(path).read_bytes()
    log.append(groups([entry(step_id="c9/1")]))
    end_file(path).write_bytes(end)
    DeletionLog(path, "e").check()
    assert end_file(path).read_bytes() != end


@pytest.mark.parametrize("rows_of", ["an earlier version", "this version"])
def test_a_crash_before_the_first_end_was_kept_is_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_of: str
) -> None:
    """Also of a disk that is full just then, and of a second writer who comes in between."""
    path = tmp_path / "log.db"
    if rows_of == "an earlier version":
        rows = [tuple(cells) for _, cells in logged(tmp_path / "new.db").rows()]
        earlier_version.write(path, "e", [(1 + n, *cells) for n, cells in enumerate(rows)], [])
    else:
        DeletionLog(path, "e")
    with monkeypatch.context() as killed:
        killed.setattr(LogChain, "keep", kill)
        with pytest.raises(KeyboardInterrupt):
            DeletionLog(path, "e").append([PAIR])
    log = DeletionLog(path, "e")
    log.append([PAIR])
    log.check()
    check_log(path, "e", log.head)
    end_file(path).unlink()
    with pytest.raises(ProofError, match="the deletion log was changed"):
        DeletionLog(path, "e")


def kill(_: LogChain) -> None:
    raise KeyboardInterrupt


def test_a_crash_while_the_log_of_an_earlier_version_is_opened_leaves_it_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.db"
    rows = [tuple(cells) for _, cells in logged(tmp_path / "new.db").rows()]
    earlier_version.write(path, "e", [(1 + n, *cells) for n, cells in enumerate(rows)], [])
    with monkeypatch.context() as killed:
        killed.setattr(LogChain, "check_end", kill)
        with pytest.raises(KeyboardInterrupt):
            DeletionLog(path, "e")
    log = DeletionLog(path, "e")
    log.check()
    assert [tuple(cells) for _, cells in log.rows()] == rows
    by_hand(path, 'DELETE FROM "answers e" WHERE seq = 1')
    with pytest.raises(ProofError, match="the deletion log was changed"):
        log.check()


def test_a_check_changes_nothing(tmp_path: Path) -> None:
    """An auditor may have a folder that nobody writes in."""
    path = tmp_path / "log.db"
    head = logged(path).head
    before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in tmp_path.iterdir()}
    path.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        check_log(path, "e", head)
    finally:
        tmp_path.chmod(0o700)
    assert {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in tmp_path.iterdir()} == before
    path.unlink()
    with pytest.raises(ProofError, match="the deletion log is missing"):
        check_log(path, "e", head)
    earlier_version.write(path, "e", [], [])
    with pytest.raises(ProofError, match="lacks rows that a run wrote"):
        check_log(path, "e", head)
    end_file(path).unlink()
    check_log(path, "e", None)
    assert not end_file(path).exists()


def test_estates_whose_names_differ_in_the_case_of_other_letters_have_an_end_each(tmp_path: Path) -> None:
    """SQLite compares names of tables in ASCII alone."""
    path = tmp_path / "log.db"
    for name in ("\u00e9", "\u00c9", "stra\u00dfe", "strasse"):
        DeletionLog(path, name).append([PAIR])
    for name in ("\u00e9", "\u00c9", "stra\u00dfe", "STRASSE"):
        DeletionLog(path, name).check()


def test_estates_of_one_file_have_a_chain_each(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    logged(path)
    other = DeletionLog(path, "F")
    other.append([PAIR])
    by_hand(path, CHANGES["another state"])
    DeletionLog(path, "f").check()
    with pytest.raises(ProofError, match="the deletion log was changed"):
        DeletionLog(path, "e").check()


@pytest.mark.parametrize("days", [1, 2, 3, 4, 5, 9])
def test_prunings_keep_the_chain_and_all_that_is_left(tmp_path: Path, days: int) -> None:
    """Cuts between rows of one person, between persons, between links, and of everything."""
    path = tmp_path / "log.db"
    log = DeletionLog(path, "e")
    one = [deed(step_id=f"c1/{n}", run_at=NOW + timedelta(days=n)) for n in (0, 1)]
    two = [deed(step_id=f"c2/{n}", run_at=NOW + timedelta(days=n)) for n in (2, 3, 4)]
    log.append([Group(one, [Person("REQ-1", "hmac:00")])])
    log.append([Group(two, [Person("REQ-2", "hmac:02")])])
    head = log.head
    for until in range(1, days + 1):
        log.prune(NOW + timedelta(days=until), NOW)
        DeletionLog(path, "e").check(head)
    left = log.entries()
    assert len(left) == max(0, 5 - days)
    log.append([Group([deed(step_id="c3/1", run_at=NOW + timedelta(days=20))], [Person("REQ-3", "hmac:03")])])
    DeletionLog(path, "e").check(head)
    by_hand(path, "UPDATE \"prunings e\" SET before = '2030-01-01T00:00:00.000000Z'")
    with pytest.raises(ProofError, match="its prunings are not"):
        DeletionLog(path, "e").check()


@pytest.mark.parametrize("pruned", [False, True])
def test_the_log_of_an_earlier_version_is_chained_when_it_is_opened(tmp_path: Path, pruned: bool) -> None:
    path = tmp_path / "log.db"
    rows = [tuple(cells) for _, cells in logged(tmp_path / "new.db").rows()]
    first = 8 if pruned else 1
    told = [("2026-01-01T00:00:00.000000Z", "2025-01-01T00:00:00.000000Z", 7, 7, "sha256:00")] if pruned else []
    earlier_version.write(path, "e", [(first + n, *cells) for n, cells in enumerate(rows)], told)
    log = DeletionLog(path, "e")
    log.check()
    log.append(groups([entry(step_id="c9/1")]))
    DeletionLog(path, "e").check()
    by_hand(path, f'DELETE FROM "answers e" WHERE seq = {first}')
    with pytest.raises(ProofError, match="the deletion log was changed"):
        DeletionLog(path, "e").check()
