"""Hudi tables in a real HDFS: planned, erased by Spark, verified."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from executors.formats.hudi.executor import HudiExecutor
from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath
from pii_tracer.model.errors import ExitCode
from pii_tracer.model.plan import Step
from tests.hdfs.running import Killed
from tests.hdfs.shop import MAIL, OTHERS, PERSON, REFILLS, USER, Shop, csv, parquet
from tests.hdfs.tables import files_of, opened_to_all, put_all
from tests.hdfssupport import Hdfs
from tests.hudistores import EVERYBODY_ELSE, KINDS, declared, hold, hudi, made_by_hand, refilled
from tests.leaks import Person, leaks
from tests.sparksession import HAS_HUDI

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STATEMENTS = ["hudi_delete_savepoints", "hudi_delete_rows", "hudi_clean", "hudi_rebuild_metadata", "verify_copy"]


@pytest.fixture
def shop(hdfs: Hdfs, tmp_path: Path) -> Shop:
    shop = Shop(hdfs, tmp_path, hdfs.folder())
    shop.no_trash()
    return shop


def planned(shop: Shop, *folders: str, **more: Any) -> tuple[int, dict[str, Any]]:
    """A plan for tables that the estate file declares."""
    return shop.plan(catalogs=declared(f"{shop.hdfs.uri}{shop.root}", *folders), **more)


def put(shop: Shop, folder: str, *people: tuple[str, str], known: bool = True, **more: Any) -> None:
    """A small table, made by hand. known: to lineage, as an export."""
    for path, data in made_by_hand(*people, **more).items():
        shop.put(f"{folder}/{path}", data)
    if known:
        shop.exports.append(folder)


def holding(shop: Shop) -> list[str]:
    return [path for path in files_of(shop, shop.root) if hold(shop.read(path))]


@contextmanager
def killed_after_clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kill the run when it has cleaned a table and has not noted it."""
    real = HudiExecutor._call

    def dying(self: HudiExecutor, step: Step, procedure: str, arguments: str = "") -> list[Any]:
        answer = real(self, step, procedure, arguments)
        if procedure == "run_clean":
            raise Killed
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(HudiExecutor, "_call", dying)
        yield


def test_a_table_is_the_source_of_the_persons(shop: Shop) -> None:
    put(shop, "users", OTHERS[0], PERSON, known=False)
    source = {"source": "quay.users", "name": "user", "key": "uid"}
    source |= {"identifiers": [{"column": "mail", "category": "email"}]}
    plan = planned(shop, "users", subjects=[source], holds=[])[1]
    copy = next(copy for copy in plan["copies"] if copy["kind"] == "SOURCE")
    assert (copy["table"], copy["strategy"], copy["found"]["rows"]) == ("quay.users", "delete_by_key", 1)


def test_a_table_that_no_step_may_touch_stays_a_gap_and_says_why(shop: Shop) -> None:
    put(shop, "nameless", OTHERS[0], PERSON)
    put(shop, "booted", PERSON, hoodie_bootstrap_base_path=f"{shop.hdfs.uri}{shop.root}/origin")
    put(shop, "origin", OTHERS[0], PERSON)
    put(shop, "outer", PERSON)
    put(shop, "outer/inner", *OTHERS, known=False)
    put(shop, "broken", PERSON)
    commit = ".hoodie/20261101000000000.commit"
    shop.hdfs.client().delete(f"{shop.root}/broken/{commit}")
    shop.put(f"broken/{commit}", b"{")
    put(shop, "logged", OTHERS[0], PERSON, hoodie_table_cdc_enabled="true")
    put(shop, "moved", OTHERS[0], PERSON, hoodie_database_name="harbour")
    put(shop, "beside", OTHERS[0], PERSON)
    shop.put("beside/notes.csv", csv(PERSON))
    named = ("booted", "origin", "outer", "outer/inner", "broken", "logged", "moved", "beside")
    plan = planned(shop, *named)[1]
    why = {
        "nameless": "declare the table in the estate file",
        "booted": "it was bootstrapped, and reads files outside its folder",
        "origin": "/booted reads its files",
        "outer": "/outer/inner lies inside its folder",
        "broken": "the Hudi table's schema or timeline cannot be read",
        "logged": "a Hudi table that logs its changes",
        "moved": "declare the table as harbour.moved in the estate file",
        "beside": "a file in a Hudi table's folder whose name is not one of Hudi's",
    }
    reasons: dict[str, str] = {}
    for gap in plan["gaps"]:
        name = gap["dataset"]["name"].rpartition("/")[2]
        reasons[name] = reasons.get(name, "") + gap["reason"]
    assert {name: reason in reasons.get(name, "") for name, reason in why.items()} == dict.fromkeys(why, True)
    assert {step["copy"] for step in plan["steps"] if step["executor"] == "hudi"} <= {"c-quay.beside"}


