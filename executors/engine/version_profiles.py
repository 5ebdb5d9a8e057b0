"""Sets of versions that were tried together (docs/stack.md): which jars and settings belong to which Spark."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from functools import cache

from pii_tracer.model.errors import RunError

_DELTA = "io.delta.sql.DeltaSparkSessionExtension"
_ICEBERG = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_AWS_SDK = "2.29.52"
_AWS_CLIENTS = ("s3", "s3-transfer-manager", "sts", "kms", "apache-client", "netty-nio-client")


@dataclass(frozen=True)
class Profile:
    """Versions that run together. name: as in the estate file, `spark.profile`, and how pyspark's version begins.

    ivy: folder in the home directory where its Ivy keeps what it fetched. s3a: Hadoop's S3 client. excluded: what
    that would bring and nobody needs, as `group:artifact`. prunes_quietly: whether its Iceberg passes over partitions
    without a word of the keys in a scan's description, which Spark puts into event logs and on its pages (ADR 14).
    """

    name: str
    packages: tuple[str, ...]
    extensions: tuple[str, ...]
    ivy: str
    s3a: tuple[str, ...]
    excluded: tuple[str, ...] = ()
    conf: tuple[tuple[str, str], ...] = ()
    prunes_quietly: bool = False

    @property
    def has_hudi(self) -> bool:
        """Whether there is a bundle of Hudi for this Spark."""
        return any("hudi" in package for package in self.packages)


SPARK_3_5 = Profile(
    name="3.5",
    packages=(
        "io.delta:delta-spark_2.12:3.3.3",
        "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0",
        "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0",
    ),
    extensions=(_DELTA, _ICEBERG, "org.apache.spark.sql.hudi.HoodieSparkSessionExtension"),
    ivy=".ivy2",
    s3a=("org.apache.hadoop:hadoop-aws:3.3.4",),
    conf=(
        ("spark.serializer", "org.apache.spark.serializer.KryoSerializer"),
        ("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar"),
    ),
    prunes_quietly=True,
)
SPARK_4_1 = Profile(
    name="4.1",
    packages=(
        "io.delta:delta-spark_4.1_2.13:4.4.0",
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    ),
    extensions=(_DELTA, _ICEBERG),
    ivy=".ivy2.5.2",
    # S3A asks for a bundle of all of AWS' clients, 600 MB; these are the ones that it loads, in the bundle's version
    s3a=(
        "org.apache.hadoop:hadoop-aws:3.4.2",
        *(f"software.amazon.awssdk:{client}:{_AWS_SDK}" for client in _AWS_CLIENTS),
    ),
    excluded=("software.amazon.awssdk:bundle",),
    # else it reads no CSV in Windows-1252 (https://spark.apache.org/docs/latest/sql-migration-guide.html, 3.5 to 4.0)
    conf=(("spark.sql.legacy.javaCharsets", "true"),),
)
PROFILES = {profile.name: profile for profile in (SPARK_3_5, SPARK_4_1)}


def installed_profile() -> Profile:
    """The profile of the pyspark that is installed.

    Raises:
        RunError: none was tried with it, or there is no pyspark.
    """
    version = _version()
    for profile in PROFILES.values():
        if version.startswith(profile.name + "."):
            return profile
    raise RunError(
        f"pyspark {version} was not tried", todo=f"install one of the versions {', '.join(PROFILES)} (docs/stack.md)"
    )


@cache
def _version() -> str:
    """Of pyspark, asked once: PySpark puts the jars of every session on `sys.path`, and Python looks for a version in
    all of them, for seconds in a process that has had many sessions.
    """
    try:
        return importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        raise RunError("pyspark is not installed", todo="pip install pii-tracer") from None


def profile_of(name: str) -> Profile:
    """The profile that the estate file names.

    Raises:
        RunError: another pyspark is installed.
    """
    found = installed_profile()
    if found.name != name:
        raise RunError(
            f"the estate file wants Spark {name} and pyspark {found.name} is installed",
            where="spark.profile",
            todo="name the installed version in the estate file, or install the other one (docs/stack.md)",
        )
    return found
