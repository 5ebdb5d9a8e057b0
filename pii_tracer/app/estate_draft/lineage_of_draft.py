"""The lineage that somebody named for a first estate file: read, to name tables, jobs, and where data was moved to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pii_tracer.app.estate_draft.given_places import Places
from pii_tracer.app.estate_draft.places_of_catalogs import written
from pii_tracer.app.estate_draft.provisional_estate import Declared, Say, unfinished_estate
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.hdfs import same_hdfs
from pii_tracer.config.lineage import LineageSources
from pii_tracer.lake.dataset_paths import FILE_NAMESPACE, SESSION_CATALOG, EstatePaths
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lineage.dataset_names import UNRESOLVED, plain_name, shorter_names
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import PLAIN, DatasetId, Format
from pii_tracer.model.locations import in_place, is_s3, location_in_place, s3_location
from planners.draft.column_guesses import may_tell_of_person
from planners.draft.lineage_hints import TableLineage, called_by_jobs, moved


@dataclass(frozen=True)
class DraftLineage:
    """places: with where the data was moved to. graph: None where no lineage was named that can be read yet.

    meant: names that the draft gave to bare folders of this machine, and by which jobs know something.
    """

    places: Places
    graph: LineageGraph | None = None
    meant: frozenset[str] = frozenset()

    @property
    def unknown(self) -> frozenset[str]:
        """Names of tables in jobs that nothing explains."""
        return _unknown(self.graph) if self.graph is not None else frozenset()

    def called(self, name: str, declared: Declared, base: Path) -> dict[str, str]:
        """What jobs call tables, by their place. declared: as the draft calls them so far."""
        if self.graph is None:
            return {}
        paths = EstatePaths(unfinished_estate(name, self.places), base)
        datasets = {at: _dataset(at, paths, base) for _, _, at in declared}
        return called_by_jobs(self.graph, datasets, {drafted for drafted, _, _ in declared})

    def of_tables(self, found: Inventory, declared: Declared, paths: EstatePaths, base: Path) -> TableLineage | None:
        """The lineage of the tables that have a name."""
        if self.graph is None:
            return None
        datasets = {drafted: _dataset(at, paths, base) for drafted, _, at in declared}
        datasets |= {table.table: table.dataset for table in found.tables if table.table}
        return TableLineage(self.graph, datasets)

    def knows_by_place(self, at: str, drafted: str, paths: EstatePaths, base: Path) -> bool:
        """Whether jobs read or write a place of this machine, and by its path alone."""
        if self.graph is None or drafted in self.meant or is_s3(at) or in_place(at):
            return False
        dataset = _dataset(at, paths, base)
        return self.graph.number(dataset) is not None and not self.graph.aliases_of(dataset)


def read_lineage(
    name: str,
    places: Places,
    warehouses: Mapping[str, Mapping[str, str]],
    declared: Declared,
    found: Inventory,
    base: Path,
    say: Say,
    uncompiled: Iterable[str] = (),
) -> DraftLineage:
    """The lineage of the places. uncompiled: dbt projects that cannot be read yet.

    Raises:
        UsageError: a place lacks something.
        LineageError: a source cannot be read.
    """
    sources = LineageSources.model_validate(
        {**places.lineage, "dbt": [project for project in places.lineage.get("dbt", ()) if project not in uncompiled]}
    )
    if not (sources.events or sources.sql or sources.dbt):
        return DraftLineage(places)
    bare, tables = list[tuple[str, Format, str]](), list[tuple[str, Format, str]]()
    for one in declared:
        (bare if one[1] in PLAIN and not (is_s3(one[2]) or in_place(one[2])) else tables).append(one)
    graph = _harvested(sources, unfinished_estate(name, places, warehouses, tables), tables, found, base, say)
    unknown = _unknown(graph)
    meant = [one for one in bare if not unknown.isdisjoint((one[0], *shorter_names(one[0])))]
    lost = [d.name for d in graph.datasets() if d.namespace == FILE_NAMESPACE and not _is_there(Path(d.name))]
    here = [table.location for table in found.tables if not table.remote]
    way = moved(lost, here)
    if way and not any(map(may_tell_of_person, Path(way[0]).parts)):
        places = replace(places, relocations=[{"from": way[0], "to": written(Path(way[1]), base)}])
    if places.relocations or meant:
        tables += meant
        graph = _harvested(sources, unfinished_estate(name, places, warehouses, tables), tables, found, base, say)
    return DraftLineage(places, graph, frozenset(drafted for drafted, _, _ in meant))


def _harvested(
    sources: LineageSources, estate: Estate, declared: Declared, found: Inventory, base: Path, say: Say
) -> LineageGraph:
    """Raises LineageError: a source cannot be read."""
    from pii_tracer.lineage.harvest import Given, harvest_all

    paths = EstatePaths(estate, base)
    drafted = {at: table for table, _, at in declared}
    columns = {table.table or drafted.get(_place_of(table.location, base)): table.columns for table in found.tables}
    given = Given(
        base=base,
        relocations=estate.relocations,
        aliases=paths.aliases,
        schemas={table: known for table, known in columns.items() if table},
        progress=say,
    )
    return harvest_all(sources.model_copy(update={"same": same_hdfs(estate.hdfs)}), given).graph


def _unknown(graph: LineageGraph) -> frozenset[str]:
    names = (dataset.name for dataset in graph.datasets() if dataset.namespace == UNRESOLVED)
    return frozenset(plain_name(name).removeprefix(SESSION_CATALOG) for name in names)


def _is_there(place: Path) -> bool:
    try:
        return place.exists()
    except OSError:  # the name is too long, or the folder is closed to this account
        return False


def _place_of(location: str, base: Path) -> str:
    return location if is_s3(location) or in_place(location) else written(Path(location), base)


def _dataset(at: str, paths: EstatePaths, base: Path) -> DatasetId:
    """What lineage calls a place, as the estate file writes it."""
    if is_s3(at):
        return s3_location(at).dataset
    return location_in_place(at).dataset if in_place(at) else paths.dataset_of(base / at)
