"""The whole path in a real HDFS: plan, approve, apply, verify, attest. What a plain delete leaves there is gone, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from executors.stores.hdfs import file_rewrite
from pii_tracer.model.errors import ExitCode
from tests.hdfs.running import Killed, killed_after
from tests.hdfs.shop import HELD, MAIL, OTHERS, PERSON, REFILLS, USER, Shop, as_orc, csv, lines, parquet
from tests.hdfssupport import Hdfs
from tests.leaks import Person, leaks


@pytest.fixture
def shop(hdfs: Hdfs, tmp_path: Path) -> Shop:
    shop = Shop(hdfs, tmp_path, hdfs.folder())
    shop.no_trash()
    return shop


def test_the_person_leaves_every_place_and_nobody_else_does(shop: Shop) -> None:
    trash, temporary = f"/user/ann/.Trash/Current{shop.root}", f"{shop.root}/out/_temporary"
    made = {"csv": csv, "json": lines, "orc": as_orc, "parquet": parquet}
    files = {kind: shop.export(kind, f"a.{kind}", write(OTHERS[0], PERSON, OTHERS[1])) for kind, write in made.items()}
    beside = shop.export("csv", "b.csv", csv(*OTHERS))
    shop.put("out/_temporary/0/a.csv", csv(PERSON))
    shop.hdfs.ask(shop.root, "ALLOWSNAPSHOT")
    shop.hdfs.ask(shop.root, "CREATESNAPSHOT", snapshotname="s1")
    shop.hdfs.put(f"{trash}/old.csv", csv(PERSON, OTHERS[2]))
    shop.hdfs.put(f"{trash}/others.csv", csv(OTHERS[3]))
    shop.deletable = [
        {"path": path, "owner": "Ann", "reason": "nobody needs it"} for path in (temporary, f"{shop.root}/.snapshot/s1")
    ]
    code, plan = shop.plan()
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    known = [shop.hdfs.client().checksum(path) for path in files.values()]
    assert not [checksum for checksum in known if checksum in json.dumps(plan)]
    overrides = [one["reason"] for one in plan["overrides"] if one["kind"] == "hdfs_delete"]
    assert len(overrides) == 3
    assert sum("Ann: nobody needs it" in reason for reason in overrides) == 2
    assert shop.approve() == 0
    code, result = shop.apply()
    assert (code, result["state"]) == (0, "complete")
    assert result["residue"] == []
    assert result["unverified"] == []
    assert result["bystander_rows_lost"] == 0
    assert result["rows_erased"] == 4
    assert (result["copies_total"], result["copies_erased"]) == (8, 7)
    assert shop.read(files["csv"]) == csv(*OTHERS[:2])
    assert shop.read(files["json"]) == lines(*OTHERS[:2])
    assert shop.read(beside) == csv(*OTHERS)
    assert [e.name for e in shop.hdfs.client().entries(trash)] == ["others.csv"]
    assert [e.name for e in shop.hdfs.client().entries(f"{shop.root}/.snapshot")] == []
    assert shop.verify() == 0
    assert leaks(Person((MAIL, USER)), [shop.base / "state"]) == []


def test_what_came_after_the_plan_is_found_by_the_run_and_by_verify(shop: Shop) -> None:
    shop.export("csv", "a.csv", csv(OTHERS[0], PERSON))
    shop.hdfs.ask(shop.root, "ALLOWSNAPSHOT")
    assert shop.plan()[0] == 0
    shop.approve()
    shop.hdfs.ask(shop.root, "CREATESNAPSHOT", snapshotname="since")
    shop.hdfs.put(f"/user/cy/.Trash/Current{shop.root}/a.csv", csv(PERSON))
    code, result = shop.apply()
    assert code == ExitCode.RESIDUE
    assert {one["copy"].rpartition("/")[2] for one in result["residue"]} == {"since", ".Trash"}
    assert shop.verify() == ExitCode.RESIDUE
    shop.hdfs.ask(shop.root, "DELETESNAPSHOT", method="DELETE", snapshotname="since")
    shop.hdfs.ask("/user/cy", "DELETE", method="DELETE", recursive="true")
    assert shop.verify() == ExitCode.DONE
    shop.hdfs.put(f"{shop.root}/csv/later.csv", csv(PERSON))
    assert shop.verify() == ExitCode.RESIDUE


def test_what_the_step_would_refuse_is_a_gap_of_the_plan(shop: Shop) -> None:
    """The run stopped there, after the source was erased."""

    def refused() -> list[str]:
        return [gap["reason"] for gap in shop.plan()[1]["gaps"] if gap["kind"] == "unreadable"]

    path = shop.export("csv", "a.csv", csv(OTHERS[0], PERSON))
    assert refused() == []
    xattr = {"xattr.name": "user.note", "xattr.value": "x", "flag": "CREATE"}
    shop.hdfs.ask(path, "SETXATTR", **xattr)
    (reason,) = refused()
    assert "a file has its own access list, attributes or storage policy" in reason
    shop.hdfs.client().delete(path)
    shop.export("csv", "a.csv", csv(OTHERS[0], (USER, '"a\nb,c"')))
    (reason,) = refused()
    assert "a CSV record of the person continues over several lines" in reason


def test_one_of_others_that_is_too_large_to_be_read_is_a_gap_of_the_plan(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run reads each of them, also those in which the search saw nobody."""
    shop.export("csv", "a.csv", csv(OTHERS[0], PERSON))
    large = csv(*OTHERS, *OTHERS)
    shop.export("csv", "b.csv", large)
    monkeypatch.setattr(file_rewrite, "MAX_OBJECT_BYTES", len(large) - 1)
    (reason,) = [gap["reason"] for gap in shop.plan()[1]["gaps"] if gap["kind"] == "unreadable"]
    assert f"the file has {len(large)} bytes, more than the limit of a rewrite in memory" in reason


