"""Hudi tables in S3 that steps can erase, by their timelines and file slices: all files lie in the table's folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pii_tracer.lake.catalogs.registered_tables import RemoteTable
from pii_tracer.lake.formats.hudi.properties import HUDI_BOOTSTRAPPED
from pii_tracer.lake.formats.hudi.table_state import hudi_properties, load_hudi, state_of
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.read_result import Found
from pii_tracer.lake.stores.s3.deletion_obstacles import Folders
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.lake.stores.s3.table_look_types import Looked, judged
from pii_tracer.model.locations import S3Location, is_s3, s3_location

_BOOTSTRAPPED = "it was bootstrapped, and reads files outside its folder"


def look_at_hudi(
    declared: Sequence[RemoteTable], folders: Folders, options: Callable[[], Mapping[str, str]]
) -> list[Looked]:
    """The Hudi tables among those that the estate file declares, each place once. options: how hudi-rs reaches S3."""
    first = {str(t.location): t for t in reversed(declared) if t.format is HUDI}
    return [_looked(table, folders, options) for table in first.values()]


def _looked(table: RemoteTable, folders: Folders, options: Callable[[], Mapping[str, str]]) -> Looked:
    reads: set[S3Location] = set()

    def look() -> Found | str:
        place = folders.path(table.location)
        base = hudi_properties(place).get(HUDI_BOOTSTRAPPED, "")
        if is_s3(base):
            reads.add(s3_location(base))
        return folders.against(place) or (_BOOTSTRAPPED if base else None) or _found(table, place, options())

    return Looked(table, judged(look), reads)


def _found(table: RemoteTable, place: S3Path, options: Mapping[str, str]) -> Found:
    opened = load_hudi(place, options)
    sizes = {path: size for path, size, _ in place.walk()}
    return state_of(opened, place, table.location.dataset, table.name, sizes.get)
