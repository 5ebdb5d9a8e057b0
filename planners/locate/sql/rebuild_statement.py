"""Which recorded statement writes a table again, and why none may where its text says that it gives something else.

A rebuild replaces the whole table by what the statement gives. So it must have written the whole table, be the only one
that did, and give the same rows whenever and wherever it runs. Whether what stands in the table is what it gives, is
compared when the run begins (executors.engine.rebuild_check); here is what the text tells without looking.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from sqlglot import exp

from pii_tracer.lake.inventory import TableState
from pii_tracer.lineage.graph.edges import JobRef
from pii_tracer.lineage.sql.text.script_splitting import prepared
from planners.formats.registry import format_planners, planner_of
from planners.locate.renamed_columns import ALTER
from planners.locate.sql.branch_identifiers import table_name
from planners.locate.sql.column_expressions import function_name
from planners.locate.sql.query_skeletons import (
    Cut,
    Unnamed,
    cut,
    unnamed,
)
from planners.locate.sql.statement_rows import parsed

_MODE = "spark.sql.sources.partitionOverwriteMode"
"""https://spark.apache.org/docs/3.5.6/configuration.html (Runtime SQL)"""

_CHANGING = frozenset(
    {
        *(
            "now",
            "current_timestamp",
            "current_date",
            "current_time",
            "curdate",
            "localtimestamp",
            "getdate",
            "sysdate",
        ),
        *("rand", "random", "randn", "uuid", "shuffle", "uniform", "randstr", "monotonically_increasing_id"),
        *("spark_partition_id", "input_file_name", "input_file_block_start", "input_file_block_length"),
        *("current_user", "session_user", "user", "current_role", "current_database", "current_schema"),
        *("current_catalog", "current_timezone", "version", "reflect", "java_method", "try_reflect"),
    }
)
"""Spark's functions that depend on the day, on chance, on the session or on how the data lies in files
(https://spark.apache.org/docs/3.5.6/api/sql/)."""

_DAYS = frozenset({"now", "today", "yesterday", "tomorrow"})
"""Special values of date and timestamp literals (https://spark.apache.org/docs/3.5.6/sql-ref-literals.html)."""


_SUSPECT = _CHANGING | _DAYS | {"_metadata"}
_WORD, _BARE_CALL = re.compile(r"\w+"), re.compile(r"\(\s*\)")


@dataclass(frozen=True)
class Recorded:
    """sql: the statement to write the table again by. why: what speaks against each that there is, for people."""

    sql: str | None = None
    why: str = "no recorded statement writes the whole table"


