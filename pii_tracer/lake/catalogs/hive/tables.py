"""Tables of a Hive metastore: Iceberg, Delta, Hudi and plain files, with their partitions.

A table of a format that is not known, or whose files are no plain ones (ACID), is a gap, and its files are never read
as a plain table's. The same holds for what the metastore names and does not tell of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pii_tracer.common.plurals import counted
from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import CatalogEntry, Listing, sql_name
from pii_tracer.lake.catalogs.hive.client import Metastore, is_unknown_method
from pii_tracer.lake.catalogs.hive.security import Security, way_out
from pii_tracer.lake.catalogs.hive.table_kind_detection import Kept, Refused, is_view, place_of
from pii_tracer.lake.catalogs.hive.table_walk import PartitionEntry, TableWalk
from pii_tracer.lake.formats.hive_acid.metastore_notes import is_transactional, notes_of
from pii_tracer.lake.formats.hive_acid.vocabulary import HIVE_ACID
from pii_tracer.model.gap_kinds import GapKind

BATCH = 300
"""Tables, or partitions, that are asked for at once."""
_OWN_CATALOG = "hive"


def list_hive(name: str, catalog: Catalog) -> Listing:
    """Every table of the named databases, or of all. What is refused is a gap; the rest is read.

    Raises:
        EstateError: the client library is not installed.
    """
    with Metastore(str(catalog.uri), Security.of(catalog)) as store:
        walk = _Walk(name, store, erases=catalog.hiveserver2 is not None)
        try:
            databases = catalog.databases or databases_of(store)
        except Exception as error:  # the client lets errors of many families through
            todo = way_out(error, store.security)
            walk.gap(f"the metastore does not answer ({type(error).__name__}), so its tables are unknown; {todo}")
        else:
            walk.other_catalogs()
            for database in databases:
                walk.database(database)
    return walk.listing()


def databases_of(store: Metastore) -> tuple[str, ...]:
    """The names of all databases, sorted."""
    return tuple(sorted(map(str, store.ask("get_all_databases"))))


def tables_of(store: Metastore, database: str) -> Iterator[tuple[str, Any]]:
    """Every table and view of a database by its name, as the metastore tells it; None where it names one and does not
    tell of it, or not so that it can be read (the client cannot read places of skewed values).

    Raises:
        Exception: it refuses, or does not answer.
    """
    names = sorted(map(str, store.ask("get_all_tables", database)))
    for batch in batches(names):
        try:
            found = store.ask("get_table_objects_by_name", database, list(batch))
        except Exception:
            if store.silent:
                raise
            found = [table for name in batch if (table := _alone(store, database, name))]
        told = {str(table.tableName): table for table in found}
        yield from ((name, told.get(name)) for name in batch)


def _alone(store: Metastore, database: str, name: str) -> Any:
    """One table of those that cannot be read together; None where it is the one."""
    try:
        return store.ask("get_table", database, name)
    except Exception:
        if store.silent:
            raise
        return None


def partitions_of(store: Metastore, database: str, table: str) -> Iterator[tuple[str, Any]]:
    """Every partition of a table by its name (`day=1/country=in`); None where the metastore is silent about one.

    Raises:
        Exception: it refuses, or does not answer.
    """
    names = sorted(map(str, store.ask("get_partition_names", database, table, -1)))
    for batch in batches(names):
        # they are told by their values alone, as many of them as are there
        told = list(store.ask("get_partitions_by_names", database, table, list(batch)))
        if len(told) == len(batch):
            yield from zip(batch, told, strict=True)
        else:
            yield from ((name, None) for name in batch)


def batches(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Names in pieces that one answer has room for."""
    yield from (names[start : start + BATCH] for start in range(0, len(names), BATCH))


class _Walk(TableWalk):
    move = "ALTER TABLE … PARTITION … SET LOCATION"

    def __init__(self, name: str, store: Metastore, *, erases: bool) -> None:
        """erases: whether rows of transactional tables can be deleted."""
        super().__init__(name)
        self._store = store
        self._erases = erases

    def table(self, parts: tuple[str, str], table: Any) -> Kept | Refused:
        """A transactional table is listed where its rows can be deleted; otherwise its files are no plain ones."""
        if not self._erases or not is_transactional(table) or sql_name(*parts) is None:
            return super().table(parts, table)
        location = place_of(table.sd)
        try:
            found = tuple(partitions_of(self._store, *parts)) if table.partitionKeys else ()
            notes = notes_of(self._store, self._name, table).model_dump_json()
        except Exception as error:
            if self._store.silent:
                raise
            self.gap(f"the metastore does not describe the transactional table ({type(error).__name__})", *parts)
            return super().table(parts, table)
        if location is None or any(p is None or place_of(p.sd) != f"{location}/{name}" for name, p in found):
            self.gap(
                "a transactional table with partitions outside of its folder, or in folders with different names. No "
                "step erases this table. Move these partitions into the table's folder (ALTER TABLE … PARTITION … "
                "SET LOCATION)",
                *parts,
                kind=GapKind.EXTERNAL_FILES,
            )
            return super().table(parts, table)
        self._entries.append(CatalogEntry(sql_name(*parts), parts, HIVE_ACID, location, notes=notes))
        return Kept(HIVE_ACID, location)

    def other_catalogs(self) -> None:
        """Hive 3 has catalogs above databases; clients of before, and these methods, see the default one alone."""
        try:
            names = self._store.ask("get_catalogs").names
        except Exception as error:
            if not is_unknown_method(error):
                self.gap(f"the metastore does not say whether it has other catalogs ({type(error).__name__})")
            return
        for other in sorted({str(name) for name in names or ()} - {_OWN_CATALOG}):
            self.gap(
                "a different catalog of the metastore, whose tables the tool does not read",
                other,
                kind=GapKind.UNKNOWN_CATALOG,
            )

    def database(self, database: str) -> None:
        """Every table of one database."""
        try:
            # of a database that is not there, a metastore says that it has no tables
            self._store.ask("get_database", database)
            for name, table in tables_of(self._store, database):
                if table is None:
                    self.gap("the metastore lists the table, but does not describe it", database, name)
                elif is_view(table):
                    self.view((database, name), table)
                else:
                    self.table((database, name), table)
        except Exception as error:
            self.gap(f"the tables of the database cannot be listed ({type(error).__name__})", database)

    def partitions(self, parts: tuple[str, str], table: Any) -> list[PartitionEntry]:
        """Each partition that the metastore describes."""
        if not table.partitionKeys:
            return []
        found: list[PartitionEntry] = []
        silent = 0
        try:
            for _, partition in partitions_of(self._store, *parts):
                if partition is None:
                    silent += 1
                    continue
                found.append(PartitionEntry.of(table, partition))
        except Exception as error:
            self.gap(f"its partitions cannot be listed ({type(error).__name__})", *parts)
        if silent:
            self.gap(f"the metastore lists {counted(silent, 'partition')}, but does not describe all of them", *parts)
        return found
