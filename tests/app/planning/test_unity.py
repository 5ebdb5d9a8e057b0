"""A lake that Unity Catalog alone names: its Delta tables are copies with steps, lineage goes through its views, and what
it keeps of persons blocks the plan. No step is run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from pii_tracer.cli.main import run
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.errors import ExitCode
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.value_forms import build_patterns
from tests import storeservers, unitysupport
from tests.app.planning.test_remote import Shop
from tests.cli.small import request
from tests.lineage.sources import statement_standin
from tests.servers import served
from tests.storeservers import signed
from tests.unitysupport import Unity, installed, serving, token

__all__ = ["installed", "signed", "token"]

pytestmark = pytest.mark.usefixtures("token")
PERSON, MAIL = 4417700102, "asha.rao@mail.example"
PEOPLE = pa.table(
    {"uid": pa.array([PERSON, 4417700103, 4417700104], pa.int64()), "mail": [MAIL, "b@x.example", "c@x.example"]}
)
COLUMNS = [{"name": "uid", "type_text": "bigint"}, {"name": "mail", "type_text": "string"}]
JOBS = "CREATE TABLE main.sales.orders USING delta AS SELECT uid, mail FROM main.sales.seen;\n"


@dataclass
class Lake:
    base: Path
    unity: Unity
    jobs: str = JOBS
    noted: str = ""
    further: str = ""

    def delta(self, full_name: str, **more: Any) -> Path:
        place = self.base / "w" / full_name.rpartition(".")[2]
        write_deltalake(place, PEOPLE, **more.pop("written", {}))
        self.unity.table(full_name, place.as_uri(), columns=COLUMNS, **more)
        return place

    def plan(self) -> dict[str, Any]:
        """The plan, which holds no value of the person."""
        (self.base / "pii-tracer.yaml").write_text(
            "version: 1\nestate: shop\nenvironment: local\n"
            f"catalogs:\n  uc: {{type: unity, uri: '{self.unity.uri}'}}\n"
            f"roots: [w]\nlineage: {{sql: [jobs.sql]{self.noted}}}\n"
            "subjects:\n  - {name: user, source: main.sales.people, key: uid, identifiers: [{column: mail, category: email}]"
            f"{self.further}}}\n"
        )
        (self.base / "jobs.sql").write_text(self.jobs)
        (self.base / "request.yaml").write_text(request("user", str(PERSON)))
        (self.base / "policy.yaml").write_text("version: 1\n")
        words = ["--estate", str(self.base / "pii-tracer.yaml"), "--state", str(self.base / "state")]
        file = self.base / "p.plan.json"
        how = ["--retention", "immediate", "--reason", "test: no writer, no reader", "--out", str(file)]
        code = run(["plan", str(self.base / "request.yaml"), *how, *words])
        assert code in (ExitCode.DONE, ExitCode.INCOMPLETE)
        text = file.read_text()
        assert MAIL not in text
        assert str(PERSON) not in text
        found: dict[str, Any] = json.loads(text)
        return found


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with serving() as server:
        made = Lake(tmp_path, server)
        made.delta("main.sales.people")
        server.view("main.sales.seen", "SELECT uid, mail FROM people", columns=COLUMNS)
        made.delta("main.sales.orders")
        yield made


def test_tables_that_the_metastore_names_are_copies_with_steps(lake: Lake) -> None:
    plan = lake.plan()
    copies = {copy["table"]: copy for copy in plan["copies"]}
    assert set(copies) == {"main.sales.people", "main.sales.orders"}
    assert {name: copy["location"] for name, copy in copies.items()} == {
        f"main.sales.{name}": str(lake.base / "w" / name) for name in ("people", "orders")
    }
    acts: dict[str, list[str]] = {}
    for step in plan["steps"]:
        acts.setdefault(step["copy"], []).append(step["action"])
    assert all("delta_delete_rows" in acts[copy["id"]] for copy in copies.values())
    assert plan["gaps"] == []


def test_tables_and_volumes_in_s3(tmp_path: Path) -> None:
    """Tables get steps. A volume is looked into like a root there, and its gap says where the person is."""
    with storeservers.standin(tmp_path / "store") as store, serving() as unity:
        shop = Shop(
            tmp_path, store, "unity-lake", jobs="CREATE TABLE main.sales.orders AS SELECT uid, mail FROM shop.people"
        )
        shop.catalogs = f"  uc: {{type: unity, uri: '{unity.uri}'}}\n"
        for name in ("orders", "others"):
            write_deltalake(f"s3://unity-lake/lake/{name}", PEOPLE, storage_options=shop.options)
        unity.table("main.sales.orders", "s3://unity-lake/lake/orders", columns=COLUMNS)
        unity.volume("main.sales.drop", "s3://unity-lake/lake/others")
        unity.volume("main.sales.empty", "s3://unity-lake/lake/empty", "MANAGED")
        plan = shop.plan()
    copies = {copy["table"]: copy for copy in plan["copies"]}
    assert copies["main.sales.orders"]["location"].rstrip("/") == "s3://unity-lake/lake/orders"
    assert copies["main.sales.orders"]["id"] in {step["copy"] for step in plan["steps"]}
    gaps = {gap["dataset"]["name"]: gap["reason"] for gap in plan["gaps"] if gap["kind"] == "remote_table"}
    assert gaps.keys() == {"lake/others", "lake/empty"}
    assert "contain the person" in gaps["lake/others"]


def test_without_the_view_nobody_knows_where_the_rows_come_from(lake: Lake) -> None:
    del lake.unity.tables["main.sales.seen"]
    assert lake.plan()["gaps"] != []


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"delta.universalFormat.enabledFormats": "iceberg"}, "UniForm"),
        ({"delta.appendOnly": "true"}, "appendOnly"),
    ],
)
def test_what_the_log_says_of_a_table_blocks_it(lake: Lake, properties: dict[str, str], told: str) -> None:
    place = lake.delta("main.sales.notes", written={"configuration": {}})
    log = place / "_delta_log" / "00000000000000000000.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "metaData" in line:
            line["metaData"]["configuration"] = properties
    log.write_text("\n".join(map(json.dumps, lines)))
    lake.jobs += "CREATE TABLE main.sales.notes USING delta AS SELECT uid, mail FROM main.sales.people;\n"
    assert told in str(lake.plan()["gaps"])


def _with_iceberg(place: Path) -> list[Path]:
    """Iceberg's metadata over the same files, as UniForm writes it, and by pyiceberg."""
    catalog = SqlCatalog("c", uri=f"sqlite:///{place.parent.parent}/iceberg.db", warehouse=str(place.parent))
    catalog.create_namespace("s")
    table = catalog.create_table("s.t", PEOPLE.schema, location=str(place))
    table.add_files([str(file) for file in place.glob("*.parquet")])
    return sorted((place / "metadata").iterdir())


