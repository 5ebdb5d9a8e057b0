"""Which tables a sweep may touch under the declared policy, and what it has to say of each. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import unquote

from pii_tracer.config.estate_file import RetentionClasses
from pii_tracer.lake.catalog_only_partitions import PlacesOfPartitions
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.formats.retention_terms import MAIN, RefRetention
from pii_tracer.lake.inventory import Inventory, InventoryGap, TableState
from pii_tracer.model.datasets import Format, Frozen
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.legal_holds import Hold
from pii_tracer.model.locations import Location, location_of
from pii_tracer.retention.retention_classes import class_of, hold_on, partitions_of
from pii_tracer.retention.settings_check import FindingKind, Table, check_table

LEAST_DAYS = 1
"""Files of writers that have not committed yet are younger than this: nothing younger is ever swept."""

_BLOCKING_GAPS = frozenset(
    {
        GapKind.EXTERNAL_FILES,
        GapKind.SHARED_FILES,
        GapKind.MOVED_TABLE,
        GapKind.MISSING_FILES,
        GapKind.UNKNOWN_VERSION,
        GapKind.STAGED_SNAPSHOT,
        GapKind.STRANGE_FILES,
    }
)
_GAPS_OF_PLACES = frozenset({GapKind.NESTED_TABLE, GapKind.TWO_FORMATS, GapKind.REGISTERED_TWICE})
"""Told of a place, not of a table: whose folder it lies in is what counts."""


@dataclass(frozen=True)
class Target:
    """A table that may be swept. days: what its class keeps, never below its floor or `LEAST_DAYS`.

    pointed: whether its catalog says which metadata file counts (Iceberg in SQL and REST catalogs). partitions: folders
    of partitions that are kept longer, with their days.
    """

    name: str
    sql_name: str | None
    location: Location
    format: Format
    class_name: str
    days: int
    refs: tuple[RefRetention, ...] = ()
    pointed: bool = False
    partitions: tuple[tuple[str, int], ...] = ()

    def cutoff(self, now: datetime) -> datetime:
        """What no longer counts since before this moment may go."""
        return now - timedelta(days=self.days)

    def cutoff_of(self, file: str, now: datetime) -> datetime:
        """The same of one file. Where its path does not tell its partition the longest days count: writers may leave
        partitions out of paths (`delta.randomizeFilePrefixes`, column mapping).
        """
        folder = file.removeprefix(f"{self.location}/").rpartition("/")[0].split("/")
        kept = [days for rule, days in self.partitions if _may_lie_in(folder, rule)]
        return now - timedelta(days=max([self.days, *kept]))


def _may_lie_in(folder: Sequence[str], rule: str) -> bool:
    told, wanted = (
        dict(unquote(part).split("=", 1) for part in parts if "=" in part) for parts in (folder, rule.split("/"))
    )
    return all(told.get(column, value) == value for column, value in wanted.items())


class Skipped(Frozen):
    """A table that is not swept, and why."""

    table: str
    reason: str


class Held(Frozen):
    """A branch or tag that keeps old data: until a moment, or for ever."""

    ref: str
    kind: str
    snapshot: str
    until: datetime | None


class Swept(Frozen):
    """What a sweep removes (dry run) or removed from one table.

    files, bytes: of what goes. monthly_cost: what storing it costs a month. gone: listed files that no longer exist.
    changed: listed files that were written again since, and are left. strange: files that no version needs and that
    are not named as the table's own: perhaps somebody's, and left. held: references that keep old data alive.
    keeps_versions: the bucket keeps what was removed as old versions, until its lifecycle or an erasure removes them.
    failed: why the table could not be swept, None where it was.
    """

    table: str
    class_name: str
    days: int
    cutoff: datetime
    files: int = 0
    bytes: int = 0
    monthly_cost: float = 0.0
    snapshots: int = 0
    gone: int = 0
    changed: int = 0
    strange: int = 0
    held: tuple[Held, ...] = ()
    keeps_versions: bool = False
    failed: str | None = None


def targets(
    rules: RetentionClasses,
    holds: Sequence[Hold],
    tables: Sequence[Table],
    inventory: Inventory,
    now: datetime,
    only: Iterable[str] = (),
    swept_catalogs: Collection[str] = (),
) -> tuple[tuple[Target, ...], tuple[Skipped, ...]]:
    """The tables whose declared policy allows a sweep, and the others with the reason.

    The class is the approval: a table is swept only if one is named for it, no hold stands on it, its own settings
    promise no more than the class, and no other table reads its files or has partitions in its folder.
    """
    wanted = set(only)
    states = {state.location: state for state in inventory.tables}
    partitions = PlacesOfPartitions(inventory.partitioned)
    found: list[Target] = []
    skipped: list[Skipped] = []
    for table in tables:
        if wanted and not wanted & set(table.names):
            continue
        state = states[table.location]
        reason = _of_partitions(holds, table, partitions, now)
        reason = reason or _why_not(rules, holds, table, state, inventory, now, swept_catalogs)
        if reason:
            skipped.append(Skipped(table=table.name, reason=reason))
            continue
        held_to = class_of(rules, table.names, table.properties, table.pii)
        days, location = max(held_to.days, LEAST_DAYS), location_of(table.location)
        # in S3 the engine knows tables by their places, where their format does without a catalog
        by_place = state.remote and not format_of(table.format).needs_catalog
        name = None if by_place else state.table
        kept, pointed = partitions_of(rules, table.names), bool(state.metadata)
        found.append(Target(table.name, name, location, table.format, held_to.name, days, table.refs, pointed, kept))
    return tuple(found), tuple(skipped)


def _of_partitions(holds: Sequence[Hold], table: Table, partitions: PlacesOfPartitions, now: datetime) -> str | None:
    """Why partitions that lie at a table's folder, in it or around it keep it from being swept, if so."""
    near = partitions.near(table.location)
    hold = hold_on(holds, [name for one in near for name in one.names], now)
    if hold:
        return f"{hold}, on a table with partitions in or around this folder"
    others = ", ".join(sorted({one.title for one in partitions.of_others(table.location)}))
    return f"its folder contains files of partitions of {others}, which a sweep would remove" if others else None


