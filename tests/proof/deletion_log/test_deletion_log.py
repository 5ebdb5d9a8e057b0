"""The deletion log is only ever added to, and exports what it holds."""

from __future__ import annotations

import csv
import shutil
import sqlite3
import tempfile
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.table import StaticTable

from pii_tracer.config.proof import DeletionLogKind
from pii_tracer.lake.formats.delta.vocabulary import DELTA_VACUUM
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG, ICEBERG_DELETE_ROWS
from pii_tracer.model.canonical_json import canonical, iso
from pii_tracer.model.errors import ProofError
from pii_tracer.proof.deletions import log_reading
from pii_tracer.proof.deletions.deletion_log import DeletionLog
from pii_tracer.proof.deletions.deletion_log_export import arrow, export
from pii_tracer.proof.deletions.deletion_log_table import fill_table
from pii_tracer.proof.deletions.entries import Deed, Entry, EntryState, Group, Person, Selection
from pii_tracer.proof.deletions.log_chain import end_file
from pii_tracer.proof.evidence_leaves import lines_digest
from tests.proof.deletion_log.grouped import groups
from tests.review.plans import NOW


def entry(**changes: object) -> Entry:
    fields = {
        "request_id": "REQ-1",
        "subject": "hmac:00",
        "plan_id": "p",
        "step_id": "c1/1",
        "copy_id": "c1",
        "dataset": "file:/lake/c1",
        "format": ICEBERG,
        "action": ICEBERG_DELETE_ROWS,
        "state": EntryState.ERASED,
        "run_at": NOW,
        "files_removed": 3,
        "tool_version": "0.1.0",
        "evidence": "sha256:00",
    }
    return Entry.model_validate({**fields, **changes})


def deed(**changes: object) -> Deed:
    (group,) = groups([entry(**changes)])
    return group.deeds[0]


TABLES = ("deeds", "persons", "lists", "answers")
PAIR = Group([deed(), deed(step_id="c1/2")], [Person("REQ-1", "hmac:00")])


def test_rows_come_back_once_and_in_order(tmp_path: Path) -> None:
    log = DeletionLog(tmp_path / "log.db", 'odd " estate')
    log.append(groups([entry(), entry(state=EntryState.CONFIRMED)]))
    log.append(groups([entry(state=EntryState.CONFIRMED)]))  # a resumed run says it again
    again = DeletionLog(tmp_path / "log.db", 'odd " estate')
    assert again.entries() == (entry(), entry(state=EntryState.CONFIRMED))
    assert (again.count(), DeletionLog(tmp_path / "log.db", "other").count()) == (2, 0)
    assert DeletionLog(tmp_path / "log.db", "other").entries() == ()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), max_size=6), max_size=4))
def test_a_row_is_added_where_the_last_of_its_step_says_something_else(batches: list[list[tuple[int, int]]]) -> None:
    """Whatever is added in whatever order, as if each row were looked for by itself. What was erased, was found again
    and is erased is said three times."""
    expected: list[Entry] = []
    last: dict[str, Entry] = {}
    with tempfile.TemporaryDirectory() as folder:
        log = DeletionLog(Path(folder) / "log.db", "e")
        for batch in batches:
            some = [entry(request_id=f"REQ-{request}", files_removed=files or None) for request, files in batch]
            log.append(groups(some))
            for one in some:
                expected += [one] if last.get(one.request_id) != one else []
                last[one.request_id] = one
        assert tuple(log.numbered()) == tuple(enumerate(expected, 1))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE \"deletions e\" SET state = 'exempt'",
        'DELETE FROM "deletions e"',
        'INSERT OR REPLACE INTO "deletions e" SELECT * FROM "deletions e"',
        "UPDATE \"deeds e\" SET state = 'exempt'",
        "UPDATE \"persons e\" SET subject = 'hmac:01'",
        'UPDATE "lists e" SET place = place + 9',
        'UPDATE "answers e" SET person = 9',
        *(f'DELETE FROM "{table} e"' for table in TABLES),
        *(f'INSERT OR REPLACE INTO "{table} e" SELECT * FROM "{table} e"' for table in TABLES),
        'INSERT INTO "lists e" SELECT list, 9, deed FROM "lists e" WHERE place = 0',  # one more deed, of everybody
        'INSERT INTO "answers e" SELECT seq + 1, person, list FROM "answers e"',  # a number that stands
        'INSERT INTO "answers e" SELECT seq - 1, person, list FROM "answers e"',
        'INSERT INTO "lists e" VALUES (9, 0, 9)',  # what is not there
        'INSERT INTO "answers e" SELECT 9, 9, list FROM "answers e"',
        'INSERT INTO "answers e" SELECT 9, person, 9 FROM "answers e"',
        'INSERT INTO "answers e" VALUES (9, NULL, NULL)',
    ],
)
def test_nothing_is_changed_or_removed(tmp_path: Path, statement: str) -> None:
    log = DeletionLog(tmp_path / "log.db", "e")
    log.append([PAIR])
    stands = log.entries()
    refused = pytest.raises(sqlite3.IntegrityError, match="append-only")
    with closing(sqlite3.connect(tmp_path / "log.db")) as connection, refused:
        connection.execute(statement)
    assert log.entries() == stands


