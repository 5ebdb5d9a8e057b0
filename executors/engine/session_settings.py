"""What a session is told: jars and settings, of the estate's profile, catalogs and S3."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from executors.engine.spark_connect import EXTENSIONS
from executors.engine.spark_submit import is_submitted
from executors.engine.version_profiles import Profile, merged, profile_of
from executors.formats.registry import spark_supports
from executors.stores.spark_connectors import connectors
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.stores.hdfs.nameservice_settings import spark_settings

_EVERY_FILE = {"spark.sql.files.ignoreCorruptFiles": "false", "spark.sql.files.ignoreMissingFiles": "false"}
"""Whatever else is configured: a statement that reads a broken file as far as it can writes just that again, and who
counts the person's rows so passes over the rest.
"""
_LOCAL = {"spark.locality.wait": "0s"}
"""A local Spark offers tasks no second time by itself: one that waits for a host with its blocks, as those of HDFS are
told, can wait for ever.
"""
_CALENDARS = tuple(
    f"spark.sql.{what}RebaseModeIn{way}"
    for what in ("parquet.datetime", "parquet.int96", "avro.datetime")
    for way in ("Read", "Write")
)


def session_conf(estate: Estate, base: Path, stores: Collection[str] = ()) -> dict[str, str]:
    """Spark settings for an estate whose file lies in `base`. stores: the schemes of those in which it
    reaches tables.

    Raises:
        RunError: another pyspark is installed than the estate file's profile needs; a store
            cannot be reached as the estate file says.
    """
    profile = profile_of(estate.spark.profile)
    return {
        **{name: value for one in connectors(stores) for name, value in one.conf(estate).items()},
        **spark_settings(estate),
        **_jars(estate, stores),
        "spark.jars.packages": ",".join(packages(estate, stores)),
        **({"spark.jars.excludes": ",".join(profile.excluded)} if profile.excluded else {}),
        EXTENSIONS: ",".join(profile.extensions),
        **dict(profile.conf),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **({} if estate.spark.is_cluster else _LOCAL),
        **runtime_conf(estate, base),
    }


def packages(estate: Estate, stores: Collection[str]) -> tuple[str, ...]:
    """Maven coordinates of all the jars that a session needs."""
    return wanted_packages(profile_of(estate.spark.profile), estate, stores)


def wanted_packages(profile: Profile, estate: Estate | None, stores: Collection[str]) -> tuple[str, ...]:
    """As `packages`, of a profile; without an estate, of the table formats and stores alone."""
    of_stores = (name for one in connectors(stores) for name in one.packages(profile))
    return (*profile.packages, *(catalog_packages(estate) if estate else ()), *of_stores)


def wanted_files(profile: Profile, estate: Estate, stores: Collection[str]) -> tuple[Path, ...]:
    """Jars beside them, fetched where they are not there."""
    return tuple(jar for one in connectors(stores) for jar in one.jars(estate, profile))


def _jars(estate: Estate, stores: Collection[str]) -> dict[str, str]:
    """What spark-submit started has its jars."""
    found = [] if is_submitted() else wanted_files(profile_of(estate.spark.profile), estate, stores)
    return {"spark.jars": ",".join(map(str, found))} if found else {}


def catalog_packages(estate: Estate) -> dict[str, str]:
    """Jars beside the table formats' that the estate's catalogs need, as Maven coordinates, each with a class of it."""
    found = {name: made for support in spark_supports() for name, made in support.catalog_packages(estate).items()}
    return dict(sorted(found.items()))


def runtime_conf(estate: Estate, base: Path) -> dict[str, str]:
    """The settings that a session can be given after its engine was started.

    Raises:
        RunError: two table formats want different ones.
    """
    conf = {
        "spark.sql.session.timeZone": "UTC",
        # small tables: without these every shuffle plans 200 tasks
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        # days before 1582 and times before 1900 (`0001-01-01`) go through as they stand, as on Spark 4; left to itself
        # Spark 3.5 neither writes them nor reads what other writers than Spark wrote
        **dict.fromkeys(_CALENDARS, "CORRECTED"),
        # a plan printed into an event log must not hold long literals
        "spark.sql.maxMetadataStringLength": "20",
    }
    formats = merged({**support.settings, **support.catalog_conf(estate, base)} for support in spark_supports())
    return conf | formats | estate.spark.conf | _EVERY_FILE
