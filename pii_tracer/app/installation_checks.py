"""What is missing on this machine, and how to mend it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.common.atomic_files import real_path
from pii_tracer.common.kerberos import NoTicket, seconds_left
from pii_tracer.common.plurals import counted
from pii_tracer.common.str_enum import StrEnum
from pii_tracer.config.catalogs import CatalogType
from pii_tracer.lake.catalogs.base import Capability
from pii_tracer.lake.catalogs.registry import catalog_of, catalogs_that, list_catalogs
from pii_tracer.lake.formats.registry import table_formats
from pii_tracer.model.errors import PiiTracerError
from pii_tracer.model.gap_kinds import GapKind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pii_tracer.config.estate_file import Estate
    from pii_tracer.model.datasets import Format


_PROBED = 3
"""Of so many tables of a catalog, `doctor` asks what a plan asks of all of them."""
_TEXTS = 300
"""It takes so many answers at most: a table can have any number of partitions."""


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    MISSING = "missing"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; `mend` says what to do about it."""

    level: Level
    what: str
    detail: str
    mend: str = ""


def examine(estate_file: Path, *, fetch: bool = False) -> list[Finding]:
    """Look at Python, packages, Java, Spark's jars, the estate file, catalogs and credentials; take away what killed
    processes left in scratch folders.

    fetch: start Spark once, so that its jars are fetched and known to work.
    """
    asked = _asked(estate_file)
    remote = asked.estate.spark.remote if asked.estate else None
    return [
        _python(),
        *_packages(),
        _one_distribution(),
        *(_connect(estate_file, remote) if remote else (_java(), *_spark(asked, fetch=fetch))),
        *_estate(estate_file, asked),
        *_scratch(estate_file),
    ]


@dataclass(frozen=True)
class _Asked:
    """The estate, where its file can be read, and what its catalogs answered, each of which is asked once. findings: of
    them, and of the file.
    """

    estate: Estate | None = None
    findings: tuple[Finding, ...] = ()
    named: tuple[tuple[str, Format], ...] = ()
    """Place and format of the tables that catalogs name."""


def _asked(path: Path) -> _Asked:
    from pii_tracer.config.estate_file import load_estate

    if not path.exists():
        mend = "run `pii-tracer init`, or name it by --estate"
        return _Asked(None, (Finding(Level.WARNING, "estate file", f"{path} is not here", mend),))
    try:
        estate = load_estate(path)
    except PiiTracerError as error:
        return _Asked(None, (Finding(Level.MISSING, "estate file", f"{path}: {error.what}", error.todo or ""),))
    named: list[tuple[str, Format]] = []
    base = real_path(path).parent
    findings = tuple(_catalogs(estate, base, named))
    return _Asked(estate, findings, tuple(named))


def _scratch(estate_file: Path) -> Iterator[Finding]:
    """What processes that were killed left behind, which may be rows of anybody: told, and taken away."""
    from executors.engine.scratch_settings import scratch_places
    from pii_tracer.common.scratch_folders import leftovers, size_of, wipe
    from pii_tracer.config.estate_file import load_estate

    conf: dict[str, str] = {}
    with suppress(PiiTracerError):
        conf = dict(load_estate(estate_file).spark.conf) if estate_file.exists() else {}
    for path in leftovers(scratch_places(conf)):
        told = f"{path}: {size_of(path) / 1e6:,.1f} MB that a killed process left"
        if wipe([path]):
            yield Finding(Level.WARNING, "scratch folder", f"{told}; it could not be removed", f"remove {path}")
        else:
            yield Finding(Level.OK, "scratch folder", f"{told}; removed")


def _python() -> Finding:
    return Finding(Level.OK, "Python", ".".join(str(part) for part in sys.version_info[:3]))


