"""What a statement reads or writes without naming it as a table: by a function, a text, an engine or an option."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from sqlglot import exp

from pii_tracer.lake.formats.registry import format_names, table_formats
from pii_tracer.lineage.sql.text.table_names import Names

_PREFIXES = (
    "dictget", "dicthas", "dictionary_get",
    "joinget", "dblink", "lo_", "pg_read_", "pg_ls_", "pg_logical_", "pg_create_",
    "pg_copy_", "pg_backup_", "utl_", "dbms_", "xp_", "sp_", "system$",
    "openquery", "openrowset", "opendatasource", "load_file", "read_", "external_query", "remote", "azureblob",
    "http_get", "http_post", "http_put", "http_patch", "query_table", "aws_s3.", "aws_lambda.",
)  # fmt: skip
_NAMES = frozenset(
    {"query_to_xml", "table_to_xml", "query_to_xmlschema", "cursor_to_xml", "schema_to_xml", "database_to_xml", "query",
     "set_config", "getvariable", "getvar", "result_scan", "last_query_id", "file", "url", "s3", "s3cluster", "mysql",
     "postgresql", "mongodb", "redis", "sqlite", "jdbc", "odbc", "executable", "exec", "ts_stat", "sys_exec",
     "sys_eval", "get_ddl", "pg_notify", "pg_logical_emit_message", "http_request",
     "writefile", "readfile", "load_extension"}
)  # fmt: skip
"""Functions, by name or by how their names begin, that read tables, files or variables, or run or write something."""
_PACKAGES = ("utl_", "dbms_", "aws_s3", "aws_lambda", "dblink")
_OF_VALUES = frozenset({"dbms_lob", "dbms_crypto", "dbms_random", "utl_raw", "utl_encode", "utl_i18n", "utl_match"})
"""Packages of functions of the first kind, and those of Oracle's whose functions work on their arguments alone."""
_QUERY = re.compile(
    r"\bSELECT\b.+\bFROM\b|\bINSERT\s+(?:INTO|OVERWRITE)\b|\bDELETE\s+FROM\b|\bMERGE\s+INTO\b|\bUPDATE\b.+\bSET\b",
    re.IGNORECASE | re.DOTALL,
)
"""A text that is a statement itself."""

_DECIDES = (
    exp.Where,
    exp.Having,
    exp.Qualify,
    exp.PreWhere,
    exp.Limit,
    exp.Offset,
    exp.Fetch,
    exp.Join,
    exp.TableSample,
)
_FORMATS = re.compile(
    rf"\b(?:{'|'.join(format_names())}|text|textfile|hive|rcfile|sequencefile|binaryfile|xml|jsonl|"
    r"ion|tsv|newline_delimited_json|protobuf|ndjson|jsonfile|com\.databricks\.spark\.\w+|ducklake|paimon)\b",
    re.IGNORECASE,
)
"""Formats of files that the table itself has."""
PLACES = frozenset({"path", "location", "external_location"})
"""Options that name the folder of a table's files."""
_ENGINES = re.compile(
    r"\w*MergeTree|Memory|\w*Log|Null|Set|Join|InnoDB|MyISAM|Aria|Rocksdb|Archive|CSV|OLAP|Heap|NDB\w*|TokuDB|"
    r"KeeperMap|EmbeddedRocksDB|columnstore",
    re.IGNORECASE,
)
"""Engines that keep a table's rows with the table."""
_ELSEWHERE_KEYS = re.compile(
    r"connector|dbtable|table(?:[._]?name)?|source(?:[._]?table)?|data_source|topic|kafka_topic|query|url|uris?|"
    r"path|location|external_location|connection|host(?:name)?|server|database|subscribe|bucket|catalog_table_name|metadata_file_path|external_volume",
    re.IGNORECASE,
)
"""Options that name where rows are, if not with the table."""


