"""Delta for the planner: https://docs.delta.io/latest/delta-utility.html"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from pii_tracer.common.plurals import counted
from pii_tracer.lake.catalogs.base import in_session_catalog
from pii_tracer.lake.formats.delta.checkpoint_texts import TRANSACTIONS_KEPT
from pii_tracer.lake.formats.delta.log_files import is_cleared
from pii_tracer.lake.formats.delta.log_paths import LOG
from pii_tracer.lake.formats.delta.table_features import FEATURE, beyond
from pii_tracer.lake.formats.registry import format_names, format_of
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.table_descriptions import DOMAINS, NOTES, REST, TAGS, WRITERS
from pii_tracer.model.datasets import Format
from pii_tracer.model.plan import Precondition
from planners.copies.scan_evidence import Seen
from planners.formats.base import BY_ITS_JOB, FormatPlanner, beside_rows
from planners.formats.delta.steps import table_steps
from planners.step_drafts import CopyDraft, Draft

CATALOG_MANAGED = ("delta.feature.catalogManaged", "delta.feature.catalogOwned-preview")
_APPEND_ONLY = "delta.appendOnly"
_UNIFORM = "delta.universalFormat.enabledFormats"
_NAMED = 5
_CONSTRAINT = "delta.constraints."
_MAPPING = "delta.columnMapping.mode"
_MANIFESTS = "_symlink_format_manifest"
_AGAIN = "by rewriting these files, for example with an UPDATE that sets one row of each file to its current value"
_OF_STREAMS = frozenset({"_checkpoints", "_spark_metadata"})
_GUARDS = ("spark.delta.logStore.s3a.impl", "spark.delta.logStore.class")
"""Settings with a log store for several clusters: https://docs.delta.io/latest/delta-storage.html#multi-cluster-setup"""


