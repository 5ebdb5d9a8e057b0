"""The text of one statement to syntax trees, by the parser and by what stands in for clauses that it does not know."""

from __future__ import annotations

import logging
from typing import cast

import sqlglot
from sqlglot import exp, parser
from sqlglot.dialects.hive import Hive
from sqlglot.errors import SqlglotError
from sqlglot.parsers.hive import HiveParser

from pii_tracer.lineage.sql.byte_digests import with_hex_digests
from pii_tracer.lineage.sql.text.dialect_forms import plain
from pii_tracer.lineage.sql.text.procedure_bodies import T_SQL
from pii_tracer.lineage.sql.text.script_splitting import expanded
from pii_tracer.lineage.sql.text.unparsed_clauses import simpler


def parsed(text: str, dialect: str) -> list[exp.Expression]:
    """Parse without the parser's warnings: what it falls back on becomes a reason."""
    if dialect in T_SQL:
        text = expanded(text)
    logger = logging.getLogger("sqlglot")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        return [with_hex_digests(plain(node, dialect), dialect) for node in _nodes(text, dialect)]
    finally:
        logger.setLevel(level)


class HiveWithSizes(Hive):
    """Hive, whose casts cut texts: the parser drops their sizes, as it has to for Spark
    (https://hive.apache.org/docs/latest/language/languagemanual-types/#varchar).
    """

    class Parser(HiveParser):
        _parse_types = parser.Parser._parse_types


def _nodes(text: str, dialect: str) -> list[exp.Expression]:
    """The parsed statements; where the parser gives up, once more without the clauses that it does not know."""
    reader = HiveWithSizes if dialect == "hive" else dialect
    found: list[exp.Expression] | None = None
    try:
        found = [cast(exp.Expression, n) for n in sqlglot.parse(text, dialect=reader) if n is not None]
        if not any(map(_is_unread, found)):
            return found
    except SqlglotError:
        if (other := simpler(text, dialect)) == text:
            raise
        return [cast(exp.Expression, n) for n in sqlglot.parse(other, dialect=reader) if n is not None]
    if (other := simpler(text, dialect)) != text:
        try:
            return [cast(exp.Expression, n) for n in sqlglot.parse(other, dialect=reader) if n is not None]
        except SqlglotError:
            return found
    return found


def _is_unread(node: exp.Expression) -> bool:
    """Whether the parser left a statement as text, or in a form that only one dialect has."""
    if isinstance(node, exp.Command):
        return True
    if any(isinstance(r.args.get("into"), _BUILT_IN) for r in node.find_all(exp.Returning)):
        return True  # OUTPUT … INTO log (id): a table that is called like a function
    return any(pivot.args.get("this") is not None for pivot in node.find_all(exp.Pivot))


_BUILT_IN = tuple(kind for kind in exp.FUNCTION_BY_NAME.values() if kind is not exp.Anonymous)
