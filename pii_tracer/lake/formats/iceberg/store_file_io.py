"""Iceberg tables in stores for PyIceberg, through the clients that all else there is read by. Nothing is written.

PyIceberg's own file I/O has ways of its own to reach stores and to find credentials.
https://py.iceberg.apache.org/configuration/#fileio
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, cast

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile
from pyiceberg.table import StaticTable
from pyiceberg.table.metadata import TableMetadataUtil

from pii_tracer.lake.formats.iceberg.metadata_json import unzipped

if TYPE_CHECKING:
    from pii_tracer.lake.stores.any_place import RemotePath

_NAME = "static-table"


def table_of(folder: RemotePath, metadata: RemotePath) -> StaticTable:
    """The table that a metadata file tells, and whatever errors that raises. folder: the table's."""
    told = TableMetadataUtil.parse_raw(unzipped(metadata.open("rb").read()).decode("utf-8"))
    place = str(metadata)
    return StaticTable((_NAME, place), told, place, StoreFileIO(folder), NoopCatalog(_NAME))


class StoreFileIO(FileIO):
    """Reads what a table in a store names, in whatever spelling. folder: the table's."""

    def __init__(self, folder: RemotePath) -> None:
        super().__init__()
        self._folder = folder

    def new_input(self, location: str) -> InputFile:
        return _Object(location, self._folder.placed(location))

    def new_output(self, location: str) -> OutputFile:
        _refuse()

    def delete(self, location: str | InputFile | OutputFile) -> None:
        _refuse()


class _Object(InputFile):
    def __init__(self, location: str, place: RemotePath) -> None:
        super().__init__(location)
        self._place = place

    def __len__(self) -> int:
        return self._place.seekable().seek(0, 2)

    def exists(self) -> bool:
        return self._place.is_file()

    def open(self, seekable: bool = True) -> InputStream:
        """Manifests are read from end to end, of data files a few columns."""
        found = self._place.open("rb") if self._place.suffix == ".avro" else self._place.seekable()
        return cast("InputStream", found)


def _refuse() -> NoReturn:
    raise PermissionError("the tool only reads tables in stores")