def test_what_is_shared_stands_once(tmp_path: Path) -> None:
    """A thousand persons in forty ways: some ten bytes a row, and the second run adds nothing."""
    log = DeletionLog(tmp_path / "log.db", "e")
    ways = [
        Group(
            [deed(step_id=f"c{n}/1", reason=f"way {way}" if n == way % 23 else None) for n in range(23)],
            [Person(f"REQ-{n}", f"hmac:{n:016x}") for n in range(way, 1_000, 40)],
        )
        for way in range(40)
    ]
    log.append(ways)
    assert log.count() == 23_000
    assert (tmp_path / "log.db").stat().st_size < 23_000 * 18
    log.append(ways)
    assert log.count() == 23_000
    (of_one,) = {e.subject for e in log.entries(Selection(request="REQ-77"))}
    assert of_one == f"hmac:{77:016x}"
    assert [e.reason for e in log.entries(Selection(request="REQ-77")) if e.reason] == ["way 37"]


def test_exports(tmp_path: Path) -> None:
    log = DeletionLog(tmp_path / "log.db", "e")
    log.append(groups([entry(dataset="=cmd()"), entry(step_id="c1/2")]))
    export(log.rows(), tmp_path / "log.csv")
    rows = list(csv.DictReader((tmp_path / "log.csv").open()))
    assert [r["dataset"] for r in rows] == ["'=cmd()", "file:/lake/c1"]
    export(log.rows(), tmp_path / "log.parquet")
    table = pq.read_table(tmp_path / "log.parquet").to_pylist()
    assert [(r["step_id"], r["run_at"], r["files_removed"]) for r in table] == [("c1/1", NOW, 3), ("c1/2", NOW, 3)]


def test_rows_are_selected(tmp_path: Path) -> None:
    log = DeletionLog(tmp_path / "log.db", "e")
    later = NOW + timedelta(days=1)
    rows = [
        entry(state=EntryState.DEFERRED),
        entry(request_id="REQ-2", subject="hmac:01", dataset="s3:b/x"),
        entry(run_at=later, action=DELTA_VACUUM, copy_id="c2", plan_id="p2"),
        entry(),
    ]
    log.append(groups(rows))

    def chosen(**given: object) -> list[int]:
        return [seq for seq, _ in log.numbered(Selection(**given))]  # type: ignore[arg-type]

    assert chosen() == [1, 2, 3, 4]
    assert chosen(request="REQ-2") == chosen(subject="hmac:01") == chosen(dataset="s3:*") == [2]
    assert chosen(dataset="s3") == chosen(request="REQ-2' OR '1'='1") == []
    assert chosen(copy="c2") == chosen(plan="p2") == chosen(action=DELTA_VACUUM) == chosen(since=later) == [3]
    assert chosen(state=EntryState.DEFERRED) == [1]
    assert chosen(until=later) == [1, 2, 4]
    assert chosen(newest=True) == [2, 3, 4]
    assert chosen(newest=True, state=EntryState.DEFERRED) == []


