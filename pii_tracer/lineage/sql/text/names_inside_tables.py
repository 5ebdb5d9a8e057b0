"""Names in Spark SQL that stand for something of an Iceberg table: a branch, tag or snapshot, its changes or metadata.

They are written like a table in a database that is called as the table: `db.t.branch_audit`, `db.t.files`. Rules:
https://iceberg.apache.org/docs/latest/spark-queries/ (time travel, inspecting tables),
https://iceberg.apache.org/docs/latest/spark-writes/#writing-to-branches and
https://iceberg.apache.org/docs/latest/spark-procedures/#create_changelog_view. Iceberg looks for a table of the whole
name first, and so does who asks here: a name alone tells nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_REFERENCE = re.compile(r"(?:branch|tag)_.+", re.DOTALL)
_VERSION = re.compile(r"(?:snapshot_id|at_timestamp)_[0-9]+")
"""Iceberg tells these by case, and metadata tables not."""
_CHANGES = "changes"

_FILES = (
    "content file_path file_format spec_id partition record_count file_size_in_bytes column_sizes value_counts"
    " null_value_counts nan_value_counts lower_bounds upper_bounds key_metadata split_offsets equality_ids"
    " sort_order_id first_row_id referenced_data_file content_offset content_size_in_bytes readable_metrics"
)
_ENTRIES = "status snapshot_id sequence_number file_sequence_number data_file readable_metrics"
_MANIFESTS = (
    "content path length partition_spec_id added_snapshot_id added_data_files_count existing_data_files_count"
    " deleted_data_files_count added_delete_files_count existing_delete_files_count deleted_delete_files_count"
    " partition_summaries"
)
_STEADY = {
    "history": "made_current_at snapshot_id parent_id is_current_ancestor",
    "metadata_log_entries": "timestamp file latest_snapshot_id latest_schema_id latest_sequence_number",
    "snapshots": "committed_at snapshot_id parent_id operation manifest_list summary",
    "refs": "name type snapshot_id max_reference_age_in_ms min_snapshots_to_keep max_snapshot_age_in_ms",
}
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    name: tuple(columns.split())
    for name, columns in {
        **_STEADY,
        "table_properties_log": "",
        **dict.fromkeys(("files", "data_files", "delete_files"), _FILES),
        **dict.fromkeys(("all_files", "all_data_files", "all_delete_files"), _FILES),
        **dict.fromkeys(("entries", "all_entries"), _ENTRIES),
        "manifests": _MANIFESTS,
        "all_manifests": f"{_MANIFESTS} reference_snapshot_id",
        "partitions": "partition spec_id record_count file_count total_data_file_size_in_bytes"
        " position_delete_record_count position_delete_file_count equality_delete_record_count"
        " equality_delete_file_count last_updated_at last_updated_snapshot_id",
        "position_deletes": "file_path pos row partition spec_id delete_file_path content_offset content_size_in_bytes",
    }.items()
}
"""Of each metadata table all columns of all versions and kinds of tables, partitioned or not."""

_HARMLESS = frozenset(
    {
        *" ".join(columns for name, columns in _STEADY.items() if name != "snapshots").split(),
        *("committed_at", "operation", "manifest_list"),  # `summary` lists partitions where a property asks for it
        *("content", "file_format", "spec_id", "record_count", "file_size_in_bytes", "column_sizes", "value_counts"),
        *("null_value_counts", "nan_value_counts", "split_offsets", "equality_ids", "sort_order_id", "first_row_id"),
        *("content_offset", "content_size_in_bytes", "status", "sequence_number", "file_sequence_number", "pos"),
        *(
            "path",
            "length",
            "partition_spec_id",
            "added_snapshot_id",
            "added_data_files_count",
            "existing_data_files_count",
        ),
        *("deleted_data_files_count", "added_delete_files_count", "existing_delete_files_count"),
        *("deleted_delete_files_count", "reference_snapshot_id", "file_count", "total_data_file_size_in_bytes"),
        *("position_delete_record_count", "position_delete_file_count", "equality_delete_record_count"),
        *("equality_delete_file_count", "last_updated_at", "last_updated_snapshot_id"),
    }
)
"""Columns of metadata tables that hold no value of a row. All others may, those that are not known among them: bounds
and summaries are values, rows of position deletes are rows, and paths of files have partitions' values in them."""


@dataclass(frozen=True)
class Part:
    """table: its name as written. what: the last part of the name, as Iceberg reads it."""

    table: str
    what: str

    @property
    def metadata(self) -> bool:
        """Whether it has columns of its own, and not the table's rows."""
        return self.what in _COLUMNS

    @property
    def writable(self) -> bool:
        """Whether rows can be written to it: to a branch, and to nothing else."""
        return self.what.startswith("branch_")

    @property
    def columns(self) -> tuple[str, ...]:
        """Of a metadata table."""
        return _COLUMNS[self.what]

    @property
    def loose(self) -> bool:
        """Whether a metadata table has some of its columns only, depending on the table and on Iceberg's version."""
        return self.what not in _STEADY


def parts_of(name: str) -> Iterator[Part]:
    """What a name may stand for, the longest name of a table first.

    That has its database with it, as Iceberg's pages write it: of a shorter one nobody could tell whether it is a
    table's or a database's, which has tables called `branch_…`, too. Names of branches and tags may have dots.
    """
    if "/" in name:
        return
    pieces = name.replace("`", "").split(".")
    for at in range(len(pieces) - 1, 1, -1):
        table, what = ".".join(pieces[:at]), ".".join(pieces[at:])
        if _REFERENCE.fullmatch(what) or _VERSION.fullmatch(what):
            yield Part(table, what)
        elif what.lower() in _COLUMNS or what.lower() == _CHANGES:
            yield Part(table, what.lower())


def holds_values(column: str) -> bool:
    """Whether a column of a metadata table may hold values of rows. `*` stands for columns that are not known."""
    return column.lower() not in _HARMLESS
