"""What a session is told: jars and settings, of the estate's profile, catalogs and S3."""

from __future__ import annotations

from pathlib import Path

from executors.engine.s3a_settings import s3a_conf
from executors.engine.spark_connect import EXTENSIONS
from executors.engine.version_profiles import merged, profile_of
from executors.formats.registry import spark_supports
from pii_tracer.config.estate_file import Estate

_EVERY_FILE = {"spark.sql.files.ignoreCorruptFiles": "false", "spark.sql.files.ignoreMissingFiles": "false"}
"""Whatever else is configured: a statement that reads a broken file as far as it can writes just that again, and who
counts the person's rows so passes over the rest.
"""
_CALENDARS = tuple(
    f"spark.sql.{what}RebaseModeIn{way}"
    for what in ("parquet.datetime", "parquet.int96", "avro.datetime")
    for way in ("Read", "Write")
)


def session_conf(estate: Estate, base: Path, *, s3: bool = False) -> dict[str, str]:
    """Spark settings for an estate whose file lies in `base`. s3: of a session for tables in S3.

    Raises:
        RunError: another pyspark is installed than the estate file's profile needs; as `s3a_conf`.
    """
    profile = profile_of(estate.spark.profile)
    return {
        **(s3a_conf(estate) if s3 else {}),
        "spark.jars.packages": ",".join(packages(estate, s3=s3)),
        **({"spark.jars.excludes": ",".join(profile.excluded)} if profile.excluded else {}),
        EXTENSIONS: ",".join(profile.extensions),
        **dict(profile.conf),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **runtime_conf(estate, base),
    }


def packages(estate: Estate, *, s3: bool) -> tuple[str, ...]:
    """Maven coordinates of all the jars that a session needs."""
    profile = profile_of(estate.spark.profile)
    return (*profile.packages, *catalog_packages(estate), *(profile.s3a if s3 else ()))


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
