"""Hive's transactional tables for the planner."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from pii_tracer.lake.formats.hive_acid.folders import BUCKET, acid_folder
from pii_tracer.lake.inventory import TableState
from pii_tracer.model.plan import Precondition
from planners.copies.scan_evidence import PATH, Seen
from planners.formats.base import FormatPlanner
from planners.formats.hive_acid.steps import table_steps
from planners.step_drafts import CopyDraft, Draft

_COMPARED = re.compile(r"(string|varchar\(\d+\)|tinyint|smallint|int|bigint)\Z", re.IGNORECASE)
"""Types of which a value has one text in Hive, the same as elsewhere."""


class HiveAcidPlanner(FormatPlanner):
    """Plans for transactional tables: Hive deletes, compacts and cleans."""

    executors = frozenset({"hive_acid"})
    runs_on_spark = False

    def table_steps(self, item: CopyDraft) -> tuple[Draft, ...]:
        return table_steps(item)

    def readers(self, state: TableState) -> tuple[Precondition, ...]:
        return ()

    def without_name(self, state: TableState) -> str | None:
        return (
            None
            if state.table
            else ("Hive deletes by the table's name, and SQL cannot write the name that the metastore has")
        )

    def unsupported(self, state: TableState, keys: Collection[str]) -> str | None:
        named = sorted({name.lower() for name in state.partition_columns} & {name.lower() for name in keys})
        if not named:
            return None
        return (
            f"a transactional table that is partitioned by a key of the person ({', '.join(named)}). The names of its "
            "folders still contain the key after a delete. Ask its owner to drop the person's partitions (ALTER "
            "TABLE … DROP PARTITION), or to partition the table by a different column"
        )

    def out_of_reach(self, way: Sequence[str], *, in_text: bool) -> str | None:
        if in_text:
            return "the key is inside a JSON text, which Hive does not search: let the job write the key as a column"
        if any("`" in name for name in way):
            return "its name has a backtick, which Hive's SQL cannot write: ask the owner to rename the column"
        return None

    def incomparable(self, state: TableState, kind: str) -> bool:
        return _COMPARED.match(kind.strip()) is None

    def left_behind(self, item: CopyDraft, seen: Seen) -> str | None:
        """A compaction writes every partition again that has more than one base; a base alone is left as it is."""
        *_, above, name = ("", *PurePosixPath(seen.file).parts)
        if PATH in seen.places:
            return "the name of a folder or file contains a value: ask its owner to drop the partition"
        if acid_folder(above) is None or not BUCKET.fullmatch(name):
            return "a file in the table's folder that Hive did not write contains a value: ask its owner to remove it"
        if seen.in_rows:
            return None
        return (
            f"a file contains a value that none of its rows has ({', '.join(sorted(seen.places))}). Ask its owner to "
            "rewrite the table (INSERT OVERWRITE), then plan again"
        )
