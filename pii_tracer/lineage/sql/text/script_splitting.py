"""A script's text to statements, and the few forms of Spark SQL that the parser does not read by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from pii_tracer.lineage.sql.accounting.loops import Span, loops, within, without_batches
from pii_tracer.lineage.sql.accounting.meaning_changing_settings import as_sent
from pii_tracer.lineage.sql.accounting.named_tables import naming
from pii_tracer.lineage.sql.statements.trigger_rows import Rows, rows_of
from pii_tracer.lineage.sql.text import plsql_units, procedure_bodies
from pii_tracer.lineage.sql.text.table_name_pattern import TABLE

NAME = TABLE
"""A table's name as written: dotted, with quoted parts."""
_CLONE = re.compile(
    rf"^\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:SNAPSHOT\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<to>{NAME})\s+"
    rf"(?P<how>SHALLOW|DEEP)?\s*CLONE\s+(?!AS\b)(?P<from>{NAME})(?P<rest>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_CLONE_CLAUSES = re.compile(
    r"(?:\s*(?:(?:VERSION|TIMESTAMP|FOR\s+SYSTEM_TIME)\s+AS\s+OF\s+(?:TIMESTAMP\s+)?(?:'[^']*'|[\w.]+(?:\((?:[^()]|\([^()]*\))*\))?)"
    r"|(?:TBLPROPERTIES|OPTIONS)\s*\([^()]*\)|LOCATION\s+'[^']*'"
    r"|COPY\s+(?:GRANTS|TAGS)|(?:AT|BEFORE)\s*\([^()]*\)))*\s*",
    re.IGNORECASE,
)
"""What may follow the names of a CLONE: of which moment, where to, and with which settings."""
_LOCATION = re.compile(r"\bLOCATION\s+'([^']*)'", re.IGNORECASE)
_CALL = re.compile(rf"^\s*CALL\s+(?P<procedure>{NAME})\s*\((?P<arguments>.*)\)\s*$", re.IGNORECASE | re.DOTALL)
_ARGUMENT = re.compile(r"(?:(?P<name>\w+)\s*=>\s*)?'(?P<value>(?:[^']|'')*)'|(?:(?P<other>\w+)\s*=>\s*[^,']+)")
_DIRECTORY = re.compile(
    r"^(?P<head>\s*INSERT\s+OVERWRITE\s+(?:LOCAL\s+)?DIRECTORY)\s*(?P<path>'[^']*')?\s+USING\s+(?P<form>\w+)"
    r"(?:\s+OPTIONS\s*\((?P<options>[^)]*)\))?",
    re.IGNORECASE,
)
_PATH_OPTION = re.compile(r"['\"]?path['\"]?\s*=?\s*(?P<path>'[^']*')", re.IGNORECASE)
_QUOTED = (TokenType.HEREDOC_STRING, TokenType.RAW_STRING, TokenType.STRING, TokenType.NATIONAL_STRING)
_SEVERAL = re.compile(
    r";|\n\s*/\s*(?:\n|$)|^\s*(?:--|/\*|#|IF\b|WHILE\b)|\bBEGIN\b|\b(?:CREATE|ALTER)\b.*\b(?:PROC|PROCEDURE|TRIGGER|FUNCTION)\b",
    re.I | re.S,
)
"""What a text must hold to be more than one statement, or to begin with a comment."""
_COMMENT = re.compile(r"/\*|--|#|//")
_VERB = re.compile(r"\b(?:SELECT|INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)
_FOREIGN = re.compile(r"\bLANGUAGE\s+'?(?!SQL\b|PLPGSQL\b)(?P<name>\w+)", re.IGNORECASE)
_BODY = re.compile(r"\A(?:\s|--[^\n]*\n|/\*.*?\*/|<<\s*\w+\s*>>)*(?:BEGIN|DECLARE)\b|" + _VERB.pattern, re.I | re.S)
"""What a text must hold to be a body."""
_EVOLVES = re.compile(r"^(\s*(?:MERGE|INSERT))\s+WITH\s+SCHEMA\s+EVOLUTION\b", re.IGNORECASE)
_REPLACE_INTO = re.compile(r"^(\s*)REPLACE\s+INTO\b", re.IGNORECASE)
_LIVE = re.compile(
    r"^\s*CREATE\s+(?:OR\s+REFRESH\s+|TEMPORARY\s+|STREAMING\s+|INCREMENTAL\s+)*LIVE\s+(?P<kind>TABLE|VIEW)\b",
    re.IGNORECASE,
)
_UNLOAD = re.compile(
    r"^\s*UNLOAD\s*\(\s*(?P<query>'(?:[^']|'')*'|\$\$.*?\$\$|.*)\s*\)\s*TO\s+(?P<path>'[^']*')",
    re.IGNORECASE | re.DOTALL,
)
_UPDATED = re.compile(
    rf"\s*UPDATE\s+(?:TOP\s*\([^()]*\)\s*)?(?P<table>{NAME})\s+(?:WITH\s*\([^()]*\)\s*)?SET\b", re.IGNORECASE
)
_COMPOUND = re.compile(r"([\w.\[\]@]+)\s*([-+*/%&|^])=\s*")
_TOP = re.compile(r"^(\s*INSERT)\s+TOP\s*\(\s*\d+\s*\)(?:\s+PERCENT)?\s+(?:INTO\s+)?", re.IGNORECASE)
_IF = re.compile(
    r"^\s*IF\b(?:(?!\b(?:SELECT|BEGIN|ELSE|THEN)\b).)*?\s(?=(?:INSERT|UPDATE|DELETE|MERGE|TRUNCATE|DROP)\s(?!.*\bELSE\b))",
    re.IGNORECASE | re.DOTALL,
)
"""T-SQL's IF before one statement."""
_MATERIALIZED = re.compile(r"^\s*CREATE\s+(?:OR\s+REPLACE\s+)?MATERIALIZED\s+VIEW\b", re.IGNORECASE)
_FILLED = re.compile(r"\s+WITH\s+(?:NO\s+)?DATA\s*$|\s+POPULATE\s+(?=AS\b)", re.IGNORECASE)
"""Whether a materialised view is filled at once."""
_RENAMES = re.compile(
    r"^\s*EXEC(?:UTE)?\s+(?:sys\.)?sp_rename\s+(?:@objname\s*=\s*)?N?'(?P<old>[\w.\[\]]+)'\s*,\s*(?:@newname\s*=\s*)?N?'(?P<new>[^']+)'"
    r"(?:\s*,\s*(?:@objtype\s*=\s*)?N?'(?P<kind>COLUMN|OBJECT)')?\s*$",
    re.IGNORECASE,
)
"""https://learn.microsoft.com/sql/relational-databases/system-stored-procedures/sp-rename-transact-sql."""
_RECURSIVE = re.compile(
    rf"^(\s*CREATE\s+(?:OR\s+REPLACE\s+)?)RECURSIVE\s+VIEW\s+(?P<view>{NAME})\s*(?P<columns>\([^()]*\))\s+AS\s+(?P<query>.*)$",
    re.IGNORECASE | re.DOTALL,
)
"""https://www.postgresql.org/docs/current/sql-createview.html"""
_REPLACE_TABLE = re.compile(r"^(\s*)REPLACE\s+TABLE\b", re.IGNORECASE)
_NAMED_BY_TEXT = re.compile(
    r"(\b(?:INTO|TABLE|VIEW|FROM|JOIN|UPDATE|USING|OVERWRITE|EXISTS)\s+)IDENTIFIER\s*\(\s*'([\w.]+)'\s*\)",
    re.IGNORECASE,
)
"""A table that a text names (https://docs.databricks.com/aws/en/sql/language-manual/sql-ref-names-identifier-clause)."""
_TABLE_QUERY = re.compile(rf"^(?P<head>.*?\bAS\s+|\s*)TABLE\s+(?P<name>{NAME})\s*$", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Statement:
    """One statement's text and the line it starts on, counted from 1."""

    text: str
    line: int
    doubt: str | None = None
    """Why its outcome is not the whole truth, where that is known from its surroundings."""
    rows: Rows | None = None
    """The rows that a trigger's body speaks of."""
    branch: bool = False
    """Whether other statements of its text may run in its place."""
    loop: tuple[int, ...] = ()
    """Of a statement that may run again, after later ones: what only statements of the same loop have."""


@dataclass(frozen=True)
class Clone:
    """CREATE TABLE … CLONE: all files of one table are, or are copied to, another."""

    to: str
    source: str
    shallow: bool
    location: str | None
    plain: bool = True
    """Whether all that is written after the two names is understood."""


@dataclass(frozen=True)
class Call:
    """CALL of a stored procedure with its arguments that are text, by name or by position."""

    procedure: str
    named: dict[str, str]
    positional: tuple[str, ...]


def split(sql: str, dialect: str) -> list[Statement]:
    """Statements at the semicolons between tokens; procedures and blocks are replaced by what their bodies hold.

    Raises:
        SqlglotError: the text cannot even be cut into tokens.
    """
    sql = as_sent(sql.removeprefix("\ufeff"), dialect)
    repeated: list[Span] = []
    if dialect in procedure_bodies.T_SQL:
        sql, repeated = without_batches(sql)
    if not _SEVERAL.search(sql):
        before = len(sql) - len(sql.lstrip())
        return [Statement(sql.strip(), 1 + sql.count("\n", 0, before))] if sql.strip() else []
    tokens = _tokens(sql, dialect)
    if dialect == "oracle":
        tokens = _without_slashes(tokens)
    result: list[Statement] = []
    again = [*repeated, *_loops(tokens, dialect)]
    position = 0
    while position < len(tokens):
        first = position
        if tokens[first].token_type is TokenType.SEMICOLON:
            position += 1
            continue
        unit = plsql_units.unit_of(sql, tokens, first) if dialect in plsql_units.DIALECTS else None
        block = unit is not None or procedure_bodies.is_block(sql, tokens, first)
        if unit is not None:
            position = unit.end
        else:
            position = procedure_bodies.block_end(tokens, first, dialect) if block else _end(tokens, first, dialect)
        part = tokens[first:position]
        statement = Statement(sql[part[0].start : part[-1].end + 1].strip(), part[0].line)
        if block:
            made = _body(sql, part, statement, dialect, unit, again)
            result += _in_loop(made, (part[0].start, part[-1].end + 1), repeated)
        elif procedure_bodies.is_control(part, dialect):
            pieces = procedure_bodies.control_pieces(sql, part, dialect)
            result += [m for p in pieces for m in _in_loop([Statement(p.text, p.line, p.doubt)], p.span, again)]
        else:
            result += _in_loop([statement], (part[0].start, part[-1].end + 1), again)
    return _marked(result, tokens)


def _loops(tokens: Sequence[Any], dialect: str) -> list[Span]:
    return loops(tokens, blocks=dialect in procedure_bodies.T_SQL)


def _in_loop(found: list[Statement], span: Span, again: Sequence[Span], *place: int) -> list[Statement]:
    """Statements that stand at a place of a text, with the loop that they are in. place: where the text stands."""
    loop = within(span, again)
    if loop is None:
        return found
    return [replace(m, loop=(*place, *loop), branch=True) for m in found]


def _marked(found: list[Statement], tokens: Sequence[Any]) -> list[Statement]:
    """Statements with what the control flow around them says of them."""
    return [replace(one, branch=True) for one in found] if procedure_bodies.branches(tokens) else found


def _without_slashes(tokens: list[Any]) -> list[Any]:
    """SQL*Plus runs what it has read at a line that holds a slash alone: the slash ends a statement
    (https://docs.oracle.com/en/database/oracle/oracle-database/19/sqpug/SLASH.html).
    """
    lines = [0, *(t.line for t in tokens), 0]
    alone = (t.token_type is TokenType.SLASH and lines[n] < t.line != lines[n + 2] for n, t in enumerate(tokens))
    return [
        Token(TokenType.SEMICOLON, ";", t.line, t.col, t.start, t.end) if ends else t
        for t, ends in zip(tokens, alone, strict=True)
    ]


@lru_cache(maxsize=64)
def _tokenizer(dialect: str) -> Any:
    """The dialect's tokenizer, which takes BEGIN, END and EXECUTE for words and not for the start of opaque text."""
    known = Dialect.get_or_raise(dialect)
    plain = type("_Words", (known.tokenizer_class,), {"COMMANDS": set()})
    return plain(dialect=known)


def uncommented(text: str, dialect: str) -> str:
    """A statement without its comments, for rules that read its words. Hints stay."""
    if not _COMMENT.search(text):
        return text
    try:
        tokens = _tokens(text, dialect)
    except SqlglotError:
        return text
    made, end = [], 0
    for token in tokens:
        gap = text[end : token.start]
        made += [" " if _COMMENT.match(gap.lstrip()) and "/*+" not in gap else gap, text[token.start : token.end + 1]]
        end = token.end + 1
    return "".join(made)


def _tokens(sql: str, dialect: str) -> list[Any]:
    try:
        return list(_tokenizer(dialect).tokenize(sql))
    except SqlglotError:
        raise
    except Exception as error:  # the tokenizer is foreign code that reads foreign text
        raise SqlglotError(f"the text is not valid SQL ({type(error).__name__})") from None


def _end(tokens: Sequence[Any], first: int, dialect: str) -> int:
    """The semicolon behind a statement. SHOW is a command of SQL*Plus, and ends with its line
    (https://docs.oracle.com/en/database/oracle/oracle-database/19/sqpug/SHOW.html).
    """
    line = tokens[first].line if dialect == "oracle" and tokens[first].text.upper() == "SHOW" else None
    rest = enumerate(tokens[first:], first)
    ends = (n for n, t in rest if t.token_type is TokenType.SEMICOLON or (line is not None and t.line > line))
    return next(ends, len(tokens))


def _body(
    sql: str,
    part: Sequence[Any],
    whole: Statement,
    dialect: str,
    unit: plsql_units.Unit | None,
    again: Sequence[Span],
) -> list[Statement]:
    language = _FOREIGN.search(whole.text)
    if language is not None:
        return [Statement("", whole.line, f"lineage does not follow a routine in {language['name']}")]
    text, offset = sql, 0
    place: tuple[int, ...] = ()
    first = next((n for n, t in enumerate(part) if t.token_type in _QUOTED and _BODY.search(t.text)), None)
    quoted = [part[first]] if first is not None and _is_body([t.text.upper() for t in part[:first]]) else []
    if quoted:  # $$ … $$
        text, offset, place = quoted[0].text, quoted[0].line - 1, (quoted[0].start,)
        part = _tokens(text, dialect)
        again = _loops(part, dialect)
        unit = plsql_units.unit_of(text, part, 0) if part and dialect in plsql_units.DIALECTS else None
    rows = rows_of(whole.text) if procedure_bodies.is_trigger(whole.text) else None
    if unit is not None:
        pieces = procedure_bodies.unit_pieces(text, unit, dialect, rows)
    else:
        pieces = procedure_bodies.pieces(text, part, dialect, rows)
    found = ((Statement(p.text, p.line + offset, p.doubt, rows), p.span) for p in pieces)
    made = _marked([m for one, span in found for m in _in_loop([one], span, again, *place)], part)
    unread = not quoted and any(t.token_type in _QUOTED and _is_body([w.text.upper() for w in part[:n]])
                                for n, t in enumerate(part) if n)  # fmt: skip
    if not made and (unread or _VERB.search(text if quoted else whole.text)):
        why = naming("lineage does not follow the body of a routine or trigger", whole.text)
        made.append(Statement("", whole.line, why))
    if procedure_bodies.is_function(whole.text) and _VERB.search(whole.text):
        made.append(Statement("", whole.line, "lineage does not add the reads of a function to its callers"))
    return made


def _is_body(before: Sequence[str]) -> bool:
    """Whether the words before a text say that it is the body; another text is one that a statement speaks of."""
    if {"BEGIN", *procedure_bodies.VERBS} & set(before[1:]):
        return False
    return before[-1] == "AS" or before[0] in ("DO", "EXECUTE")


def recut(statement: Statement, dialect: str) -> list[Statement]:
    """T-SQL statements that no semicolon separates; one alone when they are not to be told apart."""
    if dialect not in procedure_bodies.T_SQL:
        return [statement]
    try:
        tokens = _tokens(statement.text, dialect)
    except SqlglotError:
        return [statement]
    parts: Sequence[Sequence[Any]] = procedure_bodies.cut(tokens)
    if len(parts) < 2:
        parts = procedure_bodies.cut_on_line(tokens)
    made = [(statement.text[p[0].start : p[-1].end + 1], statement.line + p[0].line - 1) for p in parts]
    return [replace(statement, text=text, line=line) for text, line in made]


def prepared(text: str) -> str:
    """The statement in a form the parser reads, with the same lineage."""
    found = _DIRECTORY.match(text)
    if found:
        option = _PATH_OPTION.search(found["options"] or "")
        path = found["path"] or (option["path"] if option else None)
        if path:
            return f"{found['head']} {path} STORED AS {found['form']} {text[found.end() :]}"
    unload = _UNLOAD.match(text)
    if unload:  # Redshift's query is a text, Athena's is not
        query_text = unload["query"]
        if query_text.startswith(("'", "$$")):
            query_text = query_text.strip("$") if query_text[0] == "$" else query_text[1:-1].replace("''", "'")
        return f"INSERT OVERWRITE DIRECTORY {unload['path']} {query_text}"
    text = _NAMED_BY_TEXT.sub(r"\1\2", text)
    text = _RENAMES.sub(_renamed, text)
    text = _RECURSIVE.sub(
        r"\1VIEW \g<view> AS WITH RECURSIVE \g<view> \g<columns> AS (\g<query>) SELECT * FROM \g<view>", text
    )
    text = _IF.sub("", text)
    text = _TOP.sub(r"\1 INTO ", text)
    if _MATERIALIZED.match(text):
        text = _FILLED.sub(" ", text)
    text = _REPLACE_TABLE.sub(r"\1CREATE OR REPLACE TABLE", text)
    text = _EVOLVES.sub(r"\1", text)
    text = _REPLACE_INTO.sub(r"\1INSERT INTO", text)
    text = _LIVE.sub(r"CREATE OR REPLACE \g<kind>", text)
    query = _TABLE_QUERY.match(text)
    if query and not re.search(r"\b(DROP|ALTER|CREATE|TRUNCATE|DESCRIBE|REFRESH|ANALYZE)\s*$", query["head"], re.I):
        return "".join((query["head"], "SELECT * FROM ", query["name"]))
    return text


def _renamed(found: re.Match[str]) -> str:
    """T-SQL's procedure that renames a table, or a column of one, as the statement that does."""
    old, new, kind = found["old"], found["new"], (found["kind"] or "").upper()
    if kind == "COLUMN":
        table, _, column = old.rpartition(".")
        return f"ALTER TABLE {table} RENAME COLUMN {column} TO [{new.strip('[]')}]"
    return f"ALTER TABLE {old} RENAME TO [{new.strip('[]')}]"


def evolves(text: str) -> bool:
    """MERGE and INSERT WITH SCHEMA EVOLUTION: columns that only the source has are added to the target."""
    return _EVOLVES.match(text) is not None


def clone_of(text: str) -> Clone | None:
    """Databricks' and Delta's CLONE, which the Spark dialect of the parser does not know."""
    found = _CLONE.match(text)
    if found is None:
        return None
    location = _LOCATION.search(found["rest"])
    shallow = (found["how"] or "DEEP").upper() == "SHALLOW"
    rest = _CLONE_CLAUSES.fullmatch(found["rest"]) is not None
    return Clone(found["to"], found["from"], shallow, location[1] if location else None, rest)


def call_of(text: str) -> Call | None:
    """CALL with its arguments."""
    found = _CALL.match(text)
    if found is None:
        return None
    named, positional = {}, []
    for argument in _ARGUMENT.finditer(found["arguments"]):
        if argument["other"]:
            continue
        if argument["name"]:
            named[argument["name"].lower()] = argument["value"]
        else:
            positional.append(argument["value"])
    return Call(found["procedure"].replace("`", ""), named, tuple(positional))


def expanded(text: str) -> str:
    """T-SQL's `column += value` in the form every parser reads."""
    updated = _UPDATED.match(text)
    table = "" if updated is None else f"{updated['table']}."

    def whole(found: re.Match[str]) -> str:
        """The column, with the name of the table where other tables may have it."""
        column, operator = found.groups()
        named = "." in column or column.startswith("@")
        return f"{column} = {'' if named else table}{column} {operator} "

    return _COMPOUND.sub(whole, text)