def test_a_table_with_a_second_reader_names_the_files_of_it_that_hold_the_person(lake: Lake) -> None:
    """Bounds of the first characters of a mail, and of whole numbers. Erased in Delta alone, they stay."""
    place = lake.delta("main.sales.notes")
    log = place / "_delta_log" / "00000000000000000000.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "metaData" in line:
            line["metaData"]["configuration"] = {"delta.universalFormat.enabledFormats": "iceberg"}
    log.write_text("\n".join(map(json.dumps, lines)))
    (manifest,) = (file.name for file in _with_iceberg(place) if file.name.endswith("-m0.avro"))
    lake.jobs += "CREATE TABLE main.sales.notes USING delta AS SELECT uid, mail FROM main.sales.people;\n"
    gaps = {gap["kind"]: gap["reason"] for gap in lake.plan()["gaps"] if gap["dataset"]}
    assert gaps["cannot_be_proved"].endswith(
        f"Then plan again. 1 of these files contains values of the persons: metadata/{manifest}"
    )

    table = DeltaTable(place)
    table.delete(f"uid = {PERSON}")
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    mails = build_patterns([KeySet(name="mail", origin="mail", weak=False, values=(("someone", MAIL),))])
    left = {file.path for file in scan_tree(place, mails).with_person}
    assert left == {"_delta_log/00000000000000000000.json", f"metadata/{manifest}"}


@pytest.mark.parametrize(
    ("jobs", "elsewhere", "further", "strategy"),
    [
        ("SELECT 1;\n", "", "", "blocked"),
        ("SELECT 1;\n", ", told_elsewhere: [JOB 41]", "", "blocked"),
        (JOBS, "", "", "blocked"),
        (JOBS, ", told_elsewhere: [JOB 41]", "", "delete_by_key"),
        ("SELECT 1;\n", "", ", tables: [{table: main.sales.orders, key: uid}]", "delete_by_key"),
    ],
    ids=["rows alone", "told nowhere else", "of another job perhaps", "of this statement", "a key that is declared"],
)
def test_rows_that_say_no_more_than_where_columns_come_from_give_no_key(
    lake: Lake, jobs: str, elsewhere: str, further: str, strategy: str
) -> None:
    """The column `uid` of the orders may be a hash of the persons' key, or the key of somebody else."""
    ends = {"source_table_full_name": "main.sales.people", "target_table_full_name": "main.sales.orders"}
    row = {"entity_type": "JOB", "entity_id": "41", "event_time": "2026-11-01T10:00:00Z", **ends}
    columns = [{**row, "source_column_name": c, "target_column_name": c} for c in ("uid", "mail")]
    (lake.base / "t.json").write_text(json.dumps([row]))
    (lake.base / "c.json").write_text(json.dumps(columns))
    lake.jobs, lake.further = jobs, further
    lake.noted = f", unity: [{{tables: t.json, columns: c.json{elsewhere}}}]"
    plan = lake.plan()
    (copy,) = [copy for copy in plan["copies"] if copy["table"] == "main.sales.orders"]
    assert copy["strategy"] == strategy
    assert [gap["kind"] for gap in plan["gaps"]] == (["cannot_be_proved"] if strategy == "blocked" else [])


