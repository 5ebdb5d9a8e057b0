"""How a query's columns become a target's: by name, or by position as SQL's INSERT does where positions are known."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlglot import exp

from pii_tracer.common.plurals import counted
from pii_tracer.lineage.sql.queries import Query
from pii_tracer.lineage.sql.relations import (
    TRANSFORMATION,
    Alt,
    Dep,
    Field,
    Relation,
    fitting,
)
from pii_tracer.lineage.sql.statements.filled_columns import EMPTY
from pii_tracer.lineage.sql.text.table_names import is_place


def placed(
    query: Query, target: str, relation: Relation, columns: Sequence[str], *, named: bool = False, loose: bool = False
) -> list[Field]:
    """The query's columns as the target's columns: by name, or by position as SQL's INSERT does.

    loose: nobody knows in which order the target has its columns.
    """
    if named or (not columns and is_place(target)):
        return list(relation.fields)
    if not columns:
        if not relation.open and any(relation.fields):
            query.findings.assume(
                f"the schema of {target} is not in the lineage sources: lineage uses the column names of the query"
            )
        return list(relation.fields)
    if relation.open:
        return _anything(query, target, relation, columns)
    if loose or any(f.loose for f in relation.fields):
        return _by_fitting_names(query, target, relation, columns)
    if len(columns) != len(relation.fields):
        query.findings.doubt(
            f"the query has {counted(len(relation.fields), 'column')} but {target} expects {len(columns)}: "
            "lineage assumes that every input reaches every column"
        )
        return _everywhere(query, relation, columns)
    return [f.named(c) for f, c in zip(relation.fields, columns, strict=True)]


def of_files(
    query: Query, target: str, source: str, columns: Sequence[str], *, parts: Collection[str] = (), named: bool = False
) -> list[Field]:
    """The columns of files as those of the table that takes them: a shorter list is that of the leading columns.

    Files of which nothing is known are taken to hold the table's columns. parts: columns that the statement gives one
    value each, which no file has. named: the files' columns pair by name.
    """
    relation = query.lookup(source)
    fixed = {part.lower() for part in parts}
    in_files = [f.name.lower() for f in relation.fields]
    if in_files:
        columns = [c for c in columns if c.lower() not in fixed]
    named = named or query.names.paired(source) or query.names.paired(target)
    if named or not in_files or in_files == [c.lower() for c in columns[: len(in_files)]]:
        return [f.named(c) for c in columns if (f := relation.get(c)) is not None]
    query.findings.doubt(f"the columns of {source} and {target} have different names, or a different order")
    return placed(query, target, relation, columns[: len(in_files)])


def partition_columns(node: exp.Expression | None) -> list[str]:
    """The columns of `PARTITION (d = 1)`."""
    return [name for name, _ in partition_values(node)]


def partition_values(node: exp.Expression | None) -> list[tuple[str, str]]:
    """The columns of `PARTITION (d = 1)` with their constants; an empty text where it is none."""
    parts = node.find_all(exp.EQ) if node is not None else ()
    return [(part.this.name, _text_of(part.expression)) for part in parts]


def _text_of(value: exp.Expression) -> str:
    sign = "-" if isinstance(value, exp.Neg) else ""
    inner = value.this if sign else value
    return (f"{sign}{inner.name}" or EMPTY) if isinstance(inner, exp.Literal) else ""


def _by_fitting_names(query: Query, target: str, relation: Relation, columns: Sequence[str]) -> list[Field]:
    """Where positions are not known names count, if they are the same on both sides; nothing else may be guessed."""
    if fitting(relation.fields, columns):
        return [replace(f, loose=False) for f in relation.fields]
    query.findings.doubt(
        f"INSERT goes by position, and files do not tell the order of the columns of {target} or of what it reads:"
        " every input is taken to reach every column; give the table's schema, or name the columns in the statement"
    )
    return _everywhere(query, relation, columns)


def _anything(query: Query, target: str, relation: Relation, columns: Sequence[str]) -> list[Field]:
    tables = ", ".join(sorted(set(relation.bases())))
    query.findings.doubt(
        f"the schema of {tables} is not known: lineage assumes that every input reaches every column of {target}; "
        "add the schema to the lineage sources"
    )
    return _everywhere(query, relation, columns)


def _everywhere(query: Query, relation: Relation, columns: Sequence[str]) -> list[Field]:
    query.findings.opaque = True
    deps = tuple(dict.fromkeys(Dep(d.table, d.column, TRANSFORMATION.then(d.kind)) for d in relation.all_deps()))
    return [Field(c, (Alt(None, deps),)) for c in columns]
