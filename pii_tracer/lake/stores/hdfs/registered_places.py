"""What catalogs say of places in HDFS: which is a table, which has partitions of one, and whose files are no rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from pii_tracer.lake.catalogs.registered_tables import Registry
from pii_tracer.lake.catalogs.tables_in_stores import HdfsTable
from pii_tracer.lake.stores.catalog_facts_of_table import named
from pii_tracer.lake.stores.hdfs.former_paths import former_paths
from pii_tracer.lake.stores.hdfs.places import HdfsKind, HdfsPlace
from pii_tracer.model.hive_text.layout import TextFolder, digest_of
from pii_tracer.model.locations import HdfsLocation

_WITH_ROWS = frozenset({HdfsKind.TABLE, HdfsKind.FOLDER})


def with_registered(places: Sequence[HdfsPlace], registry: Registry) -> tuple[HdfsPlace, ...]:
    """The places with what the catalogs know of each. Snapshots, trash and temporary folders are no tables."""
    mine = [place.location for place in places if place.kind in _WITH_ROWS]
    tables = {table.location: table for table in sorted(registry.hdfs, key=lambda one: one.title, reverse=True)}
    partitions = _partitions(mine, registry.hdfs)
    opaque = _merged_text(places, registry.hdfs) | _opaque(mine, registry, tables)
    texts = [table for table in registry.hdfs if table.text is not None]
    places = [place if place.location in tables else _with_texts(place, texts) for place in places]
    return tuple(
        place.model_copy(
            update={
                "table": table.name if (table := tables.get(place.location)) else None,
                "registered": table.format if table else None,
                "text": table.text if table else None,
                "named": named(one for one in registry.hdfs if one.location == place.location),
                "partitions_of": partitions.get(place.location, ()),
                "opaque": opaque.get(place.location),
            }
        )
        if place.kind in _WITH_ROWS
        else place
        for place in places
    )


def _innermost(places: Iterable[HdfsLocation], one: HdfsLocation) -> HdfsLocation | None:
    """The place that another one is, or lies in."""
    return max((p for p in places if p.holds(one)), key=lambda p: len(p.path), default=None)


def _partitions(
    places: Sequence[HdfsLocation], tables: Iterable[HdfsTable]
) -> dict[HdfsLocation, tuple[HdfsLocation, ...]]:
    """By place, the tables of which partitions lie there, sorted."""
    found: dict[HdfsLocation, set[HdfsLocation]] = {}
    known = {str(place): place for place in places}
    for table in tables:
        for partition in table.partitions:
            path = PurePosixPath(partition.path)
            ways = (f"{partition.name_node}{one}" for one in (path, *path.parents))
            place = next((known[way] for way in ways if way in known), None)
            if place and place != table.location:
                found.setdefault(place, set()).add(table.location)
    return {place: tuple(sorted(of, key=str)) for place, of in found.items()}


def _with_texts(place: HdfsPlace, tables: Iterable[HdfsTable]) -> HdfsPlace:
    """A place with the tables of text in whose folders its files lie or lay."""
    mine = {t.location.path: t.text for t in tables if t.text and t.location.name_node == place.location.name_node}
    paths = (path for file in place.files for path in former_paths(file.path)) if mine else ()
    folders = {path.rpartition("/")[0] for path in paths}
    around = {str(above) for folder in folders for above in (PurePosixPath(folder), *PurePosixPath(folder).parents)}
    texts = (TextFolder(folder=digest_of(PurePosixPath(p)), table=mine[p]) for p in sorted(mine.keys() & around))
    return place.model_copy(update={"texts": tuple(texts)})


def _merged_text(places: Sequence[HdfsPlace], tables: Iterable[HdfsTable]) -> dict[HdfsLocation, str]:
    """By place, a table of text that is no place of its own, and whose files look like the place's."""
    texts = [table for table in tables if table.text is not None]
    return {
        place.location: table.title
        for place in places
        for table in texts
        if place.kind in _WITH_ROWS
        and place.location != table.location
        and place.location.holds(table.location)
        and any(file.path.startswith(table.location.prefix) for file in place.files)
    }


def _opaque(
    places: Sequence[HdfsLocation], registry: Registry, tables: Iterable[HdfsLocation]
) -> dict[HdfsLocation, str]:
    """By place, the table whose files lie in it and are not its rows: the innermost table counts."""
    known = {*registry.opaque_hdfs, *tables}
    found = {}
    for place in places:
        around = _innermost(known, place)
        inside = (one for one in sorted(registry.opaque_hdfs, key=str) if place.holds(one))
        held = (one for one in inside if _innermost(places, one) == place)
        one = around if around in registry.opaque_hdfs else next(held, None)
        if one is not None:
            found[place] = registry.opaque_hdfs[one]
    return found