def _why_not(
    rules: RetentionClasses,
    holds: Sequence[Hold],
    table: Table,
    state: TableState,
    inventory: Inventory,
    now: datetime,
    swept_catalogs: Collection[str],
) -> str | None:
    adapter = format_of(table.format)
    if adapter.not_swept is not None:
        return f"{table.format} tables are not swept: {adapter.not_swept}"
    if state.sharing:
        return "the table shares data files with " + ", ".join(o.table or o.location for o in state.sharing)
    if state.nessie:
        return "tables of Nessie are not swept: remove old files with Nessie's own garbage collector"
    if state.metadata and str(state.table).partition(".")[0] not in swept_catalogs:
        return "tables of this catalog are not swept: expire their snapshots in the catalog"
    hold = hold_on(holds, table.names, now)
    if hold:
        return hold
    held_to = class_of(rules, table.names, table.properties, table.pii)
    if held_to.wrong or not held_to.explicit:
        return held_to.wrong or "the table has no retention class: name one in the estate file"
    apart = partitions_of(rules, table.names)
    if apart and not adapter.sweeps_partitions:
        title = adapter.title
        return f"its partitions have their own retention days, but {title} expires snapshots of the whole table"
    shorter = [folder for folder, days in apart if days < held_to.days]
    if shorter:
        return f"{shorter[0]} has fewer days than its table: give the table the shortest class"
    # what a table's own settings promise to keep is kept until `enforce` has changed them; references are not cut
    promises = [
        f for f in check_table(rules, table) if f.setting and f.ref in (None, MAIN) and f.kind is FindingKind.TOO_LONG
    ]
    promised = next((f for f in promises if adapter.keeps_data(str(f.setting))), None)
    if promised:
        return f"{promised.setting} keeps more than the class: run `pii-tracer retention enforce` first"
    clone = next((s for s in inventory.tables if s.clone_of == state.location), None)
    if clone:
        return f"{clone.table or clone.location} is a shallow clone that reads its files"
    gap = next((g for g in inventory.gaps if _blocks(g, state)), None)
    if gap:
        return f"{gap.reason} ({gap.evidence})" if gap.evidence != state.location else gap.reason
    if adapter.needs_catalog and not state.table:
        return "no catalog of the estate has the table"
    return table.unread


def _blocks(gap: InventoryGap, state: TableState) -> bool:
    if gap.kind in _GAPS_OF_PLACES:
        return f"{gap.evidence}/".startswith(f"{state.location}/")
    told_apart = state.remote and format_of(state.format).sweeps_beside_strange_files
    if gap.kind is GapKind.STRANGE_FILES and told_apart:
        return False  # a sweep leaves them and counts them; elsewhere another table's metadata may be so called
    return gap.dataset == state.dataset and gap.kind in _BLOCKING_GAPS
