"""Transactional tables of a real Hive in a real HDFS: what a DELETE leaves, and how the person leaves them for good."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyarrow import orc

from executors.formats.hive_acid.executor import HiveAcidExecutor
from executors.formats.hive_acid.hive_session import HiveSession
from executors.formats.hive_acid.key_files import KeyFiles
from pii_tracer.config.estate_file import load_estate
from pii_tracer.lake.formats.hive_acid.key_folder_check import unusable
from pii_tracer.model.errors import ExitCode
from tests.hdfs.running import Killed
from tests.hdfs.shop import MAIL, OTHERS, PERSON, REFILLS, USER, Shop, as_orc
from tests.hdfs.tables import files_of, opened_to_all
from tests.hdfssupport import Hdfs
from tests.hiveserversupport import HiveServer, hive_serving
from tests.leaks import Person, leaks
from tests.sparksession import forget_tables

TRANSACTIONAL = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"


@pytest.fixture(scope="module")
def hive(hdfs: Hdfs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveServer]:
    with hive_serving(hdfs, tmp_path_factory.mktemp("hive")) as server:
        yield server


@pytest.fixture
def shop(hdfs: Hdfs, hive: HiveServer, tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(hdfs, tmp_path, hdfs.folder())
    shop.no_trash()
    hive.run(f"CREATE DATABASE core LOCATION '{hdfs.uri}{shop.root}/core.db'")
    yield shop
    hive.run("DROP DATABASE core CASCADE")
    forget_tables()


def named(hive: HiveServer) -> dict[str, Any]:
    """The estate file's catalogs: the users' table here, and Hive's metastore."""
    users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
    return {"catalogs": {"spark_catalog": {"type": "declared", "tables": [users]}, "hms": hive.declared}}


def values(*people: tuple[str, str]) -> str:
    return ", ".join(f"('{uid}', '{mail}')" for uid, mail in people)


def made(shop: Shop, hive: HiveServer, name: str, more: str = "") -> None:
    hive.run(f"CREATE TABLE core.{name} (uid STRING, mail STRING) {more} {TRANSACTIONAL}")
    shop.exports.append(f"core.db/{name}")


def holding(shop: Shop) -> list[str]:
    """Files with the person, by the bytes of what Arrow reads of them."""
    found = []
    for path in files_of(shop, shop.root):
        data = shop.read(path)
        if data.startswith(b"ORC") and MAIL in str(orc.ORCFile(io.BytesIO(data)).read().to_pylist()):
            found.append(path)
    return found


def folders(shop: Shop, table: str) -> list[str]:
    front = f"{shop.root}/core.db/{table}/"
    paths = (path.removeprefix(front) for path in files_of(shop, front.rstrip("/")))
    return sorted({path.rpartition("/")[0] for path in paths})


@pytest.mark.spark
@pytest.mark.nightly
def test_the_person_leaves_transactional_tables(shop: Shop, hive: HiveServer) -> None:
    made(shop, hive, "plain")
    made(shop, hive, "parts", "PARTITIONED BY (day STRING) CLUSTERED BY (uid) INTO 2 BUCKETS")
    hive.run(
        f"INSERT INTO core.plain VALUES {values(OTHERS[0], PERSON)}",
        f"INSERT INTO core.plain VALUES {values(OTHERS[1])}",
        f"INSERT INTO core.parts PARTITION (day='1') VALUES {values(PERSON, OTHERS[0])}",
        f"INSERT INTO core.parts PARTITION (day='2') VALUES {values(OTHERS[1], OTHERS[2])}",
        f"UPDATE core.parts SET mail = 'new@example.org' WHERE uid = '{OTHERS[2][0]}'",
        # the naive way
        f"DELETE FROM core.plain WHERE uid = '{USER}'",
    )
    assert any("/plain/" in path for path in holding(shop)), "the DELETE left the bytes"
    opened_to_all(shop, shop.root)
    code, plan = shop.plan(**named(hive))
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    copies = {copy["table"]: copy for copy in plan["copies"]}
    assert {name: copies[f"core.{name}"]["found"]["rows"] for name in ("parts", "plain")} == {"parts": 1, "plain": 0}
    shop.approve()
    code, result = shop.apply()
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert (result["rows_erased"], result["bystander_rows_lost"]) == (1, 0)
    assert holding(shop) == []
    assert hive.run("SELECT uid FROM core.plain ORDER BY uid") == [(OTHERS[0][0],), (OTHERS[1][0],)]


