"""Table formats that can be written without Spark, put through the kit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyarrow import csv, orc
from pyiceberg.catalog.sql import SqlCatalog

from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.model.datasets import Format
from tests.kits.format_kit import FormatKit
from tests.toyformat.installation import toy_installed
from tests.toyformat.tables import FOLDER, open_toy, write_toy
from tests.toyformat.vocabulary import TOY


class TestDelta(FormatKit):
    kind = DELTA

    def write(self, folder: Path, rows: pa.Table) -> None:
        write_deltalake(folder, rows, mode="append")


class TestIceberg(FormatKit):
    kind = ICEBERG

    def write(self, folder: Path, rows: pa.Table) -> None:
        catalog = SqlCatalog("kit", uri=f"sqlite:///{folder.parent.parent}/kit.db")
        catalog.create_namespace_if_not_exists("shop")
        if not catalog.table_exists("shop.people"):
            catalog.create_table("shop.people", rows.schema, location=f"file://{folder}")
        catalog.load_table("shop.people").append(rows)


class PlainFiles(FormatKit):
    """A folder of files; each writing adds one."""

    def write(self, folder: Path, rows: pa.Table) -> None:
        folder.mkdir(exist_ok=True)
        self.write_file(folder / f"{len(list(folder.iterdir()))}.{self.kind}", rows)

    def write_file(self, path: Path, rows: pa.Table) -> None:
        raise NotImplementedError


class TestParquet(PlainFiles):
    kind = Format.PARQUET

    def write_file(self, path: Path, rows: pa.Table) -> None:
        pq.write_table(rows, path)


class TestOrc(PlainFiles):
    kind = Format.ORC

    def write_file(self, path: Path, rows: pa.Table) -> None:
        orc.write_table(rows, path)


class TestAvro(PlainFiles):
    kind = Format.AVRO

    def write_file(self, path: Path, rows: pa.Table) -> None:
        fields = [{"name": "uid", "type": "long"}, {"name": "name", "type": "string"}]
        with path.open("wb") as stream:
            fastavro.writer(stream, {"type": "record", "name": "row", "fields": fields}, rows.to_pylist())


class TestCsv(PlainFiles):
    kind = Format.CSV
    checks_bytes = False

    def write_file(self, path: Path, rows: pa.Table) -> None:
        csv.write_csv(rows, path)


class TestJson(PlainFiles):
    kind = Format.JSON

    def write_file(self, path: Path, rows: pa.Table) -> None:
        path.write_text("".join(f'{{"uid": {r["uid"]}, "name": "{r["name"]}"}}\n' for r in rows.to_pylist()))


class TestToy(FormatKit):
    """A format that a package brings."""

    kind = TOY

    @pytest.fixture(autouse=True)
    def installed(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        with toy_installed(tmp_path_factory.mktemp("site") / "site-packages"):
            yield

    def write(self, folder: Path, rows: pa.Table) -> None:
        there = open_toy(folder).rows() if (folder / FOLDER).exists() else []
        write_toy(folder, [*there, *rows.to_pylist()], {"uid": "bigint", "name": "string"})
