"""Sweeps one Iceberg table: expire_snapshots, and remove_orphan_files with `file_list_view`.

https://iceberg.apache.org/docs/latest/spark-procedures/
"""

from __future__ import annotations

from datetime import datetime, timezone

from executors.engine.sql_names import quote, quote_table, string_literal
from executors.formats.iceberg.orphan_files import metadata_file
from executors.sweep.format_sweep import FormatSweep, Freed, Judged
from pii_tracer.lake.formats.iceberg.metadata_json import METADATA_ENDS
from pii_tracer.lake.formats.iceberg.snapshot_expiry import Expiry, History, referenced
from pii_tracer.lake.formats.iceberg.stray_files import as_written
from pii_tracer.lake.formats.iceberg.table_state import load_iceberg
from pii_tracer.retention.sweep_rules import Held


class IcebergSweep(FormatSweep):
    """What the procedures remove is compared with the table's own metadata, read without Spark."""

    def judge(self, view: str) -> Judged:
        told = self._orphans(view, dry=True)
        history = History(self.store.folder, self._pointed())
        expiry = history.expiry(self.target.refs, self.target.cutoff(self.now), self.now)
        return Judged(told, history.referenced(), _known, {}, _freed(expiry))

    def forget_versions(self) -> None:
        """By age only: how many to keep at least is the table's own setting."""
        catalog, _, table = str(self.target.sql_name).partition(".")
        self.spark.sql(
            f"CALL {quote(catalog)}.system.expire_snapshots(table => {string_literal(table)},"
            f" older_than => TIMESTAMP {_moment(self.target.cutoff(self.now))})"
        ).collect()

    def remove(self, view: str) -> None:
        self._orphans(view, dry=False)

    def needed(self) -> frozenset[str]:
        return referenced(self.store.folder, self._pointed())

    def has_to_stand(self, path: str) -> bool:
        return not path.endswith(METADATA_ENDS)

    def _orphans(self, view: str, *, dry: bool) -> list[str]:
        catalog, _, table = str(self.target.sql_name).partition(".")
        files = f"{view}_paths"
        root, spelled = str(self.target.location), self._spelled()
        frame = self.spark.sql(
            f"SELECT concat({string_literal(spelled)}, substr(path, {len(root) + 1})) AS file_path,"
            f" timestamp_millis(modificationTime) AS last_modified FROM {view}"
        )
        frame.createOrReplaceTempView(files)
        try:
            rows = self.spark.sql(
                f"CALL {quote(catalog)}.system.remove_orphan_files(table => {string_literal(table)},"
                f" older_than => TIMESTAMP {_moment(self.target.cutoff(self.now))}, dry_run => {str(dry).lower()},"
                f" file_list_view => {string_literal(files)}, prefix_mismatch_mode => 'ERROR')"
            ).toLocalIterator()
            return [str(row[0]) for row in rows]
        finally:
            self.spark.catalog.dropTempView(files)

    def _pointed(self) -> str | None:
        """The metadata file that the table's catalog points at now; None where the folder itself tells."""
        if not self.target.pointed:
            return None
        return str(metadata_file(self.spark, self.store.folder, quote_table(str(self.target.sql_name))))

    def _spelled(self) -> str:
        """The table's folder as its metadata writes it (with or without a scheme)."""
        return str(load_iceberg(self.store.folder, self._pointed()).location()).rstrip("/")


def _freed(expiry: Expiry) -> Freed:
    held = tuple(Held(ref=h.ref, kind=h.kind, snapshot=str(h.snapshot), until=h.until) for h in expiry.holders)
    return Freed(expiry.freed, len(expiry.expired), held)


def _known(path: str) -> bool:
    return as_written(path.rpartition("/")[2])


def _moment(when: datetime) -> str:
    """A timestamp literal; the session's zone is UTC."""
    return string_literal(when.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f"))
