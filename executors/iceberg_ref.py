"""The treatment of one line of an Iceberg table: main or a branch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from executors.base import Target
from executors.iceberg_table import MAIN, IcebergTable
from executors.match import condition
from executors.spark import quote, string_literal

DELETED = 2
"""Manifest entry status of a deleted file (https://iceberg.apache.org/spec/#manifest-entry-fields)."""


@dataclass(frozen=True)
class Ref:
    """A line of a table. `name` None is main; a tag can be read through it, never written."""

    table: IcebergTable
    name: str | None

    @property
    def relation(self) -> str:
        """For reading, branch or tag alike."""
        return self.table.name + ("" if self.name is None else f" VERSION AS OF {string_literal(self.name)}")

    @property
    def writable(self) -> str:
        """For DELETE and INSERT (https://iceberg.apache.org/docs/latest/spark-writes/#writing-to-branches)."""
        return self.table.name + ("" if self.name is None else "." + quote("branch_" + self.name))

    def snapshot(self) -> int | None:
        """Id of the head; None for an empty table."""
        found = self.table.refs().get(self.name or MAIN)
        return None if found is None else found[1]

    def delete_files(self) -> int:
        """Delete files (position, equality, deletion vectors) of the head."""
        return self._count("delete_files", "1 = 1")

    def deleted_entries(self) -> int:
        """Manifest entries of the head that list a file as deleted; they still hold its bounds."""
        return self._count("entries", f"status = {DELETED}")

    def _count(self, metadata_table: str, where: str) -> int:
        head = self.snapshot()
        if head is None:
            return 0
        relation = f"{self.table.name}.{metadata_table} VERSION AS OF {head}"
        row = self.table.spark.sql(f"SELECT count(*) FROM {relation} WHERE {where}").first()
        return int(row[0]) if row else 0

    def summary(self, since: int | None) -> dict[str, Any]:
        """What the snapshots after `since` say of themselves: rows, files and bytes, added and removed."""
        snapshots = self.table.snapshots()
        rows = self.table.spark.sql(f"SELECT snapshot_id, summary FROM {self.table.name}.snapshots").collect()
        summaries = {int(row[0]): row[1] for row in rows}
        facts: dict[str, int] = {}
        node = self.snapshot()
        while node is not None and node != since and node in snapshots:
            for key, fact in _SUMMARY.items():
                facts[fact] = facts.get(fact, 0) + int(summaries[node].get(key, 0))
            node = snapshots[node][0]
        return dict(facts)


_SUMMARY = {
    "deleted-records": "rows_removed_with_files",
    "added-records": "rows_added_with_files",
    "added-position-deletes": "rows_marked_deleted",
    "added-data-files": "files_added",
    "deleted-data-files": "files_removed",
    "added-files-size": "bytes_added",
    "removed-files-size": "bytes_removed",
}


def delete_rows(at: Target, ref: Ref) -> None:
    """Semi-join delete; the statement holds names only."""
    at.sql(f"DELETE FROM {ref.writable} WHERE {condition(at.match, at.ctx.key_view)}")


def rewrite_files(at: Target, ref: Ref, *, everything: bool = False) -> dict[str, Any]:
    """`rewrite_data_files` so that no delete file is left; `everything` rewrites untouched files too."""
    options = {"delete-file-threshold": "1", "remove-dangling-deletes": "true"}
    if everything:
        options["rewrite-all"] = "true"
    pairs = ", ".join(f"{string_literal(key)}, {string_literal(value)}" for key, value in options.items())
    branch = "" if ref.name is None else f", branch => {string_literal(ref.name)}"
    row = at.sql(
        f"CALL {quote(ref.table.catalog)}.system.rewrite_data_files("
        f"table => {ref.table.argument}, options => map({pairs}){branch})"
    ).first()
    return row.asDict() if row else {}


def empty_commit(at: Target, ref: Ref) -> None:
    """A snapshot without rows: manifests that hold nothing but deleted entries leave the head with it."""
    at.sql(f"INSERT INTO {ref.writable} SELECT * FROM {ref.relation} WHERE false")


def clean_manifests(at: Target, ref: Ref) -> dict[str, Any]:
    """Make the head's manifests free of deleted entries.

    `rewrite_manifests` and an empty commit each clear what the other leaves; a lone manifest with deleted and live
    entries needs a rewrite grouped by file, or on a branch (which manifest rewriting cannot reach) of all data files.
    """
    before = ref.deleted_entries()
    facts: dict[str, Any] = {"deleted_entries_before": before}
    if ref.snapshot() is None:
        return facts
    if ref.name is None:
        at.sql(f"CALL {quote(ref.table.catalog)}.system.rewrite_manifests(table => {ref.table.argument})")
    empty_commit(at, ref)
    if ref.deleted_entries() and ref.name is None:
        function = at.spark._jvm.java.util.function.Function.identity()  # type: ignore[union-attr]
        ref.table.java().rewriteManifests().clusterBy(function).commit()
        facts["regrouped"] = True
    if ref.deleted_entries():
        rewrite_files(at, ref, everything=True)
        empty_commit(at, ref)
        facts["rewrote_all_files"] = True
    facts["deleted_entries_after"] = ref.deleted_entries()
    return facts