def reads_elsewhere(part: exp.Expr, names: Names, namespaces: Collection[int] = ()) -> Iterator[str]:
    """Why a function or variable may bring in what the statement does not show. namespaces: as of `Findings`."""
    if isinstance(part, exp.Parameter):
        if not only_decides(part) and not isinstance(part.parent, exp.DeclareItem | exp.Table):
            yield f"the value of the variable {part.name or 'of this statement'} is not known"
        return
    name = (part.name if isinstance(part, exp.Anonymous) else part.sql_name()).lower()  # type: ignore[attr-defined]
    if _is_outward(name, part, namespaces):
        yield f"the reads and writes of the function {name} are not known"
    for text in part.iter_expressions():
        text = text.expression if isinstance(text, exp.Kwarg | exp.PropertyEQ) else text
        if not isinstance(text, exp.Literal | exp.RawString | exp.Heredoc | exp.National) or text.is_number:
            continue
        if _QUERY.search(text.name):
            yield f"the function {name} receives an SQL statement as text, which lineage does not follow"
        elif isinstance(part, exp.Anonymous) and names.columns(names.of_text(text.name or "''")):
            yield f"the function {name} receives a table name as text, which lineage does not follow"


def _is_outward(name: str, part: exp.Expr, namespaces: Collection[int]) -> bool:
    """Whether a function is one that reads or writes elsewhere, or is in a package of such functions."""
    before = part.parent.this if isinstance(part.parent, exp.Dot) and part.arg_key == "expression" else None
    if before is None:
        return name.startswith(_PREFIXES) or name in _NAMES
    packages = before.sql().lower().split(".") if isinstance(before, exp.Column | exp.Identifier) else []
    if packages and packages[-1] in _OF_VALUES:
        return False
    if any(package.startswith(_PACKAGES) for package in packages):
        return True
    is_method = id(before) not in namespaces  # of a value at hand
    return not is_method and (name.startswith(_PREFIXES) or name in _NAMES)


def only_decides(part: exp.Expr) -> bool:
    """Whether a value only decides which rows there are."""
    inner: exp.Expr = part
    while inner.parent is not None and not isinstance(inner, exp.Query):
        inner = inner.parent
        if isinstance(inner, _DECIDES):
            return True
    return False


def within_condition(part: exp.Expr) -> bool:
    """Whether a value only decides which rows there are, also where a query inside of a condition has it."""
    inner: exp.Expr = part
    while (around := inner.parent) is not None:
        if isinstance(around, exp.Join):
            if inner.arg_key != "this":
                return True
        elif isinstance(around, _DECIDES):
            return True
        inner = around
    return False


def stored_elsewhere(part: exp.Expression) -> str | None:
    """Of a part that says where a table's rows are: why that is not followed, or an empty text. Of others: None."""
    if isinstance(part, exp.EngineProperty):
        engine = part.this.name if isinstance(part.this, exp.Expression) else str(part.this)
        own = any(engine.lower() == name.lower() for one in table_formats() for name in one.table_engines)
        return (
            ""
            if own or _ENGINES.fullmatch(engine)
            else (f"the engine {engine} may store its rows in a different place")
        )
    if isinstance(part, exp.StorageHandlerProperty):
        formats = (one.name.value for one in table_formats() if one.keeps_history)
        own = any(name in part.name.lower() for name in (*formats, "paimon"))
        return "" if own else "a table with a storage handler may store its rows in a different place"
    if isinstance(part, exp.FileFormatProperty):
        text = part.this.sql() if isinstance(part.this, exp.Expression) else ""
        return (
            ""
            if not text or _FORMATS.search(text)
            else (f"a table of the format {text} may store its rows in a different place")
        )
    if isinstance(part, exp.OptionsProperty):
        told = (stored_elsewhere(option) for option in part.expressions)
        return next((why for why in told if why), "")
    if isinstance(part, exp.Property) and type(part) is exp.Property:
        return _option(part)
    return None


def _option(part: exp.Expression) -> str:
    """An option is a setting, unless it is one that names a place or has a place as its value."""
    value = part.args.get("value")
    place = isinstance(value, exp.Expression) and any(
        isinstance(v, exp.Parameter | exp.Table | exp.Query) or (isinstance(v, exp.Literal) and "://" in v.name)
        for v in value.walk()
    )
    if part.name.lower() in PLACES and isinstance(value, exp.Literal):
        return ""  # `created` tells of it
    if part.name.upper() == "LEDGER" and part.text("value").upper() == "ON":
        return "a ledger table keeps every old version of its rows in a second table, which lineage does not follow"
    if place or _ELSEWHERE_KEYS.fullmatch(part.name):
        return f"the option {part.name} sets where rows are stored, which lineage does not follow"
    return ""
