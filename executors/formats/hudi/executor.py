"""Hudi through Spark: the statements that erase, and a look at the files after each.

https://hudi.apache.org/docs/procedures; what the defaults leave behind: docs/hazards.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from executors.context import ExecutionContext
from executors.engine.mask_sql import (
    assignments,
    count_unmasked,
    mask_of,
    more_than_held,
    refuse_rows_without_owner,
    to_mask,
    treated,
)
from executors.engine.match_sql import condition, count, match_of
from executors.engine.retries import on_conflict
from executors.engine.spark_session import quote_table, string_literal
from executors.engine.table_rebuild import difference, overwrite
from executors.sweep.table_folders import (
    Listed,
    Places,
    files_below,
    modified,
    refusals,
)
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
from pii_tracer.lake.stores.s3.s3_path import AnyPlace
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import Check, Outcome, Progress

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


class HudiExecutor:
    """Every run is safe to repeat: each statement leads to a state, and a state reached already stays."""

    name = "hudi"

    def __init__(self, ctx: ExecutionContext) -> None:
        self._ctx = ctx
        self._places = Places(ctx.estate)
        self._acts: dict[Action, Callable[[Step, Copy | None], dict[str, Any]]] = {
            HUDI_DELETE_SAVEPOINTS: self._delete_savepoints,
            HUDI_DELETE_ROWS: self._delete_rows,
            HUDI_MASK_ROWS: self._mask_rows,
            HUDI_REBUILD: self._rebuild,
            HUDI_COMPACT: self._compact,
            HUDI_CLEAN: self._clean,
            HUDI_REBUILD_METADATA: self._rebuild_metadata,
        }
        self._looks: dict[Action, Callable[[Step, Copy | None], list[str]]] = {
            HUDI_DELETE_SAVEPOINTS: self._savepoints_left,
            HUDI_DELETE_ROWS: self._rows_left,
            HUDI_MASK_ROWS: self._unmasked_left,
            HUDI_REBUILD: self._rebuilt,
            HUDI_COMPACT: self._not_compacted,
            HUDI_CLEAN: self._slices_left,
            HUDI_REBUILD_METADATA: self._metadata_missing,
        }

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` when there is no Hudi table, or when Spark does not know it by name."""
        folder = self._place(step)
        with refusals(folder):
            there = (folder / ".hoodie" / "hoodie.properties").is_file()
            version = self._version(step) if there else None
        if not there:
            raise RunError("there is no Hudi table", where=str(folder), todo="look at the folder, then plan again")
        if not self._ctx.spark.catalog.tableExists(_name(step)):
            raise RunError("Spark does not know this table", where=_name(step), todo="declare it in the estate file")
        if version not in HUDI_WRITABLE:
            raise RunError(
                f"a Hudi table of version {version}: Hudi would raise it, and its older readers fail",
                where=_name(step),
                todo="its owner raises it (`CALL upgrade_table`), then plan again",
            )

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """Do the step; facts have the newest instant before and after."""
        with refusals(step.parameters["location"]), self._as_it_is(step):
            before = self._instant(step)
            self._ctx.spark.catalog.refreshTable(_name(step))
            facts = on_conflict(lambda: self._acts[step.action](step, copy))
            self._ctx.spark.catalog.refreshTable(_name(step))
            return Outcome({"snapshot_before": before, "snapshot_after": self._instant(step), **facts})

    @contextmanager
    def _as_it_is(self, step: Step) -> Iterator[None]:
        """Inside, the table keeps its version: a statement would raise it, and its older writers can use it no more."""
        with self._ctx.setting(_VERSION, str(self._version(step))), self._ctx.setting(_UPGRADE, "false"):
            yield

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """Look at rows and files."""
        with refusals(step.parameters["location"]):
            findings = self._looks[step.action](step, copy)
            return Check(not findings, tuple(findings), {"snapshot": self._instant(step)})

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """After a crash: done when the postcondition holds; the metadata table is always built again."""
        if step.action is HUDI_REBUILD_METADATA:
            return Progress.PARTIAL
        return Progress.DONE if self.verify(step, copy).ok else Progress.PARTIAL

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
                raise RunError(f"DELETE leaves {left} rows", where=_name(step), todo="look at the table's record keys")
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
                f"{row[0]} record keys of the person's rows stand in other people's rows, too: DELETE would take those",
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
            self._sql(f"UPDATE {_table(step)} SET {assignments(mask_of(copy))} WHERE {to_mask(self._ctx, copy)}")
        return {"rows_masked": rows}

    def _refuse_duplicates(self, step: Step, copy: Copy | None) -> None:
        persons = f"SELECT DISTINCT {_PLACE} FROM {_table(step)} WHERE {to_mask(self._ctx, copy)}"
        twice = f"SELECT {_PLACE} FROM {_table(step)} GROUP BY {_PLACE} HAVING count(*) > 1"
        row = self._sql(f"SELECT count(*) FROM ({persons}) INNER JOIN ({twice}) USING ({_PLACE})").first()
        if row and row[0]:
            raise RunError(
                f"{row[0]} record keys of the person's rows stand in several rows: UPDATE would leave one of each",
                where=_name(step),
                todo="make the record keys unique, or hold the whole table; then plan again",
            )

    def _rebuild(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        return overwrite(self._ctx, _table(step), step.parameters["sql"])

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
                "another writer has made the metadata table again while it was rebuilt",
                where=_name(step),
                todo="stop the writers of this table, then `pii-tracer resume`",
            )
        if self._version(step) == _OLD:  # it would be made in Hudi's own version, which the table's writers cannot read
            return {"metadata_table": False}
        self._call(step, "create_metadata_table")
        return {"metadata_table": True}

    # -- looks ---------------------------------------------------------------------------------------------------

    def _savepoints_left(self, step: Step, copy: Copy | None) -> list[str]:
        left = self._savepoints(step)
        return [f"{len(left)} savepoints are left"] if left else []

    def _rows_left(self, step: Step, copy: Copy | None) -> list[str]:
        left = count(self._ctx, _table(step), match_of(copy))
        return [f"{left} rows of the person are left"] if left else []

    def _unmasked_left(self, step: Step, copy: Copy | None) -> list[str]:
        return more_than_held(self._ctx, _table(step), treated(step, copy))

    def _rebuilt(self, step: Step, copy: Copy | None) -> list[str]:
        return difference(self._ctx, _table(step), step.parameters["sql"])

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
        return [f"{left} log files are not compacted"] if left else []

    def _slices_left(self, step: Step, copy: Copy | None) -> list[str]:
        groups: Counter[str] = Counter()
        logs = 0
        for *folders, name in (file.parts for file in self._data_files(step)):
            if match := _BASE.fullmatch(name):
                groups["/".join((*folders, match["group"]))] += 1
            logs += bool(_LOG.fullmatch(name))
        old = sum(number - 1 for number in groups.values())
        findings = [f"{old} older file slices are left"] if old else []
        findings += [f"{logs} log files are left"] if logs else []
        return findings + self._in_flight(step) if findings else []

    def _in_flight(self, step: Step) -> list[str]:
        """Instants that were begun and are not complete: cleaning leaves alone what they have written."""
        names = [p.name for p in self._timeline(step).iterdir()]
        done = {name[:17] for name in names if _COMPLETE.fullmatch(name)}
        begun = sorted({name[:17] for name in names if _BEGUN.fullmatch(name)} - done)
        if not begun:
            return []
        return [
            f"{len(begun)} instants are in flight, first {begun[0]}: wait for their writer, or, if it died, let its"
            " next commit, or `CALL rollback_to_instant`, roll them back; then `pii-tracer resume`"
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

    def _sql(self, statement: str) -> Any:
        return self._ctx.spark.sql(statement)

    def _call(self, step: Step, procedure: str, arguments: str = "") -> list[Any]:
        table = _name(step).removeprefix("spark_catalog.")
        named = f"table => {string_literal(table)}" + (f", {arguments}" if arguments else "")
        return list(self._sql(f"CALL {procedure}({named})").collect())

    def _savepoints(self, step: Step) -> list[str]:
        return [str(row[0]) for row in self._call(step, "show_savepoints")]

    def _place(self, step: Step) -> AnyPlace:
        return self._places.at(step.parameters["location"])

    def _data_files(self, step: Step) -> list[Listed]:
        return [file for file in files_below(self._place(step)) if ".hoodie" not in file.parts]

    def _metadata(self, step: Step) -> AnyPlace:
        return self._place(step) / ".hoodie" / "metadata"

    def _version(self, step: Step) -> int:
        return int(hudi_properties(self._place(step)).get("hoodie.table.version", "0"))

    def _timeline(self, step: Step) -> AnyPlace:
        return timeline_of(self._place(step))

    def _instant(self, step: Step) -> str | None:
        """Completion of the newest action, from the names on the timeline (table version 8 and later keep a folder)."""
        done = [p.name for p in self._timeline(step).iterdir() if re.fullmatch(r"\d{17}(?:_\d{17})?\.\w+", p.name)]
        return max(done, default="").split(".")[0] or None


def _name(step: Step) -> str:
    name = step.parameters.get("table")
    if not name:
        raise RunError(
            "this Hudi table has no name in the estate",
            where=step.parameters.get("location"),
            todo="declare it in the estate file: Hudi's procedures need a name",
        )
    return str(name)


def _table(step: Step) -> str:
    return quote_table(_name(step))
