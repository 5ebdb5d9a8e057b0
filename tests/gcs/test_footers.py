"""Planning reads footers and beginnings of large objects by ranges, each of one generation."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from pii_tracer.app.stored_places.erasable_bare_folders import folder_of_objects
from pii_tracer.lake.formats.plain_files.store_folder import Bare
from pii_tracer.lake.stores.gcs import json_api
from pii_tracer.lake.stores.gcs.store import GcsStore
from pii_tracer.lake.stores.object_places.discovery import place_now
from pii_tracer.lake.stores.object_places.protocol import versioned_store
from pii_tracer.model.locations import object_location
from tests.gcs.shop import BUCKET, Shop
from tests.gcssupport import Gcs
from tests.s3support import estate

ROWS = 150_000


def _parquet(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows, sink, compression="none", use_dictionary=False)
    return sink.getvalue()


def _orc(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    orc.write_table(rows, sink)
    return sink.getvalue()


def _avro(rows: pa.Table) -> bytes:
    import fastavro

    schema = {"type": "record", "name": "r", "fields": [{"name": "mail", "type": "string"}]}
    sink = io.BytesIO()
    fastavro.writer(sink, schema, rows.to_pylist())
    return sink.getvalue()


class Folder:
    """A folder with one object. read: how many bytes of it were fetched."""

    def __init__(self, gcs: Gcs, base: Path, name: str, made: Callable[[pa.Table], bytes]) -> None:
        self.gcs, self.read, self.key = gcs, 0, f"out/{name}"
        shop = Shop.of(gcs, base, versioning=False)
        self.made = made(pa.table({"mail": [f"{n:030}@mail.example" for n in range(ROWS)]}))
        gcs.put(BUCKET, self.key, self.made)
        self.estate = estate("http://127.0.0.1:1", object_stores=shop.stored("out"))
        self.location = object_location(f"gs://{BUCKET}/out")

    def told(self) -> Bare | str:
        place = place_now(self.estate, self.location)
        return folder_of_objects(versioned_store(self.estate, self.location), place, {})


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    sizes: list[int] = []
    true = GcsStore.read_version

    def noted(store: GcsStore, version: Any, first: int, at_most: int) -> bytes:
        data = true(store, version, first, at_most)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(GcsStore, "read_version", noted)
    return sizes


@pytest.mark.parametrize(
    ("name", "made", "rows"), [("a.parquet", _parquet, ROWS), ("a.orc", _orc, ROWS), ("a.avro", _avro, None)]
)
def test_columns_and_rows_of_a_large_object_are_told_by_little_of_it(
    gcs: Gcs, tmp_path: Path, read: list[int], name: str, made: Callable[[pa.Table], bytes], rows: int | None
) -> None:
    folder = Folder(gcs, tmp_path, name, made)
    told = folder.told()
    assert isinstance(told, Bare), told
    assert told.state.rows == rows
    assert [column.name for column in told.state.columns] == ["mail"]
    assert len(folder.made) > 3_000_000
    assert sum(read) < 1_500_000, read


def test_an_object_that_is_replaced_between_two_ranges_is_not_read_as_one(
    gcs: Gcs, tmp_path: Path, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, true = Folder(gcs, tmp_path, "a.parquet", _parquet), GcsStore.read_version

    def replaced(store: GcsStore, version: Any, first: int, at_most: int) -> bytes:
        data = true(store, version, first, at_most)
        gcs.put(BUCKET, folder.key, _parquet(pa.table({"mail": ["-"], "more": ["-"]})))
        return data

    monkeypatch.setattr(GcsStore, "read_version", replaced)
    told = folder.told()
    assert isinstance(told, str)
    assert "cannot be read" in told


def test_an_endpoint_that_ignores_ranges_tells_nothing(
    gcs: Gcs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, true = Folder(gcs, tmp_path, "a.parquet", _parquet), json_api.ask

    def whole(url: str, **given: Any) -> bytes:
        return true(url, **{**given, "headers": {k: v for k, v in given["headers"].items() if k != "Range"}})

    monkeypatch.setattr(json_api, "ask", whole)
    told = folder.told()
    assert isinstance(told, str)
    assert "cannot be read" in told
