"""Delimited text and CSV as a metastore describes it, by the properties of Hive's serializers.

LazySimpleSerDe: https://github.com/apache/hive/blob/rel/release-2.3.9/serde/src/java/org/apache/hadoop/hive/serde2/lazy/
LazySerDeParameters.java; OpenCSVSerde: https://hive.apache.org/docs/latest/user/csv-serde/; skipped lines:
https://hive.apache.org/docs/latest/language/languagemanual-ddl/ (`skip.header.line.count`). A table's own properties go
before those of its serializer (`MetaStoreUtils.getSchema`). What is not understood exactly is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from pii_tracer.common.plurals import counted
from pii_tracer.lake.catalogs.hive.partition_folders import refuse_other_values
from pii_tracer.model.hive_text.columns import UnreadText, columns_of
from pii_tracer.model.hive_text.layout import (
    ENCODINGS,
    Serde,
    TextLayout,
    TextPartition,
    TextTable,
    digest_of,
)

SERDES = {
    "org.apache.hadoop.hive.serde2.lazy.lazysimpleserde": Serde.DELIMITED,
    "org.apache.hadoop.hive.serde2.opencsvserde": Serde.QUOTED,
}

TEXT_INPUT = "org.apache.hadoop.mapred.textinputformat"

_NESTED = frozenset({"colelction.delim", "collection.delim", "mapkey.delim"})
"""Delimiters inside a cell, which is read whole. Hive writes the first name so."""
_OF_BOTH = frozenset(
    {"skip.header.line.count", "skip.footer.line.count", "serialization.encoding", "serialization.format"}
)
_OF_SERDE = {
    Serde.DELIMITED: frozenset(
        {
            *("field.delim", "line.delim", "escape.delim", "serialization.null.format", "serialization.escape.crlf"),
            "serialization.last.column.takes.rest",
            *_NESTED,
        }
    ),
    Serde.QUOTED: frozenset({"separatorChar", "quoteChar", "escapeChar"}),
}
_WORDLESS = frozenset({"columns.comments", "path", "serialization.lib"})
_READS = re.compile(r"serialization\.|skip\.|textinputformat\.|.*\.delim$|.*char$|timestamp\.formats$", re.IGNORECASE)
"""Names of properties that change how lines are read, wherever they are set. Hive knows each in one spelling only."""
_MOST_FOOTERS = 100
"""Of Hive (`hive.file.max.footer`); above this, it reads nothing."""


def layout_of(table: Any, partition: Any = None) -> TextLayout:
    """The characters of a table, or of one of its partitions.

    Raises:
        UnreadText: something is not understood exactly.
    """
    storage = table.sd if partition is None else partition.sd
    serde = SERDES[_library(storage)]
    return (_delimited if serde is Serde.DELIMITED else _quoted)(_properties(table, partition, serde))


def _library(storage: Any) -> str:
    return str((storage.serdeInfo and storage.serdeInfo.serializationLib) or "").lower()


def is_text(storage: Any) -> bool:
    """Whether the serializer of a table or partition is one of the two."""
    return _library(storage) in SERDES


def _parameters(owner: Any) -> dict[str, str]:
    found = owner.parameters if owner is not None else None
    return {str(key): str(value) for key, value in (found or {}).items()}


def _properties(table: Any, partition: Any, serde: Serde) -> dict[str, str]:
    storage = table.sd if partition is None else partition.sd
    mine = _parameters(storage.serdeInfo)
    known = _OF_BOTH | _OF_SERDE[serde]
    others = frozenset[str]().union(*_OF_SERDE.values()) - _OF_SERDE[serde]
    if strange := mine.keys() - known - others - _WORDLESS:
        raise UnreadText(
            "this version of the tool does not know "
            f"{counted(len(strange), 'property', 'properties')} of the serializer"
        )
    if partition is not None:
        above = _parameters(table.sd.serdeInfo)
        inherited = {k for k in above.keys() & known if k not in mine and above[k]} if is_text(table.sd) else set()
        if inherited - {"serialization.format"}:
            raise UnreadText("a partition lacks properties that some readers take from the table")
    for owner in (table, partition):
        for key, value in _parameters(owner).items():
            if not _READS.match(key) or key in others:
                continue
            if key not in known:
                raise UnreadText("an unknown property of the table changes how lines are read")
            if mine.setdefault(key, value) != value:
                raise UnreadText("a property has two values, and readers use different ones")
    return mine


def _delimited(found: Mapping[str, str]) -> TextLayout:
    if not found.get("field.delim", "\x01"):
        raise UnreadText("its delimiter is an empty text")
    delimiter = _byte(found.get("field.delim") or found.get("serialization.format") or "\x01")
    escape = _byte(found["escape.delim"]) if "escape.delim" in found else None
    if found.get("line.delim", "\n") not in ("\n", "10"):
        raise UnreadText("its lines do not end with a line feed")
    if escape not in (None, "\\"):
        raise UnreadText("its escape character is not a backslash")
    null = found.get("serialization.null.format", "\\N")
    if (
        any(sign in null for sign in (delimiter, "\n", "\r"))
        or not null.isascii()
        or (escape and null.endswith(escape))
    ):
        raise UnreadText("the text for NULL contains a delimiter, or letters beyond ASCII")
    return TextLayout(
        serde=Serde.DELIMITED,
        delimiter=_delimiter(delimiter, escape or ""),
        escape=escape,
        null=null,
        header_lines=_count(found, "skip.header.line.count"),
        footer_lines=_count(found, "skip.footer.line.count", _MOST_FOOTERS),
        encoding=_encoding(found),
        rest_in_last=found.get("serialization.last.column.takes.rest", "").lower() == "true",
    )


def _quoted(found: Mapping[str, str]) -> TextLayout:
    if found.get("quoteChar", '"') != '"' or found.get("escapeChar", "\\") not in ("\\", '"'):
        raise UnreadText('its quote is another character than ", or its escape another one than a backslash')
    if _encoding(found) != "utf-8":
        raise UnreadText("its encoding is not UTF-8, which OpenCSVSerde does not read")
    return TextLayout(
        serde=Serde.QUOTED,
        delimiter=_delimiter(found.get("separatorChar", ","), '"\\'),
        header_lines=_count(found, "skip.header.line.count"),
        footer_lines=_count(found, "skip.footer.line.count", _MOST_FOOTERS),
    )


def _byte(text: str) -> str:
    """A character as Hive takes it: a number means the byte (`LazyUtils.getByte`)."""
    if re.fullmatch(r"[+-]?\d{1,3}", text):
        if not 0 < int(text) < 128:
            raise UnreadText("a delimiter is beyond ASCII")
        return chr(int(text))
    return text


def _delimiter(text: str, others: str) -> str:
    if len(text) != 1 or not text.isascii() or text.isalnum() or text in "\r\n\0 " + others:
        raise UnreadText("its delimiter is not a single ASCII character, or has a second meaning")
    return text


def _count(found: Mapping[str, str], name: str, most: int = 10**6) -> int:
    text = found.get(name) or "0"
    if not re.fullmatch(r"\d{1,7}", text) or int(text) > most:
        raise UnreadText("Hive does not accept its number of skipped lines")
    return int(text)


def _encoding(found: Mapping[str, str]) -> str:
    known = ENCODINGS.get(found.get("serialization.encoding", "utf-8").lower())
    if known is None:
        raise UnreadText("the tool does not read its encoding")
    return known


def text_table(table: Any, layout: TextLayout, partitions: Sequence[tuple[str | None, Any]]) -> TextTable:
    """A whole table. partitions: of one with partition keys, each with its folder below the table's.

    Raises:
        UnreadText: a partition that is not read exactly.
    """
    columns = columns_of(_fields(table.sd), layout.serde)
    keys = tuple(str(key.name).lower() for key in table.partitionKeys or ())
    others, known = [], dict[str, TextLayout]()
    for folder, partition in partitions:
        if folder is None or not is_text(partition.sd) or not _is_text_input(partition.sd):
            raise UnreadText("a partition is outside the table's folder, or is not text")
        refuse_other_values(folder, keys, [str(value) for value in partition.values or ()])
        mine = columns_of(_fields(partition.sd), layout.serde)
        if mine != columns[: len(mine)]:
            raise UnreadText("the columns of a partition differ from the table")
        own = layout_of(table, partition)
        digest = digest_of(PurePosixPath(folder))
        if own != layout and digest not in known:
            others.append(TextPartition(folder=digest, layout=own))
        if known.setdefault(digest, own) != own:
            raise UnreadText("two partitions read the same folder differently")
    return TextTable(columns=columns, layout=layout, keys=keys, others=tuple(sorted(others, key=lambda p: p.folder)))


def _fields(storage: Any) -> list[tuple[str, str]]:
    return [(str(field.name), str(field.type or "")) for field in storage.cols or ()]


def _is_text_input(storage: Any) -> bool:
    return str(storage.inputFormat or "").lower() == TEXT_INPUT
