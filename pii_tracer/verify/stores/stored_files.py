"""Verification of files in a store: every file that lies there now, decoded and searched, and its rows counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import EstateError
from pii_tracer.model.hive_text.layout import FileText, text_of
from pii_tracer.model.plan import Copy
from pii_tracer.scan.folder_scan import scan_bytes
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.value_forms import Patterns
from pii_tracer.verify.byte_search import judge
from pii_tracer.verify.object_rows import Rows, counted, state_of
from pii_tracer.verify.verdicts import Baseline, ByteVerdict, RowVerdict, StateRows

CURRENT = "current"


@dataclass(frozen=True)
class ReadFile:
    """A file that was read. rows: those in it, where they are counted (`rows_in`)."""

    scan: FileScan
    rows: Rows | None = None


@dataclass(frozen=True)
class PlaceLook:
    """What one reading of a place showed. rows, baseline: of a folder whose rows the plan deletes by keys."""

    bytes: ByteVerdict
    rows: RowVerdict | None = None
    baseline: Baseline | None = None


def unread_file(name: str, error: EstateError | OSError, patterns: Patterns) -> FileScan:
    """What is known of a file whose bytes could not be had: its name."""
    if isinstance(error, EstateError):
        why = error.what
    else:
        why = f"a temporary copy of it cannot be created: {error.strerror or type(error).__name__}"
    return scan_bytes(name, b"", patterns).model_copy(update={"unread": (why,), "sha256": ""})


def counts_rows(copy: Copy) -> bool:
    """Whether the rows of a copy's files are counted."""
    return copy.match is not None and copy.strategy not in (Strategy.BLOCKED, Strategy.EXEMPT)


def rows_in(copy: Copy, name: str, data: memoryview, patterns: Patterns, text: FileText | None) -> Rows | None:
    """The rows of a file of a copy; None where they are not counted. name, text: as of `object_rows.counted`.

    Raises:
        ScanError: they cannot be read.
    """
    if not len(data) or not counts_rows_of(copy, text):
        return None
    return counted(copy, name, data, patterns, text)


def counts_rows_of(copy: Copy, text: FileText | None) -> bool:
    """Whether the rows of a file are counted that is read so."""
    return counts_rows(copy) and (text is not None or text_of(copy.facts) is None)


def judge_place(copy: Copy, files: Iterable[ReadFile], unlisted: tuple[str, ...], patterns: Patterns) -> PlaceLook:
    """The verdict on a place. unlisted: what of it could not be listed.

    Raises:
        ScanError: the rows of a file cannot be read.
    """
    scans: list[FileScan] = []
    rows: list[Rows] = []
    for file in files:
        scans.append(file.scan)
        rows += [file.rows] if file.rows is not None else []
    verdict = judge(copy, copy.location, tuple(scans), frozenset(copy.other_keys))
    unverified = (*verdict.unverified, *unlisted)
    verdict = verdict.model_copy(update={"unverified": unverified, "compared": patterns.key_columns.labels})
    if not counts_rows(copy):
        return PlaceLook(verdict)
    persons = StateRows(state=CURRENT, rows=sum(one.persons for one in rows))
    baseline = Baseline(copy_id=copy.id, states=(state_of(CURRENT, rows),))
    return PlaceLook(verdict, RowVerdict(copy_id=copy.id, states=(persons,)), baseline)