@contextmanager
def killed_after_the_delete(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kill the run when Hive has deleted the rows, with the keys where Hive reads them."""
    real = HiveSession.run

    def dying(self: HiveSession, statement: str) -> None:
        assert USER not in statement
        real(self, statement)
        if statement.startswith("DELETE"):
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(HiveSession, "run", dying)
        # a process that is gone takes nothing away
        patched.setattr(KeyFiles, "remove", lambda self: None)
        yield


@pytest.mark.spark
@pytest.mark.nightly
def test_a_killed_run_goes_on_and_readers_are_waited_for(
    shop: Shop, hive: HiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(shop, hive, "read")
    hive.run(
        f"INSERT INTO core.read VALUES {values(OTHERS[0], PERSON)}",
        f"INSERT INTO core.read VALUES {values(PERSON, OTHERS[1])}",
    )
    opened_to_all(shop, shop.root)
    assert shop.plan(**named(hive))[0] == 0
    shop.approve()
    with killed_after_the_delete(monkeypatch), pytest.raises(Killed):
        shop.apply()
    assert files_of(shop, hive.scratch) != []
    with hive.reading("core", "read"):
        monkeypatch.setattr(HiveAcidExecutor, "patience", timedelta(seconds=20))
        monkeypatch.setattr(HiveAcidExecutor, "look_again", timedelta(0))
        code, result = shop.apply()
        assert (code, result["state"]) == (ExitCode.WAITING, "waiting")
        assert any(name.startswith("base_") for name in folders(shop, "read")), "the compaction is over"
        assert holding(shop) != [], "the reader still reads these"
    assert files_of(shop, hive.scratch) == [], "the keys of the killed run are gone, too"
    code, result = shop.apply()
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert (result["rows_erased"], result["bystander_rows_lost"]) == (2, 0)
    assert holding(shop) == []
    assert [name.partition("_")[0] for name in folders(shop, "read")] == ["base"]
    assert shop.verify() == ExitCode.DONE
    assert leaks(Person((MAIL, USER)), [shop.base / "state"]) == []
    hive.run(f"INSERT INTO core.read VALUES {values(PERSON)}")
    assert shop.verify() == ExitCode.RESIDUE


@pytest.mark.nightly
def test_a_transactional_table_that_nobody_can_erase_says_why(shop: Shop, hive: HiveServer) -> None:
    made(shop, hive, "keyed", "PARTITIONED BY (who STRING)")
    made(shop, hive, "flat", "")
    hive.run(
        f"INSERT INTO core.keyed PARTITION (who='{USER}') VALUES {values(PERSON)}",
        f"INSERT INTO core.flat VALUES {values(PERSON, OTHERS[0])}",
    )
    shop.put("core.db/flat/000000_0", as_orc(PERSON))
    gaps = {
        gap["dataset"]["name"].rpartition("/")[2]: gap for gap in shop.plan(**named(hive))[1]["gaps"] if gap["dataset"]
    }
    assert "from before it was transactional" in gaps["flat"]["reason"]
    assert "names of files or folders contain a value of the person" in gaps["keyed"]["reason"]


@pytest.mark.nightly
def test_the_scratch_folder_is_nobody_elses(shop: Shop, hive: HiveServer) -> None:
    shop.write(**named(hive))
    estate, scratch = load_estate(shop.base / "pii-tracer.yaml"), f"{hive.hdfs.uri}{hive.scratch}"
    keys = KeyFiles.new(estate, scratch)
    assert unusable(estate, scratch) is None
    with keys.holding({"user.uid": [USER, "a\nb"]}) as places:
        (path,) = files_of(shop, hive.scratch)
        assert f"{hive.hdfs.uri}{path}" == f"{places['user.uid']}/keys"
        assert USER.encode() not in shop.read(path)
        rows = hive.run(
            f"CREATE TEMPORARY EXTERNAL TABLE kept (k STRING) STORED AS TEXTFILE LOCATION '{places['user.uid']}'",
            "SELECT CAST(unbase64(k) AS STRING) FROM kept",
        )
        assert sorted(rows) == [(USER,), ("a\nb",)]
    assert not keys.left()
    hive.hdfs.ask(hive.scratch, "SETPERMISSION", permission="775")
    try:
        assert "all users can read" in str(unusable(estate, scratch))
    finally:
        hive.hdfs.ask(hive.scratch, "SETPERMISSION", permission="770")
