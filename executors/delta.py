"""Delta through Spark: the statements that erase, and a look at the table after each.

https://docs.delta.io/latest/delta-utility.html; what each does and does not remove: docs/hazards.md.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from executors.context import ExecutionContext
from executors.delta_log import complete_checkpoint, files_below_checkpoint, is_absolute, live_adds, unreferenced
from executors.local import local_path
from executors.match import count, leaf, match_of
from executors.rebuild import difference, overwrite
from executors.retry import on_conflict
from executors.spark import quote, quote_table
from pii_tracer.errors import RunError
from pii_tracer.plan import Action, Copy, Step
from pii_tracer.protocol import Check, Outcome, Progress

_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


class DeltaExecutor:
    """Every run is safe to repeat: each statement leads to a state, and a state reached already stays."""

    name = "delta"

    def __init__(self, ctx: ExecutionContext) -> None:
        self._ctx = ctx
        self._acts: dict[Action, Callable[[Step, Copy | None], dict[str, Any]]] = {
            Action.DELTA_DELETE_ROWS: self._delete_rows,
            Action.DELTA_REBUILD: self._rebuild,
            Action.DELTA_PURGE: self._purge,
            Action.DELTA_VACUUM: self._vacuum,
            Action.DELTA_CLEAN_LOG: self._clean_log,
        }
        self._looks: dict[Action, Callable[[Step, Copy | None], list[str]]] = {
            Action.DELTA_DELETE_ROWS: self._rows_left,
            Action.DELTA_REBUILD: self._rebuilt,
            Action.DELTA_PURGE: self._vectors_left,
            Action.DELTA_VACUUM: self._files_left,
            Action.DELTA_CLEAN_LOG: self._log_left,
        }

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` when there is no Delta table."""
        folder = local_path(step.parameters["location"])
        if not (folder / "_delta_log").is_dir():
            raise RunError("there is no Delta table", where=str(folder), todo="look at the folder, then plan again")

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """Do the step; facts have the version before and after."""
        before = self._version(step)
        facts = on_conflict(lambda: self._acts[step.action](step, copy))
        return Outcome({"snapshot_before": before, "snapshot_after": self._version(step), **facts})

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """Look at the table itself."""
        findings = self._looks[step.action](step, copy)
        return Check(not findings, tuple(findings), {"snapshot": self._version(step)})

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """After a crash: done when the postcondition holds; otherwise the statement is run again."""
        return Progress.DONE if self.verify(step, copy).ok else Progress.PARTIAL

    # -- acts ----------------------------------------------------------------------------------------------------

    def _delete_rows(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        """MERGE, because DELETE takes no subquery here; a row that several keys match is one unconditional delete."""
        if step.parameters.get("materialise") and self._foreign_files(step):
            self._materialise(step)
        match = match_of(copy)
        rows = count(self._ctx, _table(step), match)
        for term in match.terms if rows else ():
            view = self._ctx.key_view(term.key_set)
            self._sql(
                f"MERGE INTO {_table(step)} t USING (SELECT DISTINCT k FROM {view}) s"
                f" ON {leaf(term, 't')} = s.k WHEN MATCHED THEN DELETE"
            )
        return {"rows_deleted": rows}

    def _materialise(self, step: Step) -> None:
        """Write all rows again, so that no file of another table is read any more (hazard D8)."""
        frame = self._ctx.spark.table(_table(step))
        # no row changes: streams and change feeds of the clone must not see any
        writer = frame.write.format("delta").mode("overwrite").option("dataChange", "false")
        writer.option("partitionOverwriteMode", "static").save(str(local_path(step.parameters["location"])))

    def _rebuild(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        return overwrite(self._ctx, _table(step), step.parameters["sql"])

    def _purge(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        row = self._sql(f"REORG TABLE {_table(step)} APPLY (PURGE)").first()
        metrics = row["metrics"].asDict() if row else {}
        return {"files_rewritten": metrics.get("numFilesRemoved", 0)}

    def _vacuum(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        """The safety check is off for this statement only; hidden files that VACUUM passes over go after it."""
        hours = int(step.parameters["retain_hours"])
        conf = self._ctx.spark.conf
        before = conf.get(_CHECK, "true")
        conf.set(_CHECK, "false")
        try:
            self._sql(f"VACUUM {_table(step)} RETAIN {hours} HOURS")
        finally:
            conf.set(_CHECK, str(before))
        swept = self._unreferenced(step) if hours == 0 else []
        for path in swept:
            Path(path).unlink(missing_ok=True)
        return {"retain_hours": hours, "files_swept": len(swept)}

    def _clean_log(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        """Checkpoint the current version, see that it is complete, then remove the log below it."""
        folder = local_path(step.parameters["location"])
        spark = self._ctx.spark
        log = getattr(spark, "_jvm").org.apache.spark.sql.delta.DeltaLog  # noqa: B009 (Spark Connect has no JVM)
        log.clearCache()
        log.forTable(getattr(spark, "_jsparkSession"), str(folder)).checkpoint()  # noqa: B009
        version = complete_checkpoint(folder)
        if version is None or version != int(self._version(step)):
            raise RunError(
                "the checkpoint is not complete", where=str(folder), todo="resume; if it stays, look at the log"
            )
        removed = files_below_checkpoint(folder, version)
        for path in removed:
            path.unlink(missing_ok=True)
        log.clearCache()
        return {"checkpoint": version, "files_removed": len(removed)}

    # -- looks ---------------------------------------------------------------------------------------------------

    def _rows_left(self, step: Step, copy: Copy | None) -> list[str]:
        left = count(self._ctx, _table(step), match_of(copy))
        findings = [f"{left} rows of the person are left"] if left else []
        if step.parameters.get("materialise") and self._foreign_files(step):
            findings.append("the clone still reads files of another table")
        return findings

    def _rebuilt(self, step: Step, copy: Copy | None) -> list[str]:
        return difference(self._ctx, _table(step), step.parameters["sql"])

    def _vectors_left(self, step: Step, copy: Copy | None) -> list[str]:
        left = sum(1 for add in self._adds(step) if (add.get("deletionVector") or {}).get("storageType"))
        return [f"{left} live files have a deletion vector"] if left else []

    def _files_left(self, step: Step, copy: Copy | None) -> list[str]:
        if int(step.parameters["retain_hours"]):
            return []
        left = self._unreferenced(step)
        return [f"{len(left)} files are not referenced, first {Path(left[0]).name}"] if left else []

    def _log_left(self, step: Step, copy: Copy | None) -> list[str]:
        folder = local_path(step.parameters["location"])
        version = complete_checkpoint(folder)
        if version is None or version != int(self._version(step)):
            return ["the current version has no complete checkpoint"]
        left = files_below_checkpoint(folder, version)
        return [f"{len(left)} log files lie below checkpoint {version}"] if left else []

    # -- helpers -------------------------------------------------------------------------------------------------

    def _sql(self, statement: str) -> Any:
        return self._ctx.spark.sql(statement)

    def _version(self, step: Step) -> str:
        row = self._sql(f"DESCRIBE HISTORY {_table(step)} LIMIT 1").first()
        return str(row["version"])

    def _foreign_files(self, step: Step) -> bool:
        return any(is_absolute(add["path"]) for add in self._adds(step))

    def _unreferenced(self, step: Step) -> list[str]:
        """Files that may go. The engine has to count the same live files as our reading of the log does.

        Raises:
            RunError: it does not, so nothing is removed.
        """
        folder = local_path(step.parameters["location"])
        found = unreferenced(folder)
        detail = self._sql(f"DESCRIBE DETAIL {_table(step)}").first()
        if detail is None or detail["numFiles"] != len(self._adds(step)):
            raise RunError(
                "the engine and the log disagree on the live files; nothing was swept",
                where=str(folder),
                todo="stop the writers of this table, then `pii-tracer resume`",
            )
        return found

    def _adds(self, step: Step) -> tuple[dict[str, Any], ...]:
        return live_adds(local_path(step.parameters["location"]))


def _table(step: Step) -> str:
    table = step.parameters.get("table")
    return quote_table(table) if table else f"delta.{quote(step.parameters['location'])}"
