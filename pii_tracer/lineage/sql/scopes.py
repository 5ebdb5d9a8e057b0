"""Scopes: which relations a column name can mean, inside and around a SELECT."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.errors import SqlglotError

from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.lineage.sql.accounting.external_reads import only_decides, within_condition
from pii_tracer.lineage.sql.relations import (
    IDENTITY,
    TRANSFORMATION,
    Alt,
    Dep,
    Elements,
    Field,
    Relation,
    constant,
    engine_made,
    limited,
)
from pii_tracer.lineage.sql.statements.current_user_functions import gives_user


@dataclass
class Findings:
    """What one statement's resolution leaves behind beside its columns.

    indirect: (table, column, subtype) of the whole output. reasons: why the answer is not complete; assumed: those
    of them that only say how the output's columns were named.
    tables: where columns come from; read: the tables as the statement names them, views included.
    evolves: the write adds the columns that its target does not have.
    views: as of `StatementLineage`.
    followed: ids of the parsed tables, columns and common table expressions that were looked at (see `audit`).
    stored: ids of those tables that were taken for tables of the database, and not for a query of the statement.
    variables: names that the text declares, in lower case.
    namespaces: those of them that are no column, but where a function is: `dbo` of `dbo.f(mail)`.
    """

    indirect: dict[tuple[str, str, Subtype], None] = field(default_factory=dict)
    reasons: dict[str, None] = field(default_factory=dict)
    assumed: dict[str, None] = field(default_factory=dict)
    views: dict[tuple[str, str], None] = field(default_factory=dict)
    tables: dict[str, None] = field(default_factory=dict)
    read: dict[str, None] = field(default_factory=dict)
    opaque: bool = False
    evolves: bool = False
    followed: set[int] = field(default_factory=set)
    stored: set[int] = field(default_factory=set)
    namespaces: set[int] = field(default_factory=set)
    variables: frozenset[str] = frozenset()

    def note(self, item: Field, subtype: Subtype) -> None:
        """Every column behind this one decides about the whole output."""
        self.decides(item.deps(), subtype)

    def decides(self, deps: Iterable[Dep], subtype: Subtype) -> None:
        """The columns decide about the whole output."""
        for dep in deps:
            self.indirect[dep.table, dep.column, subtype] = None

    def doubt(self, reason: str) -> None:
        """The answer is not complete."""
        self.reasons[reason] = None

    def assume(self, reason: str) -> None:
        """No value is missing, but columns of the output have names that were assumed."""
        self.reasons[reason] = None
        self.assumed[reason] = None


@dataclass
class Source:
    """One relation of a FROM clause. names: what it may be called in front of a column, lower case; hidden: what it may
    not, as it has an alias. merged: columns that a full join has of both sides, where no table's name is in front.
    """

    names: tuple[str, ...]
    relation: Relation
    unseen: frozenset[str] = frozenset()
    hidden: tuple[str, ...] = ()
    merged: dict[str, Field] = field(default_factory=dict)


def of_other_rows(source: Source, table: str) -> None:
    """What a statement reads of the table that it changes is of other rows than the one that it changes."""
    relation = source.relation
    if not any(d.table == table and d.kind == IDENTITY for f in relation.fields for d in f.deps()):
        return
    fields = [
        replace(
            f, alts=tuple(replace(a, deps=tuple(_weak(d) if d.table == table else d for d in a.deps)) for a in f.alts)
        )
        for f in relation.fields
    ]
    source.relation = Relation(fields, relation.rest, relation.base, relation.indirect, made=relation.made)


@dataclass
class Scope:
    """The relations of one SELECT; `outer` is the scope a correlated subquery or a lateral join sees as well.

    aliases: columns of the SELECT list by their names. outputs: the same when a name means them before any input
    column (ORDER BY). late: the same when a name means them only if nothing else has it (WHERE, in some dialects).
    first: columns that `*` has before all others, in lower case.
    """

    findings: Findings
    sources: list[Source] = field(default_factory=list)
    outer: Scope | None = None
    aliases: dict[str, Field] = field(default_factory=dict)
    outputs: dict[str, Field] = field(default_factory=dict)
    late: dict[str, Field] = field(default_factory=dict)
    first: list[str] = field(default_factory=list)

    def arranged(self, fields: Sequence[Field]) -> list[Field]:
        """All columns of the relations, in the order in which `*` has them."""
        places = [next((n for n, f in enumerate(fields) if f.name.lower() == name), None) for name in self.first]
        ahead = [n for n in places if n is not None]
        return [*(fields[n] for n in ahead), *(f for n, f in enumerate(fields) if n not in ahead)]

    def shared_with(self, relation: Relation) -> list[str]:
        """Columns that another relation has as well, in the order in which `*` has them here."""
        fields = [f for s in self.sources for f in s.relation.fields if f.name.lower() not in s.unseen]
        return [f.name for f in self.arranged(fields) if relation.known(f.name)]

    def column(self, node: exp.Column, *, aliases_first: bool = False) -> Field:
        """What a column reference means; unknown ones are noted and stand for nothing."""
        self.findings.followed.add(id(node))
        parts = [p.name for p in node.parts]
        found = self._lookup(parts, aliases_first=aliases_first) or self._special(parts)
        if self._hidden(parts):
            self.findings.doubt(f"{shown(parts)} uses a table name that this query replaced with an alias")
        if found is not None:
            return self._or_outer(node, parts, found)
        if isinstance(node.parent, exp.Dot) and node.arg_key == "this" and isinstance(node.parent.expression, exp.Func):
            self.findings.namespaces.add(id(node))
            if gives_user(node.parent):  # `auth.email()`: its text says so
                return Field(parts[-1], (Alt(exp.to_identifier(parts[-1]), ()),))
            return constant(parts[-1])
        if parts[-1].lower() in self.findings.variables and only_decides(node):
            return constant(parts[-1])
        self.findings.doubt(f"column {shown(parts)} was not found in any table that the query can use here")
        everything = tuple(dict.fromkeys(_weak(d) for s in self.sources for d in s.relation.all_deps()))
        return Field(parts[-1], (Alt(None, everything),))

    def positional(self, node: exp.Expression) -> Field:
        """Snowflake's `$1` and `t.$1`: a column by its position, of files of a stage too."""
        self.findings.followed |= {id(node), id(node.this)}
        number = (node if isinstance(node, exp.Parameter) else node.this).name
        qualifier = node.text("table").lower() if isinstance(node, exp.Column) else ""
        found = [s.relation for s in self.sources if not qualifier or qualifier in s.names]
        if len(found) == 1 and number.isdigit():
            if found[0].open:
                return found[0].get(f"${number}") or constant(f"${number}")
            if 0 < int(number) <= len(found[0].fields):
                return found[0].fields[int(number) - 1]
        self.findings.doubt(f"column ${number} was not found in any table that the query can use here")
        return Field(f"${number}", (Alt(None, tuple(_weak(d) for r in found for d in r.all_deps())),))

    def _hidden(self, parts: list[str]) -> bool:
        """Whether what stands before a column names a table that has an alias, and is neither another nor a column."""
        prefixes = {".".join(parts[:n]).lower() for n in range(1, len(parts))}
        if not any(prefixes & set(s.hidden) for s in self.sources) or self._names(parts):
            return False
        return not any(s.relation.known(parts[0]) for s in self.sources)

    def _special(self, parts: list[str]) -> Field | None:
        """A name that no table has as a column: of the SELECT list, of a whole row, or of the engine itself."""
        first = parts[0].lower()
        if first in self.late:
            return member(self.late[first], parts[1:])
        row = next((s.relation for s in self.sources if first in s.names), None)
        if row is not None and len(parts) == 1:
            for table in row.bases():
                self.findings.doubt(f"the columns of {table} are not known: add its schema to the lineage sources")
            return whole_row(row)
        if len(parts) > 1 and parts[-1].lower() in ("nextval", "currval"):
            return engine_made(parts[-1])
        made = any(s.relation.made for s in self.sources)
        return engine_made(parts[-1]) if made or parts[-1].lower() in _PSEUDO or first in _PSEUDO else None

    def _lookup(self, parts: list[str], *, aliases_first: bool) -> Field | None:
        first = parts[0].lower()
        if aliases_first and len(parts) == 1 and first in self.outputs:
            return self.outputs[first]
        if aliases_first and len(parts) == 1 and first in self.aliases and not self._certain(parts[0]):
            return self.aliases[first]
        found = self._qualified(parts) or self._certain(parts[0], parts[1:])
        if found is None and first in self.aliases:
            found = member(self.aliases[first], parts[1:])
        if found is None and self.outer is not None and self.outer._names(parts):
            return self.outer._lookup(parts, aliases_first=False)
        return found or self._guessed(parts)

    def _or_outer(self, node: exp.Column, parts: list[str], found: Field) -> Field:
        """A column that the query around has, if the query's own table, whose schema is not given, does not have it."""
        name = parts[0].lower()
        unknown = [s.relation for s in self.sources if s.relation.open and not isinstance(s.relation, Elements)]
        if self.outer is None or not unknown or name in self.aliases or self._names(parts) or self._shows(name):
            return found
        around: Scope | None = self.outer
        while around is not None and not around._shows(name):
            around = around.outer
        if around is None or any(s in self.sources for s in around.sources):
            return found
        if not within_condition(node):
            tables = ", ".join(sorted({table for relation in unknown for table in relation.bases()}))
            self.findings.doubt(
                f"column {shown(parts)} may belong to {tables} or to an outer query: add the "
                "schema to the lineage sources"
            )
        other = around._certain(parts[0], parts[1:])
        return found if other is None else Field(found.name, limited([*found.alts, *other.alts]), found.type)

    def _shows(self, name: str) -> bool:
        """Whether a schema shows that a table here has a column."""
        return any(name not in s.unseen and s.relation.known(name) for s in self.sources)

    def _names(self, parts: list[str]) -> bool:
        """True when what stands before the column is the name of a relation here or further out."""
        prefixes = {".".join(parts[:n]).lower() for n in range(1, len(parts))}
        here = any(prefixes & set(s.names) for s in self.sources)
        return here or (self.outer is not None and self.outer._names(parts))

    def _qualified(self, parts: list[str]) -> Field | None:
        for length in range(len(parts) - 1, 0, -1):
            prefix = ".".join(parts[:length]).lower()
            called = [s for s in self.sources if prefix in s.names]
            if len({s.names for s in called if len(s.names) > 1}) > 1:  # of those without an alias
                self.findings.doubt(f"several tables of the query have the name {shown(parts[:length])}")
            for source in called:
                if prefix in source.names:
                    found = self._of(source.relation, parts[length])
                    if found is not None:
                        return member(found, parts[length + 1 :])
        return None

    def _of(self, relation: Relation, name: str) -> Field | None:
        """A relation's column; one that may be of several tables with unknown columns is taken of all, and noted."""
        if relation.known(name) is None and len(tables := sorted(set(relation.bases()))) > 1:
            self._of_any(name, tables)
        return relation.get(name)

    def _of_any(self, name: str, tables: Iterable[str]) -> None:
        self.findings.doubt(
            f"column {name} may come from any of {', '.join(tables)}: add their schemas to the lineage sources"
        )

    def _certain(self, name: str, rest: list[str] | None = None) -> Field | None:
        """A column that schemas show; of several (a join's two sides) all, and that is noted."""
        key = name.lower()
        found = [f for s in self.sources if key not in s.unseen and (f := s.merged.get(key) or s.relation.known(name))]
        if len(found) > 1:
            self.findings.doubt(f"several tables of the query have a column {name}")
        if not found:
            return None
        one = found[0] if len(found) == 1 else Field(name, limited(a for f in found for a in f.alts))
        return member(one, rest or [])

    def _guessed(self, parts: list[str]) -> Field | None:
        """A column of the table whose columns are not known; with several such tables it may be of any."""
        if self._names(parts):
            return None
        makers = [s for s in self.sources if isinstance(s.relation, Elements)]
        opens = makers or [s for s in self.sources if s.relation.open and parts[0].lower() not in s.unseen]
        found = [f for s in opens if (f := self._of(s.relation, parts[0])) is not None]
        if len(found) > 1:
            self._of_any(parts[0], sorted({t for s in opens for t in s.relation.bases()}))
        if found:
            return member(Field(parts[0], limited(a for f in found for a in f.alts)), parts[1:])
        return self.outer._lookup(parts, aliases_first=False) if self.outer is not None else None


