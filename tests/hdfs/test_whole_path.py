"""The whole path in a real HDFS: plan, approve, apply, verify, attest. What a plain delete leaves there is gone, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hdfs.shop import MAIL, OTHERS, PERSON, REFILLS, USER, Shop, as_orc, csv, lines, parquet
from tests.hdfssupport import Hdfs
from tests.leaks import Person, leaks


@pytest.fixture
def shop(hdfs: Hdfs, tmp_path: Path) -> Shop:
    return Shop(hdfs, tmp_path, hdfs.folder())


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
