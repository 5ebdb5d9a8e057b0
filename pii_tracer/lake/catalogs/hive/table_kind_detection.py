"""What a table of the metastore, or of Glue, is made of: by its type, its parameters and how its files are read.

How engines mark their tables: https://iceberg.apache.org/docs/latest/hive/ (`table_type`, `metadata_location`),
https://spark.apache.org/docs/latest/sql-data-sources-hive-tables.html and Spark's `HiveExternalCatalog`
(`spark.sql.sources.provider`, `path` beside the serializer), https://hudi.apache.org/docs/syncing_metastore/,
https://hive.apache.org/docs/latest/user/hive-transactions/ (`transactional`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pii_tracer.common.plurals import counted
from pii_tracer.lake.catalogs.glue.table_format_marks import GlueMarks
from pii_tracer.lake.catalogs.hive.text_tables import TEXT_INPUT, is_text, layout_of
from pii_tracer.lake.formats.base import TableFormat
from pii_tracer.lake.formats.registry import table_formats
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import EstateError
from pii_tracer.model.hive_text.columns import UnreadText
from pii_tracer.model.hive_text.layout import TextLayout
from pii_tracer.model.hive_text.spark_options import spark_layout
from pii_tracer.model.locations import (
    S3Location,
    hdfs_location,
    is_hdfs,
    is_object_place,
    is_remote,
    location_of,
    object_location,
)

_WITH_ROWS = frozenset({"MANAGED_TABLE", "EXTERNAL_TABLE"})
_PROVIDERS = {"parquet": Format.PARQUET, "orc": Format.ORC, "avro": Format.AVRO, "csv": Format.CSV, "json": Format.JSON}
_READERS = {
    "org.apache.hadoop.hive.ql.io.parquet.mapredparquetinputformat": Format.PARQUET,
    "parquet.hive.deprecatedparquetinputformat": Format.PARQUET,
    "org.apache.hadoop.hive.ql.io.orc.orcinputformat": Format.ORC,
    "org.apache.hadoop.hive.ql.io.avro.avrocontainerinputformat": Format.AVRO,
}
_JSON_LINES = frozenset(
    {
        "org.apache.hive.hcatalog.data.jsonserde",
        "org.apache.hadoop.hive.serde2.jsonserde",
        "org.openx.data.jsonserde.jsonserde",
    }
)
_AS_USUAL = frozenset({"path", "header", "inferschema", "serialization.format", "compression"})
"""Options under which text is read as it is here. With any other one it may be another text."""


@dataclass(frozen=True)
class Kept:
    """A table that is known. location: its folder; metadata: the file that counts (Iceberg). plain: bare files.

    layout: of text by columns, which no file describes."""

    format: Format
    location: str | None
    metadata: str | None = None
    by_metadata: bool = False
    plain: bool = False
    layout: TextLayout | None = None


@dataclass(frozen=True)
class Refused:
    """A table that cannot be read, and why. places: its folders, as far as they are told."""

    reason: str
    places: tuple[str, ...]


def is_view(table: Any) -> bool:
    """Whether it has no rows of its own. A materialized view has."""
    return str(table.tableType) == "VIRTUAL_VIEW"


def is_csv_of_spark(table: Any) -> bool:
    """Whether Spark reads it, with options of its own CSV reader (`USING csv`)."""
    return parameters_of(table).get("spark.sql.sources.provider", "").lower() == Format.CSV.value


def parameters_of(owner: Any) -> dict[str, str]:
    """Parameters of a table, a partition, its storage or its serializer, by their names in small letters."""
    found = owner.parameters if owner is not None else None
    return {str(key).lower(): str(value) for key, value in (found or {}).items()}


def place_of(storage: Any) -> str | None:
    """Where a table or partition lies. Spark's placeholder is no place: the path then stands beside the serializer."""
    if storage is None:
        return None
    place = _path(str(storage.location or ""))
    return _path(_spark_path(storage)) if not place or place.endswith("-__PLACEHOLDER__") else place


def _spark_path(storage: Any) -> str:
    return parameters_of(storage.serdeInfo).get("path", "")


def _path(text: str) -> str | None:
    """Hadoop writes paths behind `file:` as they are, with `%` for itself: no URI to be decoded."""
    return re.sub(r"^file:(//(localhost)?)?(?=/)", "", text) or None


def kept_as(table: Any, storage: Any = None) -> Kept | Refused:
    """What a table is; storage: of one of its partitions in place of its own. Whatever is not known is refused."""
    own = parameters_of(table)
    storage = storage or table.sd
    serde = storage.serdeInfo if storage is not None else None
    options = parameters_of(serde)
    reader = str((storage and storage.inputFormat) or "").lower()
    provider = own.get("spark.sql.sources.provider", "").lower()
    classification = own.get("classification", "").lower()
    marks = GlueMarks(provider, own.get("table_type", "").lower(), classification, reader)
    location = place_of(storage)
    adapter = _adapter(marks)
    if adapter and adapter.registered_by_metadata:
        return Kept(adapter.name, location, own.get("metadata_location"), by_metadata=True)
    places = tuple(one for one in (location, _path(_spark_path(storage)) if storage is not None else None) if one)
    if reason := _not_plain(table, own, storage):
        return Refused(reason, places)
    if not location:
        return Refused("a registered table without a location", ())
    if provider and storage is table.sd and any(not lies_inside(place, location) for place in places):
        return Refused("a table for which Spark and Hive use different places: set its location with Spark", places)
    if adapter:
        return Kept(adapter.name, location)
    # crawlers and Athena say it in one word; an input format says it better
    if not provider and reader == TEXT_INPUT and is_text(storage):
        return _text(table, storage, location, places)
    word = provider or (classification if not reader else "")
    kind = _plain(word, reader, str((serde and serde.serializationLib) or "").lower())
    if kind is None:
        return Refused("a registered table of an unknown format", places)
    if is_csv_of_spark(table) and storage is not table.sd:
        return Kept(kind, location, plain=True)  # Spark reads it with the table's options
    if is_csv_of_spark(table) and _unusual(kind, options):
        return _by_spark(options, location, places)
    if kind in (Format.CSV, Format.JSON) and (other := _unusual(kind, options)):
        return Refused(f"a table of {kind} files with {other}, a combination that the tool does not read", places)
    return Kept(kind, location, plain=True)


