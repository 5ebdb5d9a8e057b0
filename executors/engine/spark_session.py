"""The Spark session of an estate: tried versions, all table formats in one session, tables known by their names.

Versions that run together are in docs/stack.md. Only this module builds sessions.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from executors.engine.java_and_spark_paths import java_home
from executors.engine.scratch_settings import scratch_conf, started_in_scratch
from executors.engine.session_settings import (
    catalog_packages,
    packages,
    runtime_conf,
    session_conf,
    wanted_files,
    wanted_packages,
)
from executors.engine.spark_connect import EXTENSIONS, REDACTION, open_remote
from executors.engine.spark_submit import is_submitted, refuse_without_jars
from executors.engine.table_registration import register_tables
from executors.engine.version_profiles import Profile, installed_profile, profile_of
from executors.stores.spark_connectors import connectors
from pii_tracer.common.scratch_folders import system_temporary
from pii_tracer.config.estate_file import Estate
from pii_tracer.model.errors import RunError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DYING = 10.0
"""Seconds from an engine's last answer to its end: the machine takes its memory back in between."""

_STOPPING = 3.0
"""Seconds that an engine has for its own end."""

_OPENED = "spark.pii-tracer.opened-with"

OPENLINEAGE = "io.openlineage:openlineage-spark_2.12:1.53.0"


def open_session(
    estate: Estate, base: Path, extra: dict[str, str] | None = None, *, stores: Collection[str] = ()
) -> SparkSession:
    """Start (or get) the Spark session of an estate and register its declared tables that exist on disk.

    extra: further settings, e.g. the OpenLineage listener's for recording. stores: the schemes of those in which it
    reaches tables; a Connect server has to do so by itself.

    Raises:
        RunError: no Java, or Spark did not start (missing jars, half-filled local repository); a Connect server does
            not answer or lacks something; spark-submit brought too few jars; the session's engine was there and is
            no more.
    """
    if estate.spark.remote:
        spark = _on_server(estate.spark.remote, estate, base, extra or {})
    else:
        spark = _of_our_own(estate, base, extra or {}, stores)
    register_tables(spark, estate, base, stores)
    return spark


def _on_server(address: str, estate: Estate, base: Path, extra: dict[str, str]) -> SparkSession:
    profile = profile_of(estate.spark.profile)
    settings = runtime_conf(estate, base) | extra
    needed = {EXTENSIONS: ",".join(profile.extensions)}
    if REDACTION in settings:
        needed[REDACTION] = settings.pop(REDACTION)
    return open_remote(address, profile.name, needed, settings)


def _of_our_own(estate: Estate, base: Path, extra: dict[str, str], stores: Collection[str]) -> SparkSession:
    profile = profile_of(estate.spark.profile)
    home = java_home()
    if home:
        os.environ["JAVA_HOME"] = home
    if not estate.spark.is_cluster:
        # workers of this machine are this interpreter, with the packages that are installed here
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    conf = session_conf(estate, base, stores) | extra
    asked = hashlib.sha256(repr((estate.spark.master, sorted(conf.items()))).encode()).hexdigest()
    classes = [*profile.extensions, *catalog_packages(estate).values()]
    classes += [one.file_system for one in connectors(stores)]
    refuse_without_jars(classes, packages(estate, stores), profile.excluded)
    builder = SparkSession.builder.master(estate.spark.master).appName(f"pii-tracer {estate.estate}")
    conf |= scratch_conf(conf)
    builder = builder.config(map={**conf})
    log = _log_file()
    try:
        # steps ask for their session many times: one that was told all this is not told again
        active = SparkSession.getActiveSession()
        if active is not None and active.conf.get(_OPENED, "") == asked:
            return active
        with _fetching_alone(profile, conf), _engine_output(log), started_in_scratch(conf), _interrupts_kept():
            spark = builder.getOrCreate()
    except Exception as error:
        if gone := ended(error):
            raise gone from error
        raise RunError(
            f"Spark did not start: {type(error).__name__}",
            where=str(log),
            todo="read this log, or run `pii-tracer doctor` to see what is missing",
        ) from error
    spark.sparkContext.setLogLevel("ERROR")
    spark.conf.set(_OPENED, asked)
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
        "the Java process of Spark ended during the work",
        where=str(_log_file()),
        todo="read the reason in this log, raise `spark.driver.memory` if memory ran out, then run `pii-tracer resume`",
    )


