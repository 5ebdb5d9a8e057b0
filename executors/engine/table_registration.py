"""The tables of an estate file, known to a Spark session by their names."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from executors.catalogs.registry import spark_catalogs
from executors.engine.local_files import as_local
from executors.engine.sql_names import quote, string_literal
from executors.engine.version_profiles import installed_profile
from executors.formats.registry import support_of
from executors.stores.spark_connectors import S3, store_of
from pii_tracer.config.catalogs import DeclaredTable
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.catalogs.base import in_session_catalog
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.stores.any_place import RemotePath, folder_at
from pii_tracer.lake.stores.s3.archive_versions import s3_clients
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.datasets import PLAIN, Format
from pii_tracer.model.errors import EstateError, RunError
from pii_tracer.model.locations import (
    engine_path,
    hdfs_location,
    in_place,
    is_hdfs,
    is_object_place,
    is_remote,
    is_s3,
    object_location,
    s3_location,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CATALOGS_ASKED = "spark.pii-tracer.catalogs-asked-for"
_LEFT_OUT = "spark.pii-tracer.left-out."
_SEEN = "spark.pii-tracer.seen."
_TOLD = "spark.pii-tracer.tables-told"
_TRACKED = "spark.sql.hive.manageFilesourcePartitions"
_NO_SUPPORT = "NoSparkSupport"
"""In place of Spark's error, of a table whose format no installed executor works on with Spark."""


def register_tables(spark: SparkSession, estate: Estate, base: Path, stores: Collection[str] = ()) -> None:
    """Make every declared table that exists on disk known under its name (the session catalog is in memory).

    So are the tables of catalogs that Spark does not find there by itself; they are asked once for a session. stores:
    and those in these whose formats have a folder that tells them; those in HDFS always are. A session is told once of
    the same tables: steps ask for theirs many times, and an estate has thousands of names. One in a store that is not
    there yet is looked for again each time.

    Raises:
        RunError: Spark cannot open one, or knows another table by its name.
    """
    declared = [table for catalog in estate.catalogs.values() for table in catalog.tables]
    here = [t for t in declared if not is_remote(t.location) and (base / t.location).exists()]
    there = [(t.name, t.format, t.location) for t in declared if _is_reached(t, stores)]
    told = "\n".join(repr((str(base), t.name, str(t.format), t.location)) for t in here)
    digest = hashlib.sha256(told.encode()).hexdigest()
    if spark.conf.get(_TOLD, "") != digest:
        for table in here:
            _register(spark, table.name, table.format, base / table.location)
        spark.conf.set(_TOLD, digest)
    for named in there:
        _register_in_store(spark, estate, *named)
    if any(c.other_formats for c in spark_catalogs(estate)) and spark.conf.get(_CATALOGS_ASKED, "") != (
        asked := f"{base} {sorted(stores)}"
    ):
        registry = EstatePaths(estate, base).registry
        for remote in registry.remote if S3 in stores else ():
            if remote.name and remote.format and remote.metadata is None and in_session_catalog(remote.name):
                _register_in_store(spark, estate, remote.name, remote.format, str(remote.location))
        for in_hdfs in registry.hdfs:
            if in_hdfs.name and "hdfs" in format_of(in_hdfs.format).erased_in and in_session_catalog(in_hdfs.name):
                _register_in_store(spark, estate, in_hdfs.name, in_hdfs.format, str(in_hdfs.location))
        for stored in registry.stored if stores else ():
            reached = store_of(str(stored.location)) in stores
            if stored.name and reached and stored.format not in PLAIN and in_session_catalog(stored.name):
                _register_in_store(spark, estate, stored.name, stored.format, str(stored.location))
        for registered in registry.tables.values():
            support = support_of(registered.format)
            for name in registered.names if support is None or not support.in_catalogs else ():
                if in_session_catalog(name):  # the session has no other catalog's tables: steps go by their places
                    _register(spark, name, registered.format, registered.location)
        spark.conf.set(_CATALOGS_ASKED, asked)


def _register(spark: SparkSession, full_name: str, kind: Format, location: Path) -> None:
    if not location.exists():
        return
    table = _made_room(spark, full_name)
    if _tried(spark, full_name)[1] == str(location):
        return
    if spark.catalog.tableExists(table):
        _refuse_another(spark, table, full_name, str(location))
        return
    support = support_of(kind)
    if support is None:
        spark.conf.set(_key(full_name), f"{_NO_SUPPORT} {location}")
        return
    using = f"USING {support.source(kind)} LOCATION {string_literal(str(location))}"
    try:
        with nullcontext() if support.known_by_name else _partitions_on_disk(spark):
            spark.sql(f"CREATE TABLE {table} {using}")
    except Exception as error:  # a format without a reader (Avro), types that Spark refuses, files that are none
        _not_opened(spark, full_name, kind, str(location), error)


def _is_reached(table: DeclaredTable, stores: Collection[str]) -> bool:
    """Whether it lies in a store that the session reaches, as a table that Spark works on."""
    if is_s3(table.location):
        return S3 in stores
    scheme = store_of(table.location)
    by_folder = format_of(table.format).erased_in
    return (is_hdfs(table.location) and "hdfs" in by_folder) or (scheme in stores and scheme in by_folder)


