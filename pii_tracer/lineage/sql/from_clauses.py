"""FROM clauses: which relations a query reads, how they are joined, and by what names they are called."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from sqlglot import exp

from pii_tracer.lake.formats.registry import table_formats
from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.lineage.sql.expressions import dependencies, named_by_text
from pii_tracer.lineage.sql.relations import (
    Alt,
    Elements,
    Field,
    Relation,
    constant,
    limited,
    renamed,
)
from pii_tracer.lineage.sql.scopes import Findings, Scope, Source, right_first, shown
from pii_tracer.lineage.sql.statements.sure_values import padded
from pii_tracer.lineage.sql.table_functions import generated, pivoted
from pii_tracer.lineage.sql.text.table_names import Names, path_table

Ctes = dict[str, Callable[[], Relation]]
"""Common table expressions in reach, by name; each is resolved when it is first read."""

_IN_THEIR_PLACE = frozenset({"duckdb", "sqlite", "clickhouse"})
"""Dialects in which `*` has the columns of USING where their table has them; elsewhere they come first, as in
https://www.postgresql.org/docs/current/queries-table-expressions.html and
https://spark.apache.org/docs/latest/sql-ref-syntax-qry-select-join.html."""

_MAKES_ROWS = frozenset(
    {"range", "sequence", "generate_series", "generate_date_array", "explode", "explode_outer", "posexplode", "stack",
     "posexplode_outer", "inline", "inline_outer", "json_tuple", "flatten", "split_to_table", "string_split", "unnest",
     "openjson", "json_table", "json_each", "json_array_elements", "jsonb_array_elements", "variant_explode",
     "variant_explode_outer", "regexp_split_to_table", "generator", "strtok_split_to_table", "jsonb_each",
     "jsonb_to_recordset", "json_to_recordset", "xmltable", "generate_subscripts", "repeat_row", "array_join",
     "json_each_text", "jsonb_each_text", "json_array_elements_text", "jsonb_array_elements_text", "json_object_keys",
     "jsonb_object_keys", "jsonb_path_query", "regexp_matches", "string_to_table", "json_populate_recordset",
     "jsonb_populate_recordset", "json_populate_record", "jsonb_populate_record", "json_to_record", "jsonb_to_record",
     "json_tree", "arrayjoin"}
)  # fmt: skip
_MAKERS = (
    exp.Explode,
    exp.Inline,
    exp.Unnest,
    exp.GenerateSeries,
    exp.OpenJSON,
    exp.JSONTable,
    exp.XMLTable,
    exp.Stack,
    exp.SplitToTable,
)
_READS_FILES = frozenset(
    {"read_files", "cloud_files", "read_parquet", "parquet_scan", "read_csv", "read_csv_auto", "read_json",
     "read_json_auto", "table_changes_by_path", "read_avro", "read_orc"}
)  # fmt: skip

_ONE_ROW = {
    **{(of, "dual"): "DUMMY" for of in ("oracle", "mysql", "singlestore", "doris", "starrocks", "snowflake")},
    **{("", name): "IBMREQD" for name in ("sysdummy1", "sysibm.sysdummy1")},
    ("oracle", "sys.dual"): "DUMMY",
}
"""Tables of one row that engines have for queries of no table, with their only column."""


