"""Names and texts from outside, as parts of Spark SQL."""

from __future__ import annotations


def quote(name: str) -> str:
    """A name from outside as one quoted Spark SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def quote_table(name: str) -> str:
    """A dotted table name, each part quoted. Parts must not hold dots themselves."""
    return ".".join(quote(part) for part in name.split("."))


def string_literal(text: str) -> str:
    """A Spark SQL string literal. For paths and settings only, never for a person's value."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