@dataclass(frozen=True)
class _Overwrite:
    """A statement that writes a whole table again. told: the columns that it names behind the table.

    placed: it fills the table's columns in their order, whatever its own are called.
    parts: of a text that is one query: its hundred columns are parsed only where something hangs on them; body: the
    rest of the query.
    """

    text: str
    told: tuple[str, ...] | None
    placed: bool
    parts: Cut | None
    body: Unnamed | None

    @cached_property
    def tree(self) -> exp.Expression | None:
        """All of it."""
        return parsed(self.text)

    @property
    def query(self) -> exp.Query | None:
        """What gives the rows."""
        return _query(self.tree)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Of the columns it writes, where it is told."""
        if self.told is not None:
            return self.told
        return (self.parts and self.parts.names) or (_names(self.query) if self.query is not None else None)

    @property
    def essence(self) -> str:
        """What it gives, however it is written."""
        ctes = self.tree.args.get("with_") if self.tree is not None else None
        parts = [
            part.sql("spark", comments=False, identify=True, normalize=True) for part in (ctes, self.query) if part
        ]
        return " ".join((*(name.lower() for name in self.names or ()), *parts))

    @property
    def unsteady(self) -> str | None:
        """Why it gives other rows on another day, in another session, or by chance; None where it does not."""
        whole = self.parts is None or _suspicious(self.parts.projections)
        return _unsteady(self.tree if whole or self.body is None else parsed(self.body.text))


def _suspicious(projections: str) -> bool:
    """Whether such a thing may be in them; a call without arguments may be one by another name."""
    return not _SUSPECT.isdisjoint(_WORD.findall(projections.lower())) or bool(_BARE_CALL.search(projections))


def splits_partitions(conf: Mapping[str, str]) -> bool:
    """Whether INSERT OVERWRITE replaces, under these Spark settings, only partitions that its query gives."""
    modes = (_MODE, *(name for _, planner in format_planners() for name in planner.overwrite_modes))
    return any(str(conf.get(name, "")).lower() == "dynamic" for name in modes)


def recorded(
    jobs: Sequence[JobRef],
    state: TableState,
    *,
    dynamic: bool = False,
    passing: Callable[[str], bool] = lambda name: False,
) -> Recorded:
    """The newest recorded statement that writes the whole table, if all that is recorded lets it be run again.

    jobs: all that write the table, latest last. dynamic: as of `splits_partitions` for the estate's sessions.
    passing: whether a table's name in a statement stands for a branch, a version or the metadata of a table.
    """
    texts = dict.fromkeys(_texts(jobs))
    texts.pop("", None)
    found = {text: _overwrite(text, dynamic and bool(state.partition_columns)) for text in texts}
    parts = [why for why in found.values() if isinstance(why, str)]
    if parts:
        return Recorded(why=next((why for why in parts if why != Recorded.why), Recorded.why))
    whole = [one for one in found.values() if isinstance(one, _Overwrite)]
    newest = next((job.sql for job in reversed(jobs) if job.sql), None)
    if newest is None:
        return Recorded()
    if len(whole) > 1 and len({one.essence for one in whole}) > 1:
        return Recorded(
            why=(
                "different recorded statements overwrite the whole table: nobody knows which statement wrote the "
                "present rows"
            )
        )
    why = next((why for one in whole if (why := one.unsteady or _passing(one, passing) or _misfit(one, state))), None)
    return Recorded(why=why) if why else Recorded(newest, "")


def overwrites(jobs: Sequence[JobRef]) -> bool:
    """Whether each job that writes a table has a recorded statement, and this overwrites the whole table. jobs: all
    that write it."""
    texts = _texts(jobs)
    return bool(texts) and all(isinstance(_overwrite(text, dynamic=False), _Overwrite) for text in texts)


def _texts(jobs: Sequence[JobRef]) -> list[str]:
    """The statements of all jobs that write rows; empty where none is recorded."""
    writing = (job for job in jobs if job.inputs or (job.statement and not ALTER.match(job.statement)))
    return [job.statement or job.sql or "" for job in writing]


def _overwrite(text: str, dynamic: bool) -> _Overwrite | str:
    """The statement, or why running it again would lose what it did not write."""
    text = prepared(text)
    parts = cut(text)
    tree = parsed(text if parts is None else unnamed(f"{parts.head} SELECT 1").text)
    if isinstance(tree, exp.Insert) and tree.args.get("overwrite") and tree.find(exp.Partition):
        return (
            "its recorded statement overwrites partitions (PARTITION …), not the whole table: a rebuild would lose "
            "the other partitions"
        )
    if isinstance(tree, exp.Insert) and tree.args.get("overwrite") and dynamic:
        return (
            "the sessions of the estate overwrite single partitions (partitionOverwriteMode dynamic), so its"
            " recorded statement does not write the whole table: a rebuild would lose the other partitions"
        )
    if not isinstance(tree, exp.Insert | exp.Create) or _query(tree) is None:
        return Recorded.why
    body = None if parts is None else unnamed(parts.body)
    if body is not None and parsed(body.text) is None:
        return Recorded.why
    if isinstance(tree, exp.Insert) and (not tree.args.get("overwrite") or tree.args.get("where")):
        return Recorded.why
    told = isinstance(tree, exp.Insert) and isinstance(tree.this, exp.Schema)
    placed = isinstance(tree, exp.Insert) and not told and not tree.args.get("by_name")
    return _Overwrite(text, tuple(c.name for c in tree.this.expressions) if told else None, placed, parts, body)


def _query(tree: exp.Expression | None) -> exp.Query | None:
    made = tree.args.get("expression") if isinstance(tree, exp.Insert | exp.Create) else None
    query = made.unnest() if isinstance(made, exp.Subquery) else made
    return query if isinstance(query, exp.Query) else None


def _names(query: exp.Query) -> tuple[str, ...] | None:
    """The query's columns, where each has a name that the text says."""
    given = cast(list[exp.Expression], query.selects)
    if not given or not all(isinstance(one, exp.Column | exp.Alias) and not one.is_star for one in given):
        return None
    return tuple(one.alias_or_name for one in given)


def _unsteady(tree: exp.Expression | None) -> str | None:
    for node in tree.walk() if tree is not None else ():
        word = _changing(cast(exp.Expression, node))
        if word:
            return f"its recorded statement uses {word}: a new run gives different rows"
    return None


def _passing(one: _Overwrite, passing: Callable[[str], bool]) -> str | None:
    """Why what it reads is another thing once its tables were erased; None where it reads whole tables."""
    tree, called = (one.tree, {}) if one.body is None else (parsed(one.body.text), one.body.names)
    names = (table_name(table) for table in (tree.find_all(exp.Table) if tree is not None else ()))
    name = next((name for name in (called.get(name, name) for name in names) if passing(name)), None)
    return name and f"its recorded statement reads {name}, a branch, a version or the metadata of a table"


def _changing(node: exp.Expression) -> str | None:
    if isinstance(node, exp.Func) and function_name(node) in _CHANGING:
        return function_name(node)
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.name.strip().lower() in _DAYS:
        return f"'{node.this.name.strip().lower()}'"
    if isinstance(node, exp.Column) and "_metadata" in (node.table.lower(), node.name.lower()):
        return "_metadata"
    if isinstance(node, exp.Version):
        return "an old version (AS OF)"
    if isinstance(node, exp.TableSample):
        return "TABLESAMPLE"
    if isinstance(node, exp.Query) and node.args.get("limit") and not node.args.get("order"):
        return "LIMIT without ORDER BY"
    return None


def _misfit(one: _Overwrite, state: TableState) -> str | None:
    """Why the statement's columns are not the table's; None where they are, or where the text does not tell."""
    own = tuple(prefix for _, planner in format_planners() for prefix in planner.own_column_prefixes)
    have = [c.name.lower() for c in state.columns if not c.name.startswith(own)]
    made = [name.lower() for name in one.names or ()]
    ordered = planner_of(state.format).keeps_column_order  # the others' partition columns come last in Spark
    if not made or not have or (made == have if ordered else sorted(made) == sorted(have)):
        return None
    if ordered and one.placed and len(made) == len(have) and sorted(made) != sorted(have):
        return None  # INSERT goes by position; the same names in another order are a table that changed since
    return f"its recorded statement writes the columns {', '.join(made)}, but the table has {', '.join(have)}"
