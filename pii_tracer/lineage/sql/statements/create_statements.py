"""CREATE: tables and views with a query, a schema or a clone, columns that are computed, and what is no table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from sqlglot import exp

from pii_tracer.lineage.sql.accounting.external_reads import PLACES, reads_elsewhere
from pii_tracer.lineage.sql.accounting.harmless_statements import defines_only
from pii_tracer.lineage.sql.clone_call_alter import whole
from pii_tracer.lineage.sql.column_aliases import by_given_names, called_the_same, told_apart
from pii_tracer.lineage.sql.queries import Query
from pii_tracer.lineage.sql.relations import Field, Relation
from pii_tracer.lineage.sql.statement_effects import Draft, Effect
from pii_tracer.lineage.sql.statements.computed_columns import computed_by, fields_of
from pii_tracer.lineage.sql.statements.filled_columns import filled_by, sequences
from pii_tracer.lineage.sql.text.global_temp_views import global_view
from pii_tracer.lineage.sql.text.table_names import Names, path_table
from pii_tracer.lineage.sql.writes import drafted, format_of

_PAIRS_BY_NAME = frozenset({"mysql", "singlestore"})
"""Dialects in which columns of CREATE TABLE … SELECT are added to those of the query
(https://dev.mysql.com/doc/refman/8.4/en/create-table-select.html)."""


def created(query: Query, node: exp.Create) -> Draft:
    """CREATE TABLE and VIEW, with a query or only a schema; of anything else, whether it can make a copy."""
    kind = str(node.args.get("kind") or "").upper()
    if kind not in ("TABLE", "VIEW"):
        return _other(query, node, kind)
    table = node.this.this if isinstance(node.this, exp.Schema) else node.this
    properties = node.args.get("properties")
    listed = properties.expressions if properties is not None else []
    location = next((p.this.name for p in listed if isinstance(p, exp.LocationProperty)), None) or _option(listed)
    temporary = any(isinstance(p, exp.TemporaryProperty) for p in listed)
    # a materialised view is a table that its engine fills
    stored = any(isinstance(p, exp.MaterializedProperty) for p in listed)
    view = kind == "VIEW" and not stored
    shared = view and temporary and any(isinstance(p, exp.GlobalProperty) for p in listed)
    if shared:
        query.findings.followed.add(id(table))
    named = query.target(table) if isinstance(table, exp.Table) and not shared else ""
    target = global_view(table.name) if shared else named
    query.names.pair(target, format_of(listed))
    if node.args.get("clone") is not None:
        source = node.args["clone"].this
        query.findings.followed.add(id(source))
        return whole(query, Effect.CLONE, query.names.of(source), target)
    if isinstance(node.this, exp.Schema) and any(c.find(exp.Query) for c in node.this.find_all(exp.ColumnConstraint)):
        query.findings.doubt(f"a definition of {target} fills a column by a query, which is not followed")
        query.findings.opaque = True
    body = node.expression
    if isinstance(body, exp.Query | exp.Values | exp.Table):
        relation = query.relation(cast(exp.Expression, body))
        if query.dialect not in _PAIRS_BY_NAME or view:
            relation = query.renamed(relation, _columns(node))
        if not (view or stored) and any(map(_is_empty, listed)):
            query.names.learn(target, [(f.name, f.type) for f in relation.fields])
            return Draft(Effect.SCHEMA, target, location=location, makes=True)
        effect = (Effect.TEMPORARY if temporary else Effect.VIEW) if view else Effect.REPLACE
        draft = drafted(query, effect, target, relation, _kept(query, target, relation))
        draft.location, draft.makes = location, True
        draft.optional = bool(node.args.get("exists"))
        draft.fresh = not (draft.optional or node.args.get("replace"))
        if isinstance(node.this, exp.Schema):  # MySQL: columns that the query may not have
            draft.rules = filled_by(node.this.expressions, query.dialect)
        return draft
    if view and location:
        source = path_table(location.rstrip("/"))
        query.findings.tables[source] = None
        files = query.lookup(source)
        return Draft(Effect.TEMPORARY, target, list(files.fields), tuple(files.bases()))
    if body is not None:
        query.findings.doubt(f"lineage does not follow the source from which CREATE TABLE fills {target}")
        query.findings.opaque = True
    if not location and any(isinstance(p, exp.ExternalProperty) for p in listed):
        query.findings.doubt(f"lineage does not know where the rows of the external table {target} are stored")
    like = _learn(query, node, target, listed)
    rules = query.names.computed(target)
    made = fields_of(query, rules, query.lookup(target)) if rules else []
    own = query.names.filled(target)
    return Draft(Effect.SCHEMA, target, location=location, makes=True, computed=made, rules=own, like=like)


def _other(query: Query, node: exp.Create, kind: str) -> Draft:
    body = node.expression
    if not defines_only(node):
        query.findings.opaque = True
        query.findings.doubt(f"lineage does not follow the source of the rows of CREATE {kind}")
    elif any(node.find_all(exp.ExternalProperty, exp.RemoteWithConnectionModelProperty)):
        query.findings.doubt(f"the {kind} runs in another system, so lineage does not know where its inputs go")
    elif body is not None and body.find(exp.Table, exp.Query) is not None:
        query.findings.doubt(f"the body of CREATE {kind} is not followed")
    for part in node.find_all(exp.Func):
        for why in reads_elsewhere(part, query.names):
            query.findings.doubt(why)
    return Draft(Effect.NONE, None)


def learn_variables(names: Names, node: exp.Declare) -> None:
    """Remember the columns of T-SQL's table variables: `DECLARE @t TABLE (…)`."""
    for item in node.expressions:
        kind = item.args.get("kind")
        defs = kind.expressions if isinstance(kind, exp.Schema) else []
        columns = [(c.name, c.kind.sql("spark")) for c in defs if isinstance(c, exp.ColumnDef) and c.kind is not None]
        if columns and not any(name.upper() in _NO_COLUMN for name, _ in columns):
            for variable in item.this if isinstance(item.this, list) else [item.this]:
                names.learn(f"@{variable.name}", columns)


_NO_COLUMN = frozenset({"INDEX", "CONSTRAINT", "CHECK", "UNIQUE", "PRIMARY", "FOREIGN"})
"""Words that begin something else than a column, which the parser takes for its name."""


def _kept(query: Query, target: str, relation: Relation) -> list[Field]:
    """The columns of a query as the table or view that it makes calls them."""
    for reason in called_the_same(relation.fields, query.dialect):
        query.findings.doubt(reason)
    given = [] if relation.open else [name for name, _ in query.names.columns(target)]
    return by_given_names(told_apart(relation.fields, query.dialect), given)


def _is_empty(item: exp.Expression) -> bool:
    """WITH NO DATA, and ClickHouse's EMPTY AS: the table has the query's columns, and no rows."""
    return isinstance(item, exp.EmptyProperty) or (isinstance(item, exp.WithDataProperty) and bool(item.args.get("no")))


def _schema(node: exp.Create) -> list[exp.Expression]:
    """What stands in parentheses behind the table's name."""
    return node.this.expressions if isinstance(node.this, exp.Schema) else []


def _columns(node: exp.Create) -> list[str]:
    return [c.name for c in _schema(node) if isinstance(c, exp.ColumnDef | exp.Identifier)]


def _learn(query: Query, node: exp.Create, target: str, listed: Sequence[exp.Expression]) -> tuple[str, ...]:
    """Remember a new table's columns, and how those are computed that are. The tables that it is made like."""
    like = next((p.this for p in listed if isinstance(p, exp.LikeProperty)), None)
    if like is not None:
        origin = query.names.of(like)
        query.names.learn(target, query.names.columns(origin))
        query.names.compute(target, query.names.computed(origin))
        query.names.fill(target, query.names.filled(origin))
        return (origin,)
    if isinstance(node.this, exp.Schema):
        defs = [c for c in node.this.expressions if isinstance(c, exp.ColumnDef)]
        origins = [query.names.of(p.this) for p in node.this.expressions if isinstance(p, exp.LikeProperty)]
        query.names.learn(target, [(c.name, c.kind.sql("spark") if c.kind is not None else "") for c in defs])
        query.names.compute(target, computed_by(defs))
        taken = [rule for origin in origins for rule in query.names.filled(origin)]
        query.names.fill(target, (*filled_by(node.this.expressions, query.dialect), *taken))
        query.findings.followed |= sequences(defs)
        return tuple(origins)
    return ()


def _option(listed: Sequence[exp.Expression]) -> str | None:
    """The folder that an option names."""
    options = [o for p in listed for o in ((p, *p.expressions) if isinstance(p, exp.OptionsProperty) else (p,))]
    for option in options:
        value = option.args.get("value")
        if type(option) is exp.Property and option.name.lower() in PLACES and isinstance(value, exp.Literal):
            return value.name
    return None