def test_the_last_row_says_when_somebody_was_erased(tmp_path: Path) -> None:
    """By its number, whatever its time; each person by themselves, over requests and lists."""
    log = DeletionLog(tmp_path / "log.db", "e")
    times = [NOW + timedelta(days=n) for n in range(3)]
    log.append(groups([entry(run_at=times[1]), entry(run_at=times[2]), entry(subject="hmac:01", run_at=times[2])]))
    log.append(groups([entry(request_id="REQ-2", run_at=times[0])]))
    log.append(groups([entry(state=EntryState.BLOCKED, run_at=times[2]), entry(dataset="file:/x", run_at=times[2])]))
    assert log.last_erased("file:/lake/c1") == {"hmac:00": times[0], "hmac:01": times[2]}
    assert log.last_erased("file:/x") == {"hmac:00": times[2]}
    assert log.last_erased("file:/lake") == {}


def test_what_is_added_while_the_log_is_read_is_not_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reading, "PAGE", 1)
    log = DeletionLog(tmp_path / "log.db", "e")
    rows = [entry(state=EntryState.DEFERRED, request_id=f"REQ-{n}") for n in range(3)]
    log.append(groups(rows))
    reading = log.numbered(Selection(newest=True))
    first = next(reading)
    log.append(groups([entry(request_id="REQ-2"), entry(request_id="REQ-9")]))
    assert [first, *reading] == list(enumerate(rows, 1))
    assert [e.request_id for e in log.entries(Selection(newest=True))] == ["REQ-0", "REQ-1", "REQ-2", "REQ-9"]


