"""A second look at a resolved statement: every table and column of its text was followed, or stands where none counts.

Resolution walks clause by clause and can pass over what it does not know; this walks the whole tree and cannot.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from pii_tracer.lineage.sql.scopes import Findings, shown

_WITHOUT_DATA = (
    exp.Hint, exp.Properties, exp.Returning, exp.RenameColumn, exp.ColumnDef, exp.IndexParameters, exp.Index,
    exp.Constraint, exp.PrimaryKey, exp.ForeignKey, exp.Partition, exp.Star, exp.Schema,
    exp.DataType, exp.Pivot, exp.Lock, exp.TableAlias,
)  # fmt: skip
"""Parts of a statement whose names bring no data along, or that their own rule follows by name (PIVOT)."""

_WRITES = (exp.Insert, exp.Merge, exp.Update, exp.Delete, exp.Create, exp.Into, exp.Copy, exp.LoadData)


def audit(node: exp.Expression, findings: Findings) -> None:
    """Doubt the answer for every table and column that nobody followed. ALTER is followed action by action."""
    if isinstance(node, exp.Alter):
        return
    for part in _unfollowed(node, findings.followed):
        name = shown(p.name for p in part.parts)
        what = "column" if isinstance(part, exp.Column) else "table"
        findings.doubt(f"{what} {name} stands in a part of the statement that is not followed")


def _unfollowed(node: exp.Expression, followed: set[int]) -> Iterator[exp.Column | exp.Table]:
    """Walks without recursion: statements of megabytes are deep."""
    waiting: list[exp.Expression] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, _WITHOUT_DATA) and not part.find(exp.Query):
            continue
        if isinstance(part, exp.CTE) and id(part) not in followed:
            continue  # nobody reads it
        if (
            isinstance(part, exp.Column | exp.Table)
            and id(part) not in followed
            and not isinstance(part.this, exp.Star)
            and not _is_target(part)
        ):
            yield part
        waiting += _children(part)


def _children(part: exp.Expression) -> list[exp.Expression]:
    if isinstance(part, exp.Select) and part.args.get("windows"):
        return [c for c in part.iter_expressions() if c.arg_key != "windows"]  # followed where they are used
    if isinstance(part, exp.SetOperation):
        return [c for c in part.iter_expressions() if c.arg_key != "on"]  # UNION BY NAME ON: names of the output
    if isinstance(part, exp.OnConflict):
        return [c for c in part.iter_expressions() if c.arg_key != "conflict_keys"]
    return list(part.iter_expressions())


def _is_target(part: exp.Column | exp.Table) -> bool:
    """What is written to: the table of a write, the left side of SET, the columns of MERGE's INSERT."""
    parent = part.parent
    if isinstance(part, exp.Table):
        while isinstance(parent, exp.Schema):
            parent = parent.parent
        return isinstance(parent, _WRITES) and part.arg_key in ("this", "expression")
    if isinstance(parent, exp.Tuple) and isinstance(parent.parent, exp.Insert) and parent.arg_key == "this":
        return True
    if isinstance(parent, exp.Tuple) and parent.arg_key == "this":
        parent = parent.parent
    return isinstance(parent, exp.EQ) and isinstance(parent.parent, exp.Update | exp.OnConflict)
