"""A script's text to statements, and the few forms of Spark SQL that the parser does not read by itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

_NAME = r"(?:[^\s`(;]|`[^`]*`)+"
_CLONE = re.compile(
    rf"^\s*CREATE\s+(?:OR\s+REPLACE\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<to>{_NAME})\s+"
    rf"(?P<how>SHALLOW|DEEP)?\s*CLONE\s+(?P<from>{_NAME})(?P<rest>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_LOCATION = re.compile(r"\bLOCATION\s+'([^']*)'", re.IGNORECASE)
_CALL = re.compile(rf"^\s*CALL\s+(?P<procedure>{_NAME})\s*\((?P<arguments>.*)\)\s*$", re.IGNORECASE | re.DOTALL)
_ARGUMENT = re.compile(r"(?:(?P<name>\w+)\s*=>\s*)?'(?P<value>(?:[^']|'')*)'|(?:(?P<other>\w+)\s*=>\s*[^,']+)")
_DIRECTORY = re.compile(
    r"^(?P<head>\s*INSERT\s+OVERWRITE\s+(?:LOCAL\s+)?DIRECTORY)\s*(?P<path>'[^']*')?\s+USING\s+\w+"
    r"(?:\s+OPTIONS\s*\((?P<options>[^)]*)\))?",
    re.IGNORECASE,
)
_PATH_OPTION = re.compile(r"['\"]?path['\"]?\s*=?\s*(?P<path>'[^']*')", re.IGNORECASE)
_REPLACE_TABLE = re.compile(r"^(\s*)REPLACE\s+TABLE\b", re.IGNORECASE)
_TABLE_QUERY = re.compile(rf"^(?P<head>.*?\bAS\s+|\s*)TABLE\s+(?P<name>{_NAME})\s*$", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Statement:
    """One statement's text and the line it starts on, counted from 1."""

    text: str
    line: int


@dataclass(frozen=True)
class Clone:
    """CREATE TABLE … CLONE: all files of one table are, or are copied to, another."""

    to: str
    source: str
    shallow: bool
    location: str | None


@dataclass(frozen=True)
class Call:
    """CALL of a stored procedure with its arguments that are text, by name or by position."""

    procedure: str
    named: dict[str, str]
    positional: tuple[str, ...]


def split(sql: str, dialect: str) -> list[Statement]:
    """Statements at the semicolons between tokens.

    Raises:
        SqlglotError: the text cannot even be cut into tokens.
    """
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(sql)
    except SqlglotError:
        raise
    except Exception as error:  # the tokenizer is foreign code that reads foreign text
        raise SqlglotError(f"the text cannot be cut into tokens ({type(error).__name__})") from None
    result, first = [], None
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            if first is not None:
                result.append(Statement(sql[first.start : token.start].strip(), first.line))
            first = None
        elif first is None:
            first = token
    if first is not None:
        result.append(Statement(sql[first.start :].strip(), first.line))
    return result


def prepared(text: str) -> str:
    """The statement in a form the parser reads, with the same lineage."""
    found = _DIRECTORY.match(text)
    if found:
        option = _PATH_OPTION.search(found["options"] or "")
        path = found["path"] or (option["path"] if option else None)
        if path:
            return f"{found['head']} {path} {text[found.end() :]}"
    text = _REPLACE_TABLE.sub(r"\1CREATE OR REPLACE TABLE", text)
    query = _TABLE_QUERY.match(text)
    if query and not re.search(r"\b(DROP|ALTER|CREATE|TRUNCATE|DESCRIBE|REFRESH|ANALYZE)\s*$", query["head"], re.I):
        return "".join((query["head"], "SELECT * FROM ", query["name"]))
    return text


def clone_of(text: str) -> Clone | None:
    """Databricks' and Delta's CLONE, which the Spark dialect of the parser does not know."""
    found = _CLONE.match(text)
    if found is None:
        return None
    location = _LOCATION.search(found["rest"])
    shallow = (found["how"] or "DEEP").upper() == "SHALLOW"
    return Clone(found["to"], found["from"], shallow, location[1] if location else None)


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
