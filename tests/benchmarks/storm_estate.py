"""An estate with many persons to erase: tables of every kind of copy, written quickly, and whether all others kept theirs.

Each table has a row of each person. The persons to erase are spread evenly, so that they are in every file.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import yaml
from deltalake import DeltaTable, write_deltalake
from pyiceberg.table import StaticTable

from tests.cli.small import RECEIVED

FIRST = 6_000_000_000
FILES = 8
JOBS = """
CREATE TABLE IF NOT EXISTS shop.orders USING delta AS SELECT user_id, email, city FROM shop.users;
CREATE TABLE IF NOT EXISTS lake.shop.visits USING iceberg AS SELECT user_id, city FROM shop.users;
INSERT OVERWRITE DIRECTORY '{base}/files/mails' USING parquet SELECT email, city FROM shop.users;
"""
COLUMNS = {
    "users": ["user_id", "email", "city"],
    "orders": ["user_id", "email", "city"],
    "visits": ["user_id", "city"],
    "mails": ["email", "city"],
    "handed_over": ["email", "city"],
}
"""The columns of each table. `handed_over` has the files of `mails`, and no lineage."""


@dataclass(frozen=True)
class StormEstate:
    """The estate in a folder: so many rows a table, and so many persons of them to erase."""

    base: Path
    rows: int
    persons: int

    @property
    def asked(self) -> np.ndarray:
        """The numbers of the rows of those who ask."""
        return np.arange(self.persons) * (self.rows // self.persons)

    def write(self) -> None:
        """Tables, estate file, policy, jobs, and the list of requests."""
        from executors.engine.spark_session import open_session
        from pii_tracer.config.estate_file import load_estate

        for name in ("users", "orders"):
            for part in self._parts():
                table = part.select(COLUMNS[name])
                write_deltalake(self.base / "tables" / name, table, mode="append")
        for name in ("staged", "files/mails"):
            folder = self.base / name
            folder.mkdir(parents=True)
            for number, part in enumerate(self._parts()):
                columns = COLUMNS.get(folder.name, part.schema.names)
                pq.write_table(part.select(columns), folder / f"{number}.parquet")
        shutil.copytree(self.base / "files/mails", self.base / "files/handed_over", copy_function=shutil.copyfile)
        self._describe()
        spark = open_session(load_estate(self.base / "pii-tracer.yaml"), self.base)
        frame = spark.read.parquet(str(self.base / "staged")).select(*COLUMNS["visits"])
        frame.writeTo("lake.shop.visits").using("iceberg").tableProperty("format-version", "2").create()
        spark.stop()
        shutil.rmtree(self.base / "staged")
        ids = (self.asked + FIRST).astype(str)
        lines = (f"R-{number},{key}\n" for number, key in enumerate(ids))
        (self.base / "list.csv").write_text("id,key\n" + "".join(lines))

    def _parts(self) -> Iterator[pa.Table]:
        size = -(-self.rows // FILES)
        for first in range(0, self.rows, size):
            yield self._rows(np.arange(first, min(first + size, self.rows)))

    def _rows(self, numbers: np.ndarray) -> pa.Table:
        keys = np.char.add(np.char.add("person", numbers.astype(str)), "@example.net")
        cities = np.array(["Pune", "Goa", "Agra", "Kochi"])[numbers % 4]
        return pa.table([pa.array(numbers + FIRST), pa.array(keys), pa.array(cities)], names=COLUMNS["users"])

    def _describe(self) -> None:
        (self.base / "jobs.sql").write_text(JOBS.format(base=self.base))
        tables = [
            {"name": f"shop.{name}", "format": "delta", "location": f"tables/{name}"} for name in ("users", "orders")
        ]
        estate = {
            "version": 1,
            "estate": "storm",
            "environment": "local",
            "spark": {"conf": {"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "4"}},
            "catalogs": {
                "lake": {"type": "iceberg-hadoop", "warehouse": "warehouse"},
                "spark_catalog": {"type": "declared", "tables": tables},
            },
            "roots": ["warehouse", "tables", "files"],
            "lineage": {"sql": ["jobs.sql"]},
            "subjects": [
                {
                    "name": "user",
                    "source": "shop.users",
                    "key": "user_id",
                    "identifiers": [{"column": "email", "category": "email"}],
                }
            ],
            "writers": [{"job": "all", "stopped": True}],
        }
        policy = {"version": 1, "allow_immediate_retention": True, "max_persons": self.persons}
        (self.base / "pii-tracer.yaml").write_text(yaml.safe_dump(estate))
        (self.base / "policy.yaml").write_text(yaml.safe_dump(policy))
        (self.base / "received").write_text(RECEIVED)

    def lost_or_changed(self) -> dict[str, int]:
        """By table, how many rows of others are not there exactly as they were written, or are there beside these."""
        kept = np.setdiff1d(np.arange(self.rows), self.asked)
        expected = self._rows(kept)
        found = {}
        for name, columns in COLUMNS.items():
            now = self._now(name).select(columns).cast(expected.select(columns).schema)
            wanted = expected.select(columns)
            first = columns[0]
            both = [pa.Table.sort_by(table, first).combine_chunks() for table in (now, wanted)]
            same = both[0].equals(both[1])
            found[name] = 0 if same else max(1, abs(now.num_rows - wanted.num_rows))
        return found

    def _now(self, name: str) -> pa.Table:
        if name in ("users", "orders"):
            return DeltaTable(self.base / "tables" / name).to_pyarrow_table()
        if name == "visits":
            folder = self.base / "warehouse/shop/visits/metadata"
            version = (folder / "version-hint.text").read_text().strip()
            return StaticTable.from_metadata(str(folder / f"v{version}.metadata.json")).scan().to_arrow()
        return ds.dataset(self.base / "files" / name, format="parquet").to_table()
