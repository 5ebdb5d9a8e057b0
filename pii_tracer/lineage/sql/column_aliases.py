"""Aliases of a SELECT list that are called as a column of its tables is, where the alias counts (ClickHouse)."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from pii_tracer.lineage.sql.relations import Field
from pii_tracer.lineage.sql.scopes import Scope, shown


def aliases_of_columns(node: exp.Select, scope: Scope) -> Iterator[str]:
    """Why a name of the query may mean a column, or an expression of the list: a setting decides
    (https://clickhouse.com/docs/operations/settings/settings#prefer_column_name_to_alias).
    """
    names = [p for p in node.walk() if isinstance(p, exp.Column) and len(p.parts) == 1]
    for item in node.expressions:
        column = next((f for s in scope.sources if (f := s.relation.known(item.alias))), None)
        made = scope.aliases.get(item.alias.lower()) if isinstance(item, exp.Alias) else None
        if made is None or column is None or _columns(made) == _columns(column):
            continue
        own = {id(p) for p in item.walk()}
        if any(p.name == item.alias and id(p) not in own and p.parent_select is node for p in names):
            yield f"the name {shown([item.alias])} may mean the column, or an alias of the query"


def _columns(item: Field) -> set[tuple[str, str]]:
    return {(dep.table, dep.column) for dep in item.deps()}
