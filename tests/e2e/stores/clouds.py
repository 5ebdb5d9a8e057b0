"""What estates in Cloud Storage and in Azure have in common when a whole path runs on them: tables of each kind, with what
such tables and stores keep of a person, and people like her.

The estate file is the one that `init --discover` drafts, with few lines that its owner corrects.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from deltalake import DeltaTable
from pyiceberg.catalog.rest import RestCatalog

from pii_tracer.model.errors import ExitCode
from tests import hudistores
from tests.app.estate_draft.corrections import corrected
from tests.commands_apart import run_apart
from tests.e2e.stores.lakes import as_bytes, in_bytes
from tests.gcs.tables import Lake, deleted, delta, put_all
from tests.hdfs.shop import MAIL, OTHERS, PERSON, USER
from tests.icebergstores import iceberg
from tests.leaks import Person, leaks
from tests.restsupport import RestServer
from tests.sparksession import small_spark
from tests.sparkstatements import in_spark, merge_on_read, values
from tests.waivers import name_what_was_seen

Rows = list[tuple[str, ...]]

NAME = "Zuleika Quist"
ALIKE = [(f"{USER}9", f"d{MAIL}"), (f"3{USER}", MAIL.replace("zq.", "zk.")), ("770000000010", f"{MAIL}.au")]
"""Three of her name. Two numbers have hers at the beginning and at the end, one has the same digits; so it is with the
addresses. What a table has no addresses of is hers and theirs, but for the number."""
HER = Person((), (MAIL, USER))
"""As words of their own: `ALIKE` have them in longer ones, but for an address that goes on after a dot."""
BARE = {"visits": "parquet", "bills": "orc", "lines": "json", "letters": "csv", "report": "parquet"}
"""Formats by folder."""


def rows_of(*people: tuple[str, str], **more: str) -> pa.Table:
    """People with their names. more: further columns, each of one value."""
    columns = {"uid": [uid for uid, _ in people], "mail": [mail for _, mail in people]}
    columns["name"] = [f"By {uid[-1]}" if (uid, _) in OTHERS else NAME for uid, _ in people]
    return pa.table(columns | {name: [value] * len(people) for name, value in more.items()})


STAYING = [*OTHERS, *ALIKE]
EVERYBODY = [*STAYING, PERSON]
ALL = rows_of(*EVERYBODY)
LEFT = rows_of(*STAYING)
HERS = rows_of(PERSON)


@dataclass
class CloudEstate:
    """A shop with tables in a store; each has the person, but for the one of people like the person.

    uri: of the bucket or container. server: the REST catalog of the Iceberg tables. catalog: its client. schema: what
    precedes the names of the other tables. users: the table of the persons; view: over a table of theirs. iceberg, delta,
    marked: names of tables; those last have deletion vectors.
    """

    shop: Lake
    uri: str
    server: RestServer
    catalog: RestCatalog
    schema: str
    users: str
    view: str
    iceberg: list[str] = field(default_factory=lambda: ["seen", "clone", "branched", "parts"])
    delta: list[str] = field(default_factory=lambda: ["orders", "orders_dev", "daily"])
    marked: list[str] = field(default_factory=list)
    jobs: str = ""
    copy: str = "scratch.visits"

    # -- what the store has of its own: a cloud says these --------------------------------------------------------------

    def discovered(self) -> list[str]:
        """What `init` is told of the places."""
        raise NotImplementedError

    def reached(self, text: str) -> str:
        """A drafted file with what it cannot know of the stand-in."""
        return text

    def spark_estate(self) -> None:
        """Write the estate file with which Spark makes tables."""
        raise NotImplementedError

    def drop(self, path: str) -> None:
        """Delete as people do."""
        raise NotImplementedError

    def states(self) -> Iterator[tuple[str, str, bytes]]:
        """Key, state and bytes of everything that the store keeps."""
        raise NotImplementedError

    def spark(self) -> dict[str, Any]:
        """`spark` of the estate file."""
        return small_spark()

    def waivers(self) -> dict[str, Any]:
        """What the owner waives."""
        return {}

    def archived(self, path: str, data: bytes) -> None:
        """Put an object into a class of archives."""
        raise NotImplementedError

    # -- tables --------------------------------------------------------------------------------------------------------

    def make(self, *, by_spark: bool) -> None:
        """by_spark: also the tables that only Spark writes; otherwise a Hudi table that is good enough to be planned."""
        self._iceberg()
        self._delta()
        self._bare()
        if by_spark:
            self._by_spark()
        else:
            for path, data in hudistores.made_by_hand(*EVERYBODY).items():
                self.shop.put(f"lake/trips/{path}", data)
        self._lineage()

    def _iceberg(self) -> None:
        """The naive way was taken in each, and she came again: she is in old snapshots, and on a branch and a tag."""
        catalog = self.catalog
        iceberg(catalog, "db.seen", ALL, **{"format-version": "1"})
        catalog.load_table("db.seen").delete(f"uid = '{USER}'")
        iceberg(catalog, "db.seen", HERS)
        iceberg(catalog, "db.clone", ALL)
        iceberg(catalog, "db.branched", ALL)
        table = catalog.load_table("db.branched")
        snapshot = table.current_snapshot()
        assert snapshot is not None
        table.manage_snapshots().create_branch(snapshot.snapshot_id, "dev").commit()
        table.manage_snapshots().create_tag(snapshot.snapshot_id, "quarter").commit()
        iceberg(catalog, "db.branched", LEFT)
        days = [rows_of(*EVERYBODY, day=day) for day in ("1", "2")]
        iceberg(catalog, "db.parts", days[0].slice(0, 0))
        with catalog.load_table("db.parts").update_spec() as spec:
            spec.add_identity("day")
        iceberg(catalog, "db.parts", *days)
        catalog.load_table("db.parts").delete("day = '2'")
        iceberg(catalog, "db.strangers", rows_of(*ALIKE))

    def _delta(self) -> None:
        """So it is with Delta's; in one of them, a day was deleted. A clone is known to lineage."""
        shop = self.shop
        delta(shop, "lake/orders", ALL, put=False)
        deleted(shop, "lake/orders", USER)
        put_all(shop, shop.base / "made" / "lake" / "orders", "lake/orders")
        delta(shop, "lake/orders", HERS, again=True)
        delta(shop, "lake/orders_dev", ALL)
        days = [rows_of(*EVERYBODY, day=day) for day in ("1", "2")]
        made = delta(shop, "lake/daily", *days, put=False, partition_by=["day"])
        DeltaTable(made).delete("day = '2'")
        put_all(shop, made, "lake/daily")

    def _bare(self) -> None:
        """Folders of each format: written over the naive way, with objects that were deleted, and a day that was."""
        shop = self.shop
        for folder, kind in BARE.items():
            rows = ALL.drop_columns("mail") if folder == "visits" else ALL
            place = f"lake/{folder}/day=1" if folder == "visits" else f"lake/{folder}"
            shop.put(f"{place}/0.{kind}", as_bytes(kind, rows))
            shop.put(f"{place}/1.{kind}", as_bytes(kind, rows))
            others = rows.filter(pa.compute.field("uid") != USER)
            shop.put(f"{place}/1.{kind}", as_bytes(kind, others))
        shop.put("lake/visits/day=2/0.parquet", as_bytes("parquet", ALL.drop_columns("mail")))
        self.drop("lake/visits/day=2/0.parquet")
        shop.put("lake/lines/2.json", as_bytes("json", HERS))
        self.drop("lake/lines/2.json")
        shop.put("lake/strangers/0.parquet", as_bytes("parquet", rows_of(*ALIKE)))
        self.archived("archive/bills/2019.csv", as_bytes("csv", ALL))
        shop.put("scratch/visits/day=1/0.parquet", as_bytes("parquet", ALL.drop_columns("mail")))

    def _by_spark(self) -> None:
        """Delete files, deletion vectors of Iceberg and of Delta, and a Hudi table."""
        self.spark_estate()
        marked, trips = (f"{self.uri}/lake/{name}" for name in ("marked", "trips"))
        in_spark(
            self.shop.base,
            self.uri.partition(":")[0],
            [
                *merge_on_read("ice.db.deletes", 2, EVERYBODY, PERSON, again=True),
                *merge_on_read("ice.db.vectors", 3, EVERYBODY, PERSON, again=False),
                f"CREATE TABLE delta.`{marked}` (uid STRING, mail STRING) USING delta"
                " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
                f"INSERT INTO delta.`{marked}` VALUES {values(EVERYBODY)}",
                f"DELETE FROM delta.`{marked}` WHERE uid = '{USER}'",
                *hudistores.in_and_out("lake.trips", trips, EVERYBODY, PERSON),
            ],
        )
        self.iceberg += ["deletes", "vectors"]
        self.marked = ["marked"]

    def _lineage(self) -> None:
        """Each table is filled from the users, but for a clone, a table of a view, and the archive."""
        made = [(f"rest.db.{name}", "iceberg", self.users) for name in self.iceberg]
        made += [
            (f"{self.schema}.{name}", "delta", self.users)
            for name in (*self.delta, *self.marked)
            if name != "orders_dev"
        ]
        made += [(f"{self.schema}.{name}", kind, self.users) for name, kind in BARE.items() if name != "report"]
        made.append((f"{self.schema}.orders_dev", "delta", f"{self.schema}.orders"))
        made.append((f"{self.schema}.report", "parquet", self.view))
        made.append(("lake.trips", "hudi", self.users))
        made.append(("archive.bills", "csv", f"{self.schema}.bills"))
        columns = {"visits": "uid, name, '1' AS day", "daily": "uid, mail, name, '1' AS day"}
        columns |= {"parts": columns["daily"]} | dict.fromkeys(("deletes", "vectors", "marked", "trips"), "uid, mail")
        made = [one for one in made if one[0] != self.users]
        self.jobs = "".join(
            f"CREATE TABLE {name} USING {kind} AS"
            f" SELECT {columns.get(name.rpartition('.')[2], 'uid, mail, name')} FROM {source};\n"
            for name, kind, source in made
        )

    # -- what an owner does --------------------------------------------------------------------------------------------

    @cached_property
    def owner(self) -> Lake:
        """The shop, whose estate file is the drafted one."""
        return replace(self.shop, base=self.shop.base / "drafted")

    def drafted(self) -> str:
        """The estate file that `init --discover` makes."""
        base, jobs = self.shop.base, self.shop.base / "jobs.sql"
        jobs.write_text(self.jobs)
        how = ["--state", str(base / "drafted" / "state"), "--lineage", str(jobs), "--name", "shop"]
        assert run_apart(["init", str(base / "drafted"), *how, *self.discovered()], base / "apart.log") == 0
        return self.reached((base / "drafted" / "pii-tracer.yaml").read_text())

    def agreed(self, text: str) -> str:
        """The file with what the owner corrects: the jobs are stopped, and what was deleted may go."""
        told = yaml.safe_dump({"deletable": {"owner": "Ann", "reason": "deleted long ago"}}, default_flow_style=True)
        more = told.strip().removeprefix("{").removesuffix("}")
        changes = {f"{{prefix: lake/{name}}}": f"{{prefix: lake/{name}, {more}}}" for name in ("lines", "visits")}
        changes |= {
            "# writers: [": "writers: [",
            "# archives, backups": f"spark: {json.dumps(self.spark())}\n# archives",
        }
        made, lines = corrected(text, changes)
        assert lines <= 10
        return made

    def declare_the_copy(self) -> None:
        """How the folder came that somebody copied by hand."""
        self.jobs += f"CREATE TABLE {self.copy} USING parquet AS SELECT uid, name, day FROM {self.schema}.visits;\n"

    def plan(self, text: str) -> tuple[int, dict[str, Any]]:
        """Of an estate file."""
        base = self.owner.base
        self.shop.write()
        (base / "pii-tracer.yaml").write_text(text)
        (self.shop.base / "jobs.sql").write_text(self.jobs)
        for name in ("policy.yaml", "request.yaml"):
            (base / name).write_bytes((self.shop.base / name).read_bytes())
        (base / "waivers.yaml").write_text(yaml.safe_dump(self.waivers()))
        code, plan = self.owner.planned()
        return self.owner.planned() if name_what_was_seen(base / "waivers.yaml", plan["gaps"]) else (code, plan)

    def erased_though_killed(self) -> tuple[int, dict[str, Any]]:
        """Approve the plan; its run is killed halfway, and begun again. The exit code and the result of that."""
        shop = self.owner
        assert shop.approve() == ExitCode.DONE
        shop.until = shop.is_halfway
        assert shop.apply()[0] < 0
        shop.until = lambda: False
        return shop.apply()

    # -- what is there -------------------------------------------------------------------------------------------------

    def rows(self) -> dict[str, Rows]:
        """Everybody's rows in each place, by other readers than those that write. Of a table that has deletion vectors,
        which they do not know: those in its data files."""
        live = {key: data for key, state, data in self.states() if state == "live"}
        found: dict[str, Rows] = {}
        folders = {f"lake/{name}": kind for name, kind in BARE.items()}
        folders |= {"lake/strangers": "parquet", "archive/bills": "csv", "scratch/visits": "parquet"}
        for folder, kind in folders.items():
            files = [in_bytes(kind, data) for key, data in live.items() if key.startswith(f"{folder}/") and data]
            found[folder] = sorted(row for file in files for row in _cells(file))
        made = self.shop.base / "read"
        shutil.rmtree(made, ignore_errors=True)
        marked = [key for key in live if key.startswith("lake/marked/") and key.endswith(".parquet")]
        in_vectors = [key for key in marked if "/_delta_log/" not in key]
        found["marked"] = sorted(row for key in in_vectors for row in _cells(in_bytes("parquet", live[key])))
        for name in self.delta:
            found[name] = _cells(DeltaTable(_written(live, f"lake/{name}", made)).to_pyarrow_table())
        found["trips"] = list(hudistores.rows(live, "lake/trips", made))
        for name in (*self.iceberg, "strangers"):
            table = self.catalog.load_table(f"db.{name}")
            for ref, told in table.metadata.refs.items():
                found[f"{name}@{ref}"] = _cells(table.scan(snapshot_id=told.snapshot_id).to_arrow())
        return found

    def fetched(self, into: Path) -> Path:
        """Everything that the store keeps, each as a file."""
        into.mkdir()
        for number, (key, state, data) in enumerate(self.states()):
            (into / f"{number}-{state}-{key.rpartition('/')[2]}").write_bytes(data)
        return into

    def left(self, into: Path) -> list[Any]:
        """Where the person is."""
        return leaks(replace(HER, longer=tuple(mail for _, mail in ALIKE)), [self.fetched(into)])


def without_her(rows: Mapping[str, Rows]) -> dict[str, Rows]:
    return {place: [row for row in found if USER not in row] for place, found in rows.items()}


def _cells(table: pa.Table) -> Rows:
    return sorted(tuple(map(str, row.values())) for row in table.to_pylist())


def _written(files: Mapping[str, bytes], folder: str, here: Path) -> Path:
    """A folder of a store on this machine."""
    for key, data in files.items():
        if key.startswith(f"{folder}/") and not key.endswith("/"):
            (here / key).parent.mkdir(parents=True, exist_ok=True)
            (here / key).write_bytes(data)
    return here / folder
