"""Hudi through Spark: the statements that erase, and a look at the files after each.

https://hudi.apache.org/docs/procedures; what the defaults leave behind: docs/hazards.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from executors.engine.mask_sql import (
    count_unmasked,
    masking_update,
    refuse_rows_without_owner,
    to_mask,
    treated,
)
from executors.engine.match_sql import condition, count, match_of
from executors.engine.sql_names import quote_table, string_literal
from executors.formats.hudi.spark_support import HudiOnSpark
from executors.formats.table_executor import (
    Act,
    Look,
    TableExecutor,
    name_of,
    no_table,
)
from executors.stores.hdfs.spark_rights import refuse_without_rights, written_folders
from executors.sweep.store_folder_sweep import Listed
from executors.sweep.table_folders import (
    files_below,
    modified,
    refusals,
)
from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.hudi.properties import HUDI_WRITABLE
from pii_tracer.lake.formats.hudi.table_state import hudi_properties, timeline_of
from pii_tracer.lake.formats.hudi.vocabulary import (
    HUDI_CLEAN,
    HUDI_COMPACT,
    HUDI_DELETE_ROWS,
    HUDI_DELETE_SAVEPOINTS,
    HUDI_MASK_ROWS,
    HUDI_REBUILD,
    HUDI_REBUILD_METADATA,
)
from pii_tracer.lake.stores.any_place import AnyPlace
from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import Progress

_BASE = re.compile(r"(?P<group>[0-9a-f-]{36}-\d+)_\d+-\d+-\d+_\d+\.(?:parquet|orc|hfile)")
_CLEAN = re.compile(r"\d{17}(?:_\d{17})?\.clean")
_BEGUN = re.compile(r"\d{17}(?:\.\w+)?\.(?:requested|inflight)")
_COMPLETE = re.compile(r"\d{17}(?:_\d{17})?\.(?!requested|inflight)\w+")
_LOG = re.compile(r"\.(?P<group>[0-9a-f-]{36}-\d+)_\d+\.log\..*")
_VERSION, _UPGRADE = "hoodie.write.table.version", "hoodie.write.auto.upgrade"
_OLD = 6
"""The version of tables before Hudi 1."""

_PLACE = "_hoodie_partition_path, _hoodie_record_key"
"""What tells a row to Hudi."""


class HudiExecutor(TableExecutor):
    """Executor `hudi`."""

    name = "hudi"
    log_folder = ".hoodie"
    spark_support = HudiOnSpark()

    def _actions(self) -> Mapping[Action, tuple[Act, Look]]:
        return {
            HUDI_DELETE_SAVEPOINTS: (self._delete_savepoints, self._savepoints_left),
            HUDI_DELETE_ROWS: (self._delete_rows, self._rows_left),
            HUDI_MASK_ROWS: (self._mask_rows, self._unmasked_left),
            HUDI_REBUILD: (self._rebuild, self._rebuilt),
            HUDI_COMPACT: (self._compact, self._not_compacted),
            HUDI_CLEAN: (self._clean, self._slices_left),
            HUDI_REBUILD_METADATA: (self._rebuild_metadata, self._metadata_missing),
        }

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` when there is no Hudi table, or when Spark does not know it by name or may not write it."""
        folder = self._place(step)
        with refusals(folder):
            there = (folder / ".hoodie" / "hoodie.properties").is_file()
            version = self._version(step) if there else None
        if not there:
            raise no_table("Hudi", folder)
        if not self._ctx.spark.catalog.tableExists(_name(step)):
            raise RunError(
                "Spark's catalog does not contain this table",
                where=_name(step),
                todo="declare the table in the estate file",
            )
        if version not in HUDI_WRITABLE:
            raise RunError(
                f"a Hudi table of version {version}: Hudi would upgrade the table, and older readers would fail",
                where=_name(step),
                todo="ask the owner to upgrade the table (`CALL upgrade_table`), then plan again",
            )
        if isinstance(folder, HdfsPath):
            refuse_without_rights(
                self._ctx.spark, *written_folders(self._ctx.estate, step, self.log_folder), str(self._timeline(step))
            )

    @contextmanager
    def _around(self, step: Step) -> Iterator[None]:
        """Inside, the table keeps its version: a statement would raise it, and its older writers can use it no more."""
        with self._ctx.setting(_VERSION, str(self._version(step))), self._ctx.setting(_UPGRADE, "false"):
            self._ctx.spark.catalog.refreshTable(_name(step))
            yield
            self._ctx.spark.catalog.refreshTable(_name(step))

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """After a crash: done when the postcondition holds; the metadata table is always built again."""
        if step.action is HUDI_REBUILD_METADATA:
            return Progress.PARTIAL
        return super().probe(step, copy)

    # -- acts ----------------------------------------------------------------------------------------------------

    def _delete_savepoints(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        times = self._savepoints(step)
        for time in times:
            self._call(step, "delete_savepoint", f"instant_time => {string_literal(time)}")
        return {"savepoints_deleted": len(times)}

    def _delete_rows(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        """DELETE goes by record key, and of several rows of one key in a file it takes the first, whoever's it is (H6).

        So it is repeated until no row of the person is left, and not begun where another's row has the same key.
        """
        rows = left = count(self._ctx, _table(step), match_of(copy))
        if rows:
            self._refuse_shared_keys(step, copy)
        statements = 0
        while left:
            before, left = left, self._delete_once(step, copy)
            statements += 1
            if left >= before and self._not_compacted(step, copy):
                # the log says of a key that it is deleted, and said twice that is still one row
                self._compact(step, copy)
                left = self._delete_once(step, copy)
                statements += 1
            if left >= before:
                raise RunError(
                    f"DELETE leaves {counted(left, 'row')}",
                    where=_name(step),
                    todo="correct the table's record keys, so that each key belongs to one row; then plan again",
                )
        return {"rows_deleted": rows, "statements": statements}

    def _delete_once(self, step: Step, copy: Copy | None) -> int:
        """One DELETE; how many rows it left."""
        self._sql(f"DELETE FROM {_table(step)} WHERE {condition(self._ctx, match_of(copy))}")
        self._ctx.spark.catalog.refreshTable(_name(step))
        return count(self._ctx, _table(step), match_of(copy))

    def _refuse_shared_keys(self, step: Step, copy: Copy | None) -> None:
        rows = f"SELECT {_PLACE}, count(*) AS n FROM {_table(step)}"
        mine = f"{rows} WHERE {condition(self._ctx, match_of(copy))} GROUP BY {_PLACE}"
        all_ = f"{rows} GROUP BY {_PLACE}"
        row = self._sql(
            f"SELECT count(*) FROM ({mine}) AS m INNER JOIN ({all_}) AS a USING ({_PLACE}) WHERE a.n > m.n"
        ).first()
        if row and row[0]:
            raise RunError(
                f"{counted(row[0], 'record key of the person is', 'record keys of the person are')} also in other "
                "people's rows: DELETE would delete these rows",
                where=_name(step),
                todo="make the record keys unique; then plan again",
            )

    def _mask_rows(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        """UPDATE goes by record key: of several rows with one key it would leave one; such tables are refused (H6)."""
        copy = treated(step, copy)
        refuse_rows_without_owner(self._ctx, _table(step), copy)
        rows = count_unmasked(self._ctx, _table(step), copy)
        if rows:
            self._refuse_duplicates(step, copy)
            self._sql(masking_update(self._ctx, _table(step), copy))
        return {"rows_masked": rows}

    def _refuse_duplicates(self, step: Step, copy: Copy | None) -> None:
        persons = f"SELECT DISTINCT {_PLACE} FROM {_table(step)} WHERE {to_mask(self._ctx, copy)}"
        twice = f"SELECT {_PLACE} FROM {_table(step)} GROUP BY {_PLACE} HAVING count(*) > 1"
        row = self._sql(f"SELECT count(*) FROM ({persons}) INNER JOIN ({twice}) USING ({_PLACE})").first()
        if row and row[0]:
            raise RunError(
                f"{counted(row[0], 'record key of the person is', 'record keys of the person are')} in several rows: "
                "UPDATE would keep only one row of each key",
                where=_name(step),
                todo="make the record keys unique, or hold the whole table; then plan again",
            )

    def _compact(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        options = "op => 'scheduleAndExecute', options => 'hoodie.compact.inline.max.delta.commits=1'"
        return {"compactions": len(self._call(step, "run_compaction", options))}

    def _clean(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        options = "clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1, trigger_max_commits => 0"
        before = len(self._data_files(step))
        self._call(step, "run_clean", options)
        return {"files_removed": before - len(self._data_files(step))}

    def _rebuild_metadata(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        if not self._metadata(step).is_dir():
            return {"metadata_table": False}
        self._call(step, "delete_metadata_table")
        if self._metadata(step).is_dir():  # the next statement would fail, and not say why
            raise RunError(
                "a different writer recreated the metadata table while the step rebuilt it",
                where=_name(step),
                todo="stop the writers of this table, then run `pii-tracer resume`",
            )
        if self._version(step) == _OLD:  # it would be made in Hudi's own version, which the table's writers cannot read
            return {"metadata_table": False}
        self._call(step, "create_metadata_table")
        return {"metadata_table": True}

    # -- looks ---------------------------------------------------------------------------------------------------

    def _savepoints_left(self, step: Step, copy: Copy | None) -> list[str]:
        left = self._savepoints(step)
        return [f"{counted(len(left), 'savepoint is', 'savepoints are')} left"] if left else []

    def _not_compacted(self, step: Step, copy: Copy | None) -> list[str]:
        """A log file newer than the newest base file of its group was not compacted."""
        newest: dict[str, str] = {}
        names = [file.parts[-1] for file in self._data_files(step)]
        for name in names:
            if match := _BASE.fullmatch(name):
                instant = name.rpartition(".")[0].rsplit("_", 1)[1]
                newest[match["group"]] = max(newest.get(match["group"], ""), instant)
        left = 0
        for name in names:
            if match := _LOG.fullmatch(name):
                instant = name.removeprefix(".").split("_")[1].split(".")[0]
                left += instant >= newest.get(match["group"], "")
        return [f"{counted(left, 'log file is', 'log files are')} not compacted"] if left else []

    def _slices_left(self, step: Step, copy: Copy | None) -> list[str]:
        groups: Counter[str] = Counter()
        logs = 0
        for *folders, name in (file.parts for file in self._data_files(step)):
            if match := _BASE.fullmatch(name):
                groups["/".join((*folders, match["group"]))] += 1
            logs += bool(_LOG.fullmatch(name))
        old = sum(number - 1 for number in groups.values())
        findings = [f"the table still has {old} older file slices"] if old else []
        findings += [f"{counted(logs, 'log file is', 'log files are')} left"] if logs else []
        return findings + self._in_flight(step) if findings else []

    def _in_flight(self, step: Step) -> list[str]:
        """Instants that were begun and are not complete: cleaning leaves alone what they have written."""
        names = [p.name for p in self._timeline(step).iterdir()]
        done = {name[:17] for name in names if _COMPLETE.fullmatch(name)}
        begun = sorted({name[:17] for name in names if _BEGUN.fullmatch(name)} - done)
        if not begun:
            return []
        return [
            f"{counted(len(begun), 'instant is', 'instants are')} in flight, first {begun[0]}: wait until the writer "
            "ends. If the writer failed, roll back with its next commit or `CALL rollback_to_instant`; then run "
            "`pii-tracer resume`"
        ]

    def _metadata_missing(self, step: Step, copy: Copy | None) -> list[str]:
        """Older than the last clean, it still has what that clean removed. A table without one is valid."""
        made = modified(self._metadata(step) / ".hoodie" / "hoodie.properties")
        cleans = [p for p in self._timeline(step).iterdir() if _CLEAN.fullmatch(p.name)]
        if made is None or not cleans:
            return []
        stale = max(modified(path) or 0 for path in cleans) > made
        return ["the metadata table is older than the last clean"] if stale else []

    # -- helpers -------------------------------------------------------------------------------------------------

    def _rows_of(self, step: Step) -> str:
        return _table(step)

    def _call(self, step: Step, procedure: str, arguments: str = "") -> list[Any]:
        table = _name(step).removeprefix("spark_catalog.")
        named = f"table => {string_literal(table)}" + (f", {arguments}" if arguments else "")
        return list(self._sql(f"CALL {procedure}({named})").collect())

    def _savepoints(self, step: Step) -> list[str]:
        return [str(row[0]) for row in self._call(step, "show_savepoints")]

    def _data_files(self, step: Step) -> list[Listed]:
        return [file for file in files_below(self._place(step)) if ".hoodie" not in file.parts]

    def _metadata(self, step: Step) -> AnyPlace:
        return self._place(step) / ".hoodie" / "metadata"

    def _version(self, step: Step) -> int:
        return int(hudi_properties(self._place(step)).get("hoodie.table.version", "0"))

    def _timeline(self, step: Step) -> AnyPlace:
        return timeline_of(self._place(step))

    def _newest(self, step: Step) -> str | None:
        """Completion of the newest action, from the names on the timeline (table version 8 and later keep a folder)."""
        done = [p.name for p in self._timeline(step).iterdir() if re.fullmatch(r"\d{17}(?:_\d{17})?\.\w+", p.name)]
        return max(done, default="").split(".")[0] or None


def _name(step: Step) -> str:
    todo = "declare the table in the estate file, because Hudi's procedures need a name"
    return name_of(step, "the estate file has no name for this Hudi table", todo)


def _table(step: Step) -> str:
    return quote_table(_name(step))
