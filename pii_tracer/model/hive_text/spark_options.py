"""CSV as options of Spark's reader describe it: https://spark.apache.org/docs/3.5.6/sql-data-sources-csv.html.

Spark's parser is univocity's `CsvParser`, behind `CSVOptions` and `UnivocityParser` of
https://github.com/apache/spark/tree/v3.5.6/sql/catalyst/src/main/scala/org/apache/spark/sql/catalyst/csv. What is not
understood exactly is refused by the option's name.
"""

from __future__ import annotations

from collections.abc import Mapping

from pii_tracer.common.plurals import counted
from pii_tracer.model.hive_text.columns import UnreadText
from pii_tracer.model.hive_text.layout import ENCODINGS, Serde, TextLayout

_ALIASES = {"delimiter": "sep", "charset": "encoding"}
_SIGNS = {"\\t": "\t", "\\\\": "\\", '\\"': '"', "\\'": "'"}
"""Signs that Spark also takes in this spelling (`CSVExprUtils.toChar`)."""
_READ = {
    name.lower(): name
    for name in (
        *("sep", "delimiter", "header", "quote", "escape", "charToEscapeQuoteEscaping", "comment"),
        *("encoding", "charset", "nullValue", "emptyValue", "multiLine"),
    )
}
_AS_USUAL = {
    "ignoreleadingwhitespace": ("ignoreLeadingWhiteSpace", "false"),
    "ignoretrailingwhitespace": ("ignoreTrailingWhiteSpace", "false"),
    "mode": ("mode", "permissive"),
}
"""Options that are read in one setting alone, which is Spark's own."""
_REFUSED = {"linesep": "lineSep", "columnnameofcorruptrecord": "columnNameOfCorruptRecord"}
_WITHOUT_EFFECT = frozenset(
    {
        *("path", "compression", "codec", "serialization.format", "quoteall", "escapequotes"),
        *("inferschema", "samplingratio", "enforceschema", "preferdate"),
        *("dateformat", "timestampformat", "timestampntzformat", "enabledatetimeparsingfallback", "locale"),
        *("nanvalue", "positiveinf", "negativeinf", "unescapedquotehandling"),
    }
)
"""For writers, for columns that are told here anyway, for types that are no keys, and for quotes that are refused."""


def unknown_options(options: Mapping[str, str]) -> tuple[str, ...]:
    """Names that are no options of Spark's reader, or none that are known here; sorted."""
    known = {*_READ, *_AS_USUAL, *_REFUSED, *_WITHOUT_EFFECT}
    return tuple(sorted(name for name in options if name.lower() not in known))


def spark_layout(options: Mapping[str, str]) -> TextLayout:
    """How Spark reads CSV with these options, and given columns. Options have any case, as for Spark.

    Raises:
        UnreadText: something is not understood exactly.
    """
    if unknown := unknown_options(options):
        raise UnreadText(f"{counted(len(unknown), 'option')} of Spark's reader not known here")
    found: dict[str, str] = {}
    for name, value in options.items():
        low = name.lower()
        if low in _REFUSED:
            raise UnreadText(f"its option `{_REFUSED[low]}` is not supported")
        if low in _AS_USUAL and value.lower() != _AS_USUAL[low][1]:
            raise UnreadText(f"its option `{_AS_USUAL[low][0]}` is supported only as `{_AS_USUAL[low][1]}`")
        if low in _READ and found.setdefault(_ALIASES.get(low, low), value) != value:
            raise UnreadText(f"its option `{_READ[_ALIASES.get(low, low)]}` has two values")
    return _layout(found)


def _layout(found: Mapping[str, str]) -> TextLayout:
    quote, escape = _sign(found, "quote", '"', none=True), _sign(found, "escape", "\\")
    comment = _sign(found, "comment", "", none=True)
    if comment is not None and comment <= " ":
        raise UnreadText("its option `comment` is a blank or another sign that is not shown")
    delimiter = _sign(found, "sep", ",")
    if delimiter is None or delimiter.isalnum() or delimiter == " ":
        raise UnreadText("its option `sep` is a letter, a digit or a blank")
    if delimiter in (quote, escape, comment) or (comment and comment in (quote, escape)):
        raise UnreadText("two of its options `sep`, `quote`, `escape` and `comment` have the same sign")
    again = _sign(found, "chartoescapequoteescaping", "", none=True)
    if again is not None and (again != escape or escape == quote):
        raise UnreadText("its option `charToEscapeQuoteEscaping` is supported only as the sign of `escape`")
    encoding = ENCODINGS.get(found.get("encoding", "utf-8").lower())
    if encoding is None:
        raise UnreadText("its option `encoding` is not UTF-8, Windows-1252 or ISO-8859-1")
    return TextLayout(
        serde=Serde.SPARK,
        delimiter=delimiter,
        escape=escape,
        null=_text(found, "nullValue"),
        header_lines=int(_is_on(found, "header")),
        encoding=encoding,
        quote=quote,
        empty=_text(found, "emptyValue"),
        comment=comment,
        multi_line=_is_on(found, "multiLine"),
    )


def _is_on(found: Mapping[str, str], name: str) -> bool:
    text = found.get(name.lower(), "false").lower()
    if text not in ("true", "false"):
        raise UnreadText(f"its option `{name}` is neither `true` nor `false`")
    return text == "true"


def _sign(found: Mapping[str, str], name: str, usual: str, *, none: bool = False) -> str | None:
    """One sign of ASCII; none: whether there need be none (an empty text)."""
    text = found.get(name, usual)
    text = _SIGNS.get(text, text)
    if none and not text:
        return None
    if len(text) != 1 or not text.isascii() or text in "\r\n\0":
        raise UnreadText(f"its option `{_READ[name]}` is not a single sign of ASCII")
    return text


def _text(found: Mapping[str, str], name: str) -> str:
    text = found.get(name.lower(), "")
    if not text.isascii() or any(sign in text for sign in "\r\n\0"):
        raise UnreadText(f"its option `{name}` has letters beyond ASCII, or an end of a line")
    return text