def test_a_file_that_came_since_the_plan_is_drift(shop: Shop) -> None:
    path = shop.export("csv", "a.csv", csv(OTHERS[0], PERSON))
    assert shop.plan()[0] == 0
    shop.approve()
    shop.put("csv/b.csv", csv(OTHERS[1]))
    assert shop.apply()[0] == ExitCode.DRIFT
    assert shop.read(path) == csv(OTHERS[0], PERSON)


def test_what_no_step_may_erase_is_a_gap_that_blocks(shop: Shop) -> None:
    shop.export("table", "a.csv", csv(PERSON))
    shop.put("table/_delta_log/0.json", b"{}")
    shop.export("two", "a.csv", csv(PERSON))
    shop.put("two/b.json", lines(PERSON))
    shop.export("named", f"mail={MAIL}/a.csv", csv(PERSON))
    shop.put("strange/a.csv", csv(PERSON))
    shop.put("job/_temporary/0/a.csv", csv(PERSON))
    shop.put("clean/a.csv", csv(*OTHERS))
    shop.hdfs.ask(f"{shop.root}/strange", "ALLOWSNAPSHOT")
    shop.hdfs.ask(f"{shop.root}/strange", "CREATESNAPSHOT", snapshotname="s1")
    assert sorted(shop.gaps()) == [
        *3 * ["hdfs_place-person"],
        "hdfs_snapshot-person",
        "hdfs_temporary-person",
        "unexpected_copy-strange",
    ]


def test_a_hold_on_a_folder_keeps_what_hdfs_kept_of_it(shop: Shop) -> None:
    shop.export("csv", "a.csv", csv(OTHERS[0], PERSON))
    shop.hdfs.put(f"/user/dee/.Trash/Current{shop.root}/a.csv", csv(PERSON))
    held = {**HELD, "id": "export", "datasets": [f"{shop.hdfs.uri}{shop.root}/csv"]}
    plan = shop.plan(holds=[HELD, held])[1]
    strategies = {copy["location"].rpartition("/")[2]: copy["strategy"] for copy in plan["copies"]}
    assert (strategies["csv"], strategies[".Trash"]) == ("exempt", "blocked")
    assert any(gap["kind"] == "hold_blocks" for gap in plan["gaps"])


def test_digits_of_a_short_key_that_no_lineage_explains_are_a_gap(shop: Shop) -> None:
    shop.user = "88413"
    shop.export("csv", "a.csv", csv(OTHERS[0], (shop.user, MAIL)))
    shop.put("strange/a.csv", csv((shop.user, OTHERS[1][1])))
    assert shop.gaps() == ["same_digits-strange"]


def test_a_killed_run_is_resumed_with_all_its_rows(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [shop.export("csv", f"{n}.csv", csv(OTHERS[n], PERSON)) for n in range(3)]
    assert shop.plan()[0] == 0
    shop.approve()
    with killed_after(monkeypatch, 4), pytest.raises(Killed):
        shop.apply()
    assert [MAIL.encode() in shop.read(path) for path in paths] == [False, False, True]
    code, result = shop.apply()
    assert (code, result["state"], result["rows_erased"]) == (0, "complete", 3)
    assert result["bystander_rows_lost"] == 0
    assert [shop.read(path) for path in paths] == [csv(OTHERS[n]) for n in range(3)]
