"""Iceberg through Spark: the statements that erase, and a look at the table after each.

Procedures: https://iceberg.apache.org/docs/latest/spark-procedures/; what each leaves behind: docs/hazards.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from executors.engine.mask_sql import (
    count_unmasked,
    masking_update,
    mentioning,
    more_than_held,
    refuse_rows_without_owner,
    treated,
)
from executors.engine.match_sql import (
    condition,
    count,
    match_of,
    places_of,
)
from executors.engine.rebuild_from_query import overwrite, refuse_one_plan
from executors.engine.spark_connect import refuse_without_jvm
from executors.engine.sql_names import quote, quote_table, string_literal
from executors.executor_parts import Part
from executors.formats.iceberg.kept_history.rewrite import HistoryRewrite
from executors.formats.iceberg.orphan_files import (
    Untracked,
    forget_snapshots,
    lost_columns_of,
    untracked,
    with_deleted_entries,
)
from executors.formats.iceberg.reference_reading import Reference, references
from executors.formats.iceberg.spark_support import IcebergOnSpark
from executors.formats.iceberg.tag_expiry import AwaitingRef
from executors.formats.table_executor import (
    Act,
    Look,
    TableExecutor,
    name_of,
)
from executors.stores.hdfs.spark_rights import refuse_without_rights, written_folders
from executors.sweep.table_folders import empty_partitions, remove, remove_partitions
from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.iceberg.vocabulary import (
    ICEBERG_AWAIT_REF,
    ICEBERG_DELETE_ROWS,
    ICEBERG_EXPIRE_SNAPSHOTS,
    ICEBERG_MASK_ROWS,
    ICEBERG_REBUILD,
    ICEBERG_REMOVE_ORPHANS,
    ICEBERG_REWRITE_FILES,
    ICEBERG_REWRITE_HISTORY,
    ICEBERG_REWRITE_MANIFESTS,
    ICEBERG_REWRITE_REF,
)
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import Check, Outcome, Progress

_FAR = "2999-01-01 00:00:00"
_TRIM = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
_SAVED = "pii-tracer.saved-settings"
_DAY_MS = 86_400_000
_WORK_BRANCH = "pii_tracer_work"
_KEPT_FOLDERS = frozenset({"metadata"})
_EVERY_FILE = "'rewrite-all', 'true'"
_OF_ANY_SIZE = "'min-file-size-bytes', '0', 'max-file-size-bytes', '9223372036854775807'"
"""So that only files with deletes are written again, and small or large ones are not packed anew on the way
(https://iceberg.apache.org/docs/latest/spark-procedures/#rewrite_data_files)."""


class IcebergExecutor(TableExecutor):
    """Executor `iceberg`."""

    name = "iceberg"
    log_folder = "metadata"
    without_spark = frozenset({ICEBERG_REWRITE_HISTORY})
    spark_support = IcebergOnSpark()

    def _actions(self) -> Mapping[Action, tuple[Act, Look]]:
        return {
            ICEBERG_DELETE_ROWS: (self._delete_rows, self._rows_left),
            ICEBERG_MASK_ROWS: (self._mask_rows, self._unmasked_left),
            ICEBERG_REBUILD: (self._rebuild, self._rebuilt),
            ICEBERG_REWRITE_FILES: (self._rewrite_files, self._delete_files_left),
            ICEBERG_REWRITE_REF: (self._rewrite_ref, self._ref_rows_left),
            ICEBERG_REWRITE_MANIFESTS: (self._rewrite_manifests, self._deleted_entries),
            ICEBERG_EXPIRE_SNAPSHOTS: (self._expire, self._old_snapshots),
            ICEBERG_REMOVE_ORPHANS: (self._orphans, self._orphans_left),
        }

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` when the table is not there, or the session cannot do the step."""
        part = self._part(step, copy)
        if step.action is ICEBERG_REWRITE_HISTORY and part is not None:
            part.check()
            return  # Spark has no part in it
        refuse_without_jvm(self._ctx.estate.spark.remote, (step,))
        if not self._ctx.spark.catalog.tableExists(_table(step)):
            raise RunError("the catalog has no such table", where=_name(step), todo="register the table, or plan again")
        refuse_without_rights(self._ctx.spark, *written_folders(self._ctx.estate, step, self.log_folder))
        if part is not None:
            part.check()
        if step.action is ICEBERG_REWRITE_REF:
            self._refuse_loss(step)
        if step.action is ICEBERG_REBUILD:
            refuse_one_plan(self._ctx, step.parameters["sql"], "an Iceberg table")
        if self._properties(step).get("gc.enabled", "true").lower() == "false":
            raise RunError(
                "the table forbids removal of its files (gc.enabled is false): a second table may use the same files",
                where=_name(step),
                todo=(
                    "find the table that shares files (made by `snapshot` or `add_files`); then set gc.enabled, and "
                    "run `pii-tracer resume`"
                ),
            )

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """As every table's, or as its part does it."""
        part = self._part(step, copy)
        return super().run(step, copy) if part is None else part.run()

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """Look at the table itself."""
        part = self._part(step, copy)
        return super().verify(step, copy) if part is None else part.verify()

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """After a crash: done when the postcondition holds; otherwise the statement is run again."""
        part = self._part(step, copy)
        return super().probe(step, copy) if part is None else part.probe()

    def _part(self, step: Step, copy: Copy | None) -> Part | None:
        """What does the steps that no statement does: it waits for a tag to lapse, or writes history again."""
        if step.action is ICEBERG_AWAIT_REF:
            return AwaitingRef(self._ctx, step)
        return HistoryRewrite(self._ctx, step, copy) if step.action is ICEBERG_REWRITE_HISTORY else None

    # -- acts ----------------------------------------------------------------------------------------------------

    def _delete_rows(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        return self._delete(self._rows_of(step), copy)

    def _delete(self, target: str, copy: Copy | None) -> dict[str, Any]:
        rows = count(self._ctx, target, match_of(copy))
        if rows:
            self._sql(f"DELETE FROM {target} WHERE {condition(self._ctx, match_of(copy))}")
        return {"rows_deleted": rows}

    def _mask_rows(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        return self._mask(self._rows_of(step), treated(step, copy))

    def _mask(self, target: str, copy: Copy | None) -> dict[str, Any]:
        refuse_rows_without_owner(self._ctx, target, copy)
        rows = count_unmasked(self._ctx, target, copy)
        if rows:
            self._sql(masking_update(self._ctx, target, copy))
        return {"rows_masked": rows}

    def _free(self, target: str, copy: Copy | None) -> dict[str, Any]:
        """All that is done to the rows of a copy, at once."""
        if copy and copy.mask:
            return self._mask(target, copy)
        masked = [self._mask(target, part)["rows_masked"] for part in mentioning(copy)]
        facts = self._delete(target, copy) if not masked or (copy and copy.match) else {}
        return facts | ({"rows_masked": sum(masked)} if masked else {})

    def _rebuild(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        return overwrite(self._ctx, _table(step), step.parameters["sql"], apart=True)

    def _rewrite_files(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        return self._rewrite(step, step.parameters.get("branch"))

    def _rewrite(self, step: Step, branch: str | None, everything: bool = False) -> dict[str, Any]:
        extra = f", branch => {string_literal(branch)}" if branch else ""
        options = "'delete-file-threshold', '1', 'remove-dangling-deletes', 'true'"
        options += f", {_EVERY_FILE if everything else _OF_ANY_SIZE}"
        row = self._call(step, "rewrite_data_files", f"options => map({options}){extra}")
        if not everything and self._of_head(step, "delete_files", branch, ""):
            # an equality delete stays as long as a data file older than it does, though its bounds rule that file out
            return self._rewrite(step, branch, everything=True)
        return {"files_rewritten": row.get("rewritten_data_files_count", 0)}

    def _rewrite_ref(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        """A branch is erased in place; a tag through a work branch, to whose head it is then moved."""
        self._refuse_loss(step)
        name, kind = step.parameters["ref"], step.parameters["kind"]
        branch = name if kind == "branch" else _WORK_BRANCH
        if kind == "tag":
            at = self._ref_snapshot(step, name)
            self._sql(f"ALTER TABLE {_table(step)} CREATE OR REPLACE BRANCH {quote(branch)} AS OF VERSION {at}")
        target = f"{_table(step)}.{quote('branch_' + branch)}"
        retain = self._retention(step, name) if kind == "tag" else ""
        done = self._free(target, copy)
        facts = self._rewrite(step, branch)
        self._sql(f"INSERT INTO {target} SELECT * FROM {target} WHERE false")
        if self._of_head(step, "entries", branch, "", "status = 2"):
            # a branch's manifests cannot be rewritten alone: new data files get new manifests
            self._rewrite(step, branch, everything=True)
            self._sql(f"INSERT INTO {target} SELECT * FROM {target} WHERE false")
        if kind == "tag":
            head = self._ref_snapshot(step, branch)
            self._sql(f"ALTER TABLE {_table(step)} CREATE OR REPLACE TAG {quote(name)} AS OF VERSION {head}{retain}")
            self._sql(f"ALTER TABLE {_table(step)} DROP BRANCH {quote(branch)}")
        return {**done, "ref": name, **facts}

    def _refuse_loss(self, step: Step) -> None:
        """Spark writes a reference with the table's schema: columns that only the reference still has would go."""
        name, kind = step.parameters["ref"], step.parameters["kind"]
        if name not in self._refs(step):
            return  # for the statements to tell
        lost = lost_columns_of(self._ctx, self._place(step), _name(step), self._ref_snapshot(step, name))
        if lost:
            raise RunError(
                f"the {kind} {name} has columns that the table no longer has, or has in another type "
                f"({', '.join(lost)}): a rewrite would lose other people's values in these columns",
                where=_name(step),
                todo=f"drop the {kind}, or point it to a snapshot with the current schema, then plan again",
            )

    def _rewrite_manifests(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        """The procedure leaves a lone manifest alone, and an empty commit leaves manifests with live files alone."""
        self._merge_manifests(step)
        facts: dict[str, Any] = {}
        # one file written again brings a second manifest, and then there is something to merge; else all of them are
        for limit, told in (
            (", 'max-files-to-rewrite', '1'", {"files_rewritten": 1}),
            ("", {"rewritten_in_full": True}),
        ):
            if not with_deleted_entries(self._ctx, _name(step)):
                break
            self._call(step, "rewrite_data_files", f"options => map({_EVERY_FILE}{limit})")
            self._merge_manifests(step)
            facts = told
        return facts

    def _merge_manifests(self, step: Step) -> None:
        self._call(step, "rewrite_manifests", "use_caching => false")
        self._sql(f"INSERT INTO {_table(step)} SELECT * FROM {_table(step)} WHERE false")

    def _expire(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        older = step.parameters.get("older_than")
        if "sharing" in step.parameters:
            return {"forgotten": forget_snapshots(self._ctx, _name(step), older)}
        until = f"TIMESTAMP {string_literal(older or _FAR)}"
        retain = int(step.parameters.get("retain_last", 1))
        row = self._call(step, "expire_snapshots", f"older_than => {until}, retain_last => {retain}")
        return {"deleted": {k: v for k, v in row.items() if isinstance(v, int)}}

    def _orphans(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        """Trim the metadata log (the ALTER does it), put the settings back, sweep what nothing references."""
        now = self._properties(step)
        # kept in the table itself, so that a crash before they are put back does not lose them
        saved = json.loads(now[_SAVED]) if _SAVED in now else {k: v for k, v in now.items() if k in _TRIM}
        self._set(step, {**_TRIM, _SAVED: json.dumps(saved)})
        if saved:
            self._set(step, saved)
        unset = ", ".join(string_literal(key) for key in (*_TRIM, _SAVED) if key not in saved)
        self._sql(f"ALTER TABLE {_table(step)} UNSET TBLPROPERTIES ({unset})")
        found, folder = self._untracked(step), self._place(step)
        remove(folder, [file.path for file in found.going])
        remove_partitions(folder, empty_partitions(folder, _KEPT_FOLDERS))
        strange = {"strange_left": found.strange} if found.strange else {}
        return {"files_removed": len(found.going), **strange}

    # -- looks ---------------------------------------------------------------------------------------------------

    def _delete_files_left(self, step: Step, copy: Copy | None) -> list[str]:
        return self._of_head(step, "delete_files", step.parameters.get("branch"), "delete files still referenced")

    def _ref_rows_left(self, step: Step, copy: Copy | None) -> list[str]:
        name = step.parameters["ref"]
        # by identifier: with Hudi's extension in the session, VERSION AS OF a name is not resolved
        target = f"{_table(step)}.{quote(step.parameters['kind'] + '_' + name)}"
        kinds = {ref: found.kind for ref, found in self._refs(step).items()}
        if name not in kinds:
            return [f"the table has no reference {name}"]
        if copy and copy.mask:
            findings = more_than_held(self._ctx, target, copy, f" in {name}")
        else:
            left = count(self._ctx, target, places_of(copy))
            findings = [f"{name} still has {counted(left, 'row')} of the person"] if left else []
        findings += self._of_head(step, "delete_files", name, f"delete files still referenced by {name}")
        findings += self._of_head(step, "entries", name, f"DELETED manifest entries in {name}", "status = 2")
        if kinds.get(name) != step.parameters["kind"].upper():
            findings.append(f"{name} is no longer a {step.parameters['kind']}")
        if _WORK_BRANCH in kinds:
            findings.append("the work branch of the run still exists")
        return findings

    def _deleted_entries(self, step: Step, copy: Copy | None) -> list[str]:
        left = with_deleted_entries(self._ctx, _name(step))
        return [f"{counted(len(left), 'manifest still has', 'manifests still have')} DELETED entries"] if left else []

    def _old_snapshots(self, step: Step, copy: Copy | None) -> list[str]:
        if step.parameters.get("older_than"):
            until = string_literal(step.parameters["older_than"])
            query = f"SELECT count(*) FROM {_table(step)}.snapshots WHERE committed_at < TIMESTAMP {until}"
        else:
            query = f"SELECT count(*) FROM {_table(step)}.snapshots"
        heads = f" AND snapshot_id NOT IN (SELECT snapshot_id FROM {_table(step)}.refs)"
        query += heads if " WHERE " in query else heads.replace(" AND ", " WHERE ", 1)
        return self._number(query, "old snapshots left")

    def _orphans_left(self, step: Step, copy: Copy | None) -> list[str]:
        if _SAVED in self._properties(step):
            return ["the settings of the metadata log were not restored"]
        empty = empty_partitions(self._place(step), _KEPT_FOLDERS)
        if empty:
            return [f"{counted(len(empty), 'empty partition folder is', 'empty partition folders are')} left"]
        left = self._untracked(step).going
        return (
            [f"{counted(len(left), 'file is', 'files are')} not referenced, first {left[0].parts[-1]}"] if left else []
        )

    # -- helpers -------------------------------------------------------------------------------------------------

    def _newest(self, step: Step) -> str | None:
        return self._snapshot(step, step.parameters.get("branch"))

    def _rows_of(self, step: Step) -> str:
        """Main, or the branch that the step names."""
        branch = step.parameters.get("branch")
        return _table(step) + (f".{quote('branch_' + str(branch))}" if branch else "")

    def _untracked(self, step: Step) -> Untracked:
        return untracked(self._ctx, self._place(step), _name(step), step.parameters.get("sharing", ()))

    def _of_head(self, step: Step, part: str, ref: str | None, what: str, where: str = "true") -> list[str]:
        """How many rows a metadata table has as of the head of main, a branch or a tag, as a finding."""
        head = self._snapshot(step, ref)
        if head is None:
            return []
        # not in SQL: with Hudi's extension in the session, VERSION AS OF is not resolved here; and not by
        # `format("iceberg").load`, which looks for the catalog in whatever session of the process is active
        reader = self._ctx.spark.read.option(at_snapshot(self._ctx.spark.version), head)
        found = reader.table(f"{_table(step)}.{part}").where(where).count()
        return [f"{what}: {found}"] if found else []

    def _number(self, query: str, what: str) -> list[str]:
        row = self._sql(query).first()
        return [f"{what}: {row[0]}"] if row and row[0] else []

    def _call(self, step: Step, procedure: str, arguments: str) -> dict[str, Any]:
        catalog, _, table = _name(step).partition(".")
        # quoted inside the literal as well: the procedure parses it as SQL does
        called = string_literal(quote_table(table))
        call = f"CALL {quote(catalog)}.system.{procedure}(table => {called}, {arguments})"
        row = self._sql(call).first()
        return row.asDict() if row else {}

    def _snapshot(self, step: Step, ref: str | None = None) -> str | None:
        found = self._refs(step).get(ref or "main")
        return str(found.snapshot) if found else None

    def _refs(self, step: Step) -> Mapping[str, Reference]:
        return references(self._ctx, _table(step))

    def _ref_snapshot(self, step: Step, name: str) -> int:
        found = self._refs(step).get(name)
        if found is None:
            raise RunError(f"the table has no reference {name}", where=_name(step), todo="plan again")
        return found.snapshot

    def _set(self, step: Step, properties: dict[str, str]) -> None:
        pairs = ", ".join(f"{string_literal(k)} = {string_literal(v)}" for k, v in properties.items())
        self._sql(f"ALTER TABLE {_table(step)} SET TBLPROPERTIES ({pairs})")

    def _retention(self, step: Step, tag: str) -> str:
        """The RETAIN clause a tag was made with: moved without it, the tag would stay for ever."""
        found = self._refs(step).get(tag)
        if found is None or found.keep_ms is None:
            return ""
        return f" RETAIN {-(-found.keep_ms // _DAY_MS)} DAYS"

    def _properties(self, step: Step) -> dict[str, str]:
        return {row[0]: row[1] for row in self._sql(f"SHOW TBLPROPERTIES {_table(step)}").collect()}


def at_snapshot(spark_version: str) -> str:
    """The reader's option for a snapshot: Iceberg's own one, until Spark 4, where it only takes Spark's."""
    return "snapshot-id" if spark_version.startswith("3.") else "versionAsOf"


def _name(step: Step) -> str:
    missing = "no catalog of the estate file has a name for this Iceberg table"
    return name_of(step, missing, "declare the table's catalog in the estate file")


def _table(step: Step) -> str:
    return quote_table(_name(step))
