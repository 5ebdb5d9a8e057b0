"""Iceberg tables: delete, rewrite, refs, manifests, expiry, orphans. Sequences as measured in docs/recipes.md."""

from __future__ import annotations

from typing import Any

from executors.base import SparkExecutor, Target
from executors.context import ExecutionContext
from executors.iceberg_orphans import RemoveOrphans
from executors.iceberg_ref import Ref, clean_manifests, delete_rows, rewrite_files
from executors.iceberg_table import IcebergTable, open_table
from executors.rebuild import query_frame
from executors.spark import quote
from pii_tracer.errors import RunError
from pii_tracer.inventory import RefKind
from pii_tracer.plan import Action
from pii_tracer.protocol import Check


class IcebergExecutor(SparkExecutor):
    """Executor `iceberg`."""

    def __init__(self, ctx: ExecutionContext) -> None:
        super().__init__(
            ctx,
            "iceberg",
            {
                Action.ICEBERG_DELETE_ROWS: DeleteRows(),
                Action.ICEBERG_REBUILD: Rebuild(),
                Action.ICEBERG_REWRITE_FILES: RewriteFiles(),
                Action.ICEBERG_REWRITE_REF: RewriteRef(),
                Action.ICEBERG_REWRITE_MANIFESTS: RewriteManifests(),
                Action.ICEBERG_EXPIRE_SNAPSHOTS: ExpireSnapshots(),
                Action.ICEBERG_REMOVE_ORPHANS: RemoveOrphans(),
            },
        )


def _branch(at: Target, table: IcebergTable) -> Ref:
    name = at.parameter("branch")
    if name is not None and table.refs().get(str(name), ("", 0))[0] != RefKind.BRANCH:
        raise RunError(f"the table has no branch {quote(str(name))}", where=at.table, todo="plan again")
    return Ref(table, None if name is None else str(name))


class DeleteRows:
    """I1: a semi-join delete on main or a branch, never with a literal."""

    atomic = True

    def check(self, at: Target) -> None:
        table = open_table(at)
        at.require_columns(table.columns())
        _branch(at, table)

    def run(self, at: Target) -> dict[str, Any]:
        ref = _branch(at, open_table(at))
        before = ref.snapshot()
        delete_rows(at, ref)
        return {"snapshot_before": before, "snapshot_after": ref.snapshot(), **ref.summary(before)}

    def verify(self, at: Target) -> Check:
        rows = at.persons_rows(_branch(at, open_table(at)).relation)
        return Check(rows == 0, _finding(rows, "row(s) of the persons are still in the current snapshot"))


class RewriteFiles:
    """I2: rewrite every data file that a delete file applies to, and drop the delete files (hazards I2, I5, I9)."""

    atomic = False

    def check(self, at: Target) -> None:
        _branch(at, open_table(at))

    def run(self, at: Target) -> dict[str, Any]:
        ref = _branch(at, open_table(at))
        before = ref.snapshot()
        facts = rewrite_files(at, ref)
        return {"snapshot_before": before, "snapshot_after": ref.snapshot(), **facts}

    def verify(self, at: Target) -> Check:
        left = _branch(at, open_table(at)).delete_files()
        return Check(left == 0, _finding(left, "delete file(s) still mark rows that were not removed"))


class RewriteRef:
    """I3 hazard: a branch or tag pins what main no longer has. Branch: erased in place; tag: re-pointed."""

    atomic = False

    def check(self, at: Target) -> None:
        table = open_table(at)
        at.require_columns(table.columns())
        self._kind(at, table)

    def _kind(self, at: Target, table: IcebergTable) -> tuple[str, RefKind]:
        name, kind = str(at.parameter("ref")), RefKind(at.parameter("kind", RefKind.BRANCH))
        found = table.refs().get(name)
        if kind is RefKind.SAVEPOINT or found is None or found[0] != kind:
            raise RunError(f"the table has no {kind} {quote(name)}", where=at.table, todo="plan again")
        return name, kind

    def run(self, at: Target) -> dict[str, Any]:
        table = open_table(at)
        name, kind = self._kind(at, table)
        before = table.refs()[name][1]
        if kind is RefKind.BRANCH:
            facts = _erase(at, Ref(table, name))
        else:
            facts = self._tag(at, table, name, before)
        return {"ref": name, "kind": kind, "snapshot_before": before, "snapshot_after": table.refs()[name][1], **facts}

    def _tag(self, at: Target, table: IcebergTable, tag: str, snapshot: int) -> dict[str, Any]:
        """The tag's own maximum age (RETAIN) is kept."""
        temporary = f"pii_tracer_{at.step.id}".replace(".", "_").replace("-", "_")
        keep = table.tag_retention_days(tag)
        # a crash may have left it; its rows are the tag's, so begin again from the tag
        at.sql(f"ALTER TABLE {table.name} DROP BRANCH IF EXISTS {quote(temporary)}")
        at.sql(f"ALTER TABLE {table.name} CREATE BRANCH {quote(temporary)} AS OF VERSION {snapshot}")
        facts = _erase(at, Ref(table, temporary))
        head = table.refs()[temporary][1]
        retain = f" RETAIN {keep} DAYS" if keep else ""
        at.sql(f"ALTER TABLE {table.name} CREATE OR REPLACE TAG {quote(tag)} AS OF VERSION {head}{retain}")
        at.sql(f"ALTER TABLE {table.name} DROP BRANCH {quote(temporary)}")
        return facts

    def verify(self, at: Target) -> Check:
        table = open_table(at)
        name, _ = self._kind(at, table)
        ref = Ref(table, name)
        findings = _finding(at.persons_rows(ref.relation), f"row(s) of the persons are still in {quote(name)}")
        findings += _finding(ref.delete_files(), f"delete file(s) still mark rows in {quote(name)}")
        findings += _finding(ref.deleted_entries(), f"manifest(s) of {quote(name)} list deleted files with bounds")
        if any(other.startswith("pii_tracer_") for other in table.refs()):
            findings += ("a temporary branch of an interrupted run is left",)
        return Check(not findings, findings)


