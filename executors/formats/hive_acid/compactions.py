"""Compactions of a transactional table, asked of the metastore, and what it says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.hive.client import Metastore
from pii_tracer.lake.catalogs.hive.security import Security
from pii_tracer.lake.formats.hive_acid.metastore_notes import AcidNotes, is_transactional, notes_of
from pii_tracer.model.errors import RunError

Answer = TypeVar("Answer")
ACTIVE = frozenset({"initiated", "working"})
CLEANING = "ready for cleaning"
FAILED = frozenset({"failed", "did not initiate", "refused", "aborted"})
_STATES = ACTIVE | FAILED | {CLEANING, "succeeded"}


@dataclass(frozen=True)
class Compaction:
    """One, as the metastore lists it. number: later ones are larger. state: as its lists have it, or `unknown`."""

    number: int
    state: str


class Compactions:
    """Of one table. name: the catalog's key in the estate file."""

    def __init__(self, name: str, catalog: Catalog, database: str, table: str) -> None:
        self._name, self._database, self._table = name, database, table
        self._store = Metastore(str(catalog.uri), Security.of(catalog))

    def notes(self) -> AcidNotes:
        """What the metastore says of the table now.

        Raises:
            RunError: it is not there, is no transactional one any more, or the metastore does not answer.
        """
        with self._refusals():
            table = self._store.ask("get_table", self._database, self._table)
            if is_transactional(table):
                return notes_of(self._store, self._name, table)
        raise RunError("the table is not a transactional ORC table any more", where=self._where, todo="plan again")

    def newest(self) -> dict[str, Compaction]:
        """The newest compaction of each partition, by its folder; empty of a table without any."""
        from hive_metastore.ttypes import ShowCompactRequest

        found: dict[str, Compaction] = {}
        for one in self._asked(lambda: self._store.ask("show_compact", ShowCompactRequest())).compacts or ():
            if (one.dbname, one.tablename) == (self._database, self._table):
                key, number = one.partitionname or "", int(one.id or 0)
                if key not in found or found[key].number < number:
                    found[key] = Compaction(number, one.state if one.state in _STATES else "unknown")
        return found

    def start(self, partition: str) -> None:
        """Ask for a major compaction; one that is asked for already, and has not begun, is the same."""
        from hive_metastore.ttypes import CompactionRequest, CompactionType

        asked = CompactionRequest(
            dbname=self._database, tablename=self._table, partitionname=partition or None, type=CompactionType.MAJOR
        )
        self._asked(lambda: self._store.ask("compact2", asked))

    def close(self) -> None:
        """End the connection."""
        self._store.close()

    @property
    def _where(self) -> str:
        return f"{self._name}.{self._database}.{self._table}"

    def _asked(self, ask: Callable[[], Any]) -> Any:
        with self._refusals():
            return ask()

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """The client lets errors of many families through, whose texts may quote."""
        try:
            yield
        except RunError:
            raise
        except Exception as error:
            raise RunError(
                f"the metastore does not answer ({type(error).__name__})",
                where=self._where,
                todo="check that the metastore runs and contains the table, then run `pii-tracer resume`",
            ) from None