class DeltaPlanner(FormatPlanner):
    """Plans for Delta tables: rows, deletion vectors, old files, and the log's own statistics."""

    executors = frozenset({"delta"})
    compares_whole_keys = True
    removes_elements = True
    keeps_column_order = True

    def table_steps(self, item: CopyDraft) -> tuple[Draft, ...]:
        return table_steps(item)

    def readers(self, state: TableState) -> tuple[Precondition, ...]:
        return (Precondition(kind="clones", target=state.location, expected="\n".join(state.clones)),)

    def unsupported(self, state: TableState, keys: Collection[str]) -> str | None:
        """https://docs.delta.io/latest/delta-uniform.html, https://docs.delta.io/latest/table-properties.html,
        https://github.com/delta-io/delta/blob/master/PROTOCOL.md, section "Catalog-managed tables".
        """
        if any(name in state.properties for name in CATALOG_MANAGED):
            return (
                "a catalog-managed Delta table: only its catalog commits, and the catalog rejects VACUUM and REORG "
                "from other engines. Ask its owner to erase the person there, or to drop the feature"
            )
        if state.properties.get(_APPEND_ONLY, "").lower() == "true":
            return (
                f"a Delta table that rejects every DELETE ({_APPEND_ONLY} is true): ask its owner to set this "
                "property to false until the erasure is complete, then plan again"
            )
        formats = state.properties.get(_UNIFORM)
        if formats:
            return (
                f"a Delta table that is also written as {formats} (UniForm). The metadata of that format retains "
                "bounds and file names, and only its own engine writes that metadata. Ask its owner to unset "
                f"{_UNIFORM} and to remove only that metadata, not data files: {_others_folders(formats)}. Then plan "
                "again"
            )
        return None

    def second_reader(self, state: TableState, seen: Collection[Seen]) -> str:
        """Bounds in manifests and in their lists, values of partitions, comments and properties."""
        folders = _folders_of(state.properties.get(_UNIFORM, ""))
        files = sorted(one.file for one in seen if PurePosixPath(one.file).parts[0] in folders)
        if not files:
            return ""
        more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
        told = counted(len(files), "of these files contains", "of these files contain")
        return f". {told} values of the persons: {', '.join(files[:_NAMED])}{more}"

    def no_rebuild(self, state: TableState) -> str | None:
        if state.table is None or in_session_catalog(state.table):
            return None
        return f"its recorded statement has names of a catalog that the run's Spark does not have: {BY_ITS_JOB}"

    def no_clearing(self, state: TableState) -> str | None:
        return None

    def no_mask(self, state: TableState) -> str | None:
        if state.properties.get(_MAPPING, "none") == "none":
            return None
        return (
            "its columns are mapped to different names in files, so a step cannot separate the held columns from the "
            "rest"
        )

    def fixed_columns(self, state: TableState) -> Mapping[str, str]:
        return {
            column.name.lower(): f"in the constraint {key.removeprefix(_CONSTRAINT)}"
            for key, expression in state.properties.items()
            if key.startswith(_CONSTRAINT)
            for column in state.columns
            if re.search(rf"(?<!\w){re.escape(column.name)}(?!\w)", expression, re.IGNORECASE)
        }

    def unguarded(self, conf: Collection[str]) -> str | None:
        """Two commits from different clusters can be one (https://docs.delta.io/latest/delta-storage.html#amazon-s3)."""
        if any(name in conf for name in _GUARDS):
            return None
        return (
            "S3 does not prevent two clusters from writing the same commit of a Delta table: rows of a job that "
            "commits during the run would be lost. Name the jobs that write to the table under `writers`, and stop "
            "them. Or set the multi-cluster log store that these jobs use in `spark.conf`. If no job writes, waive "
            "this gap"
        )

    def beyond_engine(self, state: TableState, profile: str) -> str | None:
        named = [name.removeprefix(FEATURE) for name in state.properties if name.startswith(FEATURE)]
        unknown = beyond(named, profile)
        return f"features of its protocol ({', '.join(unknown)})" if unknown else None

    def left_behind(self, item: CopyDraft, seen: Seen) -> str | None:
        """The log is cut, what it does not name is swept, and files with rows of the persons are written again."""
        parts = PurePosixPath(seen.file).parts
        if LOG in parts[:-1]:
            below = parts[parts.index(LOG) + 1 :]
            return (
                None
                if is_cleared(below)
                else "a file of `_delta_log` that Delta did not write: ask its owner to remove it"
            )
        if _OF_STREAMS.intersection(parts[:-1]):
            return "the state of a stream in the table's folder: ask its owner to delete it or move it out"
        if _MANIFESTS in parts[:-1] and parts[-1] != "manifest":
            return (
                "a file that Delta did not write, in the folder of manifests for other engines: ask its owner to "
                "remove the file"
            )
        return beside_rows(item, seen)

    def text_remedies(self, name: Format) -> Mapping[str, str]:
        return {
            WRITERS: (
                f"SET TBLPROPERTIES ('{TRANSACTIONS_KEPT}' = 'interval N days'), where N is shorter than the time "
                "since that writer's last commit, and longer than that of all other writers"
            ),
            TAGS: _AGAIN,
            NOTES: _AGAIN,
            DOMAINS: "by the tool that wrote them",
            REST: "by writing the table again (CREATE OR REPLACE TABLE … AS SELECT)",
        }

    def is_log(self, path: str) -> bool:
        return re.search(r"(^|/)_delta_log/", path) is not None


def _folders_of(formats: str) -> list[str]:
    """The folders in a table's folder with the metadata of these formats, as far as they are known."""
    names = sorted({name.strip().lower() for name in formats.split(",")}.intersection(format_names()))
    return sorted({folder for name in names for folder in format_of(Format(name)).metadata_folders})


def _others_folders(formats: str) -> str:
    folders = _folders_of(formats)
    return (
        f"all files in {' and '.join(f'`{one}`' for one in folders)} of the table's folder" if folders else "all of it"
    )
