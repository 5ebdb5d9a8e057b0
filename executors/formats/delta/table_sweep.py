"""Sweeps one Delta table: VACUUM … USING INVENTORY. https://docs.delta.io/latest/delta-utility.html#inventory-table"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from executors.engine.sql_names import quote, quote_table, string_literal
from executors.sweep.format_sweep import FormatSweep, Judged
from pii_tracer.lake.catalogs.base import in_session_catalog
from pii_tracer.lake.formats.delta.log_files import mentioned
from pii_tracer.lake.formats.delta.stray_files import as_written
from pii_tracer.lake.formats.delta.transaction_log import log_of
from pii_tracer.lake.stores.any_place import AnyPlace
from pii_tracer.model.locations import engine_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Logged:
    """live: files that the current version needs. known: of files, whether they are named by a retained version,
    or as writers of Delta name theirs; the others are perhaps somebody's. removed: when each file was removed from the
    table that was (ms since 1970), read from the log when it is asked for.
    """

    live: frozenset[str]
    known: Callable[[str], bool]
    removed: Callable[[], Mapping[str, int]]


def logged(place: AnyPlace) -> Logged:
    """What a table's log names."""
    snapshot = log_of(place)
    named = {str(path) for path in snapshot.named}

    def known(file: str) -> bool:
        return file in named or as_written(PurePosixPath(file.removeprefix(f"{place}/")), snapshot)

    return Logged(snapshot.needed, known, lambda: mentioned(place))


class DeltaSweep(FormatSweep):
    """Delta passes over `_` names itself, and enters `_change_data`.

    Delta 4.1 and later pass over `RETAIN` and go by the table's own setting, which may be shorter than the class
    (hazard D3): so it is told when each file was removed.
    """

    sees_hidden = True

    def judge(self, view: str) -> Judged:
        told = self._vacuum(view, dry=True)
        log = logged(self.store.folder)
        return Judged(told, log.live, log.known, log.removed())

    def remove(self, view: str) -> None:
        self._vacuum(view, dry=False)

    def needed(self) -> frozenset[str]:
        return logged(self.store.folder).live

    def _vacuum(self, view: str, *, dry: bool) -> list[str]:
        """Delta takes the inventory as a query, and passes over paths that do not begin as it writes its own."""
        target, store = self.target, self.store
        named = target.sql_name if target.sql_name and in_session_catalog(target.sql_name) else None
        table = quote_table(named) if named else f"delta.{quote(engine_path(str(target.location)))}"
        front, start = string_literal(store.front), len(store.cut) + 1
        query = f"SELECT concat({front}, substr(path, {start})) AS path, length, isDir, modificationTime FROM {view}"
        return vacuum_listed(self.spark, table, query, target.days * 24, dry=dry)


def vacuum_listed(spark: SparkSession, table: str, query: str, hours: int, *, dry: bool) -> list[str]:
    """Delta's VACUUM of listed files.

    table: quoted; query: gives the files, their paths spelled as the table's own. Returns what it would remove (dry).
    """
    rows = spark.sql(f"VACUUM {table} USING INVENTORY ({query}) RETAIN {hours} HOURS" + (" DRY RUN" if dry else ""))
    return [str(row[0]) for row in rows.toLocalIterator()]
