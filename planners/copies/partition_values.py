"""What catalogs tell of partitions that lie elsewhere than in their table's folder, and what no step may do there.

A key of persons may be the value of a partition, which no file of the partition contains. Reading the files shows then
neither whose rows they are, nor that they are nobody's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from pii_tracer.lake.catalog_only_partitions import PartitionedTable, by_names, left_of, place_of
from pii_tracer.lake.inventory import TableState
from pii_tracer.model.datasets import PLAIN, Carries, DatasetId, KnownPartitions, UntoldRows
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Copy, Gap
from pii_tracer.model.waivers import MarkKey
from planners.copies.table_match import carriage_of
from planners.locate.key_location import Carriage
from planners.locate.subject_survey import Survey, World, title
from planners.step_drafts import slug

_WAY_OUT = (
    "first delete the files of the person's partitions, with all old versions, delete markers, unfinished uploads, "
    "and their copies in trash and snapshots. Only then drop these partitions from the catalog, because only the "
    "catalog shows whose the files are. Remove the texts that the gap `table_text` names in the catalog, then plan "
    "again"
)


def files_of_others(world: World, state: TableState) -> list[Gap]:
    """A gap where partitions of other tables lie at the folder of a table with a log, in it or around it: its engine
    removes all files that the log does not name."""
    others = sorted({table.title for table in world.partitions.of_others(state.location)})
    if not others or state.format in PLAIN:
        return []
    return [
        Gap(
            id=f"gap-{GapKind.SHARED_FILES}-{slug(title(state))}-partitions",
            dataset=state.dataset,
            kind=GapKind.SHARED_FILES,
            reason=(
                f"partitions of {', '.join(others)} have files in the table's folder, and the step that removes "
                "unreferenced files would remove these files"
            ),
            evidence="move these partitions into folders of their own, then plan again",
        )
    ]


def known_partitions(
    world: World, surveys: Collection[Survey], copies: Iterable[Copy], others: Iterable[DatasetId], marks: MarkKey
) -> tuple[KnownPartitions, ...]:
    """What a verification compares with the catalogs of its own day, and holds of a later day. others: datasets that
    the plan names and that are no copies."""
    places = {dataset: world.location_of(dataset) or place_of(dataset) for dataset in others}
    places |= {copy.dataset: copy.location for copy in copies}
    rows: dict[PartitionedTable, dict[DatasetId, frozenset[str]]] = {}
    for dataset, place in sorted(places.items()):
        for table, columns in world.partitions.untold(place):
            rows.setdefault(table, {})[dataset] = columns
    same = by_names(
        (table for table in world.inventory.partitioned if table.elsewhere or table.untold or table.left),
        lambda name: world.masked.get(name, name),
    )
    return tuple(
        KnownPartitions(
            names=names,
            elsewhere=any(table.elsewhere for table in tables),
            untold=_united([rows.get(table, {}) for table in tables]),
            no_keys=_no_keys(world, surveys, tables),
            left=left_of(tables, names, marks),
        )
        for names, tables in sorted(same.items())
    )


def _united(rows: Iterable[Mapping[DatasetId, frozenset[str]]]) -> tuple[UntoldRows, ...]:
    found: dict[DatasetId, set[str]] = {}
    for one in rows:
        for dataset, columns in one.items():
            found.setdefault(dataset, set()).update(columns)
    return tuple(UntoldRows(dataset=dataset, columns=tuple(sorted(found[dataset]))) for dataset in sorted(found))


def _no_keys(world: World, surveys: Collection[Survey], tables: Sequence[PartitionedTable]) -> tuple[str, ...]:
    """Partition columns in which lineage leads no key of the persons."""
    keys = {key for table in tables for found in surveys for key in _person_keys(found, world, table)}
    return tuple(sorted({key.lower() for table in tables for key in table.keys} - keys))


def _person_keys(found: Survey, world: World, table: PartitionedTable) -> frozenset[str]:
    """Columns of a table in which lineage leads a person's key, in lower case."""
    carriage = _carriage(found, world, table)
    if carriage is None or carriage.carries is Carries.NONE:
        return frozenset()
    return frozenset(name.lower() for name in carriage.key_names)


def _carriage(found: Survey, world: World, table: PartitionedTable) -> Carriage | None:
    """What a table carries: by lineage, or as the table whose files it has."""
    if table.dataset is None or table.dataset in found.carriages:
        return found.carriages.get(table.dataset) if table.dataset else None
    state = world.states.get(world.location_of(table.dataset) or "")
    return carriage_of(found, state, world.states)[0] if state else None


def values_in_catalog(
    found: Survey, world: World, location: str, dataset: DatasetId, *origins: str | None
) -> list[Gap]:
    """A gap where a table's partitions lie at a place, in it or around it, and the catalog alone has their key.

    origins: places whose files lie there, too.
    """
    told = {}
    for table, untold in (
        one for place in (location, *filter(None, origins)) for one in world.partitions.untold(place)
    ):
        if columns := untold & _person_keys(found, world, table):
            told[table.title] = ", ".join(sorted(columns))
    if not told:
        return []
    names = "; ".join(f"{columns} of {title}" for title, columns in sorted(told.items()))
    return [
        Gap(
            id=f"gap-{GapKind.CANNOT_BE_PROVED}-{slug(dataset.name)}-partitions",
            dataset=dataset,
            kind=GapKind.CANNOT_BE_PROVED,
            reason=(
                f"only the catalog shows whose the rows of partitions are ({names}), and this place has files of such "
                "partitions. The files alone do not prove whose their rows are"
            ),
            evidence=_WAY_OUT,
        )
    ]
