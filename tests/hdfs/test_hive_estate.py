"""An estate in a real HDFS under a real Hive metastore: tables of each kind, a view, copies, what HDFS keeps, people like
the person. It is planned, and what is missing in the estate file is told; erased, killed, resumed and verified.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyiceberg.table import StaticTable

from pii_tracer.model.errors import ExitCode
from tests import hudistores
from tests.app.estate_draft.corrections import corrected
from tests.commands_apart import run_apart
from tests.hdfs.drafted import draft_of, planned, unlike
from tests.hdfs.shop import HELD, MAIL, OTHERS, PERSON, REFILLS, USER, Shop, as_orc, lines, parquet
from tests.hdfs.shop import csv as as_csv
from tests.hdfs.tables import deleted, delta, files_of, rows
from tests.hdfssupport import SUPERUSER, Hdfs
from tests.hivesupport import JSON_SERDE, ORC, TEXT, Hive, serving
from tests.hivetextsupport import LAZY
from tests.icebergstores import Files, catalog_in, iceberg
from tests.leaks import Person, leaks
from tests.sparksession import HAS_HUDI, small_spark
from tests.sparkstatements import in_spark

People = list[tuple[str, str]]

ALIKE = [(f"{USER}9", f"d{MAIL}"), (f"3{USER}", MAIL.replace("zq.", "zk."))]
"""Two whose numbers have hers at the beginning and at the end. An address ends with hers; another differs in a letter."""
STAYING = [*OTHERS, *ALIKE]
ALL = [*STAYING, PERSON]
HER = Person((), (MAIL, USER))
"""As words of their own: `ALIKE` have them in longer ones."""
COLUMNS = {"uid": "string", "mail": "string"}
NEEDS_HUDI = pytest.mark.skipif(not HAS_HUDI, reason="this Spark has no bundle of Hudi")
WITHOUT_LOCKS = {"spark.hadoop.iceberg.engine.hive.lock-enabled": "false"}
"""The tables of its locks are made by Hive's schema tool, which Spark does not bring."""
JOBS = """
INSERT INTO core.report SELECT uid, mail FROM core.named;
CREATE TABLE core.wallets_dev USING delta AS SELECT uid, mail FROM core.wallets;
"""


class Lake(Shop):
    """A shop whose commands run in another process. until: when a command is killed."""

    until: Callable[[], bool] = staticmethod(lambda: False)

    def cli(self, *words: str) -> int:
        where = ["--estate", str(self.base / "pii-tracer.yaml"), "--state", str(self.base / "state")]
        more = {"HADOOP_USER_NAME": SUPERUSER}
        return run_apart([*words, *where], self.base / "apart.log", until=self.until, more=more)


