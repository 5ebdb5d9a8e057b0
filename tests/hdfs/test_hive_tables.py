"""Tables in a real HDFS that a real Hive metastore names, and nothing else does: found, planned, erased and verified."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pii_tracer.model.errors import ExitCode
from tests.app.estate_draft.corrections import corrected
from tests.hdfs.drafted import draft_of, planned, unlike
from tests.hdfs.running import Killed, killed_after
from tests.hdfs.shop import HELD, MAIL, OTHERS, PERSON, REFILLS, USER, Shop, as_orc, csv, parquet
from tests.hdfs.tables import delta, files_of, opened_to_all
from tests.hdfssupport import Hdfs
from tests.hivesupport import ORC, TEXT, Hive, serving
from tests.icebergstores import Files, catalog_in, iceberg
from tests.leaks import Person, leaks

COLUMNS = {"uid": "string", "mail": "string"}
SPARK_CSV = {"spark.sql.sources.provider": "csv"}


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
    shop = Shop(hdfs, tmp_path, hdfs.folder())
    shop.no_trash()
    return shop


def named(shop: Shop, hive: Hive) -> dict[str, Any]:
    """The estate file's parts when its places in HDFS are told by the metastore alone."""
    users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
    catalogs = {"spark_catalog": {"type": "declared", "tables": [users]}, "hms": {"type": "hive", "uri": hive.uri}}
    return {"roots": ["tables"], "catalogs": catalogs}


def at(shop: Shop, folder: str) -> str:
    return f"{shop.hdfs.uri}{shop.root}/{folder}"


def fill(shop: Shop, hive: Hive) -> dict[str, str]:
    """A managed table with a partition elsewhere, external ones in two formats, and one of nobody; paths by name."""
    files = {
        "inside": shop.export("wh/core.db/calls", "day=1/000000_0", parquet(OTHERS[0], PERSON)),
        "elsewhere": shop.put("old/calls_2019/000000_0", parquet(PERSON, OTHERS[1])),
        "orc": shop.export("ext/bills", "000000_0", as_orc(OTHERS[2], PERSON, OTHERS[3])),
        "csv": shop.export("land/sims", "part-0.csv", csv(OTHERS[0], PERSON)),
        "decoy": shop.export("ext/clean", "000000_0", parquet(*OTHERS)),
    }
    partitions = {"1": at(shop, "wh/core.db/calls/day=1"), "2": at(shop, "old/calls_2019")}
    managed = {"kind": "MANAGED_TABLE", "columns": COLUMNS}
    hive.table("core.calls", at(shop, "wh/core.db/calls"), partitions=partitions, **managed)
    hive.table("core.bills", at(shop, "ext/bills"), ORC, columns=COLUMNS)
    hive.table("core.clean", at(shop, "ext/clean"), columns=COLUMNS)
    hive.table(
        "core.sims", at(shop, "land/sims"), TEXT, columns=COLUMNS, parameters=SPARK_CSV, options={"header": "true"}
    )
    sql = dict.fromkeys(("viewOriginalText", "viewExpandedText"), "SELECT * FROM core.clean")
    hive.table("core.seen", None, kind="VIRTUAL_VIEW", columns=COLUMNS, **sql)
    return files


