"""Reads the rows that retained versions of a table have, without Spark: what a person was known by before.

Delta: every version that its log can still rebuild. Iceberg: every snapshot of the metadata, so those of branches and
tags as well. Bare folders keep no versions, and of Hudi tables only the current rows are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from pii_tracer.common.plurals import counted
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.rows.current_rows import guarded
from pii_tracer.lake.rows.former_versions import FilesGoneError, Sought, Values, Version
from pii_tracer.model.errors import EstateError

__all__ = ["MANY", "Sought", "read_former"]

MANY = 1_000
"""Retained versions from which on reading them is told as work of its own, and again after as many more."""


def read_former(
    state: TableState,
    sought: Sought,
    paths: EstatePaths,
    say: Callable[[str], None],
    unread: Callable[[str], None],
) -> Iterator[Values]:
    """The values at some spots in each retained version before the current one, newest first, as `read_spots` gives.

    Versions that bring no file or column of their own are passed over, since their rows were given already, and so are
    those whose files are gone (vacuumed); `say` is told how many. `unread` is told of versions that are there and
    could not be read. What a version's schema does not have is None.
    """
    name, adapter = state.table or state.location, format_of(state.format)
    known = state.table or "a table without a name"  # a folder's name can be a person's key
    if untold := adapter.unread_history(state):
        unread(untold)
    seen: set[tuple[str, ...]] = set()
    gone, number, why = 0, 0, Counter[str]()
    for number, version in enumerate(adapter.former_versions(state, sought, paths), start=1):
        if number % MANY == 0:
            say(f"reading former versions of {known}: {number:,} so far")
        try:
            parts = guarded(state, version.parts)
            rows = [] if parts <= seen else guarded(state, version.rows)
        except EstateError as error:
            if isinstance(error, FilesGoneError) or _gone(state, version):
                gone += 1
            else:
                why[error.what] += 1
            continue
        seen |= parts
        yield from rows
    if gone:
        say(f"{gone:,} of {counted(number, 'version')} of {known} cannot be read any more")
    for reason, times in sorted(why.items()):
        unread(
            f"{times:,} of {counted(number, 'version')} of {name} could not be read, although the files exist: {reason}"
        )


def _gone(state: TableState, version: Version) -> bool:
    try:
        return guarded(state, lambda: any(not path.exists() for path in version.files()))
    except EstateError:
        return False
