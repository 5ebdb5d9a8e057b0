"""Tables and folders with data that no catalog names, by their place as the estate file writes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pii_tracer.app.estate_draft.places_of_catalogs import written
from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.registry import format_of, known_format, metadata_folders
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lake.object_tables import tables_of
from pii_tracer.lake.stores.hdfs.places import HdfsKind, HdfsPlace
from pii_tracer.lake.stores.object_places.places import ObjectPlace
from pii_tracer.lake.stores.object_places.version_types import VersionState
from pii_tracer.lake.stores.s3.table_places import is_nameless
from pii_tracer.model.datasets import PLAIN, Format
from pii_tracer.model.locations import is_s3
from planners.draft.column_guesses import may_tell_of_person

_SHOWN = 5
"""Tables that a note names."""


def unnamed_tables(found: Inventory, base: Path) -> dict[str, Format]:
    """Their formats, by place."""
    return {**_read(found, base), **_in_s3(found), **dict(_in_stores(found))}


def lacking_catalogs(found: Inventory, roots: Iterable[str]) -> Iterator[str]:
    """Notes about tables in stores that only a catalog can name, by format: no guess of the persons has seen these."""
    places: dict[Format, list[str]] = {}
    nameless = [(place.format, str(place.location)) for place in found.remote if is_nameless(place)]
    stored: tuple[HdfsPlace | ObjectPlace, ...] = (*found.hdfs, *found.object_places)
    nameless += [(p.format, str(p.location)) for p in stored if p.is_table and not (p.sql_name or p.opaque)]
    for kind, at in nameless:
        if kind is not None and not _can_be_declared(kind):
            places.setdefault(kind, []).append(at)
    for kind, there in places.items():
        shown = sorted(without_persons(dict.fromkeys(there, kind), roots))[:_SHOWN]
        where = f" ({', '.join(shown)}{' …' if len(shown) < len(there) else ''})" if shown else ""
        one = len(there) == 1
        what, needs = counted(len(there), f"{format_of(kind).title} table"), "needs" if one else "need"
        names, whose, them = ("names it", "its", "it") if one else ("names them", "their", "them")
        yield (
            f"{what}{where} {needs} a catalog, and none {names}: run this command again with {whose} catalog, such as"
            f" `--discover glue:REGION`. The guesses of who the persons are did not see {them}"
        )


def without_persons(unnamed: Mapping[str, Format], roots: Iterable[str]) -> dict[str, Format]:
    """Those whose way from the root that they lie in, or in their store, has no name that may tell of a person."""
    fronts = {f"{root.rstrip('/')}/" for root in roots}
    kept = {}
    for at, kind in unnamed.items():
        front = max((front for front in fronts if f"{at}/".startswith(front)), key=len, default="")
        below = at[len(front) :]
        below = below.partition("://")[2].partition("/")[2] if "://" in below else below
        if not any(map(may_tell_of_person, below.split("/"))):
            kept[at] = kind
    return kept


def _read(found: Inventory, base: Path) -> dict[str, Format]:
    return {
        table.location if table.remote else written(Path(table.location), base): table.format
        for table in found.tables
        if table.table is None and not is_s3(table.location) and _can_be_declared(table.format)
    }


def _in_s3(found: Inventory) -> dict[str, Format]:
    """Those in roots of which only the keys are known."""
    return {
        str(place.location): place.format
        for place in found.remote
        if is_nameless(place) and place.format is not None and _can_be_declared(place.format)
    }


def _in_stores(found: Inventory) -> Iterator[tuple[str, Format]]:
    """In HDFS and object stores: folders whose files are of one format, by the files' names; and tables that nobody
    reads before they have a name."""
    for place in found.hdfs:
        if place.kind is HdfsKind.FOLDER and not (place.table or place.opaque or place.partitions_of):
            paths = [file.path.lstrip("/") for file in place.files]
            if kind := _format_of_files(paths, place.location.path.lstrip("/")):
                yield str(place.location), kind
    for stored in found.object_places:
        if not (stored.table or stored.table_name or stored.opaque):
            live = [version.key for version in stored.of_state(VersionState.LIVE)]
            if kind := _format_of_files(live, stored.location.key):
                yield str(stored.location), kind
    there: tuple[HdfsPlace | ObjectPlace, ...] = (*found.hdfs, *found.object_places)
    for table in there:
        nameless = table.is_table and not (table.sql_name or table.opaque)
        if nameless and table.format is not None and _can_be_declared(table.format):
            yield str(table.location), table.format


def _format_of_files(paths: Iterable[str], folder: str) -> Format | None:
    kind = tables_of(paths, dict.fromkeys(metadata_folders())).get(folder)
    return kind if kind in PLAIN else None


def _can_be_declared(kind: Format) -> bool:
    adapter = known_format(kind)
    return kind in PLAIN or (adapter is not None and not adapter.registered_by_metadata)
