"""Statements that read an Iceberg table's metadata: no column of the table goes in, and some of its values may.

https://iceberg.apache.org/docs/latest/spark-queries/#inspecting-tables
"""

from __future__ import annotations

from collections.abc import Iterable

from pii_tracer.lineage.dataset_names import Identities
from pii_tracer.lineage.graph.edges import EdgeType
from pii_tracer.lineage.sql.statement_effects import StatementLineage
from pii_tracer.lineage.sql.text.names_inside_tables import holds_values

CLOSES = (
    "remove these columns from the statement, and delete the values that the statement wrote. If no column of that "
    "table contains a value of a person, truncated or complete, waive this gap"
)


def inspected(tables: Iterable[str], identities: Identities) -> frozenset[str]:
    """Those of the names that are metadata tables."""
    return frozenset(t for t in tables if (part := identities.part_of(t)) is not None and part.metadata)


def taken(made: StatementLineage, table: str) -> list[str]:
    """The columns of a metadata table that go into the output and may hold values of rows."""
    told = (e.source[1] for e in made.edges if e.source[0] == table and e.type is EdgeType.DIRECT)
    return sorted({column for column in told if holds_values(column)})


def reason(table: str, columns: Iterable[str]) -> str:
    """Why such a statement's output is not told."""
    return (
        f"it reads {', '.join(columns)} of {table}. Bounds, partitions, paths and rows in a table's metadata contain "
        "values of its rows, complete or truncated, and lineage does not show whose values"
    )