class Estate:
    """A shop, with tables that the metastore names; each has the person, but for the one of people like the person."""

    def __init__(self, shop: Lake, hive: Hive) -> None:
        self.shop, self.hive, self.copied = shop, hive, f"{shop.root}/scratch/calls"
        self.plain: dict[str, Callable[[bytes], People]] = {}
        self._bare()
        self._with_history()
        self._copies()
        self._kept()

    def at(self, folder: str) -> str:
        return f"{self.shop.hdfs.uri}{self.shop.root}/{folder}"

    def _bare(self) -> None:
        """A managed table with a partition elsewhere, and external ones of each format."""
        shop, hive = self.shop, self.hive
        shop.export("wh/core.db/calls", "day=1/000000_0", parquet(*ALL))
        shop.put("old/calls_2019/000000_0", parquet(*ALL))
        partitions = {"1": self.at("wh/core.db/calls/day=1"), "2": self.at("old/calls_2019")}
        managed: dict[str, Any] = {"kind": "MANAGED_TABLE", "columns": COLUMNS, "partitions": partitions}
        hive.table("core.calls", self.at("wh/core.db/calls"), **managed)
        spark = {"spark.sql.sources.provider": "csv"}
        for name, data, read, stored, more in (
            ("bills", as_orc(*ALL), orc_rows, ORC, {}),
            ("sims", as_csv(*ALL), csv_rows, TEXT, {"parameters": spark, "options": {"header": "true"}}),
            ("lines", lines(*ALL), json_rows, TEXT, {"serde": JSON_SERDE}),
            ("members", bars(*ALL), bar_rows, TEXT, {"serde": LAZY, "options": {"field.delim": "|"}}),
        ):
            shop.export(f"ext/{name}", "000000_0" + (".csv" if name == "sims" else ".json" * (name == "lines")), data)
            hive.table(f"core.{name}", self.at(f"ext/{name}"), stored, columns=COLUMNS, **more)
            self.plain[f"ext/{name}"] = read
        shop.export("ext/clean", "000000_0", parquet(*STAYING))
        hive.table("core.clean", self.at("ext/clean"), columns=COLUMNS)
        shop.export("archive/2019", "000000_0", parquet(*ALL))
        folders = ("wh/core.db/calls", "old/calls_2019", "ext/clean", "ext/report", "archive", "scratch/calls")
        self.plain |= dict.fromkeys(folders, parquet_rows)

    def _with_history(self) -> None:
        """The naive way was taken in each, and she came again: she is in old snapshots, versions and slices, too."""
        shop, hive = self.shop, self.hive
        delta(shop, "wallets", ALL, put=False)
        deleted(shop, "wallets", USER)
        delta(shop, "wallets", [PERSON])
        hive.table("core.wallets", self.at("wallets"), columns=COLUMNS, parameters=of_spark("delta"))
        catalog = catalog_in(shop.base, self.at("ice"), self.files)
        where = iceberg(catalog, "core.seen", ALL)
        table = catalog.load_table("core.seen")
        snapshot = table.current_snapshot()
        assert snapshot is not None
        table.manage_snapshots().create_tag(snapshot.snapshot_id, "quarter").commit()
        table.delete(f"uid = '{USER}'")
        iceberg(catalog, "core.seen", [PERSON])
        shop.exports.append("ice/core/seen")
        marks = {"table_type": "ICEBERG", "metadata_location": catalog.load_table("core.seen").metadata_location}
        hive.table("core.seen", where, columns=COLUMNS, parameters=marks)

    @property
    def files(self) -> Files:
        def path(uri: str) -> str:
            return uri.removeprefix(self.shop.hdfs.uri)

        return Files(lambda uri, data: self.shop.hdfs.put(path(uri), data), lambda uri: self.shop.read(path(uri)))

    def _copies(self) -> None:
        """A view, what a job made of it, a clone that lineage knows, and a folder as `distcp` copies it."""
        shop, hive = self.shop, self.hive
        query = dict.fromkeys(("viewOriginalText", "viewExpandedText"), "SELECT uid, mail FROM core.wallets")
        hive.table("core.named", None, kind="VIRTUAL_VIEW", columns=COLUMNS, **query)
        shop.put("ext/report/000000_0", parquet(*ALL))
        hive.table("core.report", self.at("ext/report"), columns=COLUMNS)
        delta(shop, "wallets_dev", ALL, known=False)
        hive.table("core.wallets_dev", self.at("wallets_dev"), columns=COLUMNS, parameters=of_spark("delta"))
        shop.put("scratch/calls/day=1/000000_0", parquet(*ALL))

    def _kept(self) -> None:
        """As INSERT OVERWRITE leaves it: the old file is in the trash and in a snapshot; a job that died left another."""
        shop, trash = self.shop, f"/user/hive/.Trash/Current{self.shop.root}"
        path = f"{shop.root}/wh/core.db/calls/day=1/000001_0"
        shop.hdfs.put(path, parquet(PERSON, OTHERS[2]))
        shop.hdfs.ask(f"{shop.root}/wh", "ALLOWSNAPSHOT")
        shop.hdfs.ask(f"{shop.root}/wh", "CREATESNAPSHOT", snapshotname="s1")
        shop.hdfs.ask(trash, "MKDIRS")
        shop.hdfs.client().rename(path, f"{trash}/000001_0", overwrite=False)
        shop.hdfs.put(path, parquet(OTHERS[2]))
        staging = shop.put("ext/bills/.hive-staging_hive_1/-ext-10000/000000_0", as_orc(PERSON))
        folders = [f"{shop.root}/wh/.snapshot/s1", staging.rpartition("/-ext")[0]]
        shop.deletable = [{"path": path, "owner": "Ann", "reason": "nobody needs it"} for path in folders]

    def trips(self, *, by_spark: bool) -> None:
        """The Hudi table: as Spark writes it, or one that is good enough to be planned."""
        shop = self.shop
        shop.exports.append("trips")
        if by_spark:
            shop.write(**self.told())
            statements = hudistores.in_and_out("core.trips", self.at("trips"), ALL, PERSON)
            in_spark(shop.base, "hdfs", statements, {"HADOOP_USER_NAME": SUPERUSER})
        else:
            for path, data in hudistores.made_by_hand(*ALL).items():
                shop.put(f"trips/{path}", data)
        self.hive.table("core.trips", self.at("trips"), columns=COLUMNS, parameters=of_spark("hudi"))

    def told(self) -> dict[str, Any]:
        """What the estate file says beside what is usual."""
        users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
        hms = {"type": "hive", "uri": self.hive.uri}
        return {
            "catalogs": {"spark_catalog": {"type": "declared", "tables": [users]}, "hms": hms},
            "lineage": {"events": ["events.ndjson"], "sql": ["jobs.sql"]},
            "spark": small_spark(WITHOUT_LOCKS),
        }

    def plan(self) -> tuple[int, dict[str, Any]]:
        (self.shop.base / "jobs.sql").write_text(JOBS)
        return self.shop.plan(**self.told())

    def rows(self) -> dict[str, People]:
        """Everybody's rows in each place, by other readers than those that write."""
        shop = self.shop
        found: dict[str, People] = {}
        for folder, read in self.plain.items():
            paths = [path for path in files_of(shop, f"{shop.root}/{folder}") if "/.hive-staging" not in path]
            found[folder] = sorted(row for path in paths for row in read(shop.read(path)))
        for name in ("wallets", "wallets_dev"):
            found[name] = sorted((row["uid"], row["mail"]) for row in rows(shop, name))
        if "trips" in shop.exports:
            paths = files_of(shop, f"{shop.root}/trips")
            files = {path.removeprefix(f"{shop.root}/"): shop.read(path) for path in paths}
            found["trips"] = hudistores.rows(files, "trips", Path(mkdtemp(dir=shop.base)))
        with self.hive.client() as asked:
            pointer = asked.get_table("core", "seen").parameters["metadata_location"]
        table = StaticTable.from_metadata(pointer, properties={"py-io-impl": "tests.icebergstores.StoreIO"})
        for ref, told in table.metadata.refs.items():
            seen = table.scan(snapshot_id=told.snapshot_id).to_arrow().to_pylist()
            found[f"seen@{ref}"] = sorted((row["uid"], row["mail"]) for row in seen)
        return found

    def fetched(self, into: Path) -> Path:
        """Every file below the root and in every trash."""
        for number, path in enumerate([*files_of(self.shop, self.shop.root), *files_of(self.shop, "/user")]):
            into.mkdir(exist_ok=True)
            (into / f"{number}-{path.rpartition('/')[2]}").write_bytes(self.shop.read(path))
        return into