@pytest.mark.slow
def test_the_person_leaves_the_tables_of_a_metastore(shop: Shop, hive: Hive, monkeypatch: pytest.MonkeyPatch) -> None:
    files = fill(shop, hive)
    deleted_as_hive_does(shop)
    holding = [path for path in files_of(shop, shop.root) if "day=1" in path and MAIL in str(rows(shop.read(path)))]
    assert [MAIL in str(rows(shop.read(path))) for path in (f"{kept(shop)}/000001_0", files["elsewhere"])] == [True] * 2
    assert holding == [files["inside"]], (
        "the naive way left it in the trash, in the snapshot and in what lies elsewhere"
    )
    staging = shop.put("ext/bills/.hive-staging_hive_1/-ext-10000/000000_0", as_orc(PERSON))
    folders = [f"{shop.root}/wh/.snapshot/s1", staging.rpartition("/-ext")[0]]
    shop.deletable = [{"path": path, "owner": "Ann", "reason": "nobody needs it"} for path in folders]
    code, plan = shop.plan(**named(shop, hive))
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    rewritten = {copy["table"]: copy for copy in plan["copies"] if copy["strategy"] == "delete_by_key"}
    assert rewritten.keys() == {"core.calls", "core.bills", "core.sims", None}
    assert "partitions of" in rewritten[None]["reason"]
    assert [item["table"] for item in plan["examined"]] == ["core.clean"]
    shop.approve()
    with killed_after(monkeypatch, 5), pytest.raises(Killed):
        shop.apply()
    code, result = shop.apply()
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert (result["rows_erased"], result["bystander_rows_lost"]) == (4, 0)
    for name, left in {
        "inside": parquet(OTHERS[0]),
        "elsewhere": parquet(OTHERS[1]),
        "csv": csv(OTHERS[0]),
        "decoy": parquet(*OTHERS),
    }.items():
        assert rows(shop.read(files[name])) == rows(left), name
    client = shop.hdfs.client()
    assert [e.name for e in client.entries(f"{shop.root}/wh/.snapshot")] == []
    assert files_of(shop, "/user/hive/.Trash") == []
    assert shop.verify() == ExitCode.DONE
    assert leaks(Person((MAIL, USER)), [shop.base / "state"]) == []
    # a partition that the metastore learns of afterwards is looked into, wherever it lies
    hive_adds(hive, "3", at(shop, "new/calls_3"), shop)
    assert shop.verify() == ExitCode.RESIDUE


def kept(shop: Shop) -> str:
    """A folder of a partition in the snapshot."""
    return f"{shop.root}/wh/.snapshot/s1/core.db/calls/day=1"


def deleted_as_hive_does(shop: Shop) -> None:
    """INSERT OVERWRITE without the person: the old file goes to the trash, and a snapshot of before has it, too."""
    path, trash = f"{shop.root}/wh/core.db/calls/day=1/000001_0", f"/user/hive/.Trash/Current{shop.root}"
    shop.hdfs.put(path, parquet(PERSON, OTHERS[2]))
    shop.hdfs.ask(f"{shop.root}/wh", "ALLOWSNAPSHOT")
    shop.hdfs.ask(f"{shop.root}/wh", "CREATESNAPSHOT", snapshotname="s1")
    shop.hdfs.ask(trash, "MKDIRS")
    shop.hdfs.client().rename(path, f"{trash}/000001_0", overwrite=False)
    shop.hdfs.put(path, parquet(OTHERS[2]))


def rows(data: bytes) -> Any:
    return data if data.startswith(b"uid") else pq.read_table(io.BytesIO(data)).to_pylist()


def hive_adds(hive: Hive, day: str, place: str, shop: Shop) -> None:
    """A new partition of `core.calls`, with the person."""
    shop.put(f"{place.removeprefix(at(shop, ''))}/000000_0", parquet(PERSON))
    with hive.client() as asked:
        (first, *_) = asked.get_partitions_by_names("core", "calls", ["day=1"])
        first.values, first.sd.location = [day], place
        asked.add_partition(first)


def test_a_job_that_names_no_columns_is_read_by_those_of_the_tables(shop: Shop, hive: Hive) -> None:
    """Of tables on this machine and in S3 they were known. Here each such job was a gap."""
    for name in ("calls", "bills"):
        shop.put(f"ext/{name}/000000_0", parquet(OTHERS[0], PERSON))
        hive.table(f"core.{name}", at(shop, f"ext/{name}"), columns=COLUMNS)
    jobs = "INSERT INTO core.calls SELECT uid, mail FROM shop.users; INSERT INTO core.bills SELECT * FROM core.calls;"
    (shop.base / "jobs.sql").write_text(jobs)
    plan = shop.plan(**named(shop, hive), lineage={"sql": ["jobs.sql"]})[1]
    assert [gap["reason"] for gap in plan["gaps"] if gap["waiver"] is None] == []
    assert {"core.calls", "core.bills"} <= {copy["table"] for copy in plan["copies"]}