def _text(table: Any, storage: Any, location: str, places: tuple[str, ...]) -> Kept | Refused:
    try:
        # a partition's own characters are asked for where all of the table is known (`text_table`)
        layout = layout_of(table) if storage is table.sd else None
    except UnreadText as error:
        return Refused(unread_text(error), places)
    return Kept(Format.CSV, location, plain=True, layout=layout)


def _by_spark(options: dict[str, str], location: str, places: tuple[str, ...]) -> Kept | Refused:
    try:
        return Kept(Format.CSV, location, plain=True, layout=spark_layout(options))
    except UnreadText as error:
        return Refused(unread_text(error), places)


def unread_text(error: UnreadText) -> str:
    """The reason of a gap, with what an owner can do."""
    return (
        f"a table of delimited text or CSV that the tool does not read: {error}. Rewrite the table as Parquet or with "
        "different characters. Or erase the person with the table's engine, then waive this gap"
    )


def _not_plain(table: Any, own: dict[str, str], storage: Any) -> str | None:
    """Why the files of a table are not its rows, though they may look so."""
    if own.get("transactional", "").lower() == "true" or "transactional_properties" in own:
        return (
            "a transactional table of Hive's: rows that were deleted stay in its files until a major compaction. "
            "Delete the person by Hive, run ALTER TABLE … COMPACT 'major', and check that Hive's cleaner removed the "
            "old folders"
        )
    if str(table.tableType) == "MATERIALIZED_VIEW":
        return (
            "a materialized view, which contains rows of its source tables. Erase the source tables, then rebuild "
            "the view with Hive (ALTER MATERIALIZED VIEW … REBUILD)"
        )
    if str(table.tableType) not in _WITH_ROWS:
        return "neither a table nor a view, but an object of an unknown kind"
    if own.get("storage_handler"):
        return "a storage handler stores its rows, in a place that the metastore does not show"
    if storage is not None and storage.storedAsSubDirectories:
        return (
            "a skewed table that is stored as directories, which the tool does not read. Rewrite the table without "
            "STORED AS DIRECTORIES (ALTER TABLE … NOT STORED AS DIRECTORIES)"
        )
    return None


def _adapter(marks: GlueMarks) -> TableFormat | None:
    """The table format whose marks these are: Glue's tables are a metastore's, and are marked alike."""
    adapters = sorted(table_formats(), key=lambda one: not one.registered_by_metadata)
    return next((one for one in adapters if one.is_in_glue(marks)), None)


def _plain(provider: str, reader: str, serializer: str) -> Format | None:
    if provider:
        return _PROVIDERS.get(provider)
    if reader == TEXT_INPUT:
        return Format.JSON if serializer in _JSON_LINES else None
    return _READERS.get(reader)


def _unusual(kind: Format, options: dict[str, str]) -> str | None:
    # a file of JSON shows by itself whether it is one document (`scan.rows.json_documents`)
    if other := options.keys() - _AS_USUAL - ({"multiline"} if kind is Format.JSON else set()):
        return f"{counted(len(other), 'option of its own', 'options of their own')}"
    if kind is Format.CSV and options.get("header", "").lower() != "true":
        return "no names of columns in their first line"
    return None


def lies_inside(place: str, folder: str) -> bool:
    """Whether a partition lies in its table's folder, however both are written. What cannot be told does not: engines
    take a place in a bucket with an empty part, `.` or `..` for different folders."""
    if place == folder:
        return True
    try:
        if is_hdfs(place) and is_hdfs(folder):
            return hdfs_location(folder).holds(hdfs_location(place))
        if is_remote(place) and _is_odd(place.partition("://")[2].partition("/")[2]):
            front = f"{folder.removesuffix('/')}/"  # the very same one leads to one folder, however it is read
            return place.startswith(front) and not _is_odd(place.removeprefix(front))
        if is_object_place(place) and is_object_place(folder):
            return object_location(folder).holds(object_location(place))
        mine, other = location_of(folder), location_of(place)
    except EstateError:
        return False
    if isinstance(mine, S3Location) or isinstance(other, S3Location):
        return isinstance(mine, S3Location) and isinstance(other, S3Location) and mine.holds(other)
    return other.resolve().is_relative_to(mine.resolve())


def _is_odd(path: str) -> bool:
    """Whether a path in a store has an empty part, `.` or `..`, but for the slash at its end."""
    path = path.removesuffix("/")
    return bool(path) and not {"", ".", ".."}.isdisjoint(path.split("/"))
