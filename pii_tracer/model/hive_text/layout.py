"""How a file of delimited text is read: its columns by position, and the characters that its reader goes by.

A catalog or the estate file says it, and no file does: a header does not count. Plans carry it as JSON.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath, PurePosixPath
from typing import Any
from urllib.parse import unquote

from pydantic import Field

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.datasets import Column, Frozen

TEXT_TABLE = "hive.text"
"""In `TableState.properties`, `Copy.facts` and the parameters of steps: a `TextTable` as JSON."""

TEXT_AROUND = "hive.text.around"
"""In `TableState.properties` and `Copy.facts` of what lies below a table of text: a `TextTable` as JSON, by which its
files are searched, too."""

KEPT_TEXTS = "hive.texts"
"""In `Copy.facts` of what a store kept of deleted files: `TextFolder`s as JSON."""

SKIPPED_LINE = "skipped line"
"""`Hit.where` of a value in a line of a header or footer, which is no row."""

BEYOND_COLUMNS = "cell behind the last column"
"""`Hit.where` of a value in a cell of a row that is in no column of the table."""

ENCODINGS = {
    **dict.fromkeys(("utf-8", "utf8"), "utf-8"),
    **dict.fromkeys(("windows-1252", "cp1252"), "windows-1252"),
    **dict.fromkeys(("iso-8859-1", "iso8859-1", "iso8859_1", "latin1"), "iso-8859-1"),
}
"""Encodings that are read, by their names in lower case. In each, a letter of ASCII is one byte, as in ASCII."""

CODECS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".snappy": "snappy", ".deflate": "deflate"}
"""Hadoop knows a codec by the ending of the name alone, in this case
(https://hadoop.apache.org/docs/stable/api/org/apache/hadoop/io/compress/CompressionCodecFactory.html)."""

_NOT_READ = frozenset({".lz4", ".lzo", ".lzo_deflate", ".br", ".xz", ".lzma", ".zip", ".z"})
_NO_TEXT = re.compile(
    rb"\x1f\x8b|\x28\xb5\x2f\xfd|PK\x03\x04|\xfd7zXZ|\x04\x22\x4d\x18|SEQ\x06|BZh[1-9](?:1AY&SY|\x17rE8P\x90)"
    rb"|(?:PAR1|ORC|Obj\x01).*[\x00\x02-\x08\x0e-\x1a\x1c-\x1f\x7f]",
    re.DOTALL,
)
"""How other content begins. A text may begin with the same letters: only then has it no bytes that are no text."""
HEAD = 16
"""So many bytes of a file tell whether it may be text."""


class Serde(StrEnum):
    """What reads a line."""

    DELIMITED = "delimited"
    """Hive's LazySimpleSerDe."""
    QUOTED = "quoted"
    """Hive's OpenCSVSerde."""
    SPARK = "spark"
    """Spark's own CSV reader."""


def _is_unsaid(told: object) -> bool:
    """Of what only SPARK has: layouts of Hive are written as in plans from before there were others."""
    return not told


class TextLayout(Frozen):
    """The characters of one table or partition.

    escape: of DELIMITED, and of a quote of SPARK; QUOTED always has a backslash. null: the text that stands for NULL,
    as it is written; QUOTED has none, and an empty cell counts as NULL here. header_lines, footer_lines: lines of each
    file that are no rows. rest_in_last: the last column has everything to the end of the line.

    Of SPARK alone: quote; None where none counts. empty: what an empty cell in quotes says; without quotes it is NULL.
    comment: how lines begin that are no rows, as blank lines are none. header_lines: of those that are left.
    multi_line: a row goes on over the ends of lines that are in quotes. Then all lines have one kind of end.
    """

    serde: Serde
    delimiter: str = Field(min_length=1, max_length=1)
    escape: str | None = None
    null: str | None = None
    header_lines: int = 0
    footer_lines: int = 0
    encoding: str = "utf-8"
    rest_in_last: bool = False
    quote: str | None = Field(default=None, exclude_if=_is_unsaid)
    empty: str = Field(default="", exclude_if=_is_unsaid)
    comment: str | None = Field(default=None, exclude_if=_is_unsaid)
    multi_line: bool = Field(default=False, exclude_if=_is_unsaid)


class TextColumn(Column):
    """A column by its position. whole: of whole numbers, their bits. most: letters that it can have (`varchar(n)`)."""

    whole: int | None = None
    most: int | None = None


class TextPartition(Frozen):
    """A partition whose layout is not the table's. folder: SHA-256 of its path below the table's, which has values."""

    folder: str
    layout: TextLayout


class FileText(Frozen):
    """How one file is read. guessed: it only may be one of the table's, so it is searched as any other file as well."""

    columns: tuple[TextColumn, ...]
    layout: TextLayout
    guessed: bool = False


class TextTable(Frozen):
    """A table of such files. keys: its partition columns, in lower case. others: partitions with a layout of their own.

    A folder that is called like a partition, and is none in the catalog, is read as the table: so Hive adds it
    (`MSCK REPAIR TABLE`).

    around: of a folder below the table's, none of whose files is a file of the table now.
    """

    columns: tuple[TextColumn, ...]
    layout: TextLayout
    keys: tuple[str, ...] = ()
    others: tuple[TextPartition, ...] = ()
    around: bool = Field(default=False, exclude_if=_is_unsaid)

    def of(self, folder: PurePath) -> FileText | None:
        """How the files in a folder are read. folder: relative to the table's. None: its files are no rows of it."""
        return None if self.around else self._partition(folder)

    def _partition(self, folder: PurePath) -> FileText | None:
        parts = [part.partition("=") for part in folder.parts]
        if [unquote(name).lower() for name, _, _ in parts] != list(self.keys) or not all(sign for _, sign, _ in parts):
            return None
        digest = digest_of(folder) if self.others else ""
        own = (partition.layout for partition in self.others if partition.folder == digest)
        return FileText(columns=self.columns, layout=next(own, self.layout))

    def once_of(self, folder: PurePath) -> FileText:
        """How a file is searched that may have been one of the table's before, or part of what a job left."""
        if own := self.of(folder):
            return own
        found = self._partition(PurePosixPath(*(part for part in folder.parts if "=" in part)))
        return FileText(columns=self.columns, layout=found.layout if found else self.layout, guessed=True)

    def below(self, folder: PurePath) -> TextTable:
        """By what the files of a folder below the table's are searched. folder: relative to the table's."""
        if not folder.parts:
            return self
        return self.model_copy(update={"layout": self.once_of(folder).layout, "around": True})


class TextFolder(Frozen):
    """A table of text, for the files that a store kept of it. folder: SHA-256 of its path."""

    folder: str
    table: TextTable


def digest_of(folder: PurePath) -> str:
    """What a partition's folder is known by in plans."""
    return hashlib.sha256(folder.as_posix().encode("utf-8", "surrogateescape")).hexdigest()


def text_of(told: Mapping[str, Any]) -> TextTable | None:
    """The text of a table, by its properties, a copy's facts or a step's parameters; None where it has none."""
    found = told.get(TEXT_TABLE)
    return None if found is None else TextTable.model_validate_json(found)


def searched_text_of(told: Mapping[str, Any]) -> TextTable | None:
    """By what text a place is searched: its own, or that of the table below which it lies."""
    return text_of({TEXT_TABLE: told.get(TEXT_TABLE, told.get(TEXT_AROUND))})


def text_properties(table: TextTable | None) -> dict[str, str]:
    """What `text_of` reads."""
    return {} if table is None else {TEXT_TABLE: table.model_dump_json()}


def text_at(table: TextTable | None, front: str, name: str) -> FileText | None:
    """How a file of a store is read; None where it has no rows of the table. front: what the names of all files of the
    table begin with."""
    *folders, _ = name.removeprefix(front).split("/")
    if table is None or not name.startswith(front) or {"", ".", ".."} & {*folders}:
        return None
    return table.of(PurePosixPath(*folders))


def text_near(table: TextTable | None, front: str, name: str) -> FileText | None:
    """How a file is searched: other files below the table's folder, and hidden ones, may have been its own before."""
    if table is None:
        return None
    place = PurePosixPath(name.removeprefix(front))
    found = text_at(table, front, name) or table.once_of(place.parent)
    return found.model_copy(update={"guessed": found.guessed or place.name.startswith((".", "_"))})


def kept_text(texts: Sequence[TextFolder], paths: Sequence[str]) -> FileText | None:
    """How a file is searched that a store kept, by the innermost of some tables in which it lay; there by a partition
    that has a layout of its own. paths: where it may have lain; of two that are as good, the first counts."""
    known = {one.folder: one.table for one in texts}
    found: list[tuple[int, bool, FileText]] = []
    for place in map(PurePosixPath, paths if known else ()):
        for folder in place.parents:
            if table := known.get(digest_of(folder)):
                text = table.once_of(place.parent.relative_to(folder))
                found.append((len(folder.parts), text.layout != table.layout, text))
                break
    return max(found, key=lambda one: one[:2])[2] if found else None


def kept_properties(texts: Sequence[TextFolder]) -> dict[str, list[str]]:
    """What `kept_texts_of` reads."""
    return {KEPT_TEXTS: [one.model_dump_json() for one in texts]} if texts else {}


def kept_texts_of(facts: Mapping[str, Any]) -> tuple[TextFolder, ...]:
    """The tables of text of which a copy has files that a store kept."""
    return tuple(map(TextFolder.model_validate_json, facts.get(KEPT_TEXTS, ())))


def codec_by_name(name: str, head: bytes) -> str | None:
    """The codec of a file as Hadoop takes it, None of plain text. head: the first `HEAD` bytes.

    Raises:
        ValueError: a codec that is not read here, or content that is no text.
    """
    suffix = PurePosixPath(name).suffix
    codec = CODECS.get(suffix)
    if codec is None and (suffix.lower() in {*CODECS, *_NOT_READ} or _NO_TEXT.match(head)):
        raise ValueError("the file's codec is not supported, or its content is not what its name says")
    return codec
