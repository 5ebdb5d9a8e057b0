"""Drop a person's rows from one object's bytes, in memory, and keep all else: rows, order, schema, codec, metadata.

What is written is read back and compared before anybody may upload it.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any, Protocol

from executors.formats.plain_files.arrow_match import (
    BY_HAND,
    Keys,
    KeySource,
    Nobodys,
    RowsError,
    keys_of,
)
from executors.formats.plain_files.hive_text import text_rewrite
from executors.formats.plain_files.parquet_dictionaries import Holds
from executors.formats.plain_files.parquet_rewrite import ENCRYPTED, survey
from executors.formats.plain_files.parquet_surgery.recipe import Recipe
from executors.formats.plain_files.parquet_surgery.rewriting import Original, Persons, read_back, write_again
from executors.formats.plain_files.parquet_surgery.unsuited import Reason
from executors.formats.plain_files.rewriters import MODULES
from executors.formats.plain_files.stored_file import InMemory
from pii_tracer.common.parquet_file_checks import is_encrypted
from pii_tracer.model.datasets import PLAIN, Format, Match
from pii_tracer.model.errors import RunError
from pii_tracer.model.hive_text.layout import FileText, TextTable, text_at, text_of
from pii_tracer.model.locations import front_of
from pii_tracer.model.plan import Copy

MAX_OBJECT_BYTES = 2 * 1024**3
"""Objects above this are refused: a rewrite holds one object and its new self in memory."""


@dataclass(frozen=True)
class Kept:
    """The result for one object. data: the new bytes, or None where the object need not change.

    missing: labels of match terms whose column this object does not have.
    stale: no row was the person's, but a dictionary, a statistic or the metadata still held a value.
    made: of Parquet, how the new bytes are put together, or why every row group was written again.
    """

    data: bytes | None
    rows_before: int
    rows_after: int
    missing: tuple[str, ...] = ()
    stale: bool = False
    made: Recipe | Reason | None = None


class RemovalContext(Protocol):
    """What of the execution context a removal needs."""

    @property
    def keyring(self) -> KeySource: ...

    def nobodys(self, copy: Copy | None) -> Nobodys: ...

    def holds(self, text: str) -> bool: ...


@dataclass(frozen=True)
class RowRemoval:
    """How one step finds the rows that it drops. strong: values that stand for the person wherever they are found, but
    for whole cells of columns of other numbers (nobodys). holds: whether a text has any value of the plan's persons.
    text: of a table of text, how it is read; front: what the names of its files begin with.
    """

    format: Format
    match: Match
    keys: Keys
    strong: frozenset[str]
    nobodys: Nobodys
    holds: Holds
    text: TextTable | None = None
    front: str = ""

    @classmethod
    def of(
        cls, ctx: RemovalContext, copy: Copy | None, match: Match | None, kind: Format, things: str = "objects"
    ) -> RowRemoval:
        """match: how the rows are found. things: what is rewritten, in the plural, for the error.

        Raises:
            RunError: no match, a format that is not rewritten, or an empty key set.
        """
        if match is None or not match.terms:
            raise RunError("the step does not name the columns that find the person's rows", todo="make the plan again")
        if kind not in PLAIN:
            raise RunError(f"a rewrite of {kind} {things} is not supported", todo="make the plan again")
        keys, strong = keys_of(ctx.keyring, match)
        if not all(keys.values()):
            raise RunError("a key set of the match is empty", todo="make the plan again")
        text = text_of(copy.facts) if copy else None
        front = front_of(copy.location) if copy and text else ""
        return cls(kind, match, keys, strong, ctx.nobodys(copy), ctx.holds, text, front)

    def kept(self, data: bytes, name: str = "") -> Kept:
        """Drop the rows that match from the bytes of one object or file.

        name: the object's, by whose ending Hadoop's deflate and snappy are known. An empty object (a marker of a folder
        or of a job's success) has no rows.

        Raises:
            RowsError: the object could not be read, compared or rewritten exactly.
        """
        if not data:
            return Kept(None, 0, 0)
        try:
            if self.format is Format.PARQUET:
                persons = Persons(self.match, self.keys, self.strong, holds=self.holds, nobodys=self.nobodys)
                return _parquet(data, persons)
            if self.text is not None:
                return self._bare(data, text_rewrite, name, text=self._text(name), name=name.rpartition("/")[2])
            if self.format in MODULES:
                return self._bare(data, MODULES[self.format], name)
        except RowsError:
            raise
        # the libraries' messages can quote the data they could not read
        except Exception as error:
            raise RowsError(
                f"the object cannot be read as {self.format}: {type(error).__name__}", todo=BY_HAND
            ) from None
        raise RowsError(f"a rewrite of {self.format} objects is not supported", todo="make the plan again")

    def _text(self, name: str) -> FileText:
        found = text_at(self.text, self.front, name)
        if found is None:
            raise RowsError("the folder of the file is not a partition of the table", todo="plan again")
        return found

    def _bare(self, data: bytes, module: Any, named: str, **options: Any) -> Kept:
        """options: how text is read."""
        old, new = InMemory(named, data), InMemory(named)
        before, after, missing = module.survey(old, self.match, self.keys, **options)
        if after == before:
            return Kept(None, before, after, missing)
        module.write(old, new, self.match, self.keys, **options)
        module.compare(old, new, self.match, self.keys, **options)
        return Kept(new.data, before, after, missing)


def _parquet(data: bytes, persons: Persons) -> Kept:
    old = Original.in_memory(data)
    if is_encrypted(old.data):
        raise RowsError(ENCRYPTED, todo=BY_HAND)
    found_by = (persons.match, persons.keys, persons.strong)
    seen = survey(old.opened, *found_by, holds=persons.holds, nobodys=persons.nobodys)
    if not seen.changes:
        return Kept(None, seen.before, seen.after, seen.missing)
    sink = io.BytesIO()
    made = write_again(old, sink, io.BytesIO, persons)
    new = sink.getvalue()
    read_back(old, Original.in_memory(new), made, persons)
    return Kept(new, seen.before, seen.after, seen.missing, seen.stale, made)