def shown(parts: Iterable[str]) -> str:
    """A name as reasons show it. What is no plain name may be a text that the dialect takes for one: not shown."""
    return ".".join(p if _PLAIN.fullmatch(p) else "…" for p in parts)


_PLAIN = re.compile(r"[^\W\d][\w$]*")
_PSEUDO = frozenset(
    {"level", "rownum", "rowid", "connect_by_isleaf", "connect_by_iscycle", "_metadata", "_partitiontime", "ctid",
     "_partitiondate", "_table_suffix", "_file_name", "metadata$filename", "metadata$file_row_number", "xmin",
     "_change_type", "_commit_version", "_commit_timestamp", "metadata$action", "metadata$isupdate", "$path",
     "metadata$row_id", "_change_ordinal", "_commit_snapshot_id", "grouping__id", "input__file__name",
     "block__offset__inside__file"}
)  # fmt: skip
"""Columns that engines make themselves and that hold nothing of a row."""


def whole_row(relation: Relation) -> Field:
    """Several columns as one value: a struct, or an array of them."""
    deps = tuple(dict.fromkeys(_weak(d) for d in relation.all_deps()))
    return Field("", (Alt(None, deps, {f.name.lower(): f for f in relation.fields}),))


def _weak(dep: Dep) -> Dep:
    return Dep(dep.table, dep.column, TRANSFORMATION.then(dep.kind))