def _erase(at: Target, ref: Ref) -> dict[str, Any]:
    """The whole treatment of one branch: rows, files, manifests."""
    before = ref.snapshot()
    if at.persons_rows(ref.relation):
        delete_rows(at, ref)
    facts = ref.summary(before)
    rewritten = rewrite_files(at, ref)
    return facts | rewritten | clean_manifests(at, ref)


class RewriteManifests:
    """I3 and I4: no live manifest of main may list a deleted file with its bounds (hazard I4b)."""

    atomic = False

    def check(self, at: Target) -> None:
        open_table(at)

    def run(self, at: Target) -> dict[str, Any]:
        ref = _branch(at, open_table(at))
        before = ref.snapshot()
        facts = clean_manifests(at, ref)
        return {"snapshot_before": before, "snapshot_after": ref.snapshot(), **facts}

    def verify(self, at: Target) -> Check:
        dirty = _branch(at, open_table(at)).deleted_entries()
        return Check(dirty == 0, _finding(dirty, "manifest(s) still list deleted files with their bounds"))


class ExpireSnapshots:
    """I5. older_than None means everything but the newest; retain_last counts per branch."""

    atomic = False

    def check(self, at: Target) -> None:
        table = open_table(at)
        if table.properties().get("gc.enabled", "true").lower() == "false":
            raise RunError(
                "the table forbids expiry (`gc.enabled` is false): its files may belong to another table",
                where=at.table,
                todo="find out who shares its files (hazard I7), then set `gc.enabled` yourself",
            )

    def run(self, at: Target) -> dict[str, Any]:
        table = open_table(at)
        before = table.snapshots()
        if not before:
            return {"snapshots_before": 0, "snapshots_after": 0}
        row = at.sql(
            f"CALL {quote(table.catalog)}.system.expire_snapshots(table => {table.argument}, "
            f"older_than => TIMESTAMP_MILLIS({self._cutoff(at, before)}), retain_last => {self._retain(at)})"
        ).first()
        facts = row.asDict() if row else {}
        return {"snapshots_before": len(before), "snapshots_after": len(table.snapshots()), **facts}

    @staticmethod
    def _retain(at: Target) -> int:
        return max(1, int(at.parameter("retain_last") or 1))

    @staticmethod
    def _cutoff(at: Target, snapshots: dict[int, tuple[int | None, int]]) -> int:
        """Milliseconds. Without `older_than`: just after the newest snapshot, by the table's clock, not by ours."""
        from datetime import datetime

        older_than = at.parameter("older_than")
        if older_than:
            moment = datetime.fromisoformat(str(older_than).replace("Z", "+00:00"))
            if moment.tzinfo is None:
                raise RunError(f"step {at.step.id}: `older_than` has no time zone", todo="plan again")
            return int(moment.timestamp() * 1000)
        return max(millis for _, millis in snapshots.values()) + 1

    def verify(self, at: Target) -> Check:
        table = open_table(at)
        snapshots = table.snapshots()
        if not snapshots:
            return Check(True)
        cutoff = self._cutoff(at, snapshots)
        wanted: set[int] = {sid for sid, (_, millis) in snapshots.items() if millis >= cutoff}
        for kind, head in table.refs().values():
            steps = self._retain(at) if kind == RefKind.BRANCH else 1
            node: int | None = head
            while node in snapshots and steps:
                wanted.add(node)
                node, steps = snapshots[node][0], steps - 1
        extra = sorted(set(snapshots) - wanted)
        return Check(
            not extra,
            _finding(len(extra), "snapshot(s) that nothing should keep are still there (a branch's own retention?)"),
            {"snapshots": sorted(snapshots), "extra": extra},
        )


class Rebuild:
    """Overwrite the whole table with what its recorded job makes of the erased source."""

    atomic = True

    def check(self, at: Target) -> None:
        query_frame(at, open_table(at).columns())

    def run(self, at: Target) -> dict[str, Any]:
        from pyspark.sql import functions as F

        table = open_table(at)
        before, rows = Ref(table, None).snapshot(), at.scalar(f"SELECT count(*) FROM {table.name}")
        frame = query_frame(at, table.columns())
        frame.writeTo(table.name).overwrite(F.lit(True))
        return {
            "snapshot_before": before,
            "snapshot_after": Ref(table, None).snapshot(),
            "rows_before": rows,
            "rows_after": at.scalar(f"SELECT count(*) FROM {table.name}"),
        }

    def verify(self, at: Target) -> Check:
        table = open_table(at)
        frame = query_frame(at, table.columns())
        current = at.spark.table(table.name)
        unequal = frame.exceptAll(current).count() + current.exceptAll(frame).count()
        return Check(unequal == 0, _finding(unequal, "row(s) differ from what the recorded job makes of its sources"))


def _finding(count: int, what: str) -> tuple[str, ...]:
    return (f"{count} {what}",) if count else ()
