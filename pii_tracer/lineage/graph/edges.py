"""What lineage consists of: edges between columns, memberships in whole datasets, jobs, and gaps.

Types and subtypes are those of OpenLineage's ColumnLineageDatasetFacet with its dataset-level part enabled:
https://openlineage.io/docs/spec/facets/dataset-facets/column_lineage_facet
"""

from __future__ import annotations

from typing import Literal

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.datasets import ColumnId, DatasetId, Frozen
from pii_tracer.model.gap_kinds import LineageGapKind


class EdgeType(StrEnum):
    """Whether a value goes in, or only decides about other values."""

    DIRECT = "DIRECT"
    INDIRECT = "INDIRECT"


class Subtype(StrEnum):
    """How. The order is OpenLineage's order of strength among the direct ones, strongest first."""

    AGGREGATION = "AGGREGATION"
    TRANSFORMATION = "TRANSFORMATION"
    IDENTITY = "IDENTITY"
    CONDITIONAL = "CONDITIONAL"
    WINDOW = "WINDOW"
    SORT = "SORT"
    GROUP_BY = "GROUP_BY"
    JOIN = "JOIN"
    FILTER = "FILTER"


DIRECT_SUBTYPES = (Subtype.AGGREGATION, Subtype.TRANSFORMATION, Subtype.IDENTITY)
"""Strongest first."""


RENAME = "rename"
"""The job of edges between the names that a table had one after the other."""

THROUGH = "view"
"""How the job of edges from a view that is written to, to the table whose rows it shows, begins; its name follows."""


NOT_STORED = "-- not stored"
"""What stands for a text that the graph's file does not keep. Nothing parses it, so nobody takes it for SQL."""

BY_USER = "current_user()"
"""What stands for the name of whoever is logged in, where a column gets that."""


class Evidence(Frozen):
    """Who says so. where: `file:line`, of an event or a statement. at: event time, or None for SQL files.

    What several runs of a job tell is one evidence: where is the first of them, last the last, runs their number and
    at the time of the last event.
    """

    source: Literal["openlineage", "sql", "unity"]
    where: str
    job: str | None = None
    at: str | None = None
    last: str | None = None
    runs: int = 1


class Edge(Frozen):
    """One column goes into another (DIRECT), or decides about its values (INDIRECT).

    expression: Spark SQL text of the target's expression in which columns are qualified with their table's name,
    composed down to the statement's source tables; None when the evidence holds none.
    """

    source: ColumnId
    target: ColumnId
    type: EdgeType
    subtype: Subtype
    masking: bool = False
    expression: str | None = None
    evidence: tuple[Evidence, ...] = ()


class Membership(Frozen):
    """A column decides which rows of a dataset exist, or how they are ordered."""

    source: ColumnId
    target: DatasetId
    subtype: Subtype
    evidence: tuple[Evidence, ...] = ()


class LineageGap(Frozen):
    """Lineage that is not complete. closes: what would close it. dataset: where data may have gone, if known.

    same_as: the dataset that it may be under another name.
    """

    dataset: DatasetId | None
    kind: LineageGapKind
    reason: str
    evidence: str
    closes: str = ""
    same_as: DatasetId | None = None


class JobRef(Frozen):
    """A job that writes a dataset, with its statement where one is recorded.

    sql: the statement, if running it again writes the dataset anew. statement: its text, whatever it does. views: the
    session's views that it reads, by name with their statements, each after those that it reads itself. filled:
    columns that the table fills by itself in rows of it, each with the constant, `BY_USER`, or an empty text for a
    number that the engine makes. Of a job without inputs and statement nobody tells what it writes.
    """

    job: str
    sql: str | None
    inputs: tuple[DatasetId, ...]
    output: DatasetId
    at: str | None = None
    where: str = ""
    statement: str | None = None
    views: tuple[tuple[str, str], ...] = ()
    filled: tuple[tuple[str, str], ...] = ()