def _packages() -> Iterator[Finding]:
    only = {
        "pyspark": "what erases and compares rows needs it",
        "confluent-kafka": "only estates with topics need it",
        "protobuf": "only estates with topics need it",
        "moto": "only the demo needs it",
    }
    names = ["pyspark", *(library for one in table_formats() for library in one.libraries), "boto3", *list(only)[1:]]
    for name in dict.fromkeys(names):
        try:
            yield Finding(Level.OK, name, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            extra = _extra_of(name)
            how = f"pip install 'pii-tracer[{extra}]'" if extra else "pip install pii-tracer"
            reason = f" ({only[name]})" if name in only else ""
            yield Finding(Level.WARNING if extra else Level.MISSING, name, "not installed", how + reason)


def _extra_of(name: str) -> str | None:
    """The extra of this package that brings a distribution; None for what comes with the package itself."""
    for line in importlib.metadata.requires("pii-tracer") or ():
        found = re.fullmatch(rf"{re.escape(name)}\b.*extra == ['\"]([\w-]+)['\"].*", line)
        if found and found[1] != "dev":
            return found[1]
    return None


def foreign_packages() -> tuple[str, ...]:
    """Our top-level packages that another distribution has put its own files into or in front of."""
    ours = Path(__file__).resolve().parents[2]
    foreign = []
    for name in ("planners", "executors", "reports", "sample_lineage"):
        module = importlib.import_module(name)
        if module.__file__ is None or Path(module.__file__).resolve().parents[1] != ours:
            foreign.append(name)
    return tuple(foreign)


def _one_distribution() -> Finding:
    foreign = foreign_packages()
    if not foreign:
        return Finding(Level.OK, "installation", "all packages belong to pii-tracer")
    return Finding(
        Level.MISSING,
        "installation",
        f"another distribution owns {', '.join(foreign)}",
        "install pii-tracer in an environment of its own (pipx, uv tool, or a container)",
    )


def _java() -> Finding:
    from executors.engine.java_and_spark_paths import java_home

    try:
        home = java_home()
    except PiiTracerError as error:
        return Finding(Level.MISSING, "Java", error.what, error.todo or "")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java") or "java"
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=60).stderr
    except (OSError, subprocess.SubprocessError):
        return Finding(Level.MISSING, "Java", f"{java} does not run", "install a JDK 17, or unset JAVA_HOME")
    # JAVA_TOOL_OPTIONS are echoed before it
    version = next((line for line in output.splitlines() if " version " in line), "unknown")
    if '"17' in version or '"11' in version:
        return Finding(Level.OK, "Java", version)
    return Finding(Level.WARNING, "Java", version, "Spark 3.5 is tried with Java 17; set JAVA_HOME to one")


def _connect(estate_file: Path, remote: str) -> Iterator[Finding]:
    """Whether the server answers and has what the estate needs; Java and Spark's jars are its own there."""
    from executors.engine.spark_session import open_session
    from pii_tracer.config.estate_file import load_estate

    try:
        spark = open_session(load_estate(estate_file), real_path(estate_file).parent)
        yield Finding(Level.OK, "Spark Connect", f"{remote}: Spark {spark.version}")
        yield _workers(spark)
    except PiiTracerError as error:
        yield Finding(Level.MISSING, "Spark Connect", error.what, error.todo or "")
        return


def _workers(spark: SparkSession) -> Finding:
    """Whether the server's Python workers have this package in this version: functions reach them by name."""
    from pyspark.sql.types import StringType, StructField, StructType

    from pii_tracer import __version__
    from pii_tracer.lake.rows.spark_frames import map_in_arrow, versions

    try:
        frame = map_in_arrow(spark.range(1), versions, StructType([StructField("version", StringType())]))
        there = str(frame.collect()[0][0])
    except Exception as error:  # Spark's errors for a worker that does not start are many
        there = type(error).__name__
    if there == __version__:
        return Finding(Level.OK, "Spark Connect workers", f"pii-tracer {there}")
    return Finding(
        Level.MISSING,
        "Spark Connect workers",
        f"they cannot import this pii-tracer: {there}",
        "install it, in this version and for this Python, where the server's workers run",
    )


def _spark(asked: _Asked, *, fetch: bool) -> Iterator[Finding]:
    from executors.engine.session_settings import wanted_packages
    from executors.engine.version_profiles import installed_profile
    from executors.stores.spark_connectors import connectors, stores_of_estate

    estate = asked.estate
    try:
        profile = installed_profile()
        stores = stores_of_estate(estate, asked.named) if estate else frozenset()
        wanted = wanted_packages(profile, estate, stores)
        files = [jar for one in connectors(stores) for jar in one.places_of_jars(estate, profile)] if estate else []
    except PiiTracerError as error:
        yield Finding(Level.MISSING, "Spark", error.what, error.todo or "")
        return
    yield from _maven(wanted)
    if fetch:
        from executors.engine.spark_session import fetch_jars

        try:
            fetch_jars(estate, stores=stores)
        except PiiTracerError as error:
            yield Finding(Level.MISSING, "Spark jars", error.what, error.todo or "check the network, then run it again")
            return
    jars = Path(os.environ.get("PII_TRACER_IVY") or Path.home() / profile.ivy) / "jars"
    named = ((name, jars / f"{'_'.join(name.split(':')[:2])}-{name.split(':')[2]}.jar") for name in wanted)
    for name, jar in (*named, *((jar.name, jar) for jar in files)):
        if jar.exists():
            yield Finding(Level.OK, "Spark jar", name)
        else:
            yield Finding(Level.WARNING, "Spark jar", f"{name} is not cached", "run `pii-tracer doctor --fetch`")


