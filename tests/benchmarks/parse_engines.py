"""Column lineage of SELECT statements by four parsers, each as its documentation uses it, with every output column.

An answer is, per output column by position, the set of (table, column) behind it. The reference is `sqlglot.lineage`,
asked for one output column after the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pii_tracer.common.gc_pause import rare_collections

Answer = Mapping[int, frozenset[tuple[str, str]]]
Schemas = Mapping[str, Sequence[str]]
Engine = Callable[[str, Schemas, Sequence[str]], Answer]
"""From a statement, the schemas, and the names of its output columns (found before, and not timed)."""


@dataclass(frozen=True)
class Score:
    """What one engine did with all statements. recall: of the reference's sources; extra: sources it does not have."""

    engine: str
    seconds: float
    statements: int
    failed: int
    recall: float
    extra: int

    @property
    def per_second(self) -> float:
        return self.statements / self.seconds


def ours(sql: str, schemas: Schemas, names: Sequence[str]) -> Answer:
    """`pii_tracer.lineage`, one pass; output columns that only a condition decides count as well, as in the reference."""
    from pii_tracer.lineage.sql.parse_lines import schemas_of
    from pii_tracer.lineage.sql.sql_lineage import parse_statements

    given = schemas_of({table: list(columns) for table, columns in schemas.items()})
    made = parse_statements(sql, "spark", given, contract=True)[-1]
    if len(made.columns) != len(names):
        raise ValueError("another number of columns")
    found: dict[str, set[tuple[str, str]]] = {}
    for edge in made.edges:
        found.setdefault(edge.target[1], set()).add((edge.source[0].lower(), edge.source[1].lower()))
    return {number: frozenset(found.get(name, ())) for number, name in enumerate(made.columns)}


def outputs(sql: str, schemas: Schemas) -> list[str]:
    """Names of the output columns, as sqlglot qualifies them."""
    import sqlglot
    from sqlglot.optimizer.qualify import qualify

    typed = {table: dict.fromkeys(columns, "string") for table, columns in schemas.items()}
    tree = qualify(sqlglot.parse_one(sql, dialect="spark"), schema=typed, dialect="spark")
    return [str(name) for name in tree.named_selects]


def sqlglot_lineage(sql: str, schemas: Schemas, names: Sequence[str]) -> Answer:
    """`sqlglot.lineage` per output column."""
    from sqlglot import exp
    from sqlglot.lineage import lineage

    typed = {table: dict.fromkeys(columns, "string") for table, columns in schemas.items()}
    found = {}
    for number, name in enumerate(names):
        leaves = [
            n for n in lineage(name, sql, schema=typed, dialect="spark").walk() if isinstance(n.expression, exp.Table)
        ]
        found[number] = frozenset(
            (n.expression.name.lower(), n.name.rsplit(".", 1)[-1].strip('"`').lower()) for n in leaves
        )
    return found


def sqllineage(sql: str, schemas: Schemas, names: Sequence[str]) -> Answer:
    """sqllineage with its metadata provider; it needs a target, and its names are mapped to places."""
    from sqllineage.config import SQLLineageConfig
    from sqllineage.core.metadata.dummy import DummyMetaDataProvider
    from sqllineage.runner import LineageRunner

    metadata = DummyMetaDataProvider({f"main.{table}": list(columns) for table, columns in schemas.items()})
    found: dict[str, set[tuple[str, str]]] = {}
    with SQLLineageConfig(DEFAULT_SCHEMA="main"):
        runner = LineageRunner(f"INSERT INTO lineage_out {sql}", dialect="sparksql", metadata_provider=metadata)
        for path in runner.get_column_lineage():
            table = str(path[0].parent).removeprefix("main.").lower()
            found.setdefault(path[-1].raw_name.lower(), set()).add((table, path[0].raw_name.lower()))
    return _placed(found, names)


def openlineage_sql(sql: str, schemas: Schemas, names: Sequence[str]) -> Answer:
    """OpenLineage's own SQL parser, which takes no schemas."""
    import openlineage_sql as parser

    meta = parser.parse([f"INSERT INTO lineage_out {sql}"], dialect="databricks")
    if meta is None or meta.errors:
        raise ValueError("not parsed")
    found: dict[str, set[tuple[str, str]]] = {}
    for item in meta.column_lineage:
        sources = {(o.origin.name.lower() if o.origin else "", o.name.lower()) for o in item.lineage}
        found.setdefault(item.descendant.name.lower(), set()).update(sources)
    return _placed(found, names)


def _placed(found: Mapping[str, set[tuple[str, str]]], outputs: Sequence[str]) -> Answer:
    """By name to by place; columns that the engine named by itself cannot be told apart and go to the end."""
    names = [name.lower() for name in outputs]
    placed = {names.index(name): frozenset(sources) for name, sources in found.items() if name in names}
    others = [frozenset(sources) for name, sources in found.items() if name not in names]
    free = [number for number in range(len(names)) if number not in placed]
    return placed | dict(zip(free, others, strict=False))


ENGINES: Mapping[str, Engine] = {
    "pii-tracer": ours,
    "sqlglot.lineage": sqlglot_lineage,
    "sqllineage": sqllineage,
    "openlineage-sql": openlineage_sql,
}


def scored(queries: Sequence[str], schemas: Schemas) -> list[Score]:
    """Every engine over every statement; a statement that an engine raises on counts as failed, with no sources."""
    reference: list[Answer] = []
    scores = {}
    names = [outputs(sql, schemas) for sql in queries]
    for name in ("sqlglot.lineage", *(n for n in ENGINES if n != "sqlglot.lineage")):
        answers, failed, seconds = _run(ENGINES[name], queries, schemas, names)
        reference = reference or answers
        wanted = sum(len(s) for answer in reference for s in answer.values())
        hit = sum(len(s & a.get(n, frozenset())) for r, a in zip(reference, answers, strict=True) for n, s in r.items())
        given = sum(len(s) for answer in answers for s in answer.values())
        scores[name] = Score(name, seconds, len(queries), failed, hit / wanted, given - hit)
    return [scores[name] for name in ENGINES]


def _run(
    engine: Engine, queries: Sequence[str], schemas: Schemas, names: Sequence[Sequence[str]]
) -> tuple[list[Answer], int, float]:
    answers: list[Any] = []
    failed, seconds = 0, 0.0
    with rare_collections():  # as `parse` and `harvest` run; every engine has it alike
        for sql, columns in zip(queries, names, strict=True):
            begin = time.perf_counter()
            try:
                answers.append(engine(sql, schemas, columns))
            except Exception:  # engines raise whatever they like; the number is the result
                answers.append({})
                failed += 1
            seconds += time.perf_counter() - begin
    return answers, failed, seconds
