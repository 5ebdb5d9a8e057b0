"""Iceberg tables in stores of tests: PyIceberg writes them through a file I/O of ours, under a SQL or a REST catalog."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream
from pyiceberg.view.metadata import SQLViewRepresentation, ViewRepresentation, ViewVersion

Rows = Sequence[tuple[str, str]]
_SCHEMA = pa.schema([("uid", pa.string()), ("mail", pa.string())])


@dataclass(frozen=True)
class Files:
    """How tests put files into a store and read them there, by their URIs."""

    put: Callable[[str, bytes], object]
    read: Callable[[str], bytes]


_FILES: dict[str, Files] = {}
"""By the beginning of URIs: PyIceberg makes its file I/O by itself, of the name of a class."""


class StoreIO(FileIO):
    """Of whichever store has registered the beginning of a URI."""

    def new_input(self, location: str) -> InputFile:
        return _Input(location)

    def new_output(self, location: str) -> OutputFile:
        return _Output(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        raise NotImplementedError


def _files(location: str) -> Files:
    return next(files for front, files in _FILES.items() if location.startswith(front))


class _Input(InputFile):
    def __len__(self) -> int:
        return len(_files(self.location).read(self.location))

    def exists(self) -> bool:
        try:
            return bool(_files(self.location).read(self.location))
        except Exception:  # whatever the store of a test raises
            return False

    def open(self, seekable: bool = True) -> InputStream:
        return cast("InputStream", io.BytesIO(_files(self.location).read(self.location)))


class _Sink(io.BytesIO):
    def __init__(self, location: str) -> None:
        super().__init__()
        self._location = location

    def close(self) -> None:
        if not self.closed:
            _files(self._location).put(self._location, self.getvalue())
        super().close()


class _Output(OutputFile):
    def __len__(self) -> int:
        return len(_Input(self.location))

    def exists(self) -> bool:
        return _Input(self.location).exists()

    def to_input_file(self) -> InputFile:
        return _Input(self.location)

    def create(self, overwrite: bool = False) -> OutputStream:
        return cast("OutputStream", _Sink(self.location))


def catalog_in(base: Path, warehouse: str, files: Files) -> SqlCatalog:
    """A SQL catalog on this machine whose tables lie in a store. warehouse: their folder there."""
    _FILES[warehouse] = files
    options = {"uri": f"sqlite:///{base / 'catalog.db'}", "warehouse": warehouse}
    return SqlCatalog("ice", **options, **{"py-io-impl": f"{__name__}.StoreIO"})


def rest_in(uri: str, warehouse: str, files: Files) -> RestCatalog:
    """A client of a REST catalog whose tables lie in a store. warehouse: their folder there."""
    _FILES[warehouse] = files
    return RestCatalog("ice", uri=uri, **{"py-io-impl": f"{__name__}.StoreIO"})


def as_table(rows: Rows | pa.Table) -> pa.Table:
    """People as rows with a number and an address."""
    if isinstance(rows, pa.Table):
        return rows
    return pa.table({"uid": [u for u, _ in rows], "mail": [m for _, m in rows]}, schema=_SCHEMA)


def iceberg(catalog: Catalog, name: str, *versions: Rows | pa.Table, **properties: Any) -> str:
    """A table of which each version after the first adds rows; where it lies."""
    schema = next((rows.schema for rows in versions if isinstance(rows, pa.Table)), _SCHEMA)
    catalog.create_namespace_if_not_exists(name.partition(".")[0])
    if not catalog.table_exists(name):  # else the attempt leaves metadata of a table that never was
        catalog.create_table(name, schema, properties=properties)
    table = catalog.load_table(name)
    for rows in versions:
        table.append(as_table(rows))
    return table.location()


def view(
    catalog: Catalog,
    name: str | tuple[str, ...],
    query: str,
    schema: pa.Schema = _SCHEMA,
    *,
    dialect: str = "spark",
) -> None:
    """A view. Names in its query are those of its namespace."""
    told = ViewRepresentation(SQLViewRepresentation(type="sql", sql=query, dialect=dialect))
    namespace = Catalog.namespace_from(name)
    version = ViewVersion(**{"schema-id": 0, "representations": [told], "default-namespace": namespace})
    catalog.create_view(name, schema, version)