def test_a_table_that_was_written_since_the_plan_is_drift(shop: Shop) -> None:
    put(shop, "t", OTHERS[0], PERSON)
    assert planned(shop, "t")[0] == 0
    assert shop.cli("drift", str(shop.plan_file)) == ExitCode.DONE
    for path, data in made_by_hand(PERSON, at="20261102000000000").items():
        if "20261102" in path:
            shop.put(f"t/{path}", data)
    assert shop.cli("drift", str(shop.plan_file)) == ExitCode.DRIFT


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(not HAS_HUDI, reason="this Spark has no bundle of Hudi")
@pytest.mark.parametrize("kind", KINDS)
def test_the_person_leaves_a_table_and_nobody_else_does(
    shop: Shop,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: str,
) -> None:
    put_all(shop, hudi(spark, shop.base / "made" / kind, kind), kind)
    shop.exports.append(kind)
    naive = holding(shop)
    assert any("/.hoodie/" not in path for path in naive), "older file slices"
    refilled(spark, kind)
    shop.hdfs.ask(f"{shop.root}/{kind}", "DELETE", method="DELETE", recursive="true")
    put_all(shop, shop.base / "made" / kind, kind)
    code, plan = planned(shop, kind)
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    copy = next(copy for copy in plan["copies"] if copy["table"] == f"quay.{kind}")
    assert copy["found"]["rows"] == 1
    more = ["hudi_compact"] if kind == "mor" else []
    mine = [step["action"] for step in plan["steps"] if step["copy"] == copy["id"]]
    assert mine == [*STATEMENTS[:2], *more, *STATEMENTS[2:]]
    assert shop.approve() == 0
    before = files_of(shop, shop.root)
    capsys.readouterr()
    assert shop.apply() == (ExitCode.PARTIAL, {})
    assert "Spark may not write the table" in capsys.readouterr().err
    assert not list(shop.base.glob("state/runs/*/baseline.json")), "nothing was begun"
    assert files_of(shop, shop.root) == before
    opened_to_all(shop, shop.root)
    with killed_after_clean(monkeypatch), pytest.raises(Killed):
        shop.apply()
    code, result = shop.apply()
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert (result["rows_erased"], result["bystander_rows_lost"]) == (1, 0)
    assert holding(shop) == []
    rows = spark.read.format("hudi").load(f"{shop.hdfs.uri}{shop.root}/{kind}").select("uid", "mail").collect()
    assert sorted(map(tuple, rows)) == EVERYBODY_ELSE
    assert not HdfsPath(shop.hdfs.client(), "/user").is_dir(), "nothing went to a trash"
    assert shop.verify() == ExitCode.DONE
    assert leaks(Person((MAIL, USER)), [shop.base / "state"]) == []
    shop.hdfs.put(f"{shop.root}/{kind}/later.parquet", parquet(PERSON))
    assert shop.verify() == ExitCode.RESIDUE
