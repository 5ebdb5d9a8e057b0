"""Verification of tables in HDFS and in object stores: the bytes of every file in the folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import BinaryIO

from pii_tracer.model.locations import HdfsLocation, ObjectLocation
from pii_tracer.model.plan import Copy
from pii_tracer.scan.false_min_max_hits import without_explained
from pii_tracer.scan.value_forms import Patterns
from pii_tracer.verify.byte_search import judge, judge_held
from pii_tracer.verify.held_rows import IN_STREAMS
from pii_tracer.verify.hold_allowances import rows_with_more
from pii_tracer.verify.stores.stored_files import PlaceLook, ReadFile


def judge_table(
    copy: Copy,
    place: HdfsLocation | ObjectLocation,
    files: Iterable[ReadFile],
    unlisted: tuple[str, ...],
    patterns: Patterns,
    at: Callable[[str], BinaryIO],
) -> PlaceLook:
    """The verdict on the bytes of a table, as `verify_bytes` gives it in a folder of this machine.

    unlisted: what of it could not be listed. at: what a file of this path is read from.
    """
    scans = without_explained(place, [file.scan for file in files])
    kept = frozenset(copy.mask.kept if copy.mask else ())
    verdict = judge(copy, str(place), scans, frozenset(copy.other_keys), kept)
    if copy.mask:
        more, unread = rows_with_more(copy, copy.mask, scans, kept, at, patterns, readable=IN_STREAMS)
        verdict = judge_held(copy, copy.mask, verdict, scans, kept, more, unread)
    nothing = () if scans else (f"{place}: the place contains no file (the table may have been moved)",)
    unverified = (*verdict.unverified, *unlisted, *nothing)
    return PlaceLook(verdict.model_copy(update={"unverified": unverified, "compared": patterns.key_columns.labels}))
