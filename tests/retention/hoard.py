"""An estate with one Iceberg and some Delta tables whose older versions look as if they had been made weeks ago."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from pii_tracer.cli.main import run
from pii_tracer.model.legal_holds import Hold
from tests.sparksession import small_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS_MS = 86_400_000


def hold(dataset: str, id: str = "h1", until: str = "indefinite") -> Hold:
    """A legal hold on one dataset."""
    given = {
        "id": id, "kind": "legal_hold", "datasets": [dataset], "basis": "an order", "citation": "case 7",
        "from": "2026-01-01T00:00:00Z", "until": until, "approver": "counsel",
    }  # fmt: skip
    return Hold.model_validate(given)


@dataclass(frozen=True)
class Hoard:
    """The estate's folder; its catalog is called `name`, so that one session can hold several of them."""

    base: Path
    name: str

    def write(self, holds: Sequence[Hold] = (), **retention: Any) -> None:
        """The estate file, with these holds and retention rules."""
        data = {
            "version": 1,
            "estate": "hoard",
            "environment": "local",
            "spark": small_spark(),
            "catalogs": {self.name: {"type": "iceberg-hadoop", "warehouse": "lake"}},
            "roots": ["delta"],
            "lineage": {"sql": []},
            "subjects": [{"name": "c", "source": f"{self.name}.p.i", "key": "uid"}],
            "retention": retention,
            "holds": [h.model_dump(mode="json", by_alias=True) for h in holds],
            "prices": {"storage_gb_month": 1.9},
        }
        for folder in ("delta", "lake"):
            (self.base / folder).mkdir(exist_ok=True)
        (self.base / "pii-tracer.yaml").write_text(yaml.safe_dump(data))

    def command(self, *words: str) -> int:
        """`pii-tracer retention …` on this estate."""
        place = ["--estate", str(self.base / "pii-tracer.yaml"), "--state", str(self.base / "state")]
        return run(["retention", *words, *place])

    def delta(self, spark: SparkSession, name: str, versions: int) -> Path:
        """A Delta table that each version replaces as a whole."""
        path = self.base / "delta" / name
        spark.sql(f"CREATE TABLE delta.`{path}` (uid INT, v STRING) USING delta")
        for n in range(versions):
            spark.sql(f"INSERT OVERWRITE delta.`{path}` SELECT {n}, 'v{n}'")
        return path

    def iceberg(self, spark: SparkSession, versions: int) -> str:
        """An Iceberg table that each snapshot replaces as a whole."""
        table = f"{self.name}.p.i"
        # the catalog is new to a session that runs already
        for key, value in {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop"}.items():
            spark.conf.set(f"spark.sql.catalog.{self.name}{key}", value)
        spark.conf.set(f"spark.sql.catalog.{self.name}.warehouse", str(self.base / "lake"))
        spark.conf.set(f"spark.sql.catalog.{self.name}.cache-enabled", "false")
        spark.sql(f"CREATE TABLE {table} (uid INT, v STRING) USING iceberg")
        for n in range(versions):
            spark.sql(f"INSERT OVERWRITE {table} SELECT {n}, 'v{n}'")
        return table

    @property
    def iceberg_folder(self) -> Path:
        return self.base / "lake" / "p" / "i"


def age_files(folder: Path, days: float) -> None:
    """All files below look as if they had been written long ago."""
    then = time.time() - days * 86_400
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))


def age_delta(spark: SparkSession, path: Path, days: float, until_version: int) -> None:
    """Removals of the versions up to one look as if they had been made long ago."""
    for commit in (path / "_delta_log").glob("*.json"):
        if int(commit.stem) > until_version:
            continue
        lines = [json.loads(line) for line in commit.read_text().splitlines()]
        for action in lines:
            if "remove" in action:
                action["remove"]["deletionTimestamp"] -= int(days * DAYS_MS)
        commit.write_text("".join(json.dumps(line) + "\n" for line in lines))
        for stale in (commit.with_name(f".{commit.name}.crc"), commit.with_suffix(".crc")):
            stale.unlink(missing_ok=True)
    java: Any = spark
    java._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def age_iceberg(folder: Path, days: float, snapshots: int) -> None:
    """The oldest snapshots look as if they had been made long ago."""
    hint = int((folder / "metadata" / "version-hint.text").read_text())
    path = folder / "metadata" / f"v{hint}.metadata.json"
    data = json.loads(path.read_text())
    old = sorted(data["snapshots"], key=lambda s: s["timestamp-ms"])[:snapshots]
    ids = {s["snapshot-id"] for s in old}
    for entry in (*old, *(e for e in data["snapshot-log"] if e["snapshot-id"] in ids)):
        entry["timestamp-ms"] -= int(days * DAYS_MS)
    path.write_text(json.dumps(data))
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
