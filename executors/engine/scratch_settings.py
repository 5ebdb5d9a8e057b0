"""Where an engine of this process puts what it needs only while it lives: all of it in the process' scratch folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from executors.engine.spark_submit import is_submitted
from pii_tracer.common.scratch_folders import before_wiping, scratch_folder
from pii_tracer.model.errors import RunError

_LOCAL = "spark.local.dir"
_JAVA = "spark.driver.extraJavaOptions"
_ENVIRONMENT = "SPARK_LOCAL_DIRS"
_ENDING = 10.0
"""Seconds that an engine has to end in."""


def scratch_places(conf: Mapping[str, str]) -> tuple[Path, ...]:
    """Where scratch folders lie beside the system's temporary folder: on the disks that Spark was given for that."""
    told = os.environ.get(_ENVIRONMENT) or conf.get(_LOCAL, "")
    return tuple(Path(part.strip()) for part in told.split(",") if part.strip())


def scratch_conf(conf: Mapping[str, str]) -> dict[str, str]:
    """Settings with which Java and Spark write nothing temporary anywhere else. conf: what the session is told besides.

    Shuffled rows stay on the disks that were named for them. Has what was begun stopped before the folder goes.

    Raises:
        RunError: a folder cannot be made.
    """
    try:
        home = scratch_folder()
        local = [scratch_folder(place) for place in scratch_places(conf)] or [home]
        for name in ("java", "python", "warehouse"):
            (home / name).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise RunError(
            f"the scratch folder cannot be created: {error.strerror or type(error).__name__}",
            where=str(error.filename),
            todo="set TMPDIR (or `spark.local.dir`) to a writable folder with enough disk space",
        ) from None
    before_wiping(_stop)
    warehouse = {"spark.sql.warehouse.dir": conf.get("spark.sql.warehouse.dir", str(home / "warehouse"))}
    if is_submitted():  # its Java runs already, where spark-submit was told
        return warehouse
    java = f'"-Djava.io.tmpdir={home / "java"}"'
    return {
        _LOCAL: ",".join(map(str, local)),
        _JAVA: " ".join(filter(None, (conf.get(_JAVA), java))),
        **warehouse,
    }


@contextmanager
def started_in_scratch(conf: Mapping[str, str]) -> Iterator[None]:
    """A Java that starts inside, and the Python workers that it starts later, have the scratch folder for the
    environment's temporary ones."""
    changed = {"TMPDIR": str(scratch_folder() / "python")}
    if _LOCAL in conf:
        changed[_ENVIRONMENT] = conf[_LOCAL]
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _stop() -> None:
    """Spark takes away some of its files itself, and its Java ends when nobody writes to it any more."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None or process.poll() is not None:
        return
    if SparkContext._active_spark_context is not None:
        SparkContext._active_spark_context.stop()
    process.stdin.close()
    process.wait(_ENDING)