@dataclass
class FromItems(ABC):
    """Resolves the items of FROM clauses. lookup: a table's relation by its name (views are seen through)."""

    names: Names
    lookup: Callable[[str], Relation]
    dialect: str
    findings: Findings = field(default_factory=Findings)

    def __post_init__(self) -> None:
        self.findings.variables = self.names.variables

    @abstractmethod
    def relation(self, node: exp.Expression, ctes: Ctes | None = None, outer: Scope | None = None) -> Relation:
        """The columns that a query returns."""

    @abstractmethod
    def field(self, node: exp.Expression, scope: Scope, ctes: Ctes) -> Field:
        """What an expression of a scope is made from."""

    @abstractmethod
    def resolver(self, scope: Scope, ctes: Ctes, *, aliases_first: bool = False) -> Callable[[exp.Expression], Field]:
        """Answers columns and nested queries of a scope."""

    def target(self, node: exp.Expression, ctes: Ctes | None = None) -> str:
        """The name of a table that is written to."""
        self.findings.followed.add(id(node))
        if ctes and not node.args.get("db") and node.name.lower() in ctes:
            self.findings.opaque = True
            self.findings.doubt(
                f"the statement writes through {shown([node.name])} to a table behind it, which lineage does not follow"
            )
        return self._named(cast(exp.Table, node))

    def _named(self, node: exp.Table) -> str:
        """A table's name; doubted where it is another database's table that has it."""
        if "*" in node.name or ("$" in node.name and self.dialect in ("trino", "presto", "athena")):
            self.findings.doubt(f"the name {shown([node.name])} means several tables, or the metadata of a table")
        if _is_filled_in(node, self.dialect):
            self.findings.doubt("a table name contains a variable, so the table is not known")
        if isinstance(node.this, exp.Parameter) and f"@{node.name}".lower() not in self.names.table_variables:
            self.findings.doubt("a table is passed as a parameter, so the source of its rows is not known")
        guess = self.names.guessed(node)
        if guess is not None:
            self.findings.doubt(f"lineage assumes that the table {node.name} is {guess}: name its database")
        return self.names.of(node)

    def note(
        self,
        nodes: Sequence[exp.Expression],
        subtype: Subtype,
        scope: Scope,
        ctes: Ctes,
        *,
        aliases_first: bool = False,
    ) -> None:
        for node in nodes:
            resolve = self.resolver(scope, ctes, aliases_first=aliases_first)
            self.findings.decides(dependencies(node, resolve), subtype)

    def from_clause(self, node: exp.Select, scope: Scope, ctes: Ctes) -> None:
        clause = node.args.get("from_")
        if clause is not None:
            scope.sources.append(self.source(clause.this, ctes, scope))
            self.joins(clause.this, scope, ctes)
        self.joins(node, scope, ctes)

    def joins(self, node: exp.Expression, scope: Scope, ctes: Ctes) -> None:
        """Add the joined relations to the scope, and note what decides the joins."""
        for join in node.args.get("joins") or ():
            if str(join.kind or "").upper() == "ARRAY":
                self._elements(join, scope, ctes)
                continue
            there = len(scope.sources)
            source = self.source(join.this, ctes, scope)
            before = list(scope.sources)
            scope.sources.append(source)
            self.joins(join.this, scope, ctes)
            conditions = [c for key in ("on", "match_condition") if (c := join.args.get(key)) is not None]
            self.note(conditions, Subtype.JOIN, scope, ctes)
            using = [c.name for c in join.args.get("using") or ()]
            if str(join.args.get("method") or "").upper() == "NATURAL":
                using = Scope(self.findings, before, first=scope.first).shared_with(source.relation)
                if source.relation.open or any(s.relation.open for s in before):
                    self.findings.doubt("NATURAL JOIN of tables whose schemas are not known: add the schemas")
            self._using(using, source, before, str(join.side or "").upper())
            padded(join, scope.sources[:there], scope.sources[there:])
            if using:
                right_first(scope, source, join, self.dialect)
            if self.dialect not in _IN_THEIR_PLACE:
                shared = [name.lower() for name in using]
                scope.first = [*shared, *(name for name in scope.first if name not in shared)]
            if str(join.kind or "").upper() in ("SEMI", "ANTI"):
                source.unseen = frozenset(f.name.lower() for f in source.relation.fields)
                scope.sources[-1] = Source(source.names, Relation([]))
        for lateral in node.args.get("laterals") or ():
            scope.sources.append(self.source(lateral, ctes, scope))
            padded(lateral, (), scope.sources[-1:])

    def _elements(self, join: exp.Join, scope: Scope, ctes: Ctes) -> None:
        """ClickHouse's ARRAY JOIN: elements of arrays under names of their own, or in the place of their columns."""
        for item in (join.this, *join.expressions):
            found = self.field(item.unalias(), scope, ctes)
            if isinstance(item, exp.Alias):
                scope.sources.append(Source((item.alias.lower(),), Relation([Elements(found).whole(item.alias)])))

    def _using(self, names: Sequence[str], source: Source, before: list[Source], side: str) -> None:
        """The columns of USING decide the join; the output has them once, of both sides in a full join."""
        for name in names:
            owners = [s for s in before if name.lower() not in s.unseen and s.relation.known(name)]
            left = owners or [s for s in before if s.relation.open][:1]
            for one in (*left, source):
                found = one.relation.get(name)
                if found is not None:
                    self.findings.note(found, Subtype.JOIN)
            if side == "RIGHT":
                for one in left:
                    one.unseen |= {name.lower()}
            else:
                source.unseen |= {name.lower()}
            if side == "FULL" and left:
                self._merge(name, left[0], source, before)

    @staticmethod
    def _merge(name: str, left: Source, right: Source, before: list[Source]) -> None:
        """Without a table's name in front the column is of both sides; with one it is that table's own."""
        a, b = left.merged.get(name.lower()) or left.relation.get(name), right.relation.get(name)
        if a is None or b is None:
            return
        left.merged[name.lower()] = Field(a.name, limited((*a.alts, *b.alts)))

    def source(self, node: exp.Expression, ctes: Ctes, scope: Scope) -> Source:
        """One item of a FROM clause, with its alias, column aliases and pivots."""
        if isinstance(node, exp.Final):  # ClickHouse: of rows with the same key the last
            node = cast(exp.Expression, node.this)
        source = self._item(node, ctes, scope)
        alias = node.args.get("alias")
        if isinstance(alias, exp.TableAlias):
            self._called(source, alias, renames=_is_whole(node))
        for pivot in node.args.get("pivots") or ():
            source.relation = pivoted(pivot, source.relation, scope, self.dialect)
            if isinstance(pivot.args.get("alias"), exp.TableAlias):
                self._called(source, pivot.args["alias"], renames=True)
        return source

    def _called(self, source: Source, alias: exp.TableAlias, *, renames: bool) -> None:
        """An alias, with names for the columns where it has them."""
        if alias.this is not None:
            source.hidden = tuple(n for n in source.names if n != alias.name.lower())
            source.names = (alias.name.lower(),)
        if renames:
            source.relation = self.renamed(source.relation, [c.name for c in alias.columns])

    def renamed(self, relation: Relation, names: Sequence[str]) -> Relation:
        """Column aliases by position; which columns they are is not known where the schema is not."""
        if not names:
            return relation
        for table in relation.bases():
            self.findings.doubt(f"the columns of {table} are not known: add its schema to the lineage sources")
        return renamed(relation, names)

    def _item(self, node: exp.Expression, ctes: Ctes, scope: Scope) -> Source:
        if isinstance(node, exp.Stream):
            return self._item(node.this, ctes, scope)
        if isinstance(node, exp.Table):
            return self._table(node, ctes, scope)
        if isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
            return Source((), self.relation(node.this, ctes, scope))
        if isinstance(node, exp.TableFromRows):
            return self._rows_of(node, ctes, scope)
        if isinstance(node, exp.Lateral) and not node.args.get("view") and isinstance(node.this, exp.Func):
            self._makes_rows(node.this)
        if isinstance(node, exp.Lateral | exp.Unnest | exp.Explode | exp.Inline):
            made = generated(node, scope, lambda e: self.field(e, scope, ctes))
            if isinstance(node.this, exp.Dot) and id(node.this.this) in self.findings.namespaces:  # `dbo.f(…)`
                self._makes_rows(cast(exp.Func, node.this.expression))
            return Source((), made)
        if isinstance(node, exp.Subquery) and _is_group(node):
            return self._group(node, ctes, scope)
        return Source((), self.relation(node, ctes, scope.outer))

    def _nested(self, node: exp.Table, scope: Scope) -> Source | None:
        """`FROM t, t.items AS i`: the elements of an array in a column, not a table (Redshift, BigQuery, Impala)."""
        path = [p.name for p in node.parts]
        prefix = ".".join(path[:-1]).lower()
        if not prefix or self.names.columns(self.names.of(node)):
            return None
        owner = next((s.relation for s in scope.sources if prefix in s.names), None)
        if owner is None:
            table = self.names.of_text(prefix)
            if not any(c.lower() == path[-1].lower() for c, _ in self.names.columns(table)):
                return None
            owner = self.lookup(table)
            self.findings.tables[table] = None
        column = owner.get(path[-1])
        return None if column is None else Source((path[-1].lower(),), Elements(column))

    def _function(self, node: exp.Table, ctes: Ctes, scope: Scope) -> Source:
        """A function in the place of a table: one that reads a table or files, makes rows, or nobody knows what."""
        name = (node.this.name if isinstance(node.this, exp.Anonymous) else node.this.sql_name()).lower()
        read = self._read_by(name, node.this)
        if read is not None:
            self.findings.followed |= {id(node.this), *(id(option) for option in node.this.find_all(exp.Column))}
            self.findings.tables[read] = None
            return Source((name,), self.lookup(read))
        self._makes_rows(node.this)
        return Source((name,), generated(node, scope, lambda e: self.field(e, scope, ctes)))

    def _side_by_side(self, node: exp.Table, ctes: Ctes, scope: Scope) -> Source:
        """PostgreSQL's ROWS FROM (…): columns of several functions. How many each makes is not known, so every column
        comes from all of their arguments.
        """
        parts = [self.source(part, ctes, scope).relation for part in node.args["rows_from"]]
        deps = tuple(dict.fromkeys(dep for part in parts for dep in part.all_deps()))
        alias = node.args.get("alias")
        if isinstance(alias, exp.TableAlias) and alias.columns:
            return Source((), Relation([Elements(Field("", (Alt(None, deps),))).whole(c.name) for c in alias.columns]))
        return Source((), Elements(Field("col", (Alt(None, deps),))))

    def _makes_rows(self, function: exp.Func) -> None:
        """Doubt a function of which nobody knows that it makes its rows of its arguments alone."""
        named = function.name if isinstance(function, exp.Anonymous) else function.sql_name()
        unnests = named.lower() == "table" and all(isinstance(e, exp.Column) for e in function.expressions)  # Oracle
        if named.lower() not in _MAKES_ROWS and not isinstance(function, _MAKERS) and not unnests:
            self.findings.opaque = True
            self.findings.doubt(f"the reads of the table function {named.lower()} are not known")

    def _rows_of(self, node: exp.TableFromRows, ctes: Ctes, scope: Scope) -> Source:
        """Snowflake's TABLE(…): a table that a text names, or a function."""
        maker = node.this
        if isinstance(maker, exp.Literal) and maker.is_string:
            return self._table(exp.to_table(maker.name, dialect=self.dialect), ctes, scope)
        if isinstance(maker, exp.Func):
            self._makes_rows(maker)
        else:
            self.findings.opaque = True
            self.findings.doubt("the reads of TABLE() are not known")
        return Source((), generated(node, scope, lambda e: self.field(e, scope, ctes)))

    def _read_by(self, name: str, function: exp.Expression) -> str | None:
        first = next((a for a in function.iter_expressions() if isinstance(a, exp.Literal) and a.is_string), None)
        if first is None:
            return None
        if name == "table_changes" or any(name in one.functions_of_tables for one in table_formats()):
            return self.names.of_text(first.name)
        files = name in _READS_FILES or any(name in one.functions_of_paths for one in table_formats())
        return path_table(first.name.rstrip("/")) if files else None

    def _group(self, node: exp.Subquery, ctes: Ctes, scope: Scope) -> Source:
        """Relations joined inside parentheses: one relation when they have an alias, otherwise each by its name."""
        inner = Scope(self.findings, outer=scope.outer)
        first = self.source(node.this, ctes, inner)
        inner.sources.append(first)
        self.joins(node.this, inner, ctes)
        if not node.alias:
            scope.first = [*scope.first, *(inner.first if not scope.sources else ())]
            scope.sources += inner.sources[:-1]
            return inner.sources[-1]
        fields = [
            s.merged.get(f.name.lower(), f)
            for s in inner.sources
            for f in s.relation.fields
            if f.name.lower() not in s.unseen
        ]
        return Source((), Relation(inner.arranged(fields), tuple(s.relation for s in inner.sources if s.relation.open)))

    def _table(self, node: exp.Table, ctes: Ctes, scope: Scope) -> Source:
        self.findings.followed.add(id(node))
        if node.args.get("rows_from"):
            return self._side_by_side(node, ctes, scope)
        if isinstance(node.this, exp.Func):
            return self._function(node, ctes, scope)
        if not node.args.get("db") and node.name.lower() in ctes:
            return Source((node.name.lower(),), ctes[node.name.lower()]())
        nested = self._nested(node, scope)
        if nested is not None:
            return nested
        if (
            self.dialect == "databricks"
            and node.text("db").lower() == "live"
            and not self.names.given(f"live.{node.name}")
        ):
            node.set("db", None)  # a table of the same pipeline
        written = ".".join(p.name for p in node.parts).lower()
        ends = tuple(written.split(".", n)[-1] for n in range(written.count(".") + 1))
        name = self._named(node)
        one_row = _ONE_ROW.get((self.dialect, ends[0]))
        if one_row is not None and not self.names.columns(name):
            return Source((*ends, name.lower()), Relation([constant(one_row)]))
        self.findings.tables[name] = None
        self.findings.stored.add(id(node))
        relation = self.lookup(name)
        for item in relation.indirect:
            self.findings.indirect[item] = None
        return Source((*ends, name.lower()), relation)


