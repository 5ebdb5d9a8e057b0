"""Iceberg tables under Nessie: Iceberg's statements on every branch and tag, and files by what all of them reach.

https://iceberg.apache.org/docs/latest/nessie/; what was seen with server 0.99.0 stands in docs/hazards.md (C2).
"""

from __future__ import annotations

from typing import Any

from executors.catalogs.nessie.live_references import (
    LiveHead,
    client_of,
    drop_work,
    heads,
    refuse_careless,
    unreached,
    work_branch,
)
from executors.engine.local_files import local_path
from executors.engine.spark_connect import refuse_without_jvm
from executors.engine.sql_names import quote_table
from executors.formats.iceberg.executor import IcebergExecutor
from executors.formats.iceberg.orphan_files import forget_snapshots
from executors.sweep.table_folders import remove
from pii_tracer.common.plurals import counted
from pii_tracer.lake.catalogs.nessie.client import Reference, RefType
from pii_tracer.lake.formats.iceberg.table_state import load_iceberg
from pii_tracer.lake.inventory import NESSIE_WORK_BRANCH, RefKind
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Copy, Step


class NessieExecutor(IcebergExecutor):
    """Every step asks the server for its references first: one that the plan does not know stops it."""

    name = "nessie"

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` when the table is not there, when a reference reaches it that the plan does not know, or
        when our own commits would delete what other references name; also when the session cannot do the step.
        """
        refuse_without_jvm(self._ctx.estate.spark.remote, (step,))
        table = str(step.parameters["table"])
        if not self._ctx.spark.catalog.tableExists(quote_table(table)):
            raise RunError("the catalog has no such table", where=table, todo="register the table again, or plan again")
        refuse_careless(step.parameters["location"], heads(self._ctx, step))

    # -- acts ----------------------------------------------------------------------------------------------------

    def _rewrite_ref(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        """A branch is erased in place; a tag, which takes no commits, through the work branch."""
        facts = {"ref": step.parameters["ref"]}
        if step.parameters["kind"] == RefKind.NESSIE_BRANCH.value:
            return {**self._erase(step, copy), **facts}
        client = client_of(self._ctx, step)
        drop_work(client)  # a crash between the move of the tag and here leaves it, and nothing else to be done
        if not self._left(step, copy):
            return {"rows_deleted": 0, **facts}
        with work_branch(client, self._head(step).reference):
            return {**self._erase(_on_work_branch(step), copy), **facts}

    def _erase(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        facts = self._delete_rows(step, copy)
        return {**facts, **self._rewrite_files(step, copy), **self._rewrite_manifests(step, copy)}

    def _expire(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        """In the metadata alone, on every reference: the procedure refuses, since files may be read elsewhere."""
        forgotten = 0
        client = client_of(self._ctx, step)
        drop_work(client)
        for head in heads(self._ctx, step):
            if not _old(head, step):
                continue
            if head.reference.type is RefType.BRANCH:
                forgotten += forget_snapshots(self._ctx, _named(head), None)
                continue
            with work_branch(client, head.reference):
                table = _on_work_branch(_at(step, _named(head))).parameters["table"]
                forgotten += forget_snapshots(self._ctx, table, None)
        return {"forgotten": forgotten}

    def _orphans(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        drop_work(client_of(self._ctx, step))
        removed = unreached(self._ctx, step)
        remove(self._place(step), [file.path for file in removed])
        return {"files_removed": len(removed)}

    # -- looks ---------------------------------------------------------------------------------------------------

    def _ref_rows_left(self, step: Step, copy: Copy | None) -> list[str]:
        references = client_of(self._ctx, step).references()
        findings = [] if _find(references, step) else [f"the catalog has no reference {step.parameters['ref']}"]
        findings += (
            ["the work branch of the run still exists"] if any(r.name == NESSIE_WORK_BRANCH for r in references) else []
        )
        return findings or self._left(step, copy)

    def _left(self, step: Step, copy: Copy | None) -> list[str]:
        return [
            *self._rows_left(step, copy),
            *self._delete_files_left(step, copy),
            *self._deleted_entries(step, copy),
        ]

    def _old_snapshots(self, step: Step, copy: Copy | None) -> list[str]:
        found = ((head.title, _old(head, step)) for head in heads(self._ctx, step))
        return [
            f"{counted(number, 'old snapshot is', 'old snapshots are')} left in {title}"
            for title, number in found
            if number
        ]

    def _orphans_left(self, step: Step, copy: Copy | None) -> list[str]:
        left = unreached(self._ctx, step)
        return (
            [
                (
                    f"{counted(len(left), 'file is', 'files are')} not referenced by any branch or tag, first "
                    f"{left[0].parts[-1]}"
                )
            ]
            if left
            else []
        )

    def _head(self, step: Step) -> LiveHead:
        """The step's reference.

        Raises:
            RunError: it is not there, or has not got the table any more.
        """
        found = [h for h in heads(self._ctx, step) if h.title == f"{step.parameters['kind']} {step.parameters['ref']}"]
        if len(found) != 1:
            raise RunError(
                f"the reference {step.parameters['ref']} does not contain the table",
                where=str(step.parameters["table"]),
                todo="plan again",
            )
        return found[0]


def _find(references: tuple[Reference, ...], step: Step) -> Reference | None:
    kind = RefType.TAG if step.parameters["kind"] == RefKind.NESSIE_TAG.value else RefType.BRANCH
    return next((r for r in references if (r.name, r.type) == (step.parameters["ref"], kind)), None)


def _old(head: LiveHead, step: Step) -> int:
    """Snapshots beside the current one in the metadata of a reference."""
    metadata = load_iceberg(local_path(step.parameters["location"]), head.metadata).metadata
    return sum(s.snapshot_id != metadata.current_snapshot_id for s in metadata.snapshots)


def _named(head: LiveHead) -> str:
    if head.table is None:
        raise RunError(f"SQL cannot write the name of {head.title}", todo="rename the reference, then plan again")
    return head.table


def _at(step: Step, table: str) -> Step:
    return step.model_copy(update={"parameters": {**step.parameters, "table": table}})


def _on_work_branch(step: Step) -> Step:
    """The step on the work branch in place of its reference: the name after `@`, which no key holds."""
    table = str(step.parameters["table"]).partition("@")[0]
    return _at(step, f"{table}@{NESSIE_WORK_BRANCH}")
