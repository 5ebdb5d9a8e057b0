"""From real paths to lineage identities and back, and from table names to locations.

Events and SQL name data by the paths of the place they were recorded in (OpenLineage: namespace `file`, name = path,
https://openlineage.io/docs/spec/naming); an estate's relocations say where that data lies here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from pathlib import Path

from pii_tracer.config.catalogs import DeclaredTable
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.catalogs.base import Capability
from pii_tracer.lake.catalogs.default_table_format import TABLES
from pii_tracer.lake.catalogs.named_places import beyond_places
from pii_tracer.lake.catalogs.registered_tables import Registered, Registry, RemoteTable, read_registry
from pii_tracer.lake.catalogs.registry import catalogs_that
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.lake.stores.any_place import AnyPlace, RemotePath, folder_at
from pii_tracer.lake.stores.object_places.object_path import ObjectPath
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import EstateError
from pii_tracer.model.hive_text.layout import FileText, TextTable
from pii_tracer.model.hive_text.text_reading_rules import TextPlaces
from pii_tracer.model.locations import (
    S3Location,
    hdfs_location,
    in_place,
    is_hdfs,
    is_object_place,
    is_remote,
    is_s3,
    local_path,
    object_location,
    remote_place,
    s3_location,
)

__all__ = ["SESSION_CATALOG", "EstatePaths", "local_path"]

SESSION_CATALOG = "spark_catalog."
FILE_NAMESPACE = "file"


class EstatePaths:
    """The places of one estate whose file lies in `base`. Everything outside its roots is refused."""

    def __init__(self, estate: Estate, base: Path) -> None:
        """Raises EstateError when a root, warehouse or table has a location that is not a local path."""
        self.base = base.resolve()
        self._estate = estate
        self.warehouses = {
            name: self._place(str(catalog.warehouse))
            for name, catalog in catalogs_that(estate, Capability.FOLDERS).items()
        }
        here = {self._place(r) for r in estate.roots if not (is_s3(r) or is_hdfs(r))}
        self.roots = tuple(sorted(here | set(self.warehouses.values())))
        self._dev_roots = tuple(self._place(r) for r in estate.dev_roots if not is_remote(r))
        self._dev_places = tuple(f"{remote_place(r)}/" for r in estate.dev_roots if is_remote(r))
        # those with options are in the registry, with the tables of catalogs that say how text is read
        declared = [t for c in estate.catalogs.values() for t in c.tables if not t.options]
        local = [t for t in declared if not is_remote(t.location)]
        # one place may be declared under two names, written in two ways: lineage knows it by either
        self._names = {t.name: self._place(t.location) for t in local}
        self.declared: dict[Path, DeclaredTable] = {self._names[t.name]: t for t in local}
        self._remote = [
            *(RemoteTable(t.name, t.name, t.format, s3_location(t.location)) for t in declared if is_s3(t.location)),
            *(RemoteTable(None, None, None, s3_location(root)) for root in estate.roots if is_s3(root)),
        ]
        self._places_in_hdfs = [
            hdfs_location(p) for p in (*estate.roots, *(t.location for t in declared)) if is_hdfs(p)
        ]
        self._stored = {t.name: hdfs_location(t.location).dataset for t in declared if is_hdfs(t.location)}
        objects = [(t.name, object_location(t.location)) for t in declared if is_object_place(t.location)]
        self._stored |= {name: location.dataset for name, location in objects}
        self._stored_tables = [*(t.location for t in declared if is_hdfs(t.location)), *(str(p) for _, p in objects)]
        places = (location for store in estate.object_stores for location, _ in store.located())
        self._places_of_objects = [*places, *(location for _, location in objects)]
        relocations = [(self._place(r.to), r.from_.rstrip("/") or "/") for r in estate.relocations]
        # the most specific relocation wins, whichever way it is read
        self._outward = sorted(relocations, key=lambda r: len(r[0].parts), reverse=True)
        self._inward = sorted(relocations, key=lambda r: len(r[1]), reverse=True)

    def _place(self, text: str) -> Path:
        return (self.base / local_path(text)).resolve()

    @cached_property
    def registry(self) -> Registry:
        """What the catalogs that list their own tables (SQL, REST, Glue) say, asked once, at the first use.

        Raises:
            EstateError: a catalog's client library is not installed.
        """
        return read_registry(self._estate, self.base, self.inside)

    @cached_property
    def beyond(self) -> tuple[InventoryGap, ...]:
        """What of folders that catalogs name in object stores lies in no place. It lists them, once."""
        tables = (table.location for table in self.registry.stored)
        held = {*self._places_of_objects, *tables, *self.registry.opaque_stored}
        return tuple(beyond_places(self._estate, self.registry.folders, held))

    @property
    def declared_remote(self) -> tuple[RemoteTable, ...]:
        """The tables in S3 that the estate file declares, in its order."""
        return tuple(table for table in self._remote if table.name)

    def place(self, location: str) -> AnyPlace:
        """Where a table of the inventory lies, or a file that its metadata names in full.

        Raises:
            EstateError: it lies in S3, which refuses, or the estate file does not say how its store is reached; or as
                `local_path`.
        """
        if in_place(location):
            return folder_at(self._estate, location)
        return self._bucket(s3_location(location).bucket).placed(location) if is_s3(location) else local_path(location)

    @cached_property
    def _bucket(self) -> Callable[[str], S3Path]:
        """A bucket, each asked once for its region."""
        from pii_tracer.lake.stores.s3.archive_versions import s3_clients

        clients = s3_clients(self._estate)

        @cache
        def bucket(name: str) -> S3Path:
            try:
                return S3Path.of(S3Location(bucket=name, key=""), clients)
            except OSError as error:
                code = str(error).rpartition(": ")[2]
                raise EstateError(
                    f"S3 refuses: {code}",
                    where=name,
                    todo="give the account the permissions to list and read the bucket",
                ) from None

        return bucket

    @cached_property
    def s3_options(self) -> dict[str, str]:
        """How delta-rs reaches S3: https://delta-io.github.io/delta-rs/usage/loading-table/#verify-table-existence.

        Raises:
            EstateError: the estate file does not say how S3 is reached.
        """
        from pii_tracer.lake.stores.s3.archive_versions import object_store

        return object_store(self._estate)

    def hdfs_reader(self, location: str) -> tuple[str, dict[str, str]]:
        """How delta-rs writes a place in HDFS, and how it reaches it."""
        from pii_tracer.lake.stores.hdfs.nameservice_settings import reader_address, reader_settings

        return reader_address(self._estate, hdfs_location(location)), reader_settings(self._estate)

    def object_options(self, location: str) -> dict[str, str]:
        """How delta-rs reaches an object store beside S3; with the environment's credentials, nothing has to be said.

        Raises:
            EstateError: the estate file does not declare the store.
        """
        return ObjectPath.at(self._estate, object_location(location)).store.reader_options()

    @property
    def remote(self) -> tuple[RemoteTable, ...]:
        """What lies in S3: tables that catalogs name or the estate file declares, its roots, and tables found there."""
        return (*self._named_remote, *self.found_remote)

    @property
    def _named_remote(self) -> tuple[RemoteTable, ...]:
        return (*self.registry.remote, *self._remote)

    @cached_property
    def found_remote(self) -> tuple[RemoteTable, ...]:
        """Tables in the estate's roots in S3 that nobody names. It lists the roots, once."""
        from pii_tracer.lake.tables_in_s3_roots import tables_in_roots

        return tables_in_roots(self._estate, self._named_remote, self.registry.opaque_s3)

    def metadata_at(self, path: Path) -> Path | None:
        """The Iceberg metadata file that a catalog points at for a location; None where no catalog does."""
        registered = self.registered_at(path)
        return registered.metadata if registered else None

    @cached_property
    def pointed_at(self) -> frozenset[Path]:
        """Every Iceberg metadata file that a catalog points at, links followed."""
        tables = self.registry.tables.values()
        heads = {head.metadata.resolve() for table in tables for head in table.heads}
        return frozenset(heads | {table.metadata.resolve() for table in tables if table.metadata})

    def registered_at(self, path: Path) -> Registered | None:
        """What the catalogs know of a location; None where none names it."""
        return self.registry.tables.get(path.resolve())

    def opaque_at(self, path: Path) -> str | None:
        """The table, if any, that a file may look like a plain one of and is none: the innermost table counts."""
        if not self.registry.opaque:
            return None
        for folder in path.resolve().parents:
            if folder in self.registry.opaque:
                return self.registry.opaque[folder]
            if folder in self.registry.tables or folder in self.declared:
                return None
        return None

    def inside(self, path: Path) -> bool:
        """Whether a path lies in the estate, after following symbolic links. `..` is never inside."""
        if not path.is_absolute() or ".." in path.parts:
            return False
        try:
            resolved = path.resolve()
        except (OSError, RuntimeError):  # links that lead to each other
            return False
        return any(resolved.is_relative_to(root) for root in self.roots)

    def checked_file(self, path: AnyPlace) -> None:
        """Raises EstateError as `checked`, and for a file in a store that lies in no place of the estate there."""
        if isinstance(path, Path):
            self.checked(path)
        elif not self._is_inside(path):
            raise EstateError(
                "the file is outside of the estate's places in its store",
                where=str(path),
                todo="add the file's folder to `roots`",
            )

    def _is_inside(self, path: RemotePath) -> bool:
        if isinstance(path, S3Path):
            return any(table.location.holds(path.location) for table in self._named_remote)
        if isinstance(path, ObjectPath):
            named = (table.location for table in self.registry.stored)
            return any(place.holds(path.location) for place in (*self._places_of_objects, *named))
        registered = (place for table in self.registry.hdfs for place in table.places)
        return any(place.holds(path.location) for place in (*self._places_in_hdfs, *registered))

    def checked(self, path: Path) -> Path:
        """The path with symbolic links followed.

        Raises:
            EstateError: relative, holds `..`, or lies (or leads) outside the estate's roots.
        """
        if not self.inside(path):
            raise EstateError(
                "the path is outside of the estate's roots",
                where=str(path),
                todo="add the folder to `roots` in the estate file, or correct the path",
            )
        return path.resolve()

    def dataset_of(self, path: Path) -> DatasetId:
        """The lineage identity of a real path.

        Raises:
            EstateError: as `checked`.
        """
        real = self.checked(path)
        for to, origin in self._outward:
            if real.is_relative_to(to):
                return DatasetId(namespace=FILE_NAMESPACE, name=_join(origin, real.relative_to(to)))
        return DatasetId(namespace=FILE_NAMESPACE, name=str(real))

    def real_path(self, dataset: DatasetId) -> Path | None:
        """Where a dataset lies on this machine; None for other namespaces and for places outside the estate."""
        if dataset.namespace != FILE_NAMESPACE or not dataset.name.startswith("/"):
            return None
        name = Path(dataset.name)
        if ".." in name.parts:
            return None
        for to, origin in self._inward:
            if name.is_relative_to(origin):
                real = to / name.relative_to(origin)
                return real.resolve() if self.inside(real) else None
        return name.resolve() if self.inside(name) else None

    def table_at(self, path: Path) -> str | None:
        """The name Spark SQL knows a location by; None for an unregistered one.

        A folder whose name holds a dot has none: `a.b` could not be told from namespace `a`, table `b`.
        """
        real = path.resolve()
        if real in self.declared:
            return self.declared[real].name
        if real in self.registry.tables:
            return next(iter(self.registry.tables[real].names), None)
        return self.hadoop_name(real)

    def keeps_history(self, table: str | None) -> bool:
        """Whether every snapshot of a table is to stay (`keep_history`). table: its name in Spark SQL."""
        return any(table in catalog.keep_history for catalog in self._estate.catalogs.values())

    @property
    def kept_histories(self) -> tuple[str, ...]:
        """Tables under `keep_history`, sorted."""
        return tuple(sorted({t for catalog in self._estate.catalogs.values() for t in catalog.keep_history}))

    def encoding_at(self, path: Path) -> str | None:
        """The encoding that the estate file declares for the CSV files of a folder."""
        table = self.declared.get(path.resolve())
        return table.encoding.value if table is not None and table.encoding is not None else None

    def text_table_at(self, path: Path) -> TextTable | None:
        """How the text in a folder is read, where a catalog says it of the table there."""
        registered = self.registered_at(path)
        return registered.text if registered else None

    @cached_property
    def texts(self) -> TextPlaces:
        """By what rules text is read, in every store."""
        others = (str(table.location) for table in self.declared_remote)
        return self.registry.texts((*map(Path.as_posix, self.declared), *others, *self._stored_tables))

    def text_of(self, path: Path) -> FileText | None:
        """How a file is read, where it is one of a table of text that a catalog names: the innermost table counts."""
        found = self.texts.around(path.parent.resolve().as_posix())
        return found and found[0].of(found[1])

    def searched_text(self, folder: Path) -> TextTable | None:
        """By what the files of a folder are searched, where it is a table of text or lies below one: they may have been
        the table's before."""
        found = self.texts.around(folder.resolve().as_posix())
        return found and found[0].below(found[1])

    def hadoop_name(self, path: Path) -> str | None:
        """The name that an Iceberg Hadoop catalog gives a table folder, by its place below the warehouse."""
        real = path.resolve()
        best: tuple[int, str] | None = None
        for catalog, warehouse in self.warehouses.items():
            if real == warehouse or not real.is_relative_to(warehouse) or not _in_warehouse(real):
                continue
            parts = real.relative_to(warehouse).parts
            if len(parts) >= 2 and not any("." in part for part in parts):
                candidate = (len(warehouse.parts), ".".join((catalog, *parts)))
                best = max(best, candidate) if best else candidate
        return best[1] if best else None

    @cached_property
    def aliases(self) -> Mapping[str, DatasetId]:
        """Names of tables (with and without `spark_catalog.`) and the datasets they stand for, found once, at the first
        use: that follows the links of every table's folder, and walks warehouses.

        Declared tables count whether they exist or not: lineage may remember one that is gone.
        """
        found: dict[str, DatasetId] = {}
        for declared, path in self._names.items():
            if self.inside(path):
                found[declared] = self.dataset_of(path)
        for registered in self.registry.tables.values():
            found.update(dict.fromkeys(registered.names, self.dataset_of(registered.location)))
        for tables in (self._named_remote, self.registry.hdfs, self.registry.stored):
            found.update({table.name: table.location.dataset for table in tables if table.name})
        found.update(self._stored)
        for warehouse in self.warehouses.values():
            for path in _warehouse_tables(warehouse):
                name = self.table_at(path)
                if name:
                    found[name] = self.dataset_of(path)
        for name in list(found):
            plain = name.removeprefix(SESSION_CATALOG)
            if plain != name:
                found.setdefault(plain, found[name])
            elif name.count(".") == 1:
                found.setdefault(SESSION_CATALOG + name, found[name])
        return dict(sorted(found.items()))

    def is_dev(self, location: str) -> bool:
        """Whether a location lies below a development root."""
        try:
            if is_remote(location):
                return f"{remote_place(location)}/".startswith(self._dev_places)
            path = local_path(location).resolve()
        except EstateError:
            return False
        return any(path.is_relative_to(root) for root in self._dev_roots)


def _in_warehouse(folder: Path) -> bool:
    """Whether a folder below a warehouse is a table of it."""
    return format_of(TABLES).is_table(folder)


def _warehouse_tables(warehouse: Path) -> list[Path]:
    """Every table folder below a warehouse, sorted; links are not followed."""
    found = []
    for current, folders, _ in os.walk(warehouse):
        path = Path(current)
        if _in_warehouse(path):
            found.append(path)
            folders.clear()
    return sorted(found)


def _join(origin: str, relative: Path) -> str:
    return str(Path(origin) / relative)
