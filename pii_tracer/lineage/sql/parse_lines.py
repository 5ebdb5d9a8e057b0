"""`pii-tracer parse`: one JSON object with SQL per line in, one with column lineage per line out.

The protocol is a stable interface (docs/commands.md). No line ever stops the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

from pii_tracer.common.gc_pause import rare_collections
from pii_tracer.lineage.sql.known_dialects import known_dialect
from pii_tracer.lineage.sql.sql_lineage import Script
from pii_tracer.lineage.sql.statement_effects import Effect, SqlEdge, StatementLineage
from pii_tracer.lineage.sql.text.table_names import Names
from pii_tracer.model.errors import PiiTracerError

Schemas = Mapping[str, Sequence[tuple[str, str]]]


def parse_lines(lines: Iterable[str], out: TextIO) -> bool:
    """Answer every line; True when all answers are complete and without error."""
    good = True
    with rare_collections():
        for line in lines:
            if line.strip():
                answer = answer_line(line)
                good &= answer["complete"] and answer["error"] is None
                out.write(json.dumps(answer, ensure_ascii=False) + "\n")
    return good


def answer_line(line: str) -> dict[str, Any]:
    """The answer to one line of the protocol."""
    request: Any = None
    try:
        request = json.loads(line.removeprefix("\ufeff"))
        if not isinstance(request, dict) or not isinstance(request.get("sql"), str):
            return _failed(_id(request), "the line must be a JSON object with the text field `sql`")
        return {
            "id": request.get("id"),
            **answer_sql(
                request["sql"],
                str(request.get("dialect") or "spark"),
                schemas_of(request.get("schemas")),
                _text(request.get("default_db")),
                _text(request.get("default_schema")),
            ),
        }
    except json.JSONDecodeError as error:
        return _failed(None, f"the line is not JSON (column {error.colno})")
    except PiiTracerError as error:
        return _failed(_id(request), error.what)
    except RecursionError:
        return _failed(_id(request), "the input is nested too deeply")


def _id(request: Any) -> Any:
    return request.get("id") if isinstance(request, dict) else None


def _text(value: Any) -> str | None:
    return str(value) if value else None


def schemas_of(given: Any) -> dict[str, list[tuple[str, str]]]:
    """Columns by table; a column is a name, or an object or pair with name and type."""
    result: dict[str, list[tuple[str, str]]] = {}
    for table, columns in given.items() if isinstance(given, dict) else ():
        pairs = columns.items() if isinstance(columns, dict) else columns if isinstance(columns, list) else ()
        result[str(table)] = [_column(c) for c in pairs]
    return result


def _column(given: Any) -> tuple[str, str]:
    if isinstance(given, dict):
        return str(given.get("name", "")), str(given.get("type") or "")
    if isinstance(given, list | tuple) and len(given) == 2:
        return str(given[0]), str(given[1])
    return str(given), ""


def _failed(id_: Any, what: str) -> dict[str, Any]:
    return {
        "id": id_,
        "edges": [],
        "indirect": [],
        "complete": False,
        "unresolved": [what],
        "assumed": [],
        "error": what,
    }


def answer_sql(
    sql: str, dialect: str, schemas: Schemas, default_db: str | None = None, default_schema: str | None = None
) -> dict[str, Any]:
    """Edges, indirect dependencies and completeness of a text of one or more statements, contracted.

    assumed: how the columns of a target without a schema were named, where the schemas of all that goes in were given
    (no value is missing then); without those the answer is not complete.

    Raises:
        LineageError: the text cannot be cut into statements, or the dialect is not known.
    """
    known = known_dialect(dialect)
    made = Script(Names(schemas, default_db, default_schema, sure=True), known, contract=True).run(sql)
    last = _last(made)
    ends_here = set(last)
    between = [s for s in made if s.effect in _STAYS and s not in ends_here]
    ends: list[SqlEdge] = []
    if between:
        plain = Script(Names(schemas, default_db, default_schema, sure=True), known).run(sql)
        ends = list(_left_standing(between, plain))
    names = Names(schemas, default_db, default_schema, sure=True)
    assumed = list(dict.fromkeys(r for s in made for r in s.assumed if all(map(names.columns, s.inputs))))
    reasons = [r for r in dict.fromkeys(r for s in made for r in s.reasons) if r not in assumed]
    unread = [s for s in made if s.opaque and s.effect is Effect.NONE]
    return {
        "edges": _edges([*(e for s in last for e in s.edges), *ends]),
        "indirect": _indirect(last),
        "complete": not reasons and bool(made),
        "unresolved": reasons if made else ["the text contains no statement"],
        "assumed": assumed,
        "error": unread[0].reasons[0] if unread and len(unread) == len(made) else None,
    }


_STAYS = frozenset({Effect.REPLACE, Effect.APPEND, Effect.CHANGE, Effect.CLONE})


def _left_standing(between: Sequence[StatementLineage], plain: Sequence[StatementLineage]) -> Iterator[SqlEdge]:
    """Edges into columns of intermediate tables that no later statement takes a value from: they are ends as well."""
    dropped = {s.output for s in plain if s.effect is Effect.DROP}
    reads = (s for s in plain if not (s.makes and s.effect is Effect.CHANGE))  # a table computes columns of its own
    taken = {(table.lower(), column.lower()) for s in reads for e in s.edges for table, column in (e.source,)}
    for statement in between:
        for edge in statement.edges if statement.output not in dropped else ():
            table, column = (part.lower() for part in edge.target)
            if not {(table, column), (table, "*")} & taken:
                yield edge


def _last(made: Sequence[StatementLineage]) -> list[StatementLineage]:
    """Writes whose outcome is not read, or dropped, further on: the last targets."""
    found: list[StatementLineage] = []
    users: dict[str, set[tuple[int, str]]] = {}
    for statement in reversed(made):
        key = (statement.line, statement.sql)
        quiet = (Effect.TEMPORARY, Effect.SCHEMA, Effect.DROP, Effect.NONE)
        written = statement.output is not None and statement.effect not in quiet
        if written and not users.get(statement.output or "", set()) - {key}:
            found.append(statement)
        for table in _used(statement):
            told = users.setdefault(table, set())
            if len(told) < _ENOUGH:
                told.add(key)
    return found[::-1]


_ENOUGH = 2
"""Of two statements that use a table one is another than the statement that writes it."""


def _used(later: StatementLineage) -> Iterator[str]:
    """The tables that it takes rows from, or that are not there any more after it."""
    if later.effect is Effect.DROP and later.output is not None:
        yield later.output
    inputs = later.inputs if later.effect in (Effect.DROP, Effect.RENAME) else ()
    yield from (table for table in (*later.read, *inputs) if table != later.output)


def _edges(edges: Iterable[SqlEdge]) -> list[dict[str, Any]]:
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    for edge in edges:
        key = (edge.source, edge.target, edge.type, edge.subtype, edge.masking)
        found.setdefault(
            key,
            {
                "from": ".".join(edge.source),
                "to": ".".join(edge.target),
                "type": str(edge.type),
                "subtype": str(edge.subtype),
                "masking": edge.masking,
                "expression": edge.expression,
            },
        )
    return list(found.values())


def _indirect(made: Sequence[StatementLineage]) -> list[dict[str, str]]:
    found = dict.fromkeys(item for s in made for item in s.indirect)
    return [{"from": f"{table}.{column}", "subtype": str(subtype)} for table, column, subtype in found]