def member(item: Field, path: list[str]) -> Field:
    """A field of a struct, and of the struct in it."""
    for name in path:
        item = _member(item, name)
    return item


def _member(item: Field, name: str) -> Field:
    alts: list[Alt] = []
    for alt in item.alts:
        if name.lower() in alt.members:
            alts += alt.members[name.lower()].alts
            continue
        text = exp.Dot(this=alt.expression.copy(), expression=exp.to_identifier(name)) if alt.expression else None
        alts.append(Alt(text, tuple(_weak(d) for d in alt.deps)))
    return Field(name, limited(alts), _type_in(item.type, name))


def _type_in(struct: str, name: str) -> str:
    return next((t for n, t in struct_fields(struct).items() if n.lower() == name.lower()), "")


def struct_fields(type_: str) -> dict[str, str]:
    """Types by name of the fields of a struct type as Spark's DDL writes it; empty for anything else."""
    if not type_.lower().startswith("struct"):
        return {}
    try:
        kind = exp.DataType.build(type_, dialect="spark")
    except SqlglotError:
        return {}
    defs = [d for d in kind.expressions if isinstance(d, exp.ColumnDef)]
    return {d.name: d.kind.sql("spark") if d.kind is not None else "" for d in defs}


def right_first(scope: Scope, source: Source, join: exp.Join, dialect: str) -> None:
    """MySQL's RIGHT JOIN with USING has the right table's columns before the left one's
    (https://dev.mysql.com/doc/refman/8.4/en/join.html: `SELECT * FROM t1 NATURAL RIGHT JOIN t2`).
    """
    if dialect != "mysql" or str(join.side or "").upper() != "RIGHT":
        return
    scope.sources = [source, *(one for one in scope.sources if one is not source)]
    joins = join.parent.args.get("joins") or () if join.parent is not None else ()
    if not all(any(one.args.get(key) for key in ("on", "using", "method")) for one in joins):
        scope.findings.doubt("lineage does not follow the column order of RIGHT JOIN … USING after a comma")
