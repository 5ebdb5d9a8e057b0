"""CLONE, CALL and ALTER: statements that move whole tables or change their shape."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import sqlglot
from sqlglot import exp

from pii_tracer.lineage.sql.column_placement import of_files, partition_values
from pii_tracer.lineage.sql.queries import Query
from pii_tracer.lineage.sql.relations import Field, Relation, table_field
from pii_tracer.lineage.sql.scopes import Scope, Source
from pii_tracer.lineage.sql.statement_effects import Draft, Effect
from pii_tracer.lineage.sql.statements.computed_columns import computed_by, fields_of
from pii_tracer.lineage.sql.statements.filled_columns import default_of, filled_by, sequences
from pii_tracer.lineage.sql.statements.maintained_tables import taken_in, tended_in
from pii_tracer.lineage.sql.text.script_splitting import Call, Clone
from pii_tracer.lineage.sql.text.table_moves import Move
from pii_tracer.lineage.sql.text.table_names import is_location, is_place, path_table

_COPIES = {
    "snapshot": ("source_table", "table"),
    "migrate": ("table", "table"),
    "add_files": ("source_table", "table"),
    "register_table": ("metadata_file", "table"),
}
"""Iceberg's procedures that take over another table's files, with the names of their arguments
(https://iceberg.apache.org/docs/latest/spark-procedures/#table-migration)."""

_KEEP_DATA = frozenset(
    [
        "expire_snapshots",
        "remove_orphan_files",
        "rewrite_data_files",
        "rewrite_manifests",
        "rewrite_position_delete_files",
        "rollback_to_snapshot",
        "rollback_to_timestamp",
        "set_current_snapshot",
        "cherrypick_snapshot",
        "fast_forward",
        "publish_changes",
        "ancestors_of",
        "run_clean",
        "run_compaction",
        "run_clustering",
        "show_commits",
        "create_savepoint",
        "delete_savepoint",
        "show_savepoints",
        "compute_table_stats",
        "kill_query",
        "flush_metadata_cache",
    ]
)
"""Procedures of Iceberg, Hudi and Trino that bring no other table's data in."""

_BY_FOLDERS = frozenset({"hive", "spark", "spark2", "databricks", "athena"})
"""Dialects whose partitions are folders, whatever lies in them."""


def _table(query: Query, written: str) -> str:
    """The name of a table written as text, `parquet`.`/path` included."""
    if is_location(written):
        return path_table(written.rstrip("/"))
    return query.names.of(sqlglot.to_table(written, dialect="spark"))


def tended(query: Query, text: str) -> Draft:
    """A statement of administration, which moves no rows; but it can take in those that lie in a table's folder."""
    taking, tending = taken_in(text), tended_in(text)
    if taking is not None:
        return Draft(Effect.SCHEMA, _table(query, taking), takes_in=True)
    return Draft(Effect.NONE, None, tends="" if tending is None else _table(query, tending))


def whole(query: Query, effect: Effect, source: str, target: str) -> Draft:
    """Every column of one table is the other's column of the same name."""
    query.findings.tables[source] = None
    relation: Relation = query.lookup(source)
    fields: list[Field] = list(relation.fields)
    like = (source,) if effect in (Effect.CLONE, Effect.RENAME) else ()
    if relation.open and query.names.columns(target):
        fields = [f for c, _ in query.names.columns(target) if (f := relation.get(c)) is not None]
        return Draft(effect, target, fields, like=like)
    known = {c.lower() for c, _ in query.names.columns(target)}
    if effect is Effect.APPEND and known and is_place(source) and any(f.name.lower() not in known for f in fields):
        query.findings.doubt(f"the files of {source} have columns that {target} does not have")
    unknown = tuple(dict.fromkeys(relation.bases()))
    for table in unknown:
        query.findings.doubt(f"the columns of {table} are not known: add its schema to the lineage sources")
    return Draft(effect, target, fields, unknown, like=like)


def _renamed(query: Query, old: str, new: str) -> Draft:
    """A table has another name: what is known of it goes along."""
    draft = whole(query, Effect.RENAME, old, new)
    query.names.learn(new, query.names.columns(old))
    query.names.compute(new, query.names.computed(old))
    query.names.fill(new, query.names.filled(old))
    query.names.forget(old)
    return draft


def _laid(query: Query, place: str, target: str, fixed: Sequence[tuple[str, str]]) -> Draft:
    """A table, or a partition of one, takes the files that lie at a place."""
    draft = whole(query, Effect.APPEND, place, target)
    columns = [c for c, _ in query.names.columns(target)]
    if columns:
        draft.fields = of_files(query, target, place, columns, parts=[name for name, _ in fixed])
    draft.fixed = list(fixed)
    return draft


def cloned(query: Query, clone: Clone) -> Draft:
    """CREATE TABLE … SHALLOW or DEEP CLONE."""
    draft = whole(query, Effect.CLONE, _table(query, clone.source), _table(query, clone.to))
    draft.location = clone.location
    if not clone.plain:
        query.findings.doubt("the words after CLONE and the table name are not supported")
    return draft


def _choose(query: Query, move: Move, draft: Draft) -> None:
    """The columns that APPLY CHANGES lists; and the two that it adds to a target with versions, which hold the values
    that say in which order changes were made
    (https://docs.databricks.com/aws/en/ldp/developer/ldp-sql-ref-apply-changes-into).
    """
    source, target = query.lookup(_table(query, move.source)), str(draft.output)
    only, without = {n.lower() for n in move.only}, {n.lower() for n in move.without}
    if (only or without) and draft.unknown:
        tables = ", ".join(draft.unknown)
        query.findings.doubt(f"the schema of {tables} is not known: lineage assumes that all its columns are copied")
    draft.fields = [f for f in draft.fields if f.name.lower() not in without and (not only or f.name.lower() in only)]
    known = [c.lower() for c, _ in query.names.columns(target)]
    if not move.versions or (known and "__start_at" not in known):
        return
    by = source.get(move.versions.strip("`"))
    if by is None or not move.versions.strip("`").isidentifier():
        query.findings.doubt(f"lineage does not know the source of the columns __START_AT and __END_AT of {target}")
    else:
        draft.fields = [f for f in draft.fields if not f.name.startswith("__")]
        draft.fields += [by.named("__START_AT"), by.named("__END_AT")]


def moved(query: Query, move: Move) -> Draft:
    """A whole table's columns come to another table or folder."""
    source, target = _table(query, move.source), _table(query, move.target)
    if move.effect is Effect.RENAME:
        return _renamed(query, source, target)
    draft = whole(query, move.effect, source, target)
    draft.fixed = list(move.fixed)
    if move.as_it_is:
        columns = [[c.lower() for c, _ in query.names.columns(table)] for table in (source, target)]
        if all(columns) and columns[0] != columns[1]:
            query.findings.doubt(
                f"{source} and {target} have different columns, so lineage does not know which column fills which"
            )
    if move.swapped:
        draft.like = (source,)
    if move.effect is Effect.CHANGE:
        _choose(query, move, draft)
    return draft


def called(query: Query, call: Call) -> Draft:
    """CALL: procedures that take over files are copies; maintenance brings nothing; any other is opaque."""
    procedure = call.procedure.rsplit(".", 1)[-1].lower()
    if query.dialect == "oracle":  # a procedure of the user, whatever its name
        procedure = ""
    call = _of_trino(call, procedure)
    if procedure == "register_table":
        call = _registered(call)
    if procedure in _KEEP_DATA:
        return Draft(Effect.NONE, None)
    if procedure not in _COPIES:
        query.findings.opaque = True
        query.findings.doubt(f"the reads and writes of the procedure {call.procedure} are not known")
        return Draft(Effect.NONE, None)
    from_name, to_name = _COPIES[procedure]
    table_first = procedure in ("add_files", "register_table")
    order = ("table", from_name) if table_first else ("source_table", "table")
    given = {**dict(zip(order, call.positional, strict=False)), **call.named}
    if procedure == "migrate":
        given.setdefault("table", given.get("source_table", ""))
    source, target = given.get(from_name), given.get(to_name)
    if not source or not target:
        query.findings.opaque = True
        query.findings.doubt(
            f"the arguments of the procedure {call.procedure} are not literals, so its tables are not known"
        )
        return Draft(Effect.NONE, None)
    catalog = call.procedure.split(".")[0] if call.procedure.count(".") == 2 else ""
    if catalog and target.count(".") == 1 and "`" not in target:
        target = f"{catalog}.{target}"
    draft = whole(query, Effect.CLONE, _table(query, source), _table(query, target))
    draft.takes_in = procedure == "migrate"  # whatever lies in the folder
    return draft


def _of_trino(call: Call, procedure: str) -> Call:
    """Trino's procedures name schema, table and folder apart
    (https://trino.io/docs/current/connector/iceberg.html#procedures).
    """
    named = dict(call.named)
    if procedure == "register_table" and len(call.positional) > 2:
        named |= dict(zip(("schema_name", "table_name", "table_location"), call.positional, strict=False))
    if not {"schema_name", "table_name"} <= set(named):
        return call
    given = {"table": f"{named['schema_name']}.{named['table_name']}"}
    if "table_location" in named:
        given["metadata_file"] = named["table_location"]
    return Call(call.procedure, given, ())


def _registered(call: Call) -> Call:
    """Of a metadata file the folder of the table that it belongs to."""
    named = dict(call.named)
    positional = [*call.positional]
    if "metadata_file" in named:
        named["metadata_file"] = re.sub(r"/metadata/[^/]*$", "", named["metadata_file"])
    elif len(positional) > 1:
        positional[1] = re.sub(r"/metadata/[^/]*$", "", positional[1])
    return Call(call.procedure, named, tuple(positional))


def _new_name(action: exp.Expression) -> str:
    """The new name of a column, when the action renames one."""
    if isinstance(action, exp.ModifyColumn):
        return action.this.name if action.args.get("rename_from") is not None else ""
    named = action.args.get("to") if isinstance(action, exp.RenameColumn) else action.args.get("rename_to")
    return named.name if isinstance(named, exp.Expression) else ""


def _old_name(action: exp.Expression) -> str:
    """The name that a column has before the action."""
    before = action.args.get("rename_from") if isinstance(action, exp.ModifyColumn) else action.this
    return before.name if isinstance(before, exp.Expression) else ""


def _placed(action: exp.Expression) -> str:
    """Where the data of a partition or table is told to lie."""
    found = action.args.get("location") or action.find(exp.LocationProperty)
    named = found.this if isinstance(found, exp.LocationProperty) else found
    return str(named.name) if isinstance(named, exp.Expression) else ""


def _dropped(action: exp.Expression) -> list[str]:
    """Columns that an action drops: `DROP COLUMN a` or `DROP COLUMNS (a, b)`."""
    if not isinstance(action, exp.Drop) or not str(action.args.get("kind")).upper().startswith("COLUMN"):
        return []
    told = action.args.get("tables") or [action.this]
    return [c.name for t in told for c in (t.expressions if isinstance(t, exp.Schema) else [t])]


def emptied(node: exp.Alter) -> tuple[str, ...]:
    """Columns, in lower case, whose values rows have no more under these names: dropped or renamed.

    REPLACE COLUMNS removes all columns before it adds those that it names
    (https://spark.apache.org/docs/3.5.6/sql-ref-syntax-ddl-alter-table.html).
    """
    found: list[str] = []
    for action in node.args.get("actions") or ():
        found += [c.name for c in action.expressions] if isinstance(action, exp.ReplaceColumns) else _dropped(action)
        if _new_name(action) and _new_name(action).lower() != _old_name(action).lower():
            found.append(_old_name(action))
    return tuple(name.lower() for name in found)


def _beside(old: exp.Table, new: exp.Table) -> exp.Table:
    """A renamed table stays in its catalog, and where the new name has one part in its database
    (https://spark.apache.org/docs/3.5.6/sql-ref-syntax-ddl-alter-table.html#rename).
    """
    missing = old.parts[: max(0, len(old.parts) - len(new.parts))]
    if not missing or len(old.parts) > 3:
        return new
    catalog, database, name = [None, None, *(part.name for part in (*missing, *new.parts))][-3:]
    return exp.table_(name or "", db=database, catalog=catalog, quoted=True)


def _at_its_place(columns: list[tuple[str, str]], column: exp.ColumnDef) -> list[tuple[str, str]]:
    """The columns with this one where FIRST or AFTER puts it: inserts by position go by that."""
    position = column.args.get("position")
    own = [c for c in columns if c[0].lower() == column.name.lower()]
    if position is None or not own:
        return columns
    others = [c for c in columns if c not in own]
    before = position.this.name.lower() if isinstance(position.this, exp.Expression) else None
    at = next(
        (n + 1 for n, (name, _) in enumerate(others) if name.lower() == before), 0 if before is None else len(others)
    )
    return [*others[:at], *own, *others[at:]]


def altered(query: Query, node: exp.Alter) -> Draft:
    """ALTER TABLE: a rename carries everything along, a renamed column its values; added columns are empty."""
    actions = sorted(node.args.get("actions") or [], key=lambda action: isinstance(action, exp.AlterRename))
    if node.this is None and actions and all(isinstance(a, exp.AlterSession) for a in actions):
        return Draft(Effect.NONE, None)  # a setting of the session
    target = query.target(node.this)
    if node.find(exp.ToTableProperty, exp.Command) is not None:
        query.findings.doubt("a part of the ALTER statement is not understood")
    if str(node.args.get("kind") or "").upper() not in ("TABLE", "VIEW", "MATERIALIZED VIEW"):
        query.findings.doubt(f"what ALTER {node.args.get('kind')} does is not known")
    known = list(query.names.columns(target))
    renamed: list[Field] = []
    rules: list[tuple[str, str]] = []
    left: list[str] = []
    for action in actions:
        if isinstance(action, exp.AlterRename):
            if known:
                query.names.learn(target, known)
            query.names.fill(target, (*query.names.filled(target), *rules))
            draft = _renamed(query, target, query.names.of(_beside(node.this, action.this)))
            return replace(draft, fields=[*draft.fields, *renamed], rules=tuple(rules), left=left)
        new_name = _new_name(action)
        if new_name:
            old = _old_name(action)
            known = [(new_name if c.lower() == old.lower() else c, t) for c, t in known]
            # a schema from after the rename has the old name no more
            found = query.lookup(target).get(old) or table_field(target, old)
            renamed.append(found.named(new_name))
            rules += filled_by(action.find_all(exp.ColumnDef), query.dialect)
        elif isinstance(action, exp.AlterColumn) and isinstance(action.args.get("using"), exp.Expression):
            scope = Scope(query.findings, [Source((target.lower(),), query.lookup(target))])
            renamed.append(query.field(action.args["using"], scope, {}).named(action.name))
        elif gone := {name.lower() for name in _dropped(action)}:
            known = [(c, t) for c, t in known if c.lower() not in gone]
        else:
            added = list(action.find_all(exp.ColumnDef))
            for column in added if known and not isinstance(action, exp.ModifyColumn) else ():
                known.append((column.name, column.kind.sql("spark") if column.kind is not None else ""))
            if computed := computed_by(added):
                query.names.compute(target, (*query.names.computed(target), *computed))
                renamed += fields_of(query, computed, query.lookup(target))
            filled = filled_by(added, query.dialect)
            query.findings.followed |= sequences([action])
            if isinstance(action, exp.AlterColumn):
                filled = tuple(default_of(action.name, action.args.get("default")))
            elif not isinstance(action, exp.ModifyColumn):  # rows that are there get it, too
                left += [name for name, _ in filled]
            rules += filled
            location = _placed(action)
            if location:
                fixed = partition_values(node)
                draft = _laid(query, path_table(location.rstrip("/")), target, fixed)
                draft.location, draft.partition_at = (None, location) if fixed else (location, None)
                return draft
            if isinstance(action, exp.SwapTable | exp.ReplacePartition) or action.find(exp.Query):
                query.findings.opaque = True
                query.findings.doubt(f"ALTER of {target} brings other data in, in a way that is not followed")
    for column in (c for action in actions for c in action.find_all(exp.ColumnDef)):
        known = _at_its_place(known, column)
    if known:
        query.names.learn(target, known)
    query.names.fill(target, (*query.names.filled(target), *rules))
    effect = Effect.CHANGE if renamed else Effect.SCHEMA
    # files that lie where the partition's rows belong are its rows from now on
    taking = query.dialect in _BY_FOLDERS and any(isinstance(action, exp.AddPartition) for action in actions)
    return Draft(effect, target, renamed, emptied=emptied(node), rules=tuple(rules), left=left, takes_in=taking)
