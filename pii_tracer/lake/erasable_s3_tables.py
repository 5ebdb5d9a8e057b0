"""Tables in S3 that steps can erase, and of every other place there why nothing is erased in it.

A table counts when a catalog names it, or the estate file declares it (which does not do for Iceberg); and when all its
files lie in its folder and nobody else's do, and nothing keeps what is deleted there: no replica, no lock. A bare
folder counts when all that lies there is its data files; that a catalog has partitions of it elsewhere is a gap of that
catalog. The buckets' settings and the tables' metadata are read; nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from pii_tracer.config.estate_file import Archive
from pii_tracer.lake.catalogs.registered_tables import RemoteTable
from pii_tracer.lake.formats.base import NamedBy, TableFormat
from pii_tracer.lake.formats.registry import format_of, table_formats
from pii_tracer.lake.read_result import Found
from pii_tracer.lake.stores.s3.deletion_obstacles import Folders
from pii_tracer.lake.stores.s3.object_versions import ClientFactory
from pii_tracer.lake.stores.s3.table_look_types import Looked, TablesAsked
from pii_tracer.model.datasets import PLAIN, Format
from pii_tracer.model.locations import S3Location


def others() -> str:
    """Why nothing is erased in what belongs to no table in S3."""
    declared = "".join(f"{one.title}, " for one in _tables(NamedBy.ESTATE_FILE))
    registered = ", ".join(one.title for one in _tables(NamedBy.CATALOG))
    return (
        f"a plan erases a table there only if the estate file declares it ({declared}and folders of Parquet, ORC, "
        f"Avro, CSV or JSON) or a catalog names it (these, and {registered})"
    )


def _unnamed(kind: Format | None) -> str:
    """Why nothing is erased in a table of a root that nobody names."""
    if kind is None or (by := format_of(kind).erased_in_s3) is None:
        return others()
    if by is NamedBy.CATALOG:
        return _unregistered(format_of(kind))
    return (
        "no catalog or declaration names this table, and a table in a different place may read its files: ask its owner"
    )


def _tables(by: NamedBy) -> list[TableFormat]:
    """The formats with a log of their own whose tables are to be named by somebody."""
    return [one for one in table_formats() if one.erased_in_s3 is by and one.name not in PLAIN]


@dataclass(frozen=True)
class Lake:
    """By location. found: tables that can be erased. why: why nothing is erased at the other places."""

    found: Mapping[str, Found] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)


def lake_tables(
    declared: Sequence[RemoteTable],
    registered: Sequence[RemoteTable],
    places: Collection[S3Location],
    opaque: Mapping[S3Location, str],
    unnamed: Sequence[RemoteTable],
    archives: Sequence[Archive],
    sources: Collection[str],
    clients: ClientFactory,
    options: Callable[[], Mapping[str, str]],
) -> Lake:
    """The tables of a lake in S3.

    declared: tables that the estate file declares there; registered: those that catalogs name. places: of all of these
    and of everything else that the estate file names there. opaque: as of `Registry.opaque_s3`. unnamed:
    tables that were found in roots, and that none of these names.
    sources: tables that tell who the persons are. options: how libraries reach S3.
    """
    folders = Folders(places, opaque, archives, clients)
    named = [*declared, *registered]
    asked = TablesAsked(declared, registered, _names(named), sources, folders, options)
    looked = [one for adapter in table_formats() for one in adapter.tables_in_s3(asked)]
    against = _against(looked, named)
    wanted = {str(place) for place in places} - set(against)
    found = {str(o.location): o.result for o in looked if isinstance(o.result, Found) and str(o.location) in wanted}
    why = dict.fromkeys(map(str, places), others())
    why |= {str(table.location): _unnamed(table.format) for table in unnamed}
    why |= {
        str(t.location): _unregistered(one)
        for one in _tables(NamedBy.CATALOG)
        for t in declared
        if t.format is one.name
    }
    why |= {location: "; ".join(reasons) for location, reasons in against.items()}
    return Lake(found, {location: reason for location, reason in why.items() if location not in found})


def _unregistered(kind: TableFormat) -> str:
    return (
        f"{kind.title} tables are erased there only if a catalog names them; a declaration is not enough: add their "
        "catalog"
    )


def _against(looked: Sequence[Looked], named: Sequence[RemoteTable]) -> dict[str, list[str]]:
    """By location: why no table there is erased."""
    against: dict[str, list[str]] = {}
    mixed, sharing = _of_two_formats(named), _Sharing(looked, named)
    for one in looked:
        own = one.result if isinstance(one.result, str) else None
        reasons = [reason for reason in (mixed.get(str(one.location)), own, *sharing.of(one)) if reason]
        if reasons:
            against[str(one.location)] = list(dict.fromkeys([*against.get(str(one.location), ()), *reasons]))
    return against


class _Sharing:
    """Which tables have files in common (hazard I7)."""

    def __init__(self, looked: Sequence[Looked], named: Sequence[RemoteTable]) -> None:
        self._titles = dict[S3Location, set[str]]()
        self._read, self._read_in = dict[S3Location, list[Looked]](), dict[S3Location, list[Looked]]()
        for table in named:
            self._titles.setdefault(table.location, set()).add(_title(table))
        for one in looked:
            for place in one.reads:
                self._read.setdefault(place, []).append(one)
                for folder in place.way_up:
                    self._read_in.setdefault(folder, []).append(one)

    def of(self, one: Looked) -> list[str]:
        """With which other tables one has files in common."""
        here = one.location
        around = {folder for place in one.reads for folder in place.way_up} - {here}
        mine = {title for folder in around for title in self._titles.get(folder, ())}
        readers = list(self._read_in.get(here, ()))
        if one.table.partitions_of:  # files of the folder that somebody reads files from are not told one by one
            readers += (reader for folder in here.way_up for reader in self._read.get(folder, ()))
        theirs = {reader.title for reader in readers if reader.location != here}
        return [
            *(f"it reads files of the table {title}" for title in sorted(mine)),
            *(f"the table {title} reads its files" for title in sorted(theirs)),
        ]


def _names(tables: Sequence[RemoteTable]) -> dict[str, set[str]]:
    """What each place is called."""
    names: dict[str, set[str]] = {}
    for table in tables:
        names.setdefault(str(table.location), set()).add(_title(table))
    return names


def _of_two_formats(tables: Sequence[RemoteTable]) -> dict[str, str]:
    """Places that are named as tables of more than one format, and how they are."""
    told: dict[str, dict[Format, str]] = {}
    for table in tables:
        if table.format is not None:
            told.setdefault(str(table.location), {})[table.format] = _title(table)
    return {
        location: "it is registered or declared as a table of two formats: "
        + ", ".join(f"{title} ({kind})" for kind, title in sorted(kinds.items()))
        for location, kinds in told.items()
        if len(kinds) > 1
    }


def _title(table: RemoteTable) -> str:
    return table.title or str(table.location)
