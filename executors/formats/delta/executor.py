"""Delta through Spark: the statements that erase, and a look at the table after each.

https://docs.delta.io/latest/delta-utility.html; what each does and does not remove: docs/hazards.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from executors.engine.mask_sql import (
    count_unmasked,
    masking_merge,
    refuse_rows_without_owner,
    treated,
)
from executors.engine.match_sql import count, match_of, merge
from executors.formats.delta.checkpoint import Checkpoints
from executors.formats.delta.engine_state import live_files, newest_version
from executors.formats.delta.spark_support import DeltaOnSpark
from executors.formats.delta.sweep_rules import (
    Due,
    due,
    empty_partitions,
    missing,
    spent_leftovers,
    stale_manifests,
    with_dropped_columns,
)
from executors.formats.delta.table_settings import (
    is_clustered,
    not_back,
    put_back,
    without_clustering,
)
from executors.formats.table_executor import Act, Look, TableExecutor, no_table
from executors.stores.hdfs.spark_rights import refuse_without_rights, written_folders
from executors.sweep.store_folder_sweep import Listed
from executors.sweep.table_folders import (
    engine_file,
    refusals,
    remove,
    remove_partitions,
)
from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.delta.log_files import (
    complete_checkpoint,
    files_below_checkpoint,
    settings_only,
    tombstones_with,
)
from pii_tracer.lake.formats.delta.log_paths import LOG
from pii_tracer.lake.formats.delta.transaction_log import LiveFile, log_of
from pii_tracer.lake.formats.delta.vocabulary import (
    DELTA_CLEAN_LOG,
    DELTA_DELETE_ROWS,
    DELTA_MASK_ROWS,
    DELTA_PURGE,
    DELTA_REBUILD,
    DELTA_VACUUM,
)
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.lake.stores.any_place import AnyPlace
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import RunError
from pii_tracer.model.locations import engine_path
from pii_tracer.model.plan import Copy, Step

_INVENTORY = "path string, length bigint, isDir boolean, modificationTime bigint"
_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
_PARALLEL = "spark.databricks.delta.vacuum.parallelDelete.enabled"


class DeltaExecutor(TableExecutor):
    """Executor `delta`."""

    name = "delta"
    log_folder = LOG
    spark_support = DeltaOnSpark()

    def _actions(self) -> Mapping[Action, tuple[Act, Look]]:
        return {
            DELTA_DELETE_ROWS: (self._delete_rows, self._rows_left),
            DELTA_MASK_ROWS: (self._mask_rows, self._unmasked_left),
            DELTA_REBUILD: (self._rebuild, self._rebuilt),
            DELTA_PURGE: (self._purge, self._vectors_left),
            DELTA_VACUUM: (self._vacuum, self._files_left),
            DELTA_CLEAN_LOG: (self._clean_log, self._log_left),
        }

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` when there is no Delta table, or Spark may not write it."""
        folder = self._place(step)
        with refusals(folder):
            there = (folder / LOG).is_dir()
        if not there:
            raise no_table("Delta", folder)
        refuse_without_rights(self._ctx.spark, *written_folders(self._ctx.estate, step, self.log_folder))

    # -- acts ----------------------------------------------------------------------------------------------------

    def _delete_rows(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        """How many rows are deleted. By MERGE, because DELETE and UPDATE take no subquery here."""
        if step.parameters.get("materialise") and self._foreign_files(step):
            self._materialise(step)
        match = match_of(copy)
        rows = count(self._ctx, _table(step), match)
        if rows:
            self._sql(merge(self._ctx, _table(step), match, "WHEN MATCHED THEN DELETE"))
        return {"rows_deleted": rows}

    def _mask_rows(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        """How many rows are masked. A row that was masked already is not written again."""
        if step.parameters.get("materialise") and self._foreign_files(step):
            self._materialise(step)
        copy = treated(step, copy)
        table = _table(step)
        refuse_rows_without_owner(self._ctx, table, copy)
        rows = count_unmasked(self._ctx, table, copy)
        if rows:
            self._sql(masking_merge(self._ctx, table, copy))
        return {"rows_masked": rows}

    def _materialise(self, step: Step) -> None:
        """Write all rows again, so that no file of another table is read any more (hazard D8)."""
        frame = self._ctx.spark.table(_table(step))
        # no row changes: streams and change feeds of the clone must not see any
        writer = frame.write.format("delta").mode("overwrite").option("dataChange", "false")
        writer.option("partitionOverwriteMode", "static").save(engine_path(str(self._place(step))))

    def _purge(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        """REORG passes over files that clustering calls done; without clustering columns it takes them too (D17)."""
        table, folder = _table(step), self._place(step)
        put_back(self._sql, table, folder)
        rewritten = self._reorg(table)
        if is_clustered(folder) and self._vectors_left(step, copy):
            with without_clustering(self._sql, table, folder):
                rewritten += self._reorg(table)
        return {"files_rewritten": rewritten}

    def _reorg(self, table: str) -> int:
        row = self._sql(f"REORG TABLE {table} APPLY (PURGE)").first()
        return int(row["metrics"].asDict().get("numFilesRemoved", 0)) if row else 0

    def _vacuum(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        """The engine removes what is due, out of a list of exactly that; what it passes over goes after it.

        RETAIN 0 with the safety check off for this statement only, because the list says what has waited long enough
        (Delta 4.1 and later ignore other values, hazard D3). The engine decides once more that no file is live.
        """
        hours, folder = int(step.parameters["retain_hours"]), self._place(step)
        if stale_manifests(folder):
            self._sql(f"GENERATE symlink_format_manifest FOR TABLE {_table(step)}")
        inventory = self._inventory(self._due(step).going)
        try:
            query = f"SELECT path, length, isDir, modificationTime FROM {inventory}"
            with ExitStack() as settings:
                settings.enter_context(self._ctx.setting(_CHECK, "false"))
                if not isinstance(folder, Path):  # one file after the other would take hours there
                    settings.enter_context(self._ctx.setting(_PARALLEL, "true"))
                self._sql(f"VACUUM {_table(step)} USING INVENTORY ({query}) RETAIN 0 HOURS")
        finally:
            self._ctx.spark.catalog.dropTempView(inventory)
        swept = self._due(step)
        remove(folder, [file.path for file in swept.going])
        remove_partitions(folder, empty_partitions(folder))
        strange = {"strange_left": swept.strange} if swept.strange else {}
        return {"retain_hours": hours, "files_swept": len(swept.going), **strange}

    def _inventory(self, files: Sequence[Listed]) -> str:
        """A view of files as VACUUM takes it: https://docs.delta.io/latest/delta-utility.html#inventory-table."""
        rows = [(engine_file(file.path), file.size, False, file.modified) for file in files]
        name = "pii_sweep_" + hashlib.sha256("\n".join(file.path for file in files).encode()).hexdigest()[:12]
        frame_of_rows(self._ctx.spark, rows, _INVENTORY).createOrReplaceTempView(name)
        return name

    def _clean_log(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        """Checkpoint the current version, see that it is complete, then remove the log below it.

        A checkpoint keeps the tombstones of removed files, with their partition values. Where one of these is a key of
        the person, a checkpoint is made while the table keeps no tombstones, and one more when it keeps them again.
        """
        folder, table = self._place(step), _table(step)
        put_back(self._sql, table, folder)
        checkpoints = Checkpoints(self._ctx, table, folder)
        version = checkpoints.write()
        dropped = tombstones_with(folder, self._values(copy))
        if dropped:
            version = checkpoints.write_without_tombstones()
        removed = self._spent(folder, version)
        remove(folder, [str(path) for path in removed])
        checkpoints.forget()
        return {"checkpoint": version, "files_removed": len(removed), "tombstones_dropped": dropped}

    def _spent(self, folder: AnyPlace, version: int) -> list[AnyPlace]:
        """What of the log no reader needs beside a checkpoint: below it, and what writers left."""
        leftovers = spent_leftovers(folder, version, self._ctx.in_flight_hours)
        return sorted({*files_below_checkpoint(folder, version), *leftovers}, key=str)

    def _values(self, copy: Copy | None) -> set[str]:
        """All that the plan knows of the persons: rows are found by a key, and partitions can be called by another."""
        terms = copy.places.terms if copy and copy.places else ()
        sets = [*(self._ctx.keyring.key_set(term.key_set) for term in terms), *self._ctx.everything]
        return {value for key_set in sets for _, value in key_set.values}

    # -- looks ---------------------------------------------------------------------------------------------------

    def _rows_left(self, step: Step, copy: Copy | None) -> list[str]:
        return [*super()._rows_left(step, copy), *self._still_foreign(step)]

    def _unmasked_left(self, step: Step, copy: Copy | None) -> list[str]:
        return [*super()._unmasked_left(step, copy), *self._still_foreign(step)]

    def _still_foreign(self, step: Step) -> list[str]:
        foreign = step.parameters.get("materialise") and self._foreign_files(step)
        return ["the clone still reads files of another table"] if foreign else []

    def _vectors_left(self, step: Step, copy: Copy | None) -> list[str]:
        left = sum(file.deletion_vector for file in self._files(step))
        findings = not_back(self._place(step))
        findings += [f"{counted(left, 'live file has', 'live files have')} a deletion vector"] if left else []
        old = with_dropped_columns(self._place(step))
        return (
            [*findings, f"{counted(len(old), 'live file contains', 'live files contain')} dropped columns"]
            if old
            else findings
        )

    def _files_left(self, step: Step, copy: Copy | None) -> list[str]:
        folder = self._place(step)
        gone = missing(folder)
        if gone:
            return [f"{counted(len(gone), 'file')} of the current version cannot be found, first {_name(gone[0])}"]
        stale = stale_manifests(folder)
        if stale:
            return [
                f"{counted(len(stale), 'symlink manifest names', 'symlink manifests name')} files that are not live: "
                "other engines would read these files"
            ]
        empty = empty_partitions(folder)
        if empty:
            return [f"{counted(len(empty), 'empty partition folder is', 'empty partition folders are')} left"]
        left = self._due(step).going
        return (
            [f"{counted(len(left), 'file is', 'files are')} not referenced, first {_name(left[0].path)}"]
            if left
            else []
        )

    def _log_left(self, step: Step, copy: Copy | None) -> list[str]:
        folder = self._place(step)
        version = complete_checkpoint(folder)
        if version is None or not settings_only(folder, version + 1, newest_version(self._ctx, _table(step), folder)):
            return ["the current version has no complete checkpoint"]
        left = self._spent(folder, version)
        findings = not_back(folder) + (
            [f"{counted(len(left), 'log file is', 'log files are')} below checkpoint {version}"] if left else []
        )
        named = tombstones_with(folder, self._values(copy))
        return [*findings, f"the checkpoint names {counted(named, 'removed file')} under a key"] if named else findings

    # -- helpers -------------------------------------------------------------------------------------------------

    def _rows_of(self, step: Step) -> str:
        return _table(step)

    def _newest(self, step: Step) -> str:
        return str(newest_version(self._ctx, _table(step), self._place(step)))

    def _foreign_files(self, step: Step) -> bool:
        return any(file.external for file in self._files(step))

    def _due(self, step: Step) -> Due:
        """Files that may go. The engine has to count the same live files as our reading of the log does.

        Raises:
            RunError: it does not, so nothing is removed.
        """
        folder = self._place(step)
        found = due(folder, int(step.parameters["retain_hours"]), self._ctx.in_flight_hours)
        if live_files(self._ctx, _table(step), folder) != len(self._files(step)):
            raise RunError(
                "the engine and the Delta log show different live files; nothing was swept",
                where=str(folder),
                todo="stop the writers of this table, then run `pii-tracer resume`",
            )
        return found

    def _files(self, step: Step) -> tuple[LiveFile[Any], ...]:
        return log_of(self._place(step), history=False).files


def _table(step: Step) -> str:
    name = DeltaExecutor.spark_support.sql_name(step.parameters.get("table"), step.parameters["location"])
    assert name is not None, "Delta calls any table by its place"
    return name


def _name(path: str) -> str:
    """Of a file, without its folders: those of partitions can be a person's value."""
    return path.rpartition("/")[2]
