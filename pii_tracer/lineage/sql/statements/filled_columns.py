"""Columns that a table fills by itself where a row comes without a value for them: identities, serials, defaults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from sqlglot import exp

from pii_tracer.lineage.graph.edges import BY_USER
from pii_tracer.lineage.sql.relations import Alt, Field
from pii_tracer.lineage.sql.statements import session_users

Filled = tuple[tuple[str, str], ...]
"""Columns with the constant that they get; empty text: a number that the engine makes. `BY_USER` is no constant."""
EMPTY = "''"
"""How the empty text stands there."""

_COUNTED_TYPES = frozenset({exp.DType.SERIAL, exp.DType.BIGSERIAL, exp.DType.SMALLSERIAL})
_SERIALS = frozenset({"serial2", "serial4", "serial8"})
_NEXT = frozenset({"nextval", "currval"})
DRAWN = frozenset({"uuid", "gen_random_uuid", "uuid_generate_v4", "newid", "generateuuidv4", "uuid_string", "sys_guid"})
"""Functions of engines that draw a UUID: it is no value that somebody else has."""


def filled_by(defined: Iterable[exp.Expression], dialect: str) -> Filled:
    """The columns of which the parts of a definition say so."""
    found: list[tuple[str, str]] = []
    parts = list(defined)
    keys = [[c.name for c in part.expressions] for part in parts if isinstance(part, exp.PrimaryKey)]
    for column in parts:
        if not isinstance(column, exp.ColumnDef):
            continue
        kinds = [one.args.get("kind") for one in column.args.get("constraints") or ()]
        if column.kind is not None and _counts(column.kind):
            found.append((column.name, ""))
        is_key = [column.name] in keys or any(isinstance(kind, exp.PrimaryKeyColumnConstraint) for kind in kinds)
        if dialect == "sqlite" and is_key:
            # https://www.sqlite.org/autoinc.html: of an INTEGER PRIMARY KEY
            found += [(column.name, "")] if column.kind is not None and column.kind.this is exp.DType.INT else []
        for kind in kinds:
            found += _of_constraint(column.name, kind)
    return tuple(dict.fromkeys(found))


def _counts(kind: exp.DataType) -> bool:
    """Whether a type is one of the serial ones (https://www.postgresql.org/docs/current/datatype-numeric.html)."""
    named = kind.args.get("kind")
    return kind.this in _COUNTED_TYPES or (isinstance(named, exp.Identifier) and named.name.lower() in _SERIALS)


def _of_constraint(name: str, kind: object) -> list[tuple[str, str]]:
    if isinstance(kind, exp.AutoIncrementColumnConstraint):
        return [(name, "")]
    if isinstance(kind, exp.GeneratedAsIdentityColumnConstraint):
        return [(name, "")] if kind.expression is None else default_of(name, kind.expression)
    if isinstance(kind, exp.DefaultColumnConstraint | exp.ComputedColumnConstraint):
        return default_of(name, kind.this)
    return []


def default_of(name: str, value: object) -> list[tuple[str, str]]:
    """A column with its default, or the constants that others decide about; nothing for NULL and a drawn UUID."""
    sign = ""
    while isinstance(value, exp.Paren | exp.Cast | exp.Neg):
        sign, value = ("-" if isinstance(value, exp.Neg) else sign), value.this
    if not isinstance(value, exp.Expression) or isinstance(value, exp.Null | exp.Uuid):
        return []
    if isinstance(value, exp.Literal | exp.Boolean):
        return [(name, f"{sign}{value.name}" or (EMPTY if isinstance(value, exp.Literal) else value.sql()))]
    if isinstance(value, exp.Anonymous) and value.name.lower() in DRAWN:
        return []
    if session_users.goes_in(value):
        return [(name, BY_USER)]
    if not reads_columns(value):
        return [(name, "")]
    branches: list[object] = []
    if isinstance(value, exp.Coalesce):
        branches = [value.this, *value.expressions]
    elif isinstance(value, exp.If | exp.Case | exp.Nvl2):
        branches = [branch.args.get("true") for branch in (value, *(value.args.get("ifs") or ()))]
        branches += [value.args.get("false"), value.args.get("default")]
    return [one for branch in branches for one in default_of(name, branch)]


def reads_columns(value: exp.Expression) -> bool:
    """Whether a default is made of other columns: a sequence (`s.NEXTVAL`) is none."""
    return any(column.name.lower() not in _NEXT for column in value.find_all(exp.Column))


def sequences(parts: Iterable[exp.Expression]) -> set[int]:
    """The ids of what looks like a column and is a sequence's next number."""
    columns = (column for part in parts for column in part.find_all(exp.Column))
    return {id(column) for column in columns if column.name.lower() in _NEXT}


_IN_PATH = re.compile(r"/([^/=`]+)=([^/`]*)")
_FILLED_IN = re.compile(r"[*?{$\[]")


def in_path(table: str) -> Filled:
    """The columns of a partition, with their constants, of a folder that is written to (Hive's layout)."""
    pairs = ((unquote(name), unquote(value)) for name, value in _IN_PATH.findall(table))
    kept = ((name, value) for name, value in pairs if value != "__HIVE_DEFAULT_PARTITION__")
    return tuple((name, "" if _FILLED_IN.search(value) else value or EMPTY) for name, value in kept)


DEFAULT = Field("", (Alt(exp.Var(this="DEFAULT"), ()),))
"""What a column is set to by the word."""


def defaulted(pairs: Iterable[tuple[str, Field]]) -> list[str]:
    """The columns that are set to their default."""
    return [name for name, item in pairs if item is DEFAULT]


NULL_IS_COUNTED = frozenset(
    {"mysql", "singlestore", "sqlite", "doris", "starrocks", "oracle", "teradata", "clickhouse"}
)
"""Dialects in which a column that its table fills is filled where NULL is written, too, as an outer join may do
(https://dev.mysql.com/doc/refman/8.4/en/example-auto-increment.html, as does 0 there;
https://clickhouse.com/docs/operations/settings/settings#insert_null_as_default).
"""


def with_values(fields: Sequence[Field], dialect: str) -> tuple[str, ...]:
    """The columns that a row comes with a value for, in every case."""
    if dialect in NULL_IS_COUNTED:
        return tuple(f.name.lower() for f in fields if f.alts and all(alt.sure for alt in f.alts))
    return tuple(f.name.lower() for f in fields if not any(map(_is_left, f.alts)))


def may_be_null(fields: Sequence[Field]) -> tuple[str, ...]:
    """The columns that may be NULL, or 0, in rows that come in."""
    return tuple(f.name.lower() for f in fields if not f.alts or not all(alt.sure for alt in f.alts))


def _is_left(alt: Alt) -> bool:
    value: object = alt.expression
    while isinstance(value, exp.Paren | exp.Cast):
        value = value.this
    nothing = isinstance(value, exp.Null) or (isinstance(value, exp.Var) and value.name == "DEFAULT")
    return not alt.deps and (nothing or (isinstance(value, exp.Literal) and value.name == "0"))
