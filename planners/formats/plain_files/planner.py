"""Bare folders for the planner: Parquet, ORC, Avro, CSV and JSON lines without a table format."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from pii_tracer.lake.formats.plain_files.rewritten_files import is_rewritten
from pii_tracer.lake.formats.plain_files.table_state import SUMMARY, TABLE_WRITERS
from pii_tracer.lake.formats.stray_file_marks import MARKS
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.table_descriptions import FOOTERS
from pii_tracer.model.datasets import Format
from pii_tracer.model.hive_text.layout import BEYOND_COLUMNS, SKIPPED_LINE, TEXT_TABLE
from planners.copies.scan_evidence import Seen
from planners.formats.base import BY_ITS_JOB, FormatPlanner, beside_rows
from planners.formats.plain_files.steps import folder_steps
from planners.step_drafts import CopyDraft, Draft
from planners.stores.object_places.places import by_objects

_TYPED = frozenset({Format.PARQUET, Format.ORC, Format.AVRO})
"""Formats in which a value has a type, by which Arrow compares it and not Spark."""

_WITHOUT_SCHEMA = frozenset({Format.AVRO, Format.CSV, Format.JSON})
"""Formats of folders that are not rebuilt: their files do not carry the folder's schema as Spark writes it."""

_WITH_LISTS = frozenset({Format.PARQUET, Format.ORC})
"""Formats in whose files steps remove elements of lists and maps."""

_TREATED_IN_PARQUET = frozenset({"dictionary page", "statistics", "key-value metadata"})
"""Places in a Parquet file beside its rows for which alone a step writes it again (hazard F3b), or that are a gap of
their own (`table_text`)."""

_KEPT_METADATA = frozenset({Format.ORC, Format.AVRO})
_OWN_ENTRIES = frozenset({"key-value metadata", "avro metadata"})
"""Places in files of these formats that a rewrite keeps: the owner's entries, and Avro's schema."""

_TIMES = ("timestamp", "time32", "time64", "duration")
"""How the types begin that have more than one text for a value."""

_OF_TRANSACTIONS = {"operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row"}
"""https://orc.apache.org/docs/acid.html"""
_TRANSACTIONS = (
    "files of a transactional table of Hive's. Other folders list deleted rows by number, and the files contain "
    "these rows until a major compaction. Delete the person with Hive, run ALTER TABLE … COMPACT 'major', and check "
    "that Hive's cleaner removed the old folders"
)

_OF_A_TABLE = (
    "footers show that {} wrote these files for a table. A rewrite of the files would break that table for its "
    "readers. Name the table in a catalog of the estate file. If no table reads these files, let a job write the "
    "rows into a new folder without that format, or delete them"
)

_BY_PLACE = re.compile(r"_c\d+$", re.IGNORECASE)
_NO_HEADER = "a file's first line is not a list of names: a name is empty, repeated, or has unusual characters"
"""Discovery calls the columns of such a file `_c0`, `_c1`, …"""


class PlainFilesPlanner(FormatPlanner):
    """Plans for bare folders: the files that hold the person are written again."""

    executors = frozenset({"files"})
    compares_whole_keys = True
    runs_on_spark = False

    def table_steps(self, item: CopyDraft) -> tuple[Draft, ...]:
        return folder_steps(item)

    def unsupported(self, state: TableState, keys: Collection[str]) -> str | None:
        if {column.name for column in state.columns} >= _OF_TRANSACTIONS:
            return _TRANSACTIONS
        if (writers := state.properties.get(TABLE_WRITERS)) and state.same_files_as is None:
            return _OF_A_TABLE.format(writers)
        named = sorted({name.lower() for name in state.partition_columns} & {name.lower() for name in keys})
        if not named:
            return None
        return (
            f"a bare folder that is partitioned by a key of the person ({', '.join(named)}). No file shows whose its "
            "rows are, and no step renames folders. Ask the owner to rewrite the rows with the key in the files, or "
            "to remove folders that contain only the person"
        )

    def no_rebuild(self, state: TableState) -> str | None:
        if not (state.in_objects or state.in_hdfs or by_objects(state)) and state.format not in _WITHOUT_SCHEMA:
            return None
        where = " in S3" if state.in_objects else " in HDFS" if state.in_hdfs else ""
        where = " in an object store" if by_objects(state) else where
        return f"rebuilding a bare {state.format} folder{where} is not supported yet: {BY_ITS_JOB}"

    def no_clearing(self, state: TableState) -> str | None:
        if by_objects(state):
            return "a bare folder in an object store"
        return "a bare folder in HDFS" if state.in_hdfs else None

    def no_removing(self, state: TableState) -> str | None:
        return self.no_clearing(state) if state.format in _WITH_LISTS else f"the format {state.format}"

    def missing_column(self, state: TableState) -> str:
        if TEXT_TABLE in state.properties:
            return "the catalog and the estate file have no such column: lineage may be older than the last change"
        why = f": another delimiter than a comma, or no header ({_NO_HEADER})" if state.format is Format.CSV else ""
        return f"the files have no such column{why}"

    def unnamed_column(self, state: TableState, column: str) -> str | None:
        if TEXT_TABLE in state.properties:
            return None
        return _NO_HEADER if state.format is Format.CSV and _BY_PLACE.match(column) else None

    def incomparable(self, state: TableState, kind: str) -> bool:
        if TEXT_TABLE in state.properties:
            return kind != "string"  # whole numbers are text here, in one spelling
        return state.format in _TYPED and kind.startswith(_TIMES)

    def holds_texts(self, state: TableState) -> bool:
        return state.format is Format.CSV

    def left_behind(self, item: CopyDraft, seen: Seen) -> str | None:
        """Data files that hold the persons are written again, Parquet's stale entries with them; nothing else is."""
        path = PurePosixPath(seen.file)
        summarised = item.state is not None and SUMMARY in item.state.properties
        if path.name == SUMMARY and summarised and "key-value metadata" not in seen.places:
            return None  # removed with the files that it tells of
        if MARKS.match(path.name):
            return "a marker file or checksum file, which no step rewrites: ask its owner to remove it"
        if not is_rewritten(path, item.copy.format):
            return "a hidden file that is not a data file (such as an editor's copy): ask its owner to remove it"
        if SKIPPED_LINE in seen.places:
            return "a line of a header or footer contains a value, and a rewrite keeps it: ask its owner to remove it"
        if BEYOND_COLUMNS in seen.places:
            return (
                "a cell after the last column contains a value, and a rewrite may keep it: ask its owner to remove it"
            )
        if item.copy.format in _KEPT_METADATA and not seen.places.isdisjoint(_OWN_ENTRIES):
            return (
                "metadata inside a data file contains a value, and a rewrite keeps it: ask the owner to rewrite that "
                "file without these metadata entries"
            )
        beside = seen.places - {"raw bytes"}  # of what stands in another place of the file again
        if item.copy.format is Format.PARQUET and beside and beside <= _TREATED_IN_PARQUET:
            return None
        return beside_rows(item, seen)

    def text_remedies(self, name: Format) -> Mapping[str, str]:
        return {FOOTERS: "by rewriting these files without the entry"}
