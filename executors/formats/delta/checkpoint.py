"""A checkpoint of a Delta table as it is now: by the engine's own call where it is in reach, else by a setting.

The call makes no commit, so that running writers see none. It is the engine's Java interface, which Spark Connect does
not have. There `delta.checkpointInterval` is 1 for a moment: the commit that sets it writes a checkpoint of itself, and
the one that puts it back stays above that. https://docs.delta.io/latest/table-properties.html
"""

from __future__ import annotations

from typing import Any

from executors.context import ExecutionContext
from executors.formats.delta.engine_state import delta_log, newest_version, session_of
from executors.formats.delta.table_settings import with_every_commit, without_tombstones
from pii_tracer.lake.formats.delta.log_files import complete_checkpoint
from pii_tracer.lake.stores.any_place import AnyPlace
from pii_tracer.model.errors import RunError
from pii_tracer.model.locations import engine_path


class Checkpoints:
    """Those of one table. table: quoted."""

    def __init__(self, ctx: ExecutionContext, table: str, folder: AnyPlace) -> None:
        self._ctx, self._table, self._folder = ctx, table, folder

    def write(self) -> int:
        """Write one of the current version; returns the version of the newest.

        Raises:
            RunError: it is not complete, or another version has come since.
        """
        if self._ctx.estate.spark.remote is None:
            self._call()
            return self._complete()
        return self._by_setting(tombstones=True)

    def write_without_tombstones(self) -> int:
        """Write one that names no removed file; the table keeps tombstones again afterwards. Returns as `write`.

        Raises:
            RunError: as for `write`.
        """
        if self._ctx.estate.spark.remote is not None:
            return self._by_setting(tombstones=False)
        with without_tombstones(self._sql, self._table, self._folder):
            self.write()
        return self.write()

    def _by_setting(self, *, tombstones: bool) -> int:
        with with_every_commit(self._sql, self._table, self._folder, tombstones=tombstones):
            version = self._complete()
        # what puts the setting back is a commit, too, and can be one that the table's own interval falls on
        return complete_checkpoint(self._folder) or version

    def forget(self) -> None:
        """The engine's picture of the log goes: files of it have gone. A Connect server lists the log by itself."""
        if self._ctx.estate.spark.remote is None:
            delta_log(self._ctx).clearCache()

    def _call(self) -> None:
        self.forget()
        delta_log(self._ctx).forTable(session_of(self._ctx), engine_path(str(self._folder))).checkpoint()

    def _sql(self, statement: str) -> Any:
        return self._ctx.spark.sql(statement)

    def _complete(self) -> int:
        version = complete_checkpoint(self._folder)
        if version is None or version != newest_version(self._ctx, self._table, self._folder):
            raise RunError(
                "the checkpoint is not complete",
                where=str(self._folder),
                todo="run `pii-tracer resume`; if the checkpoint is still incomplete, check the Delta log",
            )
        return version
