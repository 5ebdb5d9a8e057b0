"""What the row verifier compares of a row with keys, as text, and whether a state has the columns for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pii_tracer.model.datasets import (
    WHOLE_NUMBER,
    Access,
    ElementAccess,
    FieldAccess,
    JsonAccess,
    KeyPart,
    Match,
    MatchTerm,
)
from pii_tracer.model.errors import ScanError
from pii_tracer.model.number_keys import EXACT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType


def present(frame: DataFrame, match: Match) -> tuple[MatchTerm, ...]:
    """Terms whose column, or field of a struct, this state has (an older state may lack it)."""
    return tuple(term for term in match.terms if _stands(frame.schema, term))


def _stands(schema: StructType, term: MatchTerm) -> bool:
    return all(_part_stands(schema, part) for part in term.parts)


def _part_stands(schema: StructType, term: KeyPart) -> bool:
    from pyspark.sql.types import StructType

    kind: DataType | None = schema
    for step in (FieldAccess(name=term.column), *term.access):
        if isinstance(step, JsonAccess):
            break  # into a text with JSON, whose members no schema tells
        if isinstance(step, ElementAccess):
            inner = {"element": "elementType", "key": "keyType"}[step.name]
            kind = getattr(kind, inner, None)
            continue
        fields = kind.fields if isinstance(kind, StructType) else []
        kind = next((f.dataType for f in fields if f.name.lower() == step.name.lower()), None)
    return kind is not None


def leaf(term: MatchTerm, written: bool) -> Column:
    """The compared value as text. Of a key of several columns each value behind its length; NULL if one is.

    written: it is text, as somebody wrote it.
    """
    from pyspark.sql import functions as f

    parts = [_part_leaf(part, written) for part in term.parts]
    if not term.beside:
        return parts[0]
    texts = (text for part in parts for text in (f.length(part).cast("string"), f.lit(":"), part))
    return f.concat(*texts)


def _part_leaf(term: KeyPart, written: bool) -> Column:
    """The value of one column as text, whole numbers without a fraction."""
    return _text_at(named(term.column), term, term.access, written)


def element_text(term: KeyPart, written: bool, element: Column) -> Column:
    """What a term compares of an element of the list of a column, or of a key of a map.

    Raises:
        ScanError: it looks deeper than that.
    """
    if term.access[0] != term.within:
        raise ScanError(f"`{term.label()}` is in a nested list", todo="make the plan again")
    return _text_at(element, term, term.access[1:], written)


def _text_at(leaf: Column, term: KeyPart, way: tuple[Access, ...], written: bool) -> Column:
    """What a way leads to, as text."""
    from pyspark.sql import functions as f

    for access in way:
        if not isinstance(access, JsonAccess):
            leaf = leaf.getField(access.name)
        else:
            if any("'" in part for part in access.path):  # Spark's JSON paths cannot name it: it would match nothing
                raise ScanError("a JSON member with a quote in its name cannot be compared", where=term.label())
            path = "$" + "".join(f"['{part}']" for part in access.path)
            leaf = f.get_json_object(leaf, path)
    text, limit = leaf.cast("string"), EXACT.get(term.type)
    if limit is not None:
        exact = (f.abs(leaf) < limit) & (leaf == f.floor(leaf))
        return f.when(exact, leaf.cast("bigint").cast("string")).otherwise(text)
    return f.regexp_replace(text, WHOLE_NUMBER, "$1") if written or term.type.startswith("decimal") else text


def named(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.col("`" + name.replace("`", "``") + "`")
