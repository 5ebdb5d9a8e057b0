"""Where a hold keeps columns, the person's values may stay in them: what that excuses, and what it does not.

A column is excused, never a value: the same text in another column is residue. And it is excused only in rows that hold
nothing but what is kept: an older file, in which the rest of the row still stands, has the same value in the same
column. So the rows of every such file are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from pii_tracer.model.plan import Copy, Mask
from pii_tracer.scan.decode.table_metadata import Role, role_of
from pii_tracer.scan.hits import FileScan, Hit, column_of
from pii_tracer.scan.value_forms import Patterns
from pii_tracer.verify.held_rows import (
    PARQUET,
    READABLE,
    Source,
    encoding_of,
    header_of,
)
from pii_tracer.verify.held_rows import rows_with_more as rows_of
from pii_tracer.verify.verdicts import HeldValue

_ROWS = ("data", "log block")
"""Places in files that hold rows; the others hold bounds and names of columns."""
_AGAIN = ("raw bytes", "hfile block", "statistics")
"""Places where the scan sees the bytes of a value again that it has decoded."""


def with_names(copy: Copy, files: Iterable[FileScan], mask: Mask, root: Path) -> tuple[FileScan, ...]:
    """The files, with the plan's names of columns in CSV whose first line the scan would not take for names.

    It could be a person's row. It is none where it holds nothing but columns that the plan names.
    """
    spelled = {name.lower(): name for name in (*mask.columns, *mask.kept)}
    encoding = encoding_of(copy)
    return tuple(_with_names(file, spelled, root, encoding) if _kind(file) == "csv" else file for file in files)


def _with_names(file: FileScan, spelled: dict[str, str], root: Path, encoding: str) -> FileScan:
    if {hit.column for hit in file.hits} <= {None, *spelled.values()}:
        return file
    try:
        header = header_of(root / file.path, encoding)
    except Exception:  # then no column is known, which excuses nothing
        return file
    names = [spelled.get(name.lower(), "") for name in header]
    if len(set(names)) != len(names) or not all(names):
        return file
    told = dict(zip(header, names, strict=True)) | {f"_c{index}": name for index, name in enumerate(names)}
    hits = (hit.model_copy(update={"column": told.get(hit.column or "", hit.column)}) for hit in file.hits)
    return file.model_copy(update={"hits": tuple(hits)})


def _kind(file: FileScan) -> str:
    """What a file is, whatever it is packed in."""
    return file.decoded_as.rpartition(" > ")[2]


def excused(file: FileScan, mask: Mask, kept: frozenset[str]) -> tuple[Hit, ...]:
    """The hits of a file that what is kept explains.

    A second sight of a value is explained where the same file shows it in kept columns and in no other: without a
    column in the raw bytes (a footer), and anywhere in an engine's own notes (a whole line of a log).
    """
    inside = [hit for hit in file.hits if column_of(hit, kept) is not None]
    known = {hit.key_set for hit in inside}
    rest = [hit for hit in file.hits if hit.key_set in known and hit not in inside]
    engine = role_of(file.path) is Role.ENGINE
    again = [hit for hit in rest if hit.column is None and (engine or hit.where in _AGAIN)]
    if engine:
        again += [hit for hit in rest if hit.column is not None and column_of(hit, mask.columns) is None]
    open_ = {hit.key_set for hit in rest if hit not in again}
    return (*inside, *(hit for hit in again if hit.key_set not in open_))


def held_values(copy: Copy, mask: Mask, files: Iterable[FileScan], kept: frozenset[str]) -> tuple[HeldValue, ...]:
    """What stands in kept columns, counted by key set and column; what no column is told for, apart."""
    found: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for file in files:
        for hit in excused(file, mask, kept):
            found.setdefault((column_of(hit, kept) or "", hit.key_set), []).append((file.path, hit.count))
    return tuple(
        HeldValue(
            copy_id=copy.id, column=c or None, key_set=k, files=len({p for p, _ in seen}), count=sum(n for _, n in seen)
        )
        for (c, k), seen in sorted(found.items())
    )


def rows_with_more(
    copy: Copy,
    mask: Mask,
    files: Iterable[FileScan],
    kept: frozenset[str],
    at: Callable[[str], Source],
    patterns: Patterns,
    readable: Collection[str] = READABLE,
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Of the files with the person in kept columns: rows that hold more, by file; and why files cannot be judged.

    at: what a file of this path is read from. readable: kinds of files that are read so.
    """
    more: dict[str, int] = {}
    unread = []
    for file in files:
        held = excused(file, mask, kept)
        kind = _kind(file)
        in_rows = any(hit.where.startswith(_ROWS) for hit in held)
        if held and (kind == PARQUET or (in_rows and kind in readable)):
            try:
                number = rows_of(at(file.path), kind, copy, mask, patterns, _shown(held, copy))
            except Exception as error:  # whatever a reader meets in a file that it could read a moment ago
                unread.append(f"{file.path}: other values of its rows cannot be read: {type(error).__name__}")
                continue
            if number is None:
                unread.append(f"{file.path}: no column in it shows whose rows have values that are not held")
            elif number:
                more[file.path] = number
        elif in_rows:
            unread.append(f"{file.path}: other values of its rows are unknown in this format ({file.decoded_as})")
    return more, tuple(unread)


def _shown(held: Iterable[Hit], copy: Copy) -> set[str]:
    """The key columns of rows in which the scan saw the person."""
    keys = {term.label() for term in copy.match.terms} if copy.match else set()
    return {hit.column for hit in held if hit.where.startswith(_ROWS) and hit.column in keys}
