"""Iceberg tables in S3 for tests: PyIceberg writes them to the stand-in, through SQL catalogs beside the estate file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

from pii_tracer.app.planning.s3_place_search import with_lake
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.inventory import Inventory, TableState
from sample_lineage import s3_standin
from tests.s3support import REGION, World, estate

ROWS = pa.table({"uid": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", "c"]})


@dataclass
class House:
    """An estate with catalogs whose warehouse is a bucket."""

    world: World
    bucket: str
    base: Path
    catalogs: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def warehouse(self) -> str:
        return f"s3://{self.bucket}/wh"

    @property
    def orders(self) -> str:
        """Where the table `core.prod.orders` lies."""
        return f"{self.warehouse}/prod/orders"

    def catalog(self, name: str = "core") -> SqlCatalog:
        """A catalog of the estate."""
        self.catalogs[name] = {"type": "iceberg-sql", "uri": f"sqlite:///{name}.db", "warehouse": self.warehouse}
        access = s3_standin.demo_credentials()
        made = SqlCatalog(
            name,
            uri=f"sqlite:///{self.base / name}.db",
            warehouse=self.warehouse,
            **{
                "s3.endpoint": self.world.endpoint_url,
                "s3.region": REGION,
                "s3.access-key-id": access["AWS_ACCESS_KEY_ID"],
                "s3.secret-access-key": access["AWS_SECRET_ACCESS_KEY"],
            },
        )
        made.create_namespace_if_not_exists("prod")
        return made

    def table(self, name: str = "prod.orders", catalog: str = "core", **more: Any) -> Any:
        """A table with rows."""
        made = self.catalog(catalog).create_table(name, schema=ROWS.schema, **more)
        made.append(ROWS)
        return made

    @property
    def estate(self) -> Estate:
        return estate(self.world.endpoint_url, catalogs=self.catalogs, **self.more)

    @property
    def paths(self) -> EstatePaths:
        return EstatePaths(self.estate, self.base)

    def inventory(self) -> Inventory:
        return with_lake(discover(self.estate, self.base), self.estate, self.paths)

    def state(self) -> TableState:
        """The only table, about which nothing is to be told."""
        found = self.inventory()
        assert not found.gaps
        (state,) = found.tables
        return state

    def why(self, place: str | None = None) -> str:
        """Why nothing is erased in a place, which is no table of the inventory."""
        found = self.inventory()
        place = place or self.orders
        assert place not in {state.location for state in found.tables}
        (gap,) = [g for g in found.gaps if g.kind == "remote_table" and g.evidence == place]
        (reason,) = [str(p.untreated) for p in found.remote if str(p.location) == place]
        assert reason in gap.reason
        return reason

    def kinds(self) -> list[tuple[str, str]]:
        return [(g.kind, g.evidence) for g in self.inventory().gaps]

    def key(self, location: str) -> str:
        """An object's key."""
        return location.partition("://")[2].partition("/")[2]

    def read(self, location: str) -> bytes:
        return self.world.get(self.bucket, self.key(location))

    def put(self, location: str, data: bytes) -> None:
        self.world.put(self.bucket, self.key(location), data)

    def drop(self, location: str) -> None:
        self.world.client().delete_object(Bucket=self.bucket, Key=self.key(location))
