"""Sets of versions that were tried together (docs/stack.md): which jars and settings belong to which Spark."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from executors.formats.registry import spark_supports, support_of
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import RunError

if TYPE_CHECKING:
    from executors.formats.base import Build

_AWS_SDK = "2.29.52"
_AWS_CLIENTS = ("s3", "s3-transfer-manager", "sts", "kms", "apache-client", "netty-nio-client")


@dataclass(frozen=True)
class Profile:
    """Versions that run together. name: as in the estate file, `spark.profile`, and how pyspark's version begins.

    Which jars and extensions the table formats need of it, they say themselves (`executors.formats.base.Build`).
    ivy: folder in the home directory where its Ivy keeps what it fetched. s3a: Hadoop's S3 client. excluded: what
    that would bring and nobody needs, as `group:artifact`. prunes_quietly: whether its Iceberg passes over partitions
    without a word of the keys in a scan's description, which Spark puts into event logs and on its pages (ADR 14).
    """

    name: str
    ivy: str
    s3a: tuple[str, ...]
    excluded: tuple[str, ...] = ()
    own_conf: tuple[tuple[str, str], ...] = ()
    prunes_quietly: bool = False

    @property
    def packages(self) -> tuple[str, ...]:
        """Maven coordinates of the jars of all installed table formats."""
        return tuple(dict.fromkeys(name for build in self._builds for name in build.packages))

    @property
    def extensions(self) -> tuple[str, ...]:
        """Extensions of Spark's SQL that they bring."""
        return tuple(dict.fromkeys(name for build in self._builds for name in build.extensions))

    @property
    def conf(self) -> tuple[tuple[str, str], ...]:
        """Settings with which an engine is started.

        Raises:
            RunError: two formats want different ones.
        """
        wanted = (self.own_conf, *(build.conf for build in self._builds))
        return tuple(merged(dict(settings) for settings in wanted).items())

    def opens(self, kind: Format) -> bool:
        """Whether an installed package brings what this Spark needs for a table format."""
        support = support_of(kind)
        return support is not None and support.runs_on(self.name)

    @property
    def _builds(self) -> tuple[Build, ...]:
        return tuple(support.build(self.name) for support in spark_supports())


def merged(settings: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Settings of several table formats for one session.

    Raises:
        RunError: two want a different value.
    """
    found: dict[str, str] = {}
    for one in settings:
        clash = sorted(name for name, value in one.items() if found.get(name, value) != value)
        if clash:
            raise RunError(
                f"two table formats require different values of {', '.join(clash)}",
                todo="uninstall one of the two packages",
            )
        found |= one
    return found


SPARK_3_5 = Profile(
    name="3.5",
    ivy=".ivy2",
    s3a=("org.apache.hadoop:hadoop-aws:3.3.4",),
    prunes_quietly=True,
)
SPARK_4_1 = Profile(
    name="4.1",
    ivy=".ivy2.5.2",
    # S3A asks for a bundle of all of AWS' clients, 600 MB; these are the ones that it loads, in the bundle's version
    s3a=(
        "org.apache.hadoop:hadoop-aws:3.4.2",
        *(f"software.amazon.awssdk:{client}:{_AWS_SDK}" for client in _AWS_CLIENTS),
    ),
    excluded=("software.amazon.awssdk:bundle",),
    # else it reads no CSV in Windows-1252 (https://spark.apache.org/docs/latest/sql-migration-guide.html, 3.5 to 4.0)
    own_conf=(("spark.sql.legacy.javaCharsets", "true"),),
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
        f"pyspark {version} is not supported", todo=f"install one of the versions {', '.join(PROFILES)} (docs/stack.md)"
    )


@cache
def _version() -> str:
    """Of pyspark, asked once: PySpark puts the jars of every session on `sys.path`, and Python looks for a version in
    all of them, for seconds in a process that has had many sessions.
    """
    try:
        return importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        raise RunError("pyspark is not installed", todo="run `pip install 'pii-tracer[spark]'`") from None


def profile_of(name: str) -> Profile:
    """The profile that the estate file names.

    Raises:
        RunError: another pyspark is installed.
    """
    found = installed_profile()
    if found.name != name:
        raise RunError(
            f"the estate file requires Spark {name}, but pyspark {found.name} is installed",
            where="spark.profile",
            todo=(
                "write the installed version into the estate file, or install the version that the estate file names "
                "(docs/stack.md)"
            ),
        )
    return found
