"""Tables that SQL files create, with the retention that the files leave them with: for a check before anything runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from pii_tracer.lake.formats.registry import caseless_properties, format_names
from pii_tracer.lineage.sql.text.literal_redaction import literals
from pii_tracer.lineage.sql.text.script_splitting import (
    NAME,
    Statement,
    clone_of,
    prepared,
    split,
)
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import LineageError
from pii_tracer.retention.current_schema import InUse, parts_of


@dataclass(frozen=True)
class Created:
    """One CREATE TABLE: its name, where it stands, its format if retention is known for it, its settings.

    table: with the catalog and schema that `USE` has set before it. written: as it stands there.
    columns: leaf names, those of nested structs included.
    """

    table: str
    written: str
    file: str
    line: int
    format: Format | None
    properties: dict[str, str]
    columns: tuple[str, ...] = ()
    unread: str | None = None


def created(files: Iterable[tuple[str, str]], dialect: str, catalogs: Collection[str]) -> tuple[Created, ...]:
    """Every table that some files create, with the settings and columns it has at the end of the last one.

    files: name and text of each, in the order in which they run. What `USE` sets counts until the end of its file,
    since nobody can tell whether the next one has the same session. catalogs: the names of those that are known.

    Statements that do not parse, and those about tables that are not understood, come out with `unread`: they are not
    passed over.

    Raises:
        LineageError: a text cannot be cut into statements.
    """
    found: list[Created] = []
    for name, sql in files:
        try:
            statements = split(sql, dialect)
        except SqlglotError:
            todo = "correct the SQL, or name its dialect"
            raise LineageError("the SQL cannot be read", where=name, todo=todo) from None
        in_use = InUse.at_first(catalogs)
        for statement in statements:
            _follow(_Place(name, statement, in_use), dialect, found)
            in_use = in_use.after(statement.text)
    return tuple(found)


@dataclass(frozen=True)
class _Place:
    """A statement, the file it stands in, and what `USE` has set there."""

    file: str
    statement: Statement
    in_use: InUse

    def made(
        self, table: Sequence[str], made_of: Format | None, properties: dict[str, str], columns: tuple[str, ...] = ()
    ) -> Created:
        name, written = self.in_use.full(table), ".".join(table)
        return Created(name, written, self.file, self.statement.line, made_of, properties, columns)

    def unread(self, why: str) -> Created:
        return Created("", "", self.file, self.statement.line, None, {}, unread=why)


def _follow(place: _Place, dialect: str, found: list[Created]) -> None:
    """What one statement makes of the tables so far."""
    text = place.statement.text
    clone = clone_of(text)
    if clone:  # its settings are its source's; only its class can be asked for here
        found.append(place.made(parts_of(clone.to), None, {}))
        return
    unset = _UNSET.match(text)
    if unset:
        name = place.in_use.full(parts_of(unset["table"]))
        _change(found, name, lambda table: _without(table, set(literals(unset["names"]))))
        return
    try:
        tree = sqlglot.parse_one(prepared(text), read=dialect) if text else None
    except (SqlglotError, RecursionError):
        found.append(place.unread("the statement cannot be parsed"))
        return
    if isinstance(tree, exp.Create) and str(tree.args.get("kind", "")).upper() == "TABLE":
        found.append(_made(tree, place))
    elif isinstance(tree, exp.Alter) and isinstance(tree.this, exp.Table):
        _change(found, place.in_use.full(_parts(tree.this)), partial(_altered, tree))
    elif isinstance(tree, exp.Command) and (_CREATES.match(text) or _ALTERS.match(text)):
        found.append(place.unread("this form of the statement is not supported"))


_CREATES = re.compile(r"\W*(CREATE|REPLACE)\b(?:(?!\bAS\b|\().)*?\bTABLE\b", re.IGNORECASE | re.DOTALL)
"""A table is created, whatever its kind: EXTERNAL, TEMPORARY, and what comes."""
_ALTERS = re.compile(r"\W*ALTER\b.*?\bTABLE\b.*\b(COLUMNS?|TBLPROPERTIES)\b", re.IGNORECASE | re.DOTALL)
_UNSET = re.compile(
    rf"\s*ALTER\s+TABLE\s+(?P<table>{NAME})\s+UNSET\s+TBLPROPERTIES\s*(IF\s+EXISTS\s*)?\((?P<names>[^)]*)\)\s*$",
    re.IGNORECASE,
)


def _made(tree: exp.Create, place: _Place) -> Created:
    schema = tree.this
    table = schema.this if isinstance(schema, exp.Schema) else schema
    columns = tuple(_leaves(schema.expressions)) if isinstance(schema, exp.Schema) else _selected(tree.expression)
    properties = _properties(tree.args.get("properties"))
    return place.made(_parts(table), _format(tree), properties, columns)


def _change(found: list[Created], name: str, change: Callable[[Created], Created]) -> None:
    """What counts is how the files leave the table, by whichever of its names later statements call it."""
    for index in range(len(found) - 1, -1, -1):
        if _same(found[index].table, name):
            found[index] = change(found[index])
            return


def _same(one: str, other: str) -> bool:
    """Whether two names can be one table's: one may lack the catalog, or the schema as well."""
    short, long = sorted((one.lower().split("."), other.lower().split(".")), key=len)
    return bool(one) and long[-len(short) :] == short


def _altered(tree: exp.Alter, table: Created) -> Created:
    """Later settings replace those of the creation; columns are added, and one that is renamed has both names."""
    changed = {k: v for p in tree.find_all(exp.Properties) for k, v in _properties(p).items()}
    columns = [*table.columns, *(column.name for column in tree.find_all(exp.ColumnDef))]
    columns += [action.args["to"].name for action in tree.find_all(exp.RenameColumn)]
    columns += [new.name for action in tree.find_all(exp.AlterColumn) if (new := action.args.get("rename_to"))]
    name = next((_parts(action.this) for action in tree.find_all(exp.AlterRename)), None)
    if name:  # a table stays in its catalog, and where the new name has one part in its schema
        stays = table.table.split(".")[: -len(name)]
        table = replace(table, table=".".join([*stays, *name]), written=".".join(name))
    return replace(table, properties=table.properties | changed, columns=tuple(dict.fromkeys(columns)))


def _without(table: Created, names: set[str]) -> Created:
    gone = {_spelled(name) for name in names}
    return replace(table, properties={k: v for k, v in table.properties.items() if k not in gone})


def _spelled(name: str) -> str:
    """A property as tables keep it: names of some formats ignore case, those of others do not."""
    return caseless_properties().get(name.lower(), name)


def _selected(query: Any) -> tuple[str, ...]:
    return tuple(query.named_selects) if isinstance(query, exp.Query) else ()


def _parts(table: Any) -> list[str]:
    return [part.name for part in table.parts]


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
    return Format(name) if name in format_names() else None


def _properties(properties: Any) -> dict[str, str]:
    if properties is None:
        return {}
    return {_spelled(p.name): p.args["value"].name for p in properties.expressions if type(p) is exp.Property}
