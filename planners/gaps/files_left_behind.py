"""Files in which the scan saw the persons, and that no step of the plan writes again or removes.

Planning and verification search the same files by the same code. So whatever is seen here has a step, or a gap that
names the file and the way out: nothing is found for the first time when the run is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pii_tracer.common.plurals import counted
from pii_tracer.model.datasets import BY_ROWS, PLAIN, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import is_remote
from pii_tracer.model.plan import Gap
from planners.copies.scan_evidence import Evidence, Seen
from planners.formats.registry import planner_of
from planners.gaps.copy_gap import gap_of
from planners.gaps.table_descriptions import of_persons
from planners.locate.subject_survey import World
from planners.step_drafts import CopyDraft

_TREATED = (*BY_ROWS, Strategy.MASK_COLUMNS, Strategy.REBUILD, Strategy.RESTORE_REWRITE_ARCHIVE)
_DATA = "data"
_NAMED = 5
"""So many files are named; the rest is a number."""


def left_behind(items: Iterable[CopyDraft], world: World) -> tuple[Gap, ...]:
    """One gap for each copy whose folder holds such files."""
    gaps = []
    for item in items:
        seen = world.evidence.get(item.state.location) if item.state else None
        if seen and item.copy.origin is None and item.copy.strategy in _TREATED:
            ways = _ways(item, seen)
            if ways:
                gaps.append(_gap(item, ways))
    return tuple(gaps)


def unread_parts(items: Iterable[CopyDraft], world: World) -> tuple[Gap, ...]:
    """A gap where files of a bare folder were not read, or only in part: a rewrite keeps what nobody can read there.

    Not of tables: files that their log no longer names are removed, read or not. Not of what is held: it stays.
    """
    gaps = []
    for item in items:
        state, bare = item.state, item.copy.strategy in (*BY_ROWS, Strategy.MASK_COLUMNS)
        seen = world.evidence.get(state.location) if state and bare and state.format in PLAIN else None
        if state and seen and seen.unread and not is_remote(state.location):
            gaps.append(_unread(item, seen))
    return tuple(gaps)


def _unread(item: CopyDraft, seen: Evidence) -> Gap:
    return gap_of(
        item,
        GapKind.NOT_SCANNED,
        f"{counted(len(seen.unread), 'file')} could not be decoded completely. A rewrite keeps the undecoded parts, "
        "and the search after the run cannot verify them",
        "make these files readable for the scan (rights, keys, format), or remove them, then plan again. Or check "
        f"them by hand, and waive this gap: {'; '.join(seen.unread[:3])}",
        seen.unread,
    )


def _ways(item: CopyDraft, seen: Evidence) -> dict[str, str]:
    """The way out for each file that stays."""
    planner = planner_of(item.copy.format)
    files = sorted((*seen.seen, *_by_numbers(item, seen)), key=lambda one: one.file)
    told = ((one.file, planner.left_behind(item, one)) for one in files)
    return {file: way for file, way in told if way}


def _by_numbers(item: CopyDraft, seen: Evidence) -> Iterator[Seen]:
    """Files of a bare folder in whose rows a short number stands that the search after the run counts as the persons'.

    In tables, a number in a file that is no data file is no column's.
    """
    bare = item.state is not None and item.state.format in PLAIN
    mine = (one for one in seen.numbers if bare and of_persons(item.copy, one.key_set, one.column))
    yield from (Seen(file, frozenset({_DATA})) for file in {one.file for one in mine})


def _gap(item: CopyDraft, ways: dict[str, str]) -> Gap:
    files = list(ways)
    more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
    remedies = "; ".join(dict.fromkeys(ways.values()))
    return gap_of(
        item,
        GapKind.LEFT_BEHIND,
        f"no step rewrites or removes {counted(len(files), 'file')} with data of the persons: {remedies}; then plan "
        "again. If you waive this gap, the run ends with residue in this place",
        ", ".join(files[:_NAMED]) + more,
        files,
    )


def beyond_engine(items: Iterable[CopyDraft], profile: str) -> tuple[Gap, ...]:
    """One gap for each table that the engine of the estate would refuse: its first step would stop the run."""
    gaps = []
    for item in items:
        if item.state and item.copy.origin is None and item.copy.strategy in _TREATED:
            what = planner_of(item.copy.format).beyond_engine(item.state, profile)
            if what:
                reason = f"Spark {profile} does not support {what}, and rejects the table"
                todo = (
                    "set a `spark.profile` in the estate file that supports this feature, or ask the owner to drop "
                    "the feature (ALTER TABLE … DROP FEATURE), then plan again. If you waive this gap, the run stops "
                    "at this table"
                )
                gaps.append(gap_of(item, GapKind.UNKNOWN_VERSION, reason, todo))
    return tuple(gaps)
