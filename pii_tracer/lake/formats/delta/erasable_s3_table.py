"""Delta tables in S3 that steps can erase, by their logs: all files lie in the table's folder."""

from __future__ import annotations

from collections.abc import Sequence

from pii_tracer.lake.catalogs.registered_tables import RemoteTable
from pii_tracer.lake.formats.delta.s3_log import source_of
from pii_tracer.lake.formats.delta.stored_table_look import astray, found_in_store
from pii_tracer.lake.formats.delta.transaction_log import DeltaSnapshot, read_log
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.stray_file_marks import STAY_IN_S3
from pii_tracer.lake.read_result import Found
from pii_tracer.lake.stores.s3.deletion_obstacles import Folders
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.lake.stores.s3.table_look_types import Looked, judged
from pii_tracer.model.locations import S3Location


def look_at_delta(declared: Sequence[RemoteTable], folders: Folders) -> list[Looked]:
    """The Delta tables among those that the estate file declares, each place once."""
    first = {str(t.location): t for t in reversed(declared) if t.format is DELTA}
    return [_looked(table, folders) for table in first.values()]


def _looked(table: RemoteTable, folders: Folders) -> Looked:
    reads: set[S3Location] = set()

    def look() -> Found | str:
        place = folders.path(table.location)
        snapshot = read_log(place)
        reads.update(_read(snapshot, table.location))
        return (
            folders.against(place)
            or astray(snapshot, source_of(snapshot), table.location)
            or found_in_store(snapshot, place, table.location.dataset, table.name, STAY_IN_S3)
        )

    return Looked(table, judged(look), reads)


def _read(snapshot: DeltaSnapshot[S3Path], location: S3Location) -> set[S3Location]:
    """A clone that has rewritten every file still holds its source's history, so the log's word counts too."""
    origin = source_of(snapshot)
    outside = {file.path.location.parent for file in snapshot.files if file.external}
    return outside | ({origin} if origin and origin != location else set())