ORDERS, PEOPLE_NAME = "main.sales.orders", "main.sales.people"


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([(PEOPLE_NAME, ORDERS)], {"lineage"}),
        ([(ORDERS, ORDERS), ("", ORDERS)], {"lineage", "foreign_keys"}),
        ([(PEOPLE_NAME, "")], {"lineage"}),
    ],
    ids=["no columns", "itself and no source", "no target"],
)
def test_the_sql_of_another_job_closes_nothing_that_rows_leave_open(
    lake: Lake, rows: list[tuple[str, str]], told: set[str]
) -> None:
    """A statement that makes the same table of the same tables does not say what this job wrote, or where it went."""
    at = {"entity_type": "JOB", "entity_id": "42", "event_time": "2026-11-01T10:00:00Z"}
    ends = [{"source_table_full_name": source, "target_table_full_name": target} for source, target in rows]
    (lake.base / "t.json").write_text(json.dumps([{**at, **one} for one in ends]))
    lake.noted = ", unity: [{tables: t.json}]"
    assert {gap["kind"] for gap in lake.plan()["gaps"]} == told


class _Both(statement_standin.Handler, unitysupport.Handler):
    """A workspace: its catalog, and a SQL warehouse."""

    def do_GET(self) -> None:
        of_catalog = self.path.startswith(unitysupport.ROOT)
        (unitysupport.Handler if of_catalog else statement_standin.Handler).do_GET(self)


def test_a_workspace_tells_its_own_lineage(lake: Lake) -> None:
    """By the address and the token of the catalog. A table that was there before the oldest row is not complete."""
    row = {"entity_type": "JOB", "entity_id": "41", "event_time": "2026-11-01T10:00:00Z"}
    row |= {"source_table_full_name": "main.sales.people", "target_table_full_name": "main.sales.orders"}
    columns = [{**row, "source_column_name": c, "target_column_name": c} for c in ("uid", "mail")]
    space = statement_standin.Workspace({"table_lineage": [row], "column_lineage": columns})
    made = type("Made", (_Both,), {"unity": lake.unity, "workspace": space})
    server = ThreadingHTTPServer(("127.0.0.1", 0), made)
    lake.unity.uri = space.uri = f"http://127.0.0.1:{server.server_port}{unitysupport.ROOT}"
    lake.unity.tables["main.sales.orders"]["created_at"] = 1_760_000_000_000
    lake.jobs = "SELECT 1;\n"
    lake.noted = f", unity: [{{catalog: uc, warehouse: {statement_standin.WAREHOUSE}}}]"
    with served(server):
        gaps = {gap["kind"]: gap for gap in lake.plan()["gaps"]}
    assert gaps.keys() == {"cannot_be_proved", "lineage"}
    assert "the table is from 2025-10-09T08:53:20Z" in gaps["lineage"]["reason"]
    assert gaps["lineage"]["dataset"]["name"] == str(lake.base / "w" / "orders")


def test_what_the_metastore_keeps_of_the_person_is_a_gap(lake: Lake) -> None:
    lake.unity.tables["main.sales.orders"]["comment"] = f"asked by {MAIL}"
    (gap,) = lake.plan()["gaps"]
    assert (gap["kind"], "COMMENT ON" in gap["evidence"]) == ("table_text", True)
    lake.unity.tables["main.sales.orders"]["comment"] = f"{MAIL} owes us"
    assert lake.plan()["gaps"][0]["seen"] != gap["seen"]


def test_a_table_that_only_its_statement_could_make_anew_is_blocked(lake: Lake) -> None:
    counts = pa.table({"mail": ["x.example"], "n": pa.array([3], pa.int64())})
    place = lake.base / "w" / "counts"
    write_deltalake(place, counts)
    lake.unity.table("main.mart.counts", place.as_uri(), columns=[{"name": "domain"}, {"name": "n"}])
    lake.jobs += (
        "INSERT OVERWRITE main.mart.counts SELECT substring_index(mail, '@', -1) AS mail, count(*) AS n"
        " FROM main.sales.orders GROUP BY 1;\n"
    )
    plan = lake.plan()
    (copy,) = [copy for copy in plan["copies"] if copy["table"] == "main.mart.counts"]
    assert copy["strategy"] == "blocked"
    assert "run its job after the erasure" in str(plan["gaps"])
