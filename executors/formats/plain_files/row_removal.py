"""Drop a person's rows from one object's bytes, in memory, and keep all else: rows, order, schema, codec, metadata.

What is written is read back and compared before anybody may upload it.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

from executors.formats.plain_files.arrow_match import (
    BY_HAND,
    NOTHING,
    Keys,
    KeySource,
    Nobodys,
    RowsError,
    keys_of,
)
from executors.formats.plain_files.file_sources import InMemory
from executors.formats.plain_files.parquet_rewrite import ENCRYPTED, survey
from executors.formats.plain_files.parquet_surgery.recipe import Recipe
from executors.formats.plain_files.parquet_surgery.rewriting import Original, Persons, read_back, write_again
from executors.formats.plain_files.parquet_surgery.unsuited import Reason
from executors.formats.plain_files.rewriters import MODULES
from pii_tracer.common.parquet_footer import is_encrypted
from pii_tracer.model.datasets import PLAIN, Format, Match
from pii_tracer.model.errors import RunError

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


@dataclass(frozen=True)
class RowRemoval:
    """How one step finds the rows that it drops. strong: values that stand for the person wherever they are found, but
    for whole cells of columns of other numbers (nobodys).
    """

    format: Format
    match: Match
    keys: Keys
    strong: frozenset[str]
    nobodys: Nobodys

    @classmethod
    def of(
        cls, match: Match | None, kind: Format, keyring: KeySource, nobodys: Nobodys, things: str = "objects"
    ) -> RowRemoval:
        """nobodys: `ExecutionContext.nobodys` of the copy. things: what is rewritten, in the plural, for the error.

        Raises:
            RunError: no match, a format that is not rewritten, or an empty key set.
        """
        if match is None or not match.terms:
            raise RunError("the step does not say how the person's rows are found", todo="make the plan again")
        if kind not in PLAIN:
            raise RunError(f"rewriting {kind} {things} is not supported", todo="make the plan again")
        keys, strong = keys_of(keyring, match)
        if not all(keys.values()):
            raise RunError("a key set of the match is empty", todo="make the plan again")
        return cls(kind, match, keys, strong, nobodys)

    def kept(self, data: bytes, name: str = "") -> Kept:
        """Drop the rows from the bytes of one object or file (see `drop_rows`)."""
        return drop_rows(data, self.format, self.match, self.keys, self.strong, name, self.nobodys)


def drop_rows(
    data: bytes,
    kind: Format,
    match: Match,
    keys: Keys,
    strong: frozenset[str],
    name: str = "",
    nobodys: Nobodys = NOTHING,
) -> Kept:
    """Drop the rows that match. strong: values that stand for the person wherever they are found.

    name: the object's, by whose ending Hadoop's deflate and snappy are known. nobodys: as of `StaleSearch`.

    An object without bytes (a folder's mark, Spark's `_SUCCESS`) holds nobody.

    Raises:
        RowsError: the format is not supported, or the object could not be read, compared or rewritten exactly.
    """
    if not data:
        return Kept(None, 0, 0)
    try:
        if kind is Format.PARQUET:
            return _parquet(data, Persons(match, keys, strong, nobodys=nobodys))
        if kind in MODULES:
            return _bare(data, kind, match, keys, name)
    except RowsError:
        raise
    # the libraries' messages can quote the data they could not read
    except Exception as error:
        raise RowsError(f"the object cannot be read as {kind}: {type(error).__name__}", todo=BY_HAND) from None
    raise RowsError(f"rewriting {kind} objects is not supported", todo="make the plan again")


def _parquet(data: bytes, persons: Persons) -> Kept:
    old = Original.in_memory(data)
    if is_encrypted(old.data):
        raise RowsError(ENCRYPTED, todo=BY_HAND)
    seen = survey(old.opened, persons.match, persons.keys, persons.strong, nobodys=persons.nobodys)
    if not seen.changes:
        return Kept(None, seen.before, seen.after, seen.missing)
    sink = io.BytesIO()
    made = write_again(old, sink, io.BytesIO, persons)
    new = sink.getvalue()
    read_back(old, Original.in_memory(new), made, persons)
    return Kept(new, seen.before, seen.after, seen.missing, seen.stale, made)


def _bare(data: bytes, kind: Format, match: Match, keys: Keys, name: str) -> Kept:
    old, new = InMemory(name, data), InMemory(name)
    module = MODULES[kind]
    before, after, missing = module.survey(old, match, keys)
    if after == before:
        return Kept(None, before, after, missing)
    module.write(old, new, match, keys)
    module.compare(old, new, match, keys)
    return Kept(new.data, before, after, missing)