def end_engine() -> None:
    """End this process' Spark at once, with whatever it does; nothing where there is none, or it is a server's.

    Who stops a run must not go before its engine does: a statement could commit when the run was already resumed.
    """
    if "pyspark" not in sys.modules:
        return
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return
    process.terminate()
    try:
        process.wait(_STOPPING)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _is_running() -> bool:
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None


def _log_file() -> Path:
    """Where the engine's own output of this process goes: readable by this user only."""
    return system_temporary() / f"pii-tracer-spark-{os.getpid()}.log"


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Spark, started inside, sets a handler of SIGINT, which is taken away again: it asks the engine to cancel its jobs
    from within the handler, which fails with traces on the terminal if SIGINT came in the middle of a call."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


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
def _fetching_alone(profile: Profile, conf: Mapping[str, str]) -> Iterator[None]:
    """A Spark that starts inside fetches jars into Ivy's cache as the only one of ours, in this folder of Ivy's.

    The cache has no lock: of two that fetch the same jar, one ends with "download failed". Starts whose jars were
    fetched before go side by side: a file in the cache says so, and goes with it. What spark-submit started has its
    jars, and a process whose engine runs fetches none.
    """
    if is_submitted() or _is_running():
        yield
        return
    ivy = Path(conf.get("spark.jars.ivy") or Path.home() / profile.ivy)
    wanted = sorted((name, value) for name, value in conf.items() if name.startswith("spark.jars"))
    known = ivy / "cache" / f"pii-tracer-{hashlib.sha256(repr(wanted).encode()).hexdigest()[:32]}.fetched"
    known.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(ivy / ".pii-tracer.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH if known.exists() else fcntl.LOCK_EX)
        yield
        known.touch()
    finally:
        os.close(handle)


def fetching_conf(profile: Profile, packages: Collection[str], jars: Collection[Path] = ()) -> dict[str, str]:
    """Settings of a session that does nothing but fetch jars. packages: Maven coordinates; jars: files beside them."""
    wanted = {"spark.jars.packages": ",".join(packages), "spark.ui.enabled": "false"}
    if jars:
        wanted["spark.jars"] = ",".join(map(str, jars))
    if profile.excluded:
        wanted["spark.jars.excludes"] = ",".join(profile.excluded)
    return wanted | scratch_conf(wanted)


def fetch_jars(estate: Estate | None = None, *, stores: Collection[str] = ()) -> None:
    """Start a small session once, so that Spark's jars are in the cache and known to load.

    estate: whose catalogs have jars of their own. stores: the schemes of those whose jars are wanted, too.

    Raises:
        RunError: as `open_session`.
    """
    profile = installed_profile()
    home = java_home()
    if home:
        os.environ["JAVA_HOME"] = home
    from pyspark.sql import SparkSession

    wanted = wanted_packages(profile, estate, stores)
    jars = wanted_files(profile, estate, stores) if estate else ()
    log = _log_file()
    try:
        conf = fetching_conf(profile, wanted, jars)
        with _fetching_alone(profile, conf), _engine_output(log), started_in_scratch(conf):
            SparkSession.builder.master("local[1]").config(map={**conf}).getOrCreate().stop()
    except Exception as error:
        raise RunError(
            f"Spark did not start: {type(error).__name__}",
            where=str(log),
            todo=(
                "read this log: `[NOT FOUND]` means that the local Maven repository is incomplete, or that there is "
                "no network"
            ),
        ) from error