def test_what_is_no_plain_table_is_never_written_again(shop: Shop, hive: Hive) -> None:
    shop.export("acid", "base_0000001/bucket_00000", as_orc(PERSON, OTHERS[0]))
    shop.exports.append("acid/base_0000001")
    shop.export("odd", "000000_0", parquet(PERSON))
    shop.export("text", "a.csv", csv(PERSON, OTHERS[0]))
    transactional = {"kind": "MANAGED_TABLE", "parameters": {"transactional": "true"}, "columns": COLUMNS}
    hive.table("core.acid", at(shop, "acid"), ORC, bucketCols=["uid"], numBuckets=1, **transactional)
    hive.table("core.odd", at(shop, "odd"), ORC, columns=COLUMNS)
    hive.table("core.text", at(shop, "text"), TEXT, columns=COLUMNS)
    plan = shop.plan(**named(shop, hive))[1]
    stuck = {gap["evidence"].removeprefix(at(shop, "")): gap["reason"] for gap in of_kind(plan, "hdfs_place")}
    assert stuck.keys() == {"acid/base_0000001", "odd", "text"}
    assert "hms.core.acid" in stuck["acid/base_0000001"]
    assert "its catalog says that its files are orc, and they are parquet" in stuck["odd"]
    assert len(of_kind(plan, "unknown_table")) == 2
    assert [step for step in plan["steps"] if step["action"] == "hdfs_rewrite"] == []


def test_an_iceberg_table_is_planned_by_the_file_that_the_metastore_points_at(shop: Shop, hive: Hive) -> None:
    def path(uri: str) -> str:
        return uri.removeprefix(shop.hdfs.uri)

    files = Files(lambda uri, data: shop.hdfs.put(path(uri), data), lambda uri: shop.read(path(uri)))
    catalog = catalog_in(shop.base, at(shop, "wh"), files)
    where = iceberg(catalog, "core.seen", [OTHERS[0], PERSON], OTHERS[1:])
    shop.exports.append("wh/core/seen")
    marks = {"table_type": "ICEBERG", "metadata_location": catalog.load_table("core.seen").metadata_location}
    hive.table("core.seen", where, columns=COLUMNS, parameters=marks)
    plan = shop.plan(**named(shop, hive))[1]
    assert [gap["kind"] for gap in plan["gaps"] if gap["waiver"] is None] == []
    copy = next(copy for copy in plan["copies"] if copy["location"] == where)
    assert (copy["table"], copy["strategy"], copy["found"]["rows"]) == ("hms.core.seen", "delete_by_key", 1)


def test_an_iceberg_table_of_broken_metadata_is_searched_and_stays_a_gap(shop: Shop, hive: Hive) -> None:
    metadata = shop.export("ice", "metadata/00000-a.metadata.json", b'{"format-version": 2}')
    shop.put("ice/data/a.parquet", parquet(PERSON))
    marks = {"table_type": "ICEBERG", "metadata_location": f"{shop.hdfs.uri}{metadata}"}
    hive.table("core.ice", at(shop, "ice"), columns=COLUMNS, parameters=marks)
    (gap,) = [gap for gap in shop.plan(**named(shop, hive))[1]["gaps"] if gap["waiver"] is None]
    assert (gap["kind"], "-person-" in gap["id"]) == ("hdfs_place", True)
    assert "the Iceberg metadata cannot be read" in gap["reason"]


def test_whose_partitions_lie_in_a_folder_must_be_certain(shop: Shop, hive: Hive) -> None:
    shop.put("both/a/0.parquet", parquet(PERSON))
    for name in ("core.one", "core.two"):
        folder = f"wh/{name}"
        shop.export(folder, "day=1/0.parquet", parquet(OTHERS[0]))
        hive.table(name, at(shop, folder), partitions={"2": at(shop, "both/a")}, columns=COLUMNS)
    plan = shop.plan(**named(shop, hive))[1]
    assert [gap["kind"] for gap in plan["gaps"] if gap["waiver"] is None] == ["unexpected_copy"]


