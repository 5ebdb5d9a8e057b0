"""Delimited text and CSV in a real HDFS that a real Hive metastore names: found, planned, erased, killed, verified."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.model.errors import ExitCode
from tests.hdfs.running import Killed, killed_after
from tests.hdfs.shop import REFILLS, Shop
from tests.hdfs.test_hive_tables import at, named
from tests.hdfssupport import Hdfs
from tests.hivesupport import TEXT, Hive, serving
from tests.hivetextsupport import LAZY, OPEN_CSV
from tests.leaks import Person, leaks

pytestmark = pytest.mark.slow

USER, MAIL = "M|4410027", "zq.person@example.net"
COLUMNS = {"uid": "string", "mail": "string"}
BARS = {"field.delim": "|", "escape.delim": "\\"}
HEADER = b"uid;mail;said\r\n"
ONE = b"M\\|4410027|\\N\n"
HERS, ELSE = b"M\\|4410027|" + MAIL.encode() + b"|x\n", b"M|441|\\N\r\nM-1|a\\|b|\xc3\xa9\nM\\\\|\\N\n"


@pytest.fixture(scope="module")
def running(hdfs: Hdfs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hive]:
    with serving(tmp_path_factory.mktemp("hive")) as server:
        yield server


@pytest.fixture
def hive(running: Hive) -> Iterator[Hive]:
    with running.database("core"):
        yield running


@pytest.fixture
def shop(hdfs: Hdfs, tmp_path: Path) -> Shop:
    shop = Shop(hdfs, tmp_path, hdfs.folder(), user=USER)
    shop.no_trash()
    return shop


def fill(shop: Shop, hive: Hive) -> dict[str, bytes]:
    """Three tables, one with a partition that has characters of its own; by path, what must stay of each file."""
    letters = b'"M|4410028";"b";"a ""b"""\r\nM-4410027;c\n'
    hers = f'"{USER}";"{MAIL}";"dear"\n'.encode()
    files = [
        ("members", "000000_0.gz", gzip.compress(ELSE + HERS + ELSE), ELSE + ELSE),
        ("members", "000001_0", ELSE + HERS, ELSE),
        ("members", "000002_0", ELSE, ELSE),
        ("visits", "day=1/000000_0", ONE + b"M\\|1|\\N\n", b"M\\|1|\\N\n"),
        ("visits", "day=2/000000_0", b"M|4410027;\\N\nM|4410028;\\N\n", b"M|4410028;\\N\n"),
        ("letters", "000000_0", HEADER + hers + letters, HEADER + letters),
    ]
    left = {shop.export(folder, name, data): kept for folder, name, data, kept in files}
    days = {day: at(shop, f"visits/day={day}") for day in "12"}
    told: dict[str, Any] = {"columns": COLUMNS, "serde": LAZY, "options": BARS}
    hive.table("core.members", at(shop, "members"), TEXT, **told)
    hive.table("core.visits", at(shop, "visits"), TEXT, partitions=days, **told)
    told |= {"serde": OPEN_CSV, "options": {"separatorChar": ";"}, "parameters": {"skip.header.line.count": "1"}}
    hive.table("core.letters", at(shop, "letters"), TEXT, **told)
    with hive.client() as client:
        (second,) = client.get_partitions_by_names("core", "visits", ["day=2"])
        second.sd.serdeInfo.parameters = BARS | {"field.delim": ";"}
        client.alter_partition("core", "visits", second)
    return left


def text(shop: Shop, path: str) -> bytes:
    data = shop.read(path)
    return gzip.decompress(data) if path.endswith(".gz") else data


def test_the_person_leaves_text_that_a_metastore_describes(
    shop: Shop, hive: Hive, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = fill(shop, hive)
    trash = f"/user/ann/.Trash/Current{shop.root}/visits/day=1"
    shop.hdfs.put(f"{trash}/000009_0", ONE)
    shop.hdfs.put(f"{trash}/000008_0", ELSE)
    shop.hdfs.ask(f"{shop.root}/visits", "ALLOWSNAPSHOT")
    shop.hdfs.ask(f"{shop.root}/visits", "CREATESNAPSHOT", snapshotname="s1")
    snapshot = f"{shop.root}/visits/.snapshot/s1"
    shop.deletable = [{"path": snapshot, "owner": "Ann", "reason": "nobody needs it"}]
    code, plan = shop.plan(**named(shop, hive))
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    copies = {
        copy["table"] or copy["location"].removeprefix(shop.hdfs.uri): copy["strategy"] for copy in plan["copies"]
    }
    assert copies.pop("shop.users") == "exempt"
    assert copies == dict.fromkeys(("core.members", "core.visits", "core.letters"), "delete_by_key") | dict.fromkeys(
        ("/user/ann/.Trash", snapshot), "delete_kept"
    )
    assert not [value for value in (USER, "4410027", MAIL) if value in shop.plan_file.read_text()]
    assert {step["parameters"]["location"].rpartition("/")[2] for step in plan["steps"] if "F8" in step["hazards"]} == {
        *("members", "visits", "letters")
    }
    shop.approve()
    before = {path: text(shop, path) for path in left}
    assert [path for path in left if before[path] == left[path]] == [f"{shop.root}/members/000002_0"]
    with killed_after(monkeypatch, 5), pytest.raises(Killed):
        shop.apply()
    assert {path: text(shop, path) for path in left} not in (before, left)
    code, result = shop.apply()
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert (result["rows_erased"], result["bystander_rows_lost"]) == (5, 0)
    assert {path: text(shop, path) for path in left} == left
    assert [e.name for e in shop.hdfs.client().entries(trash)] == ["000008_0"]
    assert [e.name for e in shop.hdfs.client().entries(f"{shop.root}/visits/.snapshot")] == []
    assert shop.verify() == ExitCode.DONE
    assert leaks(Person((MAIL, USER)), [shop.base / "state"]) == []
    shop.hdfs.put(f"{trash}/000007_0", ONE)
    assert shop.verify() == ExitCode.RESIDUE, "only who knows the table's escapes finds the key"


def test_other_characters_than_at_planning_are_drift(shop: Shop, hive: Hive) -> None:
    left = fill(shop, hive)
    assert shop.plan(**named(shop, hive))[0] == 0
    shop.approve()
    with hive.client() as client:
        table = client.get_table("core", "members")
        table.sd.serdeInfo.parameters = {"field.delim": "|"}
        client.alter_table("core", "members", table)
    before = {path: shop.read(path) for path in left}
    assert shop.apply()[0] == ExitCode.DRIFT
    assert {path: shop.read(path) for path in left} == before
