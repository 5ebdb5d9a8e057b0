"""Hashes that a dialect gives as bytes, as the functions of Spark that give their hexadecimal text.

`TO_HEX(SHA256(x))` of BigQuery is Spark's `sha2(x, 256)`: Spark's own functions give the text, and `hex` around them
would be the text of a text. A hash whose bytes are stored as they are becomes `unhex(sha2(x, 256))`.
"""

from __future__ import annotations

from typing import cast

from sqlglot import exp

_PRESTO = frozenset({"presto", "trino", "athena", "dune"})
_NO_TEXTS = frozenset({"clickhouse", "tsql", "fabric"})
"""Dialects whose hashes are all bytes, whatever the parser takes them for."""
_TEXTS: dict[type[exp.Expression], type[exp.Expression]] = {
    exp.SHA2Digest: exp.SHA2, exp.SHA1Digest: exp.SHA, exp.MD5Digest: exp.MD5,
    exp.SHA2: exp.SHA2, exp.SHA: exp.SHA, exp.MD5: exp.MD5,
}  # fmt: skip
_BINARY = (exp.DType.BINARY, exp.DType.VARBINARY)
_UTF_8 = frozenset({"utf-8", "utf8"})


def with_hex_digests(node: exp.Expression, dialect: str) -> exp.Expression:
    """The same statement, changed in place."""
    kinds: list[type[exp.Expression]] = [exp.SHA2Digest, exp.SHA1Digest, exp.MD5Digest]
    kinds += [exp.SHA] if dialect in _PRESTO else []
    kinds += [exp.SHA2, exp.SHA, exp.MD5] if dialect in _NO_TEXTS else []
    for digest in list(node.find_all(*kinds)):
        length = digest.args.get("length")
        text = _TEXTS[type(digest)](this=_hashed(digest.this, dialect), **({"length": length} if length else {}))
        around = cast("exp.Expression | None", digest.parent)
        while isinstance(around, exp.Paren):
            around = cast("exp.Expression | None", around.parent)
        written = _written(around, text)
        if around is not None and written is not None:
            around.replace(written)
        else:
            digest.replace(exp.Unhex(this=text))
    return node


def _written(around: exp.Expression | None, digest: exp.Expression) -> exp.Expression | None:
    """What a function around the bytes of a hash makes of them, if that is their hexadecimal text."""
    if type(around) is exp.LowerHex:
        return digest
    if type(around) is exp.Hex:
        case = around.args.get("case")  # https://docs.snowflake.com/en/sql-reference/functions/hex_encode
        lower = isinstance(case, exp.Literal) and case.name == "0"
        return digest if lower else exp.Upper(this=digest) if case is None or case.name == "1" else None
    if isinstance(around, exp.Encode) and around.text("charset").lower() == "hex":
        return digest
    return None


def _hashed(value: exp.Expression, dialect: str) -> exp.Expression:
    """The text whose bytes in UTF-8 are hashed; the value itself where its bytes may be others."""
    inner = value
    if isinstance(value, exp.Encode) and value.text("charset").lower() in _UTF_8:
        inner = value.this
    elif isinstance(value, exp.Anonymous) and value.name.lower() == "convert_to" and len(value.expressions) == 2:
        text, charset = value.expressions
        inner = text if charset.name.lower() in _UTF_8 else value
    # PostgreSQL reads backslashes in such a cast
    elif isinstance(value, exp.Cast) and dialect in {*_PRESTO, "bigquery"} and value.to.this in _BINARY:
        inner = value if value.args.get("format") else value.this  # FORMAT 'BASE64' decodes the text
    return inner