def _register_in_store(spark: SparkSession, estate: Estate, name: str, kind: Format, where: str) -> None:
    """Asked once for a session, from when the table is there: to look costs requests. One that its store refuses is
    left out: perhaps nobody needs it now, and whoever does is told."""
    location = _resolved(where)
    if not format_of(kind).sign_folders:
        return
    if _tried(spark, name)[1] == location or spark.conf.get(_seen(name), "") == location:
        return
    table = _made_room(spark, name)
    if spark.catalog.tableExists(table):
        _refuse_another(spark, table, name, location)
        return
    support = support_of(kind)
    if support is None:
        spark.conf.set(_key(name), f"{_NO_SUPPORT} {location}")
        return
    try:
        folder = _folder(estate, location)
        if not any((folder / sign).is_dir() for sign in sorted(format_of(kind).sign_folders)):
            return
    except OSError as error:
        spark.conf.set(_key(name), f"{type(error).__name__} {location}")
        return
    using = f"USING {support.source(kind)} LOCATION {string_literal(engine_path(location))}"
    try:
        spark.sql(f"CREATE TABLE {table} {using}")
    except Exception as error:
        _not_opened(spark, name, kind, location, error)
        return
    spark.conf.set(_seen(name), location)


def _folder(estate: Estate, location: str) -> RemotePath:
    """A table's folder in its store. Raises `OSError`: S3 refuses; `EstateError`: it is not declared."""
    if in_place(location):
        return folder_at(estate, location)
    return S3Path.of(s3_location(location), s3_clients(estate))


def _made_room(spark: SparkSession, full_name: str) -> str:
    """A declared table's quoted name, in a schema that exists.

    Raises:
        EstateError: it is no name of a schema and a table.
    """
    parts = full_name.removeprefix("spark_catalog.").split(".")
    if len(parts) != 2:
        raise EstateError(
            f"the declared table `{full_name}` needs a schema and a name", todo="write the name as `schema.table`"
        )
    schema, name = (quote(part) for part in parts)
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {schema}")
    return f"{schema}.{name}"


def _not_opened(spark: SparkSession, full_name: str, kind: Format, location: str, error: Exception) -> None:
    """Note it of a table that no step knows by its name: a bare folder, or one whose format is not for this Spark.

    The name is then only for recorded statements that read it; no other table should have to wait for that.

    Raises:
        RunError: it is another one.
    """
    support = support_of(kind)
    if support is not None and support.known_by_name and support.runs_on(installed_profile().name):
        raise RunError(
            f"Spark cannot open the {kind} table {full_name}: {type(error).__name__}",
            where=location,
            todo="correct the table's entry in the estate file, or repair the table",
        ) from error
    spark.conf.set(_key(full_name), f"{type(error).__name__} {location}")


@contextmanager
def _partitions_on_disk(spark: SparkSession) -> Iterator[None]:
    """Tables of bare folders that are made inside have the partitions whose folders are there when they are read.

    Otherwise Spark's catalog keeps a list of them, which is empty: so is the table. Recovered into it, they would be
    those of now, and steps of the run write new ones and remove some. What the session makes later is listed as before.
    """
    before = str(spark.conf.get(_TRACKED, "true"))
    spark.conf.set(_TRACKED, "false")
    try:
        yield
    finally:
        spark.conf.set(_TRACKED, before)


def _refuse_another(spark: SparkSession, table: str, full_name: str, location: str) -> None:
    """A Connect server's catalog belongs to others too: by the name, their table must not be erased from.

    Asked once for a session: a session of our own knows the tables that it was told of.

    Raises:
        RunError: the name leads to another place.
    """
    if spark.conf.get(_seen(full_name), "") == location:
        return
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    places = [row["data_type"] for row in rows if row["col_name"] == "Location"]
    if not places or _resolved(places[-1]) != _resolved(location):
        raise RunError(
            f"Spark's catalog has a different table with the name {full_name}",
            where=location,
            todo="rename the table in the estate file, or drop the different table from Spark's catalog",
        )
    spark.conf.set(_seen(full_name), location)


def _resolved(location: str) -> str:
    """A place as it is compared with others."""
    if is_hdfs(location):
        return str(hdfs_location(location))
    if is_object_place(location):
        return str(object_location(location))
    return str(s3_location(location)) if is_s3(location) else str(Path(as_local(location)).resolve())


def _seen(table: str) -> str:
    return _SEEN + table.removeprefix("spark_catalog.").lower()


def left_out(spark: SparkSession, table: str) -> str | None:
    """Why a declared table is not known by its name, as the class of Spark's error; None where it is, or no such is."""
    return _tried(spark, table)[0] or None


def _tried(spark: SparkSession, table: str) -> tuple[str, str]:
    """The error and the place of a table that could not be registered."""
    error, _, location = str(spark.conf.get(_key(table), "")).partition(" ")
    return error, location


def _key(table: str) -> str:
    return _LEFT_OUT + table.removeprefix("spark_catalog.").lower()