def of_spark(provider: str) -> dict[str, str]:
    return {"spark.sql.sources.provider": provider}


def bars(*people: tuple[str, str]) -> bytes:
    return "".join(f"{uid}|{mail}\n" for uid, mail in people).encode()


def parquet_rows(data: bytes) -> People:
    return [(row["uid"], row["mail"]) for row in pq.read_table(io.BytesIO(data)).to_pylist()]


def orc_rows(data: bytes) -> People:
    return [(row["uid"], row["mail"]) for row in orc.read_table(io.BytesIO(data)).to_pylist()]


def json_rows(data: bytes) -> People:
    return [(row["uid"], row["mail"]) for row in map(json.loads, data.splitlines())]


def csv_rows(data: bytes) -> People:
    return [(row["uid"], row["mail"]) for row in csv.DictReader(io.StringIO(data.decode()))]


def bar_rows(data: bytes) -> People:
    return [(row[0], row[1]) for row in csv.reader(io.StringIO(data.decode()), delimiter="|")]


@pytest.fixture
def estate(hdfs: Hdfs, tmp_path: Path) -> Iterator[Estate]:
    shop = Lake(hdfs, tmp_path, hdfs.folder())
    shop.no_trash()
    (tmp_path / "hive").mkdir()
    with serving(tmp_path / "hive") as hive, hive.database("core"):
        yield Estate(shop, hive)