def _is_filled_in(node: exp.Table, dialect: str) -> bool:
    """Whether a name holds a variable: `${a}`, `:a`, `{{ a }}` or `?`. T-SQL's `@a` is a table itself."""
    alias = node.args.get("alias")
    parts = [*node.parts, *([alias.this] if isinstance(alias, exp.TableAlias) and alias.this is not None else [])]
    named = (exp.Identifier, exp.Func, exp.Parameter) if dialect in ("tsql", "fabric") else (exp.Identifier, exp.Func)
    if len(parts) == 1 + (isinstance(alias, exp.TableAlias) and alias.this is not None) and _is_by_text(parts[0]):
        return True
    stage = parts[0].name.startswith("@") and isinstance(parts[0], exp.Var)  # Snowflake
    return not stage and any(not isinstance(p, named) or "${" in p.name or "{{" in p.name for p in parts)


def _is_by_text(name: exp.Expression) -> bool:
    """`IDENTIFIER(…)`, also where the parser takes it for a table of that name with a list of columns."""
    unquoted = isinstance(name, exp.Identifier) and not name.args.get("quoted") and name.name.upper() == "IDENTIFIER"
    return unquoted or (isinstance(name, exp.Func) and named_by_text(name))


def _is_whole(node: exp.Expression) -> bool:
    """Whether names behind an alias are for all columns, by position."""
    return isinstance(node, exp.Table | exp.Subquery) or (
        isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery)
    )


def _is_group(node: exp.Subquery) -> bool:
    """Parentheses around tables and joins, not around a query alone."""
    inner = node.this
    return isinstance(inner, exp.Table) or (
        isinstance(inner, exp.Subquery) and (bool(inner.args.get("joins")) or _is_group(inner))
    )