def test_a_log_that_is_pruned_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the rows that went meanwhile would be missing in the middle."""
    monkeypatch.setattr(log_reading, "PAGE", 1)
    log = DeletionLog(tmp_path / "log.db", "e")
    log.append(groups([entry(request_id=f"REQ-{n}") for n in range(3)]))
    reading = log.numbered()
    next(reading)
    log.prune(NOW + timedelta(days=1), at=NOW, kept=["REQ-2"])
    with pytest.raises(ProofError, match="pruned during the read"):
        next(reading)


def test_the_log_is_pruned_from_its_beginning_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = DeletionLog(path, "e")
    days = [NOW + timedelta(days=n) for n in range(4)]
    log.append(
        groups([entry(request_id=f"REQ-{n}", subject=f"hmac:unmistakable{n}", run_at=at) for n, at in enumerate(days)])
    )
    removed = [canonical(_with_seq(seq, e)) for seq, e in list(log.numbered())[:2]]
    done = log.prune(days[2], at=days[3])
    assert done is not None
    assert (done.rows, done.last_seq, done.digest) == (2, 2, lines_digest(removed))
    assert log.prunings == (done,)
    assert [seq for seq, _ in log.numbered()] == [3, 4]
    assert b"unmistakable1" not in path.read_bytes()
    assert b"unmistakable2" in path.read_bytes()
    assert log.prune(days[2], at=days[3]) is None
    # a run from before that is concluded once more brings nothing back, and numbers go on
    log.append(groups([entry(request_id="REQ-0", subject="hmac:unmistakable0", run_at=days[0])]))
    assert log.prune(days[3] + timedelta(days=1), at=days[3]) is not None
    assert log.entries() == ()
    log.append(groups([entry(run_at=days[3] + timedelta(days=2))]))
    assert [seq for seq, _ in log.numbered()] == [5]
    for table in ("deletions", *TABLES, "prunings"):
        refused = pytest.raises(sqlite3.IntegrityError, match="append-only")
        with closing(sqlite3.connect(path)) as connection, refused:
            connection.execute(f'DELETE FROM "{table} e"')


def test_a_pruning_in_the_middle_of_a_persons_rows_leaves_the_later_ones(tmp_path: Path) -> None:
    path, day = tmp_path / "log.db", timedelta(days=1)
    log = DeletionLog(path, "e")
    names = [Person(f"REQ-{n}", f"hmac:unmistakable{n}") for n in range(3)]
    log.append([Group([deed(reason="oddly said"), deed(run_at=NOW + day), deed(run_at=NOW + 2 * day)], names[:2])])
    log.append([Group([deed(run_at=NOW + 2 * day)], names[2:])])
    whole = list(log.numbered())
    assert getattr(log.prune(NOW + 2 * day, at=NOW), "rows", 0) == 2
    assert list(log.numbered()) == whole[2:]
    assert b"oddly said" in path.read_bytes(), "of the second person"
    assert getattr(log.prune(NOW + 2 * day, at=NOW), "rows", 0) == 0
    log = DeletionLog(path, "e")
    assert list(log.numbered()) == whole[2:]
    assert getattr(log.prune(NOW + 3 * day, at=NOW, kept=["REQ-2"]), "rows", 0) == 4
    left = path.read_bytes()
    assert [word in left for word in (b"oddly said", b"unmistakable0", b"unmistakable1", b"unmistakable2")] == [
        False,
        False,
        False,
        True,
    ]


def test_what_is_open_and_what_came_after_it_stays(tmp_path: Path) -> None:
    log = DeletionLog(tmp_path / "log.db", "e")
    late = NOW + timedelta(days=9)
    log.append(groups([entry(request_id="REQ-0"), entry(state=EntryState.BLOCKED), entry(request_id="REQ-2")]))
    assert getattr(log.prune(late, at=late), "rows", 0) == 1
    assert [e.request_id for e in log.entries()] == ["REQ-1", "REQ-2"]
    log.append(groups([entry()]))  # now it is erased
    assert getattr(log.prune(late, at=late), "rows", 0) == 0, "rows from before the last pruning are not added"
    log.append(groups([entry(run_at=late)]))
    assert getattr(log.prune(late + timedelta(days=1), at=late), "rows", 0) == 3
    assert log.entries() == ()


def test_a_search_of_everything_ends_what_earlier_plans_kept_or_left_open(tmp_path: Path) -> None:
    log = DeletionLog(tmp_path / "log.db", "e")
    nothing = {"plan_id": "q", "copy_id": "", "step_id": "", "dataset": "", "format": None, "action": None}
    log.append(groups([entry(state=EntryState.EXEMPT)]))
    assert log.still_held() == {"REQ-1"}
    log.append(groups([entry(**nothing, state=EntryState.DEFERRED)]))
    assert log.still_held() == {"REQ-1"}
    late = NOW + timedelta(days=9)
    assert log.prune(late, at=late) is None, "the search left the request open"
    log.append(groups([entry(plan_id="r", run_at=late)]))
    assert getattr(log.prune(late, at=late), "rows", 0) == 2, "a later plan answers it"
    log.append(groups([entry(plan_id="r", copy_id="c2", state=EntryState.EXEMPT, run_at=late)]))
    assert log.still_held() == {"REQ-1"}
    log.append(groups([entry(**{**nothing, "plan_id": "s"}, run_at=late)]))
    assert log.still_held() == frozenset()


@pytest.mark.parametrize("kind", [DeletionLogKind.DELTA, DeletionLogKind.ICEBERG])
def test_a_pruned_log_takes_the_rows_and_files_of_its_table_along(tmp_path: Path, kind: DeletionLogKind) -> None:
    log = DeletionLog(tmp_path / "deletion_log.sqlite", "e")
    late = NOW + timedelta(days=9)
    log.append(groups([entry(subject="hmac:unmistakable"), entry(run_at=late)]))
    folder = fill_table(log, "e", kind)
    log.prune(late, at=late)
    assert fill_table(log, "e", kind) == folder
    assert [r["seq"] for r in _table(folder, kind)] == [2]
    log.append(groups([entry(run_at=late, step_id="c1/2")]))
    fill_table(log, "e", kind)
    assert [r["seq"] for r in _table(folder, kind)] == [2, 3]
    subjects = {row["subject"] for path in folder.rglob("*.parquet") for row in pq.read_table(path).to_pylist()}
    assert subjects == {"hmac:00"}
    # a table that lacks rows in front of what the log still has was changed by somebody
    shutil.rmtree(folder)
    other = DeletionLog(tmp_path / "other" / "deletion_log.sqlite", "e")
    other.append(groups([entry()]))
    other.prune(late, at=late)
    other.append(groups([entry(run_at=late), entry(run_at=late, step_id="c1/2")]))
    other.prune(late + timedelta(days=1), at=late)
    other.append(groups([entry(run_at=late + timedelta(days=2))]))
    made = fill_table(other, "e", kind)
    assert [r["seq"] for r in _table(made, kind)] == [4]
    made.rename(folder)
    with pytest.raises(ProofError, match=r"the deletion log and its table differ|cannot be written"):
        fill_table(log, "e", kind)


def test_a_table_that_an_earlier_version_began_gets_the_new_columns(tmp_path: Path) -> None:
    log = DeletionLog(tmp_path / "deletion_log.sqlite", "e")
    log.append(groups([entry()]))
    folder = tmp_path / "deletion_log.delta" / "e"
    (whole,) = arrow(log.rows())
    old = whole.drop_columns(["reason", "run_id", "manifest_before", "snapshot_planned"])
    write_deltalake(folder, old, configuration={"delta.appendOnly": "true"})
    log.append(groups([entry(step_id="c1/2", reason="waits")]))
    fill_table(log, "e", DeletionLogKind.DELTA)
    assert [r["reason"] for r in _table(folder, DeletionLogKind.DELTA)] == [None, "waits"]


def _with_seq(seq: int, e: Entry) -> dict[str, object]:
    return {"seq": seq, **e.model_dump(mode="json"), "run_at": iso(e.run_at)}


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(ProofError, match="deletion log"):
        DeletionLog(tmp_path / "log.db", "e")


def test_a_log_that_an_earlier_version_began_goes_on(tmp_path: Path) -> None:
    log = DeletionLog(tmp_path / "log.db", "e")
    log.append(groups([entry()]))
    connection = sqlite3.connect(tmp_path / "log.db")
    connection.execute('DROP VIEW "deletions e"')
    connection.execute('ALTER TABLE "deeds e" DROP COLUMN manifest')
    connection.close()
    log = DeletionLog(tmp_path / "log.db", "e")
    log.append(groups([entry(), entry(manifest="sha256:11")]))
    assert log.entries() == (entry(), entry(manifest="sha256:11"))


@pytest.mark.parametrize("kind", [DeletionLogKind.DELTA, DeletionLogKind.ICEBERG])
def test_a_table_beside_the_log_gets_each_row_once(tmp_path: Path, kind: DeletionLogKind) -> None:
    log = DeletionLog(tmp_path / "deletion_log.sqlite", "e/..")
    assert fill_table(log, "e/..", DeletionLogKind.SQLITE) == log.path
    folder = fill_table(log, "e/..", kind)
    assert folder.parent == tmp_path / f"deletion_log.{kind}"
    for count in (2, 3, 3):
        log.append(groups([entry(step_id=f"c1/{n}") for n in range(count)]))
        fill_table(log, "e/..", kind)
    rows = _table(folder, kind)
    assert [r["seq"] for r in rows] == [1, 2, 3]
    assert [Entry.model_validate({k: v for k, v in r.items() if k != "seq"}) for r in rows] == list(log.entries())


@pytest.mark.parametrize("kind", [DeletionLogKind.DELTA, DeletionLogKind.ICEBERG])
def test_a_table_that_is_ahead_of_the_log_is_refused(tmp_path: Path, kind: DeletionLogKind) -> None:
    log = DeletionLog(tmp_path / "deletion_log.sqlite", "e")
    log.append(groups([entry(), entry(step_id="c1/2")]))
    fill_table(log, "e", kind)
    (tmp_path / "deletion_log.sqlite").unlink()
    end_file(tmp_path / "deletion_log.sqlite").unlink()
    log = DeletionLog(tmp_path / "deletion_log.sqlite", "e")
    log.append(groups([entry()]))
    with pytest.raises(ProofError, match="the deletion log and its table differ"):
        fill_table(log, "e", kind)


def test_delta_refuses_to_remove_a_row(tmp_path: Path) -> None:
    log = DeletionLog(tmp_path / "deletion_log.sqlite", "e")
    log.append(groups([entry()]))
    folder = fill_table(log, "e", DeletionLogKind.DELTA)
    with pytest.raises(DeltaError):
        DeltaTable(folder).delete()
    assert len(_table(folder, DeletionLogKind.DELTA)) == 1


def test_a_folder_that_is_no_table_is_refused(tmp_path: Path) -> None:
    log = DeletionLog(tmp_path / "deletion_log.sqlite", "e")
    log.append(groups([entry()]))
    folder = tmp_path / "deletion_log.delta"
    folder.write_text("a file")
    with pytest.raises(ProofError, match="cannot be written"):
        fill_table(log, "e", DeletionLogKind.DELTA)


def _table(folder: Path, kind: DeletionLogKind) -> list[dict[str, object]]:
    if kind is DeletionLogKind.DELTA:
        rows = DeltaTable(folder).to_pyarrow_table()
    else:
        newest = max((folder / "log" / "deletions" / "metadata").glob("*.metadata.json"))
        rows = StaticTable.from_metadata(newest.as_uri()).scan().to_arrow()
    return rows.sort_by("seq").to_pylist()  # type: ignore[no-any-return]
