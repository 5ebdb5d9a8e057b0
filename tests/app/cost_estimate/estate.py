"""A small estate on disk: Delta, Iceberg with a tag, bare Parquet in partitions, other folders."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from pii_tracer.app.settings import Settings
from tests.cli.small import request

PERSON = 4417700102
USERS = pa.table(
    {"user_id": pa.array([PERSON, 4417700103], pa.int64()), "email": ["asha@north.example", "chen@north.example"]}
)
PRICES = "prices: {currency: USD, spark_hour: 36.0, scanned_gb: 100000.0, request_1000: 0.4}\n"


@dataclass
class Shop:
    """tables: declared ones by name, with format and folder below `w`."""

    base: Path
    tables: dict[str, tuple[str, str]] = field(default_factory=dict)
    catalogs: str = ""
    more: str = ""

    @classmethod
    def full(cls, base: Path) -> Shop:
        shop = cls(base)
        shop.delta("users", 2)
        shop.iceberg()
        shop.bare("exports", 3)
        return shop

    @property
    def root(self) -> Path:
        return self.base / "w"

    def delta(self, name: str, commits: int) -> Path:
        for _ in range(commits):
            write_deltalake(self.root / name, USERS, mode="append")
        self.tables[f"app.{name}"] = ("delta", name)
        return self.root / name

    def iceberg(self) -> Path:
        """Registered in an SQL catalog, with a tag."""
        (self.root / "wh").mkdir(parents=True)
        catalog = SqlCatalog("core", uri=f"sqlite:///{self.base / 'core.db'}", warehouse=f"file://{self.root / 'wh'}")
        catalog.create_namespace("prod")
        table = catalog.create_table("prod.mails", schema=USERS.schema)
        table.append(USERS)
        snapshot = table.current_snapshot()
        assert snapshot is not None
        table.manage_snapshots().create_tag(snapshot.snapshot_id, "eoy").commit()
        warehouse = f"file://{self.root / 'wh'}"
        self.catalogs = f"  core: {{type: iceberg-sql, uri: 'sqlite:///core.db', warehouse: '{warehouse}'}}\n"
        return Path(table.location().removeprefix("file://"))

    def bare(self, name: str, partitions: int) -> Path:
        for day in range(partitions):
            folder = self.root / name / f"day={day}"
            folder.mkdir(parents=True)
            pq.write_table(USERS, folder / "part.parquet")
        self.tables[f"app.{name}"] = ("parquet", name)
        return self.root / name

    def flat(self, name: str, files: int) -> Path:
        folder = self.root / name
        folder.mkdir(parents=True)
        for number in range(files):
            pq.write_table(USERS, folder / f"{number}.parquet")
        self.tables[f"app.{name}"] = ("parquet", name)
        return folder

    @property
    def settings(self) -> Settings:
        """Writes the estate file."""
        declared = "".join(
            f"      - {{name: {name}, format: {kind}, location: w/{place}}}\n"
            for name, (kind, place) in self.tables.items()
        )
        (self.base / "pii-tracer.yaml").write_text(
            "version: 1\nestate: shop\nenvironment: local\ncatalogs:\n"
            f"{self.catalogs}  spark_catalog:\n    type: declared\n    tables:\n{declared}"
            f"roots: [w]\nlineage: {{sql: [jobs.sql]}}\n{PRICES}{self.more}"
            "subjects:\n  - {name: user, source: app.users, key: user_id}\n"
        )
        (self.base / "jobs.sql").write_text(
            "".join(
                f"INSERT OVERWRITE {name} SELECT user_id, email FROM app.users;\n"
                for name in ("app.exports", "core.prod.mails")
            )
        )
        (self.base / "request.yaml").write_text(request("user", str(PERSON)))
        (self.base / "policy.yaml").write_text("version: 1\n")
        return Settings(self.base / "pii-tracer.yaml", self.base / "state")

    def files(self, folder: Path | None = None) -> list[Path]:
        """All files of a folder, by another walk than the product's."""
        return [path for path in (folder or self.root).rglob("*") if path.is_file() and not path.is_symlink()]

    def bytes(self, folder: Path | None = None) -> int:
        """What the file system says."""
        return sum(path.stat().st_size for path in self.files(folder))


def emptied(path: Path) -> None:
    """As large as before, and nothing that a reader of data could read."""
    size = path.stat().st_size
    with path.open("wb") as file:
        file.truncate(size)