def test_what_the_estate_file_lacks_is_told_and_what_it_says_then_is_enough(estate: Estate) -> None:
    """A folder that `distcp` made is found by what is in it."""
    estate.trips(by_spark=False)
    code, plan = estate.plan()
    told = {gap["id"].partition("-127")[0]: gap["reason"] for gap in plan["gaps"] if gap["waiver"] is None}
    assert (code, told.keys()) == (ExitCode.INCOMPLETE, {"gap-unexpected_copy-calls"}), told
    estate.shop.exports.append("scratch/calls")
    code, plan = estate.plan()
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (ExitCode.DONE, [REFILLS])


def test_the_plan_of_a_drafted_estate_is_that_of_the_one_by_hand(estate: Estate) -> None:
    """What the company knows is corrected: two names, that a folder is no developer's, who agreed to lose what jobs and
    snapshots keep, and what is held."""
    shop = estate.shop
    shop.exports.append("scratch/calls")
    estate.trips(by_spark=False)
    code, by_hand = estate.plan()
    assert code == ExitCode.DONE
    places = [str(shop.base / "tables"), f"{shop.hdfs.uri}{shop.root}", estate.hive.uri]
    words = [word for place in places for word in ("--discover", place)]
    text = draft_of(shop, *words, "--lineage", str(shop.base / "jobs.sql"))
    changes = {
        "hive: {type": "hms: {type",
        "tables.users": "shop.users",
        f"dev_roots: ['{shop.hdfs.uri}{shop.root}/scratch']   # guess: by the folders' names\n": "",
        "    # deletable:": "    deletable:",
        "# archives, backups": f"holds: {json.dumps([HELD])}\n# archives, backups",
    }
    for one in shop.deletable:
        asked = f"    #   - {{path: {one['path']}, owner: NAME, reason: WHY}}"
        changes[asked] = f"      - {json.dumps(one)}"
    made, lines = corrected(text, changes)
    assert lines <= 10
    code, plan = planned(shop, made)
    assert (code, unlike(plan, by_hand)) == (ExitCode.DONE, [])


@pytest.mark.spark
@pytest.mark.parametrize("tables", ["ten tables", pytest.param("and one of Hudi", marks=NEEDS_HUDI)])
def test_an_estate_is_erased_though_the_run_is_killed(estate: Estate, tmp_path: Path, tables: str) -> None:
    """Spark reads the most classes for Hudi."""
    shop = estate.shop
    shop.exports.append("scratch/calls")
    if tables == "and one of Hudi":
        estate.trips(by_spark=True)
    assert estate.plan()[0] == ExitCode.DONE
    assert shop.approve() == 0
    before = estate.rows()
    assert leaks(HER, [estate.fetched(tmp_path / "before")]) != []
    shop.until = shop.is_halfway
    assert shop.apply()[0] < 0
    shop.until = lambda: False
    code, result = shop.apply()
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert result["bystander_rows_lost"] == 0
    after = estate.rows()
    assert after == {place: [row for row in found if row != PERSON] for place, found in before.items()}
    assert after != before
    assert leaks(HER, [estate.fetched(tmp_path / "after")]) == []
    assert [entry.name for entry in shop.hdfs.client().entries(f"{shop.root}/wh/.snapshot")] == []
    assert files_of(shop, "/user/hive/.Trash") == []
    assert shop.verify() == ExitCode.DONE
    assert leaks(HER, [shop.base / "state"]) == []
