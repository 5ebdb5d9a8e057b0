"""An estate in Azure Storage that Unity Catalog names: Delta tables, and where files are written again a plain one and a
volume; beside them Iceberg tables of a REST catalog; with a clone, old versions, a snapshot, an archive and a decoy.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq
from pyiceberg.catalog.rest import RestCatalog

from tests.azure.lake import Lake
from tests.azure.rest_catalog import client_of
from tests.azure.shop import STORE
from tests.gcs.estate import DECOY, STAYING, People, by_reference, in_spark, merge_on_read, values
from tests.gcs.tables import deleted, delta, put_all
from tests.hdfs.shop import OTHERS, PERSON, USER, csv, parquet
from tests.icebergstores import iceberg
from tests.restsupport import RestServer
from tests.unitysupport import Unity

ICEBERG = ("seen", "branched", "deletes")
DELTA = ("people", "clone", "marked", "archive", "decoy")
TABLES = (*(f"wh/db/{name}" for name in ICEBERG), *(f"uc/{name}" for name in DELTA))
BARE = ("uc/raw", "volume")
WAIVED = "gap-unknown_table-catalog-uc.main.sales.seen"
"""Unity Catalog's interface does not have the metadata file of its Iceberg table; the REST catalog names the same one."""
_COLUMNS = [{"name": name, "type_text": "string"} for name in ("uid", "mail")]


@dataclass(frozen=True)
class Estate:
    """A shop with the tables, and the two servers that name them."""

    shop: Lake
    server: RestServer
    unity: Unity

    @property
    def catalog(self) -> RestCatalog:
        return client_of(self.shop, self.server)

    def plan(self) -> tuple[int, dict[str, Any]]:
        self.shop.exports, self.shop.waived = [*TABLES, *BARE], [WAIVED]
        return self.shop.plan(catalogs=self.catalogs(), object_stores=self.places())

    def catalogs(self) -> dict[str, dict[str, object]]:
        """`catalogs` of the estate file: the servers', and the table of users here."""
        users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
        return {
            "spark_catalog": {"type": "declared", "tables": [users]},
            "ice": {"type": "iceberg-rest", "uri": self.server.uri},
            "uc": {"type": "unity", "uri": self.unity.uri},
        }

    def places(self) -> list[dict[str, Any]]:
        """What no catalog names as a table."""
        return self.shop.stored("wh", *BARE[1:])

    def make(self) -> None:
        """Every table with the person, but for the decoy's."""
        self._iceberg()
        self._delta()
        self._files()
        self.shop.write(catalogs=self.catalogs(), object_stores=self.places())
        in_spark(self.shop.base, "abfss", [*merge_on_read("deletes", 2, again=True), *_marked(f"{STORE}/uc/marked")])

    def _files(self) -> None:
        shop, unity = self.shop, self.unity
        shop.put("uc/raw/a.parquet", parquet(*STAYING, PERSON))
        shop.put("uc/raw/a.parquet", parquet(*STAYING))
        shop.put("uc/raw/b.parquet", parquet(PERSON, *OTHERS[:1]))
        unity.table("main.sales.raw", f"{STORE}/uc/raw", "PARQUET", columns=_COLUMNS)
        shop.put("volume/2025.csv", csv(PERSON, *STAYING), tier="Cold")
        unity.volume("main.sales.files", f"{STORE}/volume")

    def _iceberg(self) -> None:
        catalog, half = self.catalog, [OTHERS[0], PERSON, DECOY]
        iceberg(catalog, "db.seen", half, OTHERS[1:], **{"format-version": "1"})
        catalog.load_table("db.seen").delete(f"uid = '{USER}'")
        iceberg(catalog, "db.seen", [PERSON])
        iceberg(catalog, "db.branched", half)
        table = catalog.load_table("db.branched")
        snapshot = table.current_snapshot()
        assert snapshot is not None
        table.manage_snapshots().create_branch(snapshot.snapshot_id, "dev").commit()
        table.manage_snapshots().create_tag(snapshot.snapshot_id, "quarter").commit()
        iceberg(catalog, "db.branched", OTHERS[1:])

    def _delta(self) -> None:
        """A naive DELETE in one of them, and a snapshot of a file of its."""
        shop = self.shop
        delta(shop, "uc/people", [OTHERS[0], PERSON, DECOY], OTHERS[1:], put=False)
        deleted(shop, "uc/people", USER)
        put_all(shop, shop.base / "made" / "uc" / "people", "uc/people")
        delta(shop, "uc/people", [PERSON], again=True)
        log = f"uc/people/_delta_log/{0:020}.json"
        shop.snapshot(log)
        shop.put(log, shop.read(log))
        delta(shop, "uc/clone", [*STAYING, PERSON])
        delta(shop, "uc/archive", [*OTHERS, PERSON])
        for name, blob in shop.container.blobs.items():
            if name.startswith("uc/archive/") and blob.current:
                blob.current.tier = "Cold"
        delta(shop, "uc/decoy", STAYING)
        for name in DELTA:
            kind = "MANAGED" if name == "clone" else "EXTERNAL"
            self.unity.table(f"main.sales.{name}", f"{STORE}/uc/{name}", table_type=kind, columns=_COLUMNS)
        self.unity.table("main.sales.seen", f"{STORE}/wh/db/seen", "ICEBERG", columns=_COLUMNS)
        self.unity.view("main.sales.named", "SELECT uid, mail FROM people", columns=_COLUMNS)

    def staying(self) -> dict[str, People]:
        """Everybody else's rows, as readers see them: by table, and by reference of the one with a branch and a tag.

        In `marked` and bare folders, all rows of its Parquet files.
        """
        found = by_reference(self.catalog, ICEBERG)
        found |= {name: self.shop.rows(f"uc/{name}") for name in DELTA if name != "marked"}
        found |= {folder: self._in_files(folder) for folder in ("uc/marked", *BARE[:1])}
        return {name: sorted(row for row in people if row != PERSON) for name, people in found.items()}

    def _in_files(self, folder: str) -> People:
        blobs = self.shop.container.blobs.items()
        mine = [b for name, b in blobs if name.startswith(f"{folder}/") and name.endswith(".parquet")]
        tables = [pq.read_table(io.BytesIO(blob.current.data)) for blob in mine if blob.current]
        rows = (row for table in tables if "uid" in table.column_names for row in table.to_pylist())
        return [(row["uid"], row["mail"]) for row in rows]


def _marked(place: str) -> list[str]:
    """A Delta table in which a deletion vector hides the person."""
    table = f"delta.`{place}`"
    return [
        f"CREATE TABLE {table} (uid STRING, mail STRING) USING delta"
        " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        f"INSERT INTO {table} VALUES {values(*STAYING, PERSON)}",
        f"DELETE FROM {table} WHERE uid = '{USER}'",
    ]
