"""Tables that SQL files create, with the retention they are created with: for a check before anything runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from pii_tracer.errors import LineageError
from pii_tracer.lineage.splitting import clone_of, prepared, split
from pii_tracer.model import Format


@dataclass(frozen=True)
class Created:
    """One CREATE TABLE: its name, the line it stands on, its format if retention is known for it, its settings.

    columns: leaf names, those of nested structs included.
    """

    table: str
    line: int
    format: Format | None
    properties: dict[str, str]
    columns: tuple[str, ...] = ()
    unread: str | None = None


def created(sql: str, dialect: str, where: str) -> tuple[Created, ...]:
    """Every table that a text creates, with the settings it has at the end of the text.

    Statements that look like CREATE TABLE and do not parse come out with `unread`: they are not passed over.

    Raises:
        LineageError: the text cannot be cut into statements.
    """
    try:
        statements = split(sql, dialect)
    except SqlglotError:
        raise LineageError("the SQL cannot be read", where=where, todo="correct the text or name its dialect") from None
    found: list[Created] = []
    for statement in statements:
        clone = clone_of(statement.text)
        if clone:  # its settings are its source's; only its class can be asked for here
            found.append(Created(clone.to.replace("`", ""), statement.line, None, {}))
            continue
        try:
            tree = sqlglot.parse_one(prepared(statement.text), read=dialect)
        except (SqlglotError, RecursionError):
            if _CREATES.match(statement.text):
                found.append(Created("", statement.line, None, {}, unread="the statement does not parse"))
            continue
        if isinstance(tree, exp.Create) and str(tree.args.get("kind", "")).upper() == "TABLE":
            found.append(_made(tree, statement.line))
        elif isinstance(tree, exp.Alter) and isinstance(tree.this, exp.Table):
            _alter(tree, found)
        elif isinstance(tree, exp.Command) and _CREATES.match(statement.text):
            found.append(Created("", statement.line, None, {}, unread="the statement's form is not known"))
    return tuple(found)


_CREATES = re.compile(r"\s*(CREATE\s+(OR\s+REPLACE\s+)?|REPLACE\s+)TABLE\b", re.IGNORECASE)


def _made(tree: exp.Create, line: int) -> Created:
    schema = tree.this
    table = schema.this if isinstance(schema, exp.Schema) else schema
    columns = tuple(_leaves(schema.expressions)) if isinstance(schema, exp.Schema) else _selected(tree.expression)
    return Created(_name(table), line, _format(tree), _properties(tree.args.get("properties")), columns)


def _alter(tree: exp.Alter, found: list[Created]) -> None:
    """What counts is how the file leaves the table: later settings replace those of the creation."""
    changed = {k: v for p in tree.find_all(exp.Properties) for k, v in _properties(p).items()}
    for index in range(len(found) - 1, -1, -1):
        if found[index].table.lower() == _name(tree.this).lower():
            found[index] = replace(found[index], properties=found[index].properties | changed)
            return


def _selected(query: Any) -> tuple[str, ...]:
    return tuple(query.named_selects) if isinstance(query, exp.Query) else ()


def _name(table: Any) -> str:
    return ".".join(part.name for part in table.parts)


def _leaves(columns: list[Any]) -> Iterator[str]:
    for column in columns:
        if isinstance(column, exp.ColumnDef):
            yield column.name
            for inner in column.find_all(exp.ColumnDef):
                if inner is not column:
                    yield inner.name


def _format(tree: exp.Create) -> Format | None:
    found = tree.find(exp.FileFormatProperty)
    name = found.name.lower() if found else ""
    return Format(name) if name in {f.value for f in Format} else None


def _properties(properties: Any) -> dict[str, str]:
    if properties is None:
        return {}
    return {p.name: p.args["value"].name for p in properties.expressions if type(p) is exp.Property}