def _maven(coordinates: tuple[str, ...]) -> Iterator[Finding]:
    """Ivy takes a local Maven repository that has a POM without its JAR for the artifact, and fails with NOT FOUND."""
    for coordinate in coordinates:
        group, artifact, version = coordinate.split(":")
        folder = Path.home() / ".m2" / "repository" / Path(*group.split(".")) / artifact / version
        if any(folder.glob("*.pom")) and not any(folder.glob("*.jar")):
            yield Finding(
                Level.MISSING,
                "local Maven repository",
                f"{coordinate} is half there: a POM without its JAR, which stops Spark from fetching it",
                f"remove {folder}",
            )


def _estate(path: Path, asked: _Asked) -> Iterator[Finding]:
    estate = asked.estate
    if estate is None:
        yield from asked.findings
        return
    yield Finding(Level.OK, "estate file", f"{path}: {estate.estate}")
    for name, catalog in catalogs_that(estate, Capability.FOLDERS).items():
        if not (real_path(path).parent / str(catalog.warehouse)).is_dir():
            yield Finding(Level.MISSING, f"catalog {name}", f"no folder {catalog.warehouse}", "correct `warehouse`")
    yield from asked.findings
    if estate.s3:
        yield _credentials()
    yield from _tickets(estate)


def _catalogs(estate: Estate, base: Path, named: list[tuple[str, Format]]) -> Iterator[Finding]:
    """Whether the catalogs that list their own tables answer. named: takes place and format of what they list."""
    try:
        for name, listing in zip(catalogs_that(estate, Capability.TABLES), list_catalogs(estate, base), strict=True):
            named += ((entry.location or entry.metadata or "", entry.format) for entry in listing.entries)
            unreadable = [gap for gap in listing.gaps if gap.kind is GapKind.CATALOG_UNREADABLE]
            for gap in unreadable:
                advice = "check its address, and the credentials in the environment: docs/catalogs.md"
                yield Finding(Level.MISSING, gap.evidence, gap.reason, advice)
            if not unreadable and estate.catalogs[name].type != CatalogType.DECLARED:
                yield Finding(Level.OK, f"catalog {name}", counted(len(listing.entries), "table"))
            if not unreadable:
                yield from _untold(estate, base, name)
    except PiiTracerError as error:
        yield Finding(Level.MISSING, "catalogs", error.what, error.todo or "")


def _untold(estate: Estate, base: Path, name: str) -> Iterator[Finding]:
    """What a catalog refuses to tell of its first tables beside rows: a plan reads it, of all tables."""
    catalog = estate.catalogs[name]
    adapter, tables, refused = catalog_of(catalog.type), set[tuple[str, ...]](), dict[str, None]()
    if not adapter.can(Capability.TEXTS):
        return
    try:
        for text in islice(adapter.texts(name, catalog, base), _TEXTS):
            tables |= {text.parts} if len(text.parts) > 1 else set()
            if len(tables) > _PROBED:
                break
            if text.unread:
                refused[f"{text.place} ({text.unread})"] = None
    except PiiTracerError as error:
        refused[error.what] = None
    if refused:
        told = f"of its first tables, it does not return {', '.join(refused)}"
        advice = "let pii-tracer read this; else each plan has a gap `catalog_unreadable`, which you can waive"
        yield Finding(Level.WARNING, f"catalog {name}", told, advice)


def _tickets(estate: Estate) -> Iterator[Finding]:
    """Of the principals of Kerberos that the estate file names."""
    named = {*(one.kerberos for one in estate.hdfs), *(one.kerberos for one in estate.catalogs.values())}
    for principal in sorted(name for name in named if name):
        try:
            left = seconds_left(principal) // 60
            yield Finding(Level.OK, "Kerberos", f"{principal}: a ticket for {counted(left, 'more minute')}")
        except NoTicket as error:
            yield Finding(Level.MISSING, "Kerberos", f"{principal}: {error.code}", error.todo)


def _credentials() -> Finding:
    from pii_tracer.lake.stores.aws_clients import has_credentials

    if not has_credentials():
        return Finding(Level.MISSING, "S3 credentials", "boto3 finds none", "set AWS_PROFILE or the AWS_* variables")
    return Finding(Level.OK, "S3 credentials", "boto3 finds some")
