"""Bare folders in S3 that steps can erase: tables of data files without a log, each object a whole of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from functools import partial

from pii_tracer.common.plurals import counted
from pii_tracer.lake.catalogs.registered_tables import RemoteTable
from pii_tracer.lake.formats.plain_files.store_folder import in_no_partition, objects_below
from pii_tracer.lake.formats.plain_files.table_state import told_by
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.read_result import Found
from pii_tracer.lake.stores.s3.deletion_obstacles import Folders
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.lake.stores.s3.table_look_types import Looked, judged
from pii_tracer.model.datasets import PLAIN, Format
from pii_tracer.model.hive_text.layout import text_properties


def look_at_bare(
    kind: Format, declared: Sequence[RemoteTable], sources: Collection[str], folders: Folders
) -> list[Looked]:
    """The bare folders of a format among the tables that the estate file declares, each place once: as named first.

    sources: tables that tell who the persons are.
    """
    first = {str(t.location): t for t in reversed(declared) if t.format in PLAIN}
    return [
        Looked(table, judged(partial(_look, table, sources, folders)))
        for table in first.values()
        if table.format is kind
    ]


def _look(table: RemoteTable, sources: Collection[str], folders: Folders) -> Found | str:
    place = folders.path(table.location)
    return (
        folders.against(place)
        or table.misread
        or folders.without_rows(table.location)
        or (folders.unnamed_around(place) if table.partitions_of else folders.data_of_unnamed(place))
        or ("a subject's source cannot be a bare folder in S3" if table.name in sources else None)
        or _found(table, place)
    )


def _found(table: RemoteTable, place: S3Path) -> Found | str:
    listed = sorted(place.walk())
    files, others = objects_below(place, listed, table.text)
    if others:
        what, first = counted(len(others), "object"), others[0].location.key
        return f"it contains {what} other than data files that engines read: {first}{in_no_partition(place, others[0])}"
    strange = sorted({str(file.format) for file in files if file.format is not table.format})
    if strange:
        return f"it contains objects of different formats ({', '.join(strange)})"
    if not files:
        return "it contains no data file"
    files = sorted(files, key=lambda f: str(f.path))
    told = told_by(place, files)
    if told.apart:
        return told.apart
    digest = hashlib.sha256()
    for name, size, when in listed:
        digest.update(f"{name}\0{size}\0{when}\n".encode())
    properties = text_properties(table.text)
    digest.update("".join(properties.values()).encode())
    return Found(
        TableState(
            dataset=table.location.dataset,
            table=table.name,
            location=str(place),
            format=files[0].format,
            snapshot="sha256:" + digest.hexdigest(),
            bytes=sum(size for _, size, _ in listed),
            partitions_of=table.partitions_of,
            properties=properties | told.properties,
            **told.fields,
        ),
        (),
    )
