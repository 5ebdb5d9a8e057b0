"""A rewrite of history that dies, fails or is overtaken: nobody reads half of it, and what it wrote goes."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from executors.catalogs.sql.metadata_pointer import SqlPointer
from executors.formats.iceberg.kept_history.new_files import NewFiles, is_left_over
from executors.formats.iceberg.kept_history.rewrite import HistoryRewrite
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import Progress
from tests.executors.formats.iceberg.kept_history.people import People, brief, without
from tests.executors.world import residue
from tests.run.fakes import Killed


@dataclass
class Moments:
    """Lets the process die at one moment: before or after one of the acts that outlive it. Then nothing is done more."""

    fatal: int
    seen: list[str] = field(default_factory=list)
    dead: bool = False

    def at(self, what: str) -> None:
        if self.dead:
            raise Killed
        self.seen.append(what)
        if len(self.seen) - 1 == self.fatal:
            self.dead = True
            raise Killed


@contextmanager
def dying(fatal: int) -> Iterator[Moments]:
    moments, patch = Moments(fatal), pytest.MonkeyPatch()

    def watch(owner: type, name: str) -> None:
        inner: Callable[..., Any] = getattr(owner, name)

        def watched(*words: Any, **more: Any) -> Any:
            moments.at(f"before {name}")
            result = inner(*words, **more)
            moments.at(f"after {name}")
            return result

        patch.setattr(owner, name, watched)

    for owner, name in ((NewFiles, "put"), (NewFiles, "discard"), (SqlPointer, "swap"), (Path, "unlink")):
        watch(owner, name)
    try:
        yield moments
    finally:
        patch.undo()


def left_overs(people: People) -> list[str]:
    return [p.name for p in people.folder.rglob("*") if is_left_over(p)]


def test_a_run_that_dies_at_any_moment_is_resumed(tmp_path: Path) -> None:
    died = []
    base, kept = tmp_path / "base", tmp_path / "kept"
    base.mkdir()
    before = brief(People(base)).told()
    shutil.copytree(base, kept)
    for fatal in range(200):
        shutil.rmtree(base)
        shutil.copytree(kept, base)
        people = People(base, fresh=False)
        with dying(fatal) as moments:
            try:
                people.rewrite.run()
            except Killed:
                died.append(moments.seen[-1])
        if not moments.dead:
            break
        # whoever reads now reads the old history or the new one
        now = people.told()
        assert now in (before, without(before))
        assert people.rewrite.probe() is (Progress.DONE if now == without(before) else Progress.PARTIAL)
        people.erase()
        assert people.told() == without(before)
        # all that is left of the first try is what the table needs now
        people.sweep()
        assert residue(people.folder) == []
        assert people.rewrite.verify().ok
    else:
        raise AssertionError("it never comes to its end")
    assert {"before put", "after put", "before swap", "after swap"} <= set(died)
    assert len(died) > 10


def test_what_a_dead_run_wrote_is_gone_when_another_history_is_written(tmp_path: Path) -> None:
    """The table has changed since: the new files have other names, and the old try's go."""
    people = brief(People(tmp_path))
    with dying(6) as moments, pytest.raises(Killed):
        people.rewrite.run()
    assert moments.seen[-1].endswith("put")
    stale = set(left_overs(people))
    assert stale
    assert people.rewrite.verify().findings[-1].endswith(" remaining from an unfinished rewrite")
    people.append([(5, 1005, "b5@example.net")])
    people.erase()
    assert stale.isdisjoint(left_overs(people))


def test_a_commit_of_somebody_else_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people = brief(People(tmp_path))
    inner = HistoryRewrite._written

    def overtaken(self: HistoryRewrite, *words: Any) -> Any:
        written = inner(self, *words)
        people.append([(6, 1006, "b6@example.net")])
        return written

    monkeypatch.setattr(HistoryRewrite, "_written", overtaken)
    with pytest.raises(RunError, match="a different writer committed") as refused:
        people.rewrite.run()
    assert "resume" in str(refused.value.todo)
    assert left_overs(people) == []
    assert [p for p in (people.folder / "metadata").glob("*.metadata.json") if str(p) in repr(people.journal)] == []
    before = people.told()
    assert any("'id', 6" in row for row in before["branch main"])
    monkeypatch.undo()
    people.erase()
    assert people.told() == without(before)


def test_a_catalog_that_took_it_and_answers_with_an_error_is_believed_by_what_it_says_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = brief(People(tmp_path))
    before = people.told()
    inner = SqlPointer.swap

    def lost(self: SqlPointer, *words: Any) -> bool:
        inner(self, *words)
        raise RunError("the answer is lost", where="", todo="")

    monkeypatch.setattr(SqlPointer, "swap", lost)
    with pytest.raises(RunError, match="the answer is lost"):
        people.rewrite.run()
    assert people.told() == without(before)
    assert people.rewrite.probe() is Progress.DONE


def test_a_catalog_that_refuses_leaves_nothing(tmp_path: Path) -> None:
    people = brief(People(tmp_path))
    before, there = people.told(), {p for p in people.folder.rglob("*") if p.is_file()}
    with sqlite3.connect(tmp_path / "core.db") as connection:
        connection.execute("CREATE TRIGGER no BEFORE UPDATE ON iceberg_tables BEGIN SELECT RAISE(ABORT, 'no'); END")
    with pytest.raises(RunError, match="the catalog's database rejects the statement: IntegrityError"):
        people.rewrite.run()
    assert people.told() == before
    left = {p for p in people.folder.rglob("*") if p.is_file()} - there
    assert all(p.name.endswith(".metadata.json") for p in left), "which the next run removes by its journal"
    with sqlite3.connect(tmp_path / "core.db") as connection:
        connection.execute("DROP TRIGGER no")
    people.append([(7, 1007, "b7@example.net")])
    people.erase()
    assert not any(p.exists() for p in left)
