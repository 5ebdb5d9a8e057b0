"""Failures of engines: conflicts are retried on the new snapshot, within a bound; messages quote data: none is told."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

from executors.engine.spark_session import ended
from executors.formats.registry import spark_supports
from pii_tracer.model.errors import PiiTracerError, RunError

T = TypeVar("T")

_DEEPEST_CAUSE = 8

ATTEMPTS = 5


def conflicts() -> tuple[str, ...]:
    """What names of errors hold when another writer has committed first, of all installed formats."""
    return tuple(name for support in spark_supports() for name in support.conflicts)


def on_conflict(act: Callable[[], T], sleep: Callable[[float], None] = time.sleep) -> T:
    """Run an act; after a commit conflict run it again, at most `ATTEMPTS` times in all.

    Raises:
        RunError: still in conflict after the last attempt, or another failure of the engine, named by its classes only.
        PiiTracerError, OSError: what the act itself raises.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return act()
        except Exception as error:
            # what the system or S3 refuses is told by `places.refusals`; a connection that is lost is the engine's
            if isinstance(error, PiiTracerError) or (
                isinstance(error, OSError) and not isinstance(error, ConnectionError)
            ):
                raise
            if not any(name in f"{type(error).__name__} {error}" for name in conflicts()):
                raise engine_error(error) from None
            if attempt < ATTEMPTS:
                sleep(0.5 * 2**attempt)
    raise RunError(
        f"another writer keeps committing: {ATTEMPTS} attempts ended in a conflict",
        todo="stop the writers of this table, then run `pii-tracer resume`",
    )


_DATA_FILE = re.compile(
    r"/((?:part-\d{5}-[0-9a-f-]{36}|\d{5}-\d+-[0-9a-f-]{36}|[0-9a-f-]{36}-\d+_\d+-\d+-\d+_\d{17})[\w.-]*\.(?:parquet|orc|avro))"
)
"""Names that the writers of Delta, Iceberg and Hudi make up for data files: nothing else of a message is told."""


def engine_error(error: Exception) -> RunError:
    """An engine's failure as a `RunError`: class names and Spark's error class, never the message with rows; and of it
    the data file's name, where it has one.

    Where the engine is no more, that is what is told.
    """
    from py4j.protocol import Py4JError

    if gone := ended(error):
        return gone
    names = [type(error).__name__]
    with suppress(OSError, Py4JError):  # the engine has died meanwhile, and cannot be asked
        names += _classes(error)
    file = _DATA_FILE.search(str(error))
    return RunError(
        f"the engine failed: {' < '.join(dict.fromkeys(names))}",
        where=file[1] if file else None,
        todo=(
            "run `pii-tracer doctor` to check the engine, fix the cause that the error classes show, then run "
            "`pii-tracer resume`"
        ),
    )


def _classes(error: Exception) -> Iterator[str]:
    """Spark's error class, and Java's classes of the error and its causes."""
    # its name since Spark 4, and the one before
    get_class = getattr(error, "getCondition", None) or getattr(error, "getErrorClass", None)
    if callable(get_class) and get_class():
        yield str(get_class())
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    for _ in range(_DEEPEST_CAUSE):
        if cause is None:
            break
        yield str(cause.getClass().getName()).rsplit(".", 1)[-1]
        cause = cause.getCause()
