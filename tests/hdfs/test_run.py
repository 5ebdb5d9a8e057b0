"""The steps on a real HDFS: what the naive way leaves, what stops a step, and what a killed one leaves to the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from pii_tracer.lake.stores.base import Absent
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import Progress
from tests.hdfs.running import Killed, Run, appending, killed_after
from tests.hdfs.shop import MAIL, OTHERS, PERSON, Shop, csv
from tests.hdfssupport import Hdfs

REWRITE, DELETE, SNAPSHOT = Action.HDFS_REWRITE, Action.HDFS_DELETE_FILES, Action.HDFS_DELETE_SNAPSHOT


@pytest.fixture
def shop(hdfs: Hdfs, tmp_path: Path) -> Shop:
    shop = Shop(hdfs, tmp_path, hdfs.folder())
    shop.write()
    return shop


def names(shop: Shop, folder: str) -> list[str]:
    return [entry.name for entry in shop.hdfs.client().entries(folder)]


def test_a_file_written_again_keeps_its_rights_and_stays_in_the_snapshot_alone(shop: Shop) -> None:
    path = shop.put("a/x.csv", csv(OTHERS[0], PERSON, OTHERS[1]))
    shop.hdfs.ask(path, "SETOWNER", owner="ann", group="analysts")
    shop.hdfs.ask(path, "SETPERMISSION", permission="640")
    shop.hdfs.ask(shop.root, "ALLOWSNAPSHOT")
    shop.hdfs.ask(shop.root, "CREATESNAPSHOT", snapshotname="s1")
    rights = shop.hdfs.client().rights(path)
    run = Run.of_files(shop, REWRITE, path, folder=f"{shop.root}/a")
    assert run.probe() is Progress.NOT_STARTED
    run.check()
    assert run.run()["rows_dropped"] == 1
    assert run.ok()
    assert shop.read(path) == csv(*OTHERS[:2])
    assert shop.hdfs.client().rights(path) == rights
    assert names(shop, f"{shop.root}/a") == ["x.csv"]
    kept = f"{shop.root}/.snapshot/s1"
    assert MAIL.encode() in shop.read(f"{kept}/a/x.csv"), "the naive way ends here"
    place = {"location": f"{shop.hdfs.uri}{kept}", "plan_id": "plan-1", "mark": shop.hdfs.client().status(kept).mark}
    last = Run(shop, SNAPSHOT, place)
    last.check()
    assert last.run()["deleted"]
    assert last.ok()
    with pytest.raises(Absent):
        shop.hdfs.client().status(kept)
    assert last.run()["deleted"] is False


def test_a_run_that_is_killed_anywhere_is_taken_up_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, moment = f"{shop.root}/a", 1
    while True:
        shop.hdfs.ask(folder, "DELETE", method="DELETE", recursive="true")
        paths = [shop.put(f"a/{n}.csv", csv(OTHERS[n], PERSON)) for n in range(2)]
        run = Run.of_files(shop, REWRITE, *paths, folder=folder)
        with killed_after(monkeypatch, moment) as count:
            try:
                run.run()
            except Killed:
                pass
            else:
                assert count() < moment
                break
        assert run.probe() in (Progress.PARTIAL, Progress.DONE)
        facts = run.run()
        assert (facts["rows_dropped"], facts["files_rewritten"]) == (2, 2)
        assert run.ok()
        assert [shop.read(path) for path in paths] == [csv(OTHERS[0]), csv(OTHERS[1])]
        assert names(shop, folder) == ["0.csv", "1.csv"]
        moment += 1
    assert moment > 4, "each file is written and renamed"


def test_what_somebody_changed_or_writes_is_left_as_it_is(shop: Shop) -> None:
    path = shop.put("a/x.csv", csv(PERSON, OTHERS[0]))
    run = Run.of_files(shop, REWRITE, path, folder=f"{shop.root}/a")
    delete = Run.of_files(shop, DELETE, path, folder=f"{shop.root}/a")
    with appending(shop, path):
        for one in (run, delete):
            with pytest.raises(RunError, match="a process is writing a file"):
                one.run()
    shop.hdfs.client().delete(path)
    other = csv(PERSON, OTHERS[1])
    shop.put("a/x.csv", other)
    for one in (run, delete):
        with pytest.raises(RunError, match="somebody changed a file"):
            one.check()
        with pytest.raises(RunError, match="somebody changed a file"):
            one.run()
        assert not one.ok() or one is delete
    assert shop.read(path) == other
    assert names(shop, f"{shop.root}/a") == ["x.csv"]


def test_only_listed_files_are_deleted_and_a_killed_deletion_goes_on(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    trash = f"/user/bob/.Trash/Current{shop.root}"
    for name in ("a.csv", "b.csv", "c.csv"):
        shop.hdfs.put(f"{trash}/{name}", csv(PERSON))
    run = Run.of_files(shop, DELETE, f"{trash}/a.csv", f"{trash}/b.csv", folder="/user/bob/.Trash")
    with killed_after(monkeypatch, 1), pytest.raises(Killed):
        run.run()
    assert run.probe() is Progress.PARTIAL
    assert run.run()["files_removed"] == 2
    assert run.ok()
    assert names(shop, trash) == ["c.csv"]


def test_a_refused_right_stops_and_nothing_is_left_beside(shop: Shop) -> None:
    path = shop.put("a/x.csv", csv(PERSON, OTHERS[0]))
    shop.write(hdfs=[{"namenode": shop.hdfs.uri, "webhdfs": shop.hdfs.webhdfs, "user": "somebody"}])
    for run in (
        Run.of_files(shop, REWRITE, path, folder=f"{shop.root}/a"),
        Run.of_files(shop, DELETE, path, folder=f"{shop.root}/a"),
    ):
        with pytest.raises(RunError) as caught:
            run.run()
        assert "right" in str(caught.value.todo)
    assert names(shop, f"{shop.root}/a") == ["x.csv"]
    assert shop.read(path) == csv(PERSON, OTHERS[0])


def test_an_access_list_is_not_lost(shop: Shop) -> None:
    path = shop.put("a/x.csv", csv(PERSON, OTHERS[0]))
    shop.hdfs.ask(path, "SETXATTR", **{"xattr.name": "user.note", "xattr.value": "x", "flag": "CREATE"})
    run = Run.of_files(shop, REWRITE, path, folder=f"{shop.root}/a")
    with pytest.raises(RunError, match="attributes"):
        run.check()
    with pytest.raises(RunError, match="attributes"):
        run.run()
    assert shop.read(path) == csv(PERSON, OTHERS[0])


def test_another_snapshot_of_the_same_name_stays(shop: Shop) -> None:
    shop.put("a/x.csv", csv(PERSON))
    shop.hdfs.ask(shop.root, "ALLOWSNAPSHOT")
    shop.hdfs.ask(shop.root, "CREATESNAPSHOT", snapshotname="daily")
    kept = f"{shop.root}/.snapshot/daily"
    place = {"location": f"{shop.hdfs.uri}{kept}", "plan_id": "plan-1", "mark": shop.hdfs.client().status(kept).mark}
    shop.hdfs.ask(shop.root, "DELETESNAPSHOT", method="DELETE", snapshotname="daily")
    shop.hdfs.ask(shop.root, "CREATESNAPSHOT", snapshotname="daily")
    run = Run(shop, SNAPSHOT, place)
    for act in (run.check, run.run):
        with pytest.raises(RunError, match="a different snapshot"):
            act()
    assert names(shop, f"{shop.root}/.snapshot") == ["daily"]