def test_a_hold_on_a_table_keeps_its_partitions_elsewhere(shop: Shop, hive: Hive) -> None:
    for folder in ("t", "u"):
        shop.export(folder, "day=1/0.parquet", parquet(OTHERS[0]))
    shop.put("old/0.parquet", parquet(PERSON))
    shop.export("both", "0.parquet", parquet(PERSON))  # which a job fills, too
    for name, partitions in (("core.t", {"2": "old", "3": "both"}), ("core.u", {"3": "both"})):  # of two tables
        places = {value: at(shop, folder) for value, folder in partitions.items()}
        hive.table(name, at(shop, name[-1]), partitions=places, columns=COLUMNS)
    held = {**HELD, "id": "calls", "datasets": ["core.t"]}
    plan = shop.plan(holds=[HELD, held], **named(shop, hive))[1]
    strategies = {copy["location"]: copy["strategy"] for copy in plan["copies"]}
    assert (strategies[at(shop, "old")], strategies[at(shop, "both")]) == ("exempt", "exempt")


def wallets(shop: Shop, hive: Hive) -> str:
    """A Delta table that the metastore names; its path."""
    path = delta(shop, "wallets", [OTHERS[0], PERSON], OTHERS[1:])
    marks = {"spark.sql.sources.provider": "delta"}
    hive.table("core.wallets", at(shop, "wallets"), columns=COLUMNS, parameters=marks)
    return path


def test_a_delta_table_has_the_name_that_the_metastore_gives_it(shop: Shop, hive: Hive) -> None:
    wallets(shop, hive)
    code, plan = shop.plan(**named(shop, hive))
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    assert "core.wallets" in {copy["table"] for copy in plan["copies"]}


@pytest.mark.spark
@pytest.mark.nightly
def test_a_delta_table_of_a_metastore_is_erased(shop: Shop, hive: Hive) -> None:
    path = wallets(shop, hive)
    opened_to_all(shop, path)
    assert shop.plan(**named(shop, hive))[0] == 0
    shop.approve()
    code, result = shop.apply()
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert (result["rows_erased"], result["bystander_rows_lost"]) == (1, 0)
    assert [file for file in files_of(shop, path) if MAIL.encode() in shop.read(file)] == []


def test_a_drafted_estate_plans_as_one_by_hand(
    shop: Shop, hive: Hive, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody wrote where the tables of the metastore lie: `init` did, and ten lines at most are to be corrected."""
    fill(shop, hive)
    deleted_as_hive_does(shop)
    wallets(shop, hive)
    kept_by = {"path": f"{shop.root}/wh/.snapshot/s1", "owner": "Ann", "reason": "nobody needs it"}
    shop.deletable = [kept_by]
    code, by_hand = shop.plan(**named(shop, hive))
    assert code == 0
    text = draft_of(shop, "--discover", str(shop.base / "tables"), "--discover", hive.uri)
    said = capsys.readouterr()
    assert "remote_table" not in said.out
    asked = f"    #   - {{path: {kept_by['path']}, owner: NAME, reason: WHY}}"
    agreed = asked.replace("    #", "    ").replace("NAME", "Ann").replace("WHY", kept_by["reason"])
    text, lines = corrected(
        text,
        {
            "tables.users": "shop.users",
            "    # deletable:": "    deletable:",
            asked: agreed,
            "# archives, backups": f"holds: {json.dumps([HELD])}\n# archives, backups",
        },
    )
    assert lines <= 10
    code, plan = planned(shop, text)
    assert code == 0
    assert unlike(plan, by_hand) == []
    for value in (USER, MAIL):
        assert value not in text + said.out + said.err


def of_kind(plan: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [gap for gap in plan["gaps"] if gap["kind"] == kind]
