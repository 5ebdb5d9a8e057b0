"""Statements that bring rows from files into tables, and from tables into files: COPY, EXPORT DATA, LOAD DATA."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from pii_tracer.lineage.sql.column_placement import of_files, partition_columns, partition_values, placed
from pii_tracer.lineage.sql.queries import Query
from pii_tracer.lineage.sql.statement_effects import Draft, Effect
from pii_tracer.lineage.sql.text.table_names import path_table
from pii_tracer.lineage.sql.writes import BARE, drafted


def copied(query: Query, node: exp.Copy) -> Draft:
    """COPY INTO a table from a folder or a query over one; or from a table or query into a folder."""
    source = node.args["files"][0] if node.args.get("files") else None
    if source is None or (isinstance(source, exp.Identifier) and not source.args.get("quoted")):
        return _with_a_client(query, node)
    if not node.args.get("kind"):  # COPY … TO
        relation = query.relation(_named_columns(node.this))
        return drafted(query, Effect.REPLACE, path_table(source.name.rstrip("/")), relation, list(relation.fields))
    if any(p.name.upper() == "INCLUDE_METADATA" for p in node.args.get("params") or ()):
        query.findings.doubt("lineage does not follow columns that COPY fills from metadata of the files")
    if any(p.name.upper() in ("MANIFEST", "SSH") for p in node.args.get("params") or ()):
        query.findings.doubt("the files that COPY loads are listed in a separate file, which lineage does not read")
    if any(p.name.upper() == "BY_POSITION" for p in node.args.get("params") or ()):  # MySQL's LOAD DATA
        query.findings.doubt("lineage does not follow the columns of files that are loaded by position")
    columns = [c.name for c in node.this.expressions] if isinstance(node.this, exp.Schema) else []
    table = node.this.this if isinstance(node.this, exp.Schema) else node.this
    if isinstance(table, exp.Table) and isinstance(table.this, exp.Literal):  # a folder
        query.findings.followed.add(id(table))
        target = path_table(table.name.rstrip("/"))
    else:
        target = query.target(table)
    loose = not columns and query.names.loose(target)
    columns = columns or [c for c, _ in query.names.columns(target)]
    if isinstance(source, exp.Subquery):
        relation = query.relation(source)
        fields = placed(query, target, relation, columns, loose=loose)
        draft = drafted(query, Effect.APPEND, target, relation, fields)
        draft.seen = False
        return draft
    if isinstance(source, exp.Table):
        query.findings.followed.add(id(source))
        return _loaded(query, target, query.names.of(source), columns, named=_by_name(query, node))
    return _loaded(query, target, path_table(source.name.rstrip("/")), columns, named=_by_name(query, node))


def _by_name(query: Query, node: exp.Copy) -> bool:
    """Whether COPY pairs the columns of files and table by name
    (https://docs.databricks.com/aws/en/sql/language-manual/delta-copy-into,
    https://docs.snowflake.com/en/sql-reference/sql/copy-into-table,
    https://docs.aws.amazon.com/redshift/latest/dg/copy-parameters-data-format.html).
    """
    given = {p.name.upper(): p.text("expression").lower() for p in node.args.get("params") or ()}
    words = [word for form, how in given.items() for word in (*form.lower().split(), how) if word not in ("", "as")]
    form = next((n for n, word in enumerate(words) if word in ("json", "avro")), None)
    if form is not None and query.dialect == "redshift":
        if words[form + 1 : form + 2] not in ([], ["auto"], ["auto ignorecase"]):
            query.findings.doubt("a separate file maps fields to columns for COPY, which lineage does not read")
        return True
    return query.dialect in ("spark", "databricks") or given.get("MATCH_BY_COLUMN_NAME", "none") != "none"


def _with_a_client(query: Query, node: exp.Copy) -> Draft:
    """COPY between a table and a client or a program, which no statement shows
    (https://www.postgresql.org/docs/current/sql-copy.html).
    """
    query.findings.opaque = True
    if not node.args.get("kind"):
        query.relation(_named_columns(node.this))
        tables = ", ".join(query.findings.tables)
        query.findings.doubt(
            f"COPY sends rows of {tables} to a client, to a program, or to a place that the statement does not name"
        )
        return Draft(Effect.NONE, None)
    target = query.target(node.this.this if isinstance(node.this, exp.Schema) else node.this)
    query.findings.doubt(
        f"COPY fills {target} with rows from a client, a program, or a place that the statement does not name"
    )
    return Draft(Effect.APPEND, target)


def _named_columns(source: exp.Expression) -> exp.Expression:
    """The columns of a table that COPY names: `s (id, mail)`."""
    if not isinstance(source, exp.Schema):
        return source
    columns = [
        exp.column(column.this.copy() if isinstance(column, exp.Column) else column.copy())
        for column in source.expressions
    ]
    return exp.Select(expressions=columns, from_=exp.From(this=source.this))


def exported(query: Query, node: exp.Export) -> Draft:
    """BigQuery's EXPORT DATA: a query's rows go to the folder of its `uri` option."""
    options = node.args.get("options")
    named = {o.name.lower(): o for o in options.expressions} if options is not None else {}
    uri = named.get("uri")
    value = uri.args.get("value") if uri is not None else None
    relation = query.relation(node.this)
    if not isinstance(value, exp.Expression):
        query.findings.doubt("EXPORT DATA does not name its target")
        return drafted(query, Effect.REPLACE, BARE, relation, list(relation.fields))
    folder = value.name.rsplit("/", 1)[0] if "*" in value.name else value.name
    return drafted(query, Effect.REPLACE, path_table(folder.rstrip("/")), relation, list(relation.fields))


def loaded(query: Query, node: exp.LoadData) -> Draft:
    """LOAD DATA INPATH: files come into the table as they are."""
    target = query.target(node.this.this if isinstance(node.this, exp.Schema) else node.this)
    inpath = node.args.get("inpath")
    if not isinstance(inpath, exp.Expression):
        query.findings.opaque = True
        query.findings.doubt("LOAD DATA names its files in a form that lineage does not support")
        return Draft(Effect.APPEND, target)
    source = path_table(inpath.name.rstrip("/"))
    parts = partition_columns(node.args.get("partition"))
    draft = _loaded(query, target, source, [c for c, _ in query.names.columns(target)], parts)
    draft.fixed = partition_values(node.args.get("partition"))
    return draft


def _loaded(
    query: Query, target: str, source: str, columns: Sequence[str], parts: Sequence[str] = (), *, named: bool = False
) -> Draft:
    query.findings.tables[source] = None
    if columns:
        fields = of_files(query, target, source, columns, parts=parts, named=named)
        return Draft(Effect.APPEND, target, fields)
    relation = query.lookup(source)
    return drafted(query, Effect.APPEND, target, relation, list(relation.fields))
