"""An estate in Cloud Storage: Iceberg tables of a REST catalog, a Delta table, bare files, an archive, a decoy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog

from tests.gcs.rest_catalog import catalogs_of, client_of
from tests.gcs.tables import Lake, deleted, delta, put_all, rows
from tests.hdfs.shop import MAIL, OTHERS, PERSON, USER, csv, parquet
from tests.icebergstores import iceberg
from tests.restsupport import RestServer

People = list[tuple[str, str]]

DECOY = ("770000000002", MAIL.replace("example.net", "example.org"))
"""Somebody of a like name, with a like number."""
STAYING = [*OTHERS, DECOY]
ICEBERG = ("seen", "clone", "branched", "deletes", "vectors", "decoy")
FOLDERS = (*(f"wh/db/{name}" for name in ICEBERG), "delta", "bare", "archive")

_SPARK = """\
import json, sys
from pathlib import Path
from executors.engine.spark_session import open_session
from pii_tracer.config.estate_file import load_estate
file = Path(sys.argv[1])
spark = open_session(load_estate(file), file.parent, stores=[sys.argv[2]])
for statement in json.loads(sys.argv[3]):
    spark.sql(statement)
"""


def in_spark(base: Path, store: str, statements: Sequence[str], more: Mapping[str, str] = MappingProxyType({})) -> None:
    """Run SQL in a Spark of its own, which ends. base: the estate file's folder; store: the scheme of its tables'
    locations; more: environment."""
    command = [sys.executable, "-c", _SPARK, str(base / "pii-tracer.yaml"), store, json.dumps(statements)]
    with (base / "apart.log").open("ab") as log:
        subprocess.run(command, stdout=log, stderr=log, check=True, timeout=400, env={**os.environ, **more})


@dataclass(frozen=True)
class Estate:
    """A shop with the tables, and the server that names those of Iceberg."""

    shop: Lake
    server: RestServer

    @property
    def catalog(self) -> RestCatalog:
        return client_of(self.shop, self.server)

    def plan(self) -> tuple[int, dict[str, Any]]:
        self.shop.exports = list(FOLDERS)
        return self.shop.plan(catalogs=catalogs_of(self.server), object_stores=self.places())

    def places(self) -> list[dict[str, Any]]:
        return self.shop.stored("wh", "delta", "bare", "archive")

    def make(self) -> None:
        """Every table with the person, but for the decoy's."""
        catalog, half = self.catalog, [OTHERS[0], PERSON, DECOY]
        iceberg(catalog, "db.seen", half, OTHERS[1:], **{"format-version": "1"})
        catalog.load_table("db.seen").delete(f"uid = '{USER}'")
        iceberg(catalog, "db.seen", [PERSON])
        iceberg(catalog, "db.clone", [*OTHERS, PERSON, DECOY])
        iceberg(catalog, "db.branched", half)
        table = catalog.load_table("db.branched")
        snapshot = table.current_snapshot()
        assert snapshot is not None
        table.manage_snapshots().create_branch(snapshot.snapshot_id, "dev").commit()
        table.manage_snapshots().create_tag(snapshot.snapshot_id, "quarter").commit()
        iceberg(catalog, "db.branched", OTHERS[1:])
        iceberg(catalog, "db.decoy", STAYING)
        self.spark(*merge_on_read("deletes", 2, again=True), *merge_on_read("vectors", 3, again=False))
        self._files(half)

    def _files(self, half: People) -> None:
        shop = self.shop
        delta(shop, "delta", half, OTHERS[1:], put=False)
        deleted(shop, "delta", USER)
        put_all(shop, shop.base / "made" / "delta", "delta")
        delta(shop, "delta", [PERSON], again=True)
        shop.put("bare/a.parquet", parquet(*STAYING, PERSON))
        shop.put("bare/a.parquet", parquet(*STAYING))
        shop.put("bare/b.parquet", parquet(PERSON, *OTHERS[:1]))
        shop.put("archive/2025.csv", csv(PERSON, *STAYING), storageClass="ARCHIVE")

    def spark(self, *statements: str) -> None:
        """Run SQL on the server's tables."""
        self.shop.write(catalogs=catalogs_of(self.server), object_stores=self.places())
        in_spark(self.shop.base, "gs", statements)

    def staying(self) -> dict[str, People]:
        """Everybody else's rows, as readers see them: by table, and by reference of the one with a branch and a tag."""
        found = by_reference(self.catalog, ICEBERG) | {"delta": rows(self.shop, "delta")}
        return {name: sorted(row for row in people if row != PERSON) for name, people in found.items()}


def by_reference(catalog: Catalog, names: Sequence[str]) -> dict[str, People]:
    """The rows at each branch and tag of tables in the namespace `db`."""
    found = dict[str, People]()
    for name in names:
        table = catalog.load_table(f"db.{name}")
        for ref, told in table.metadata.refs.items():
            seen = table.scan(snapshot_id=told.snapshot_id).to_arrow().to_pylist()
            found[f"{name}@{ref}"] = [(row["uid"], row["mail"]) for row in seen]
    return found


def values(*people: tuple[str, str]) -> str:
    """Rows of an INSERT."""
    return ", ".join(f"('{uid}', '{mail}')" for uid, mail in people)


def merge_on_read(name: str, version: int, *, again: bool) -> list[str]:
    """The statements of a table with delete files or deletion vectors.

    again: whether the person has a row again after the naive DELETE.
    """
    table = f"ice.db.{name}"
    modes = ", ".join(f"'write.{what}.mode' = 'merge-on-read'" for what in ("delete", "update", "merge"))
    made = [
        f"CREATE TABLE {table} (uid STRING, mail STRING) USING iceberg"
        f" TBLPROPERTIES ('format-version' = '{version}', {modes})",
        f"INSERT INTO {table} VALUES {values(*STAYING, PERSON)}",
        f"DELETE FROM {table} WHERE uid = '{USER}'",
    ]
    return made + ([f"INSERT INTO {table} VALUES {values(PERSON)}"] if again else [])
