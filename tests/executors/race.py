"""A real writer that commits exactly while a statement of ours runs: after its snapshot was taken, before its commit.

The key view is given a function that, while the statement reads it, asks a second thread to write, and waits for that.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from executors.context import ExecutionContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OURS = re.compile(r"\s*(MERGE INTO|DELETE FROM)\b")
_SECONDS = 240


@dataclass
class Race:
    """What happened: how often our statement was begun, and what the other writer failed with, if it did."""

    statements: int = 0
    written: int = 0
    failures: list[BaseException] = field(default_factory=list)


@contextmanager
def racing(
    spark: SparkSession, ctx: ExecutionContext, key_set: str, folder: Path, write: Callable[[], Any], times: int = 1
) -> Iterator[Race]:
    """Let `write` commit within each of the first `times` statements that delete."""
    race, over = Race(), threading.Event()
    folder.mkdir(parents=True)
    _slow_view(spark, ctx, key_set, str(folder))
    patch, main = pytest.MonkeyPatch(), threading.current_thread()
    sql = type(spark).sql

    def watched(self: Any, statement: str, *more: Any, **named: Any) -> Any:
        if threading.current_thread() is main and _OURS.match(statement):
            race.statements += 1
            if race.statements <= times:
                (folder / "armed").touch()
        return sql(self, statement, *more, **named)

    def writer() -> None:
        while not over.is_set():
            if (folder / "asked").exists():
                try:
                    write()
                    race.written += 1
                except BaseException as error:
                    race.failures.append(error)
                (folder / "asked").unlink()
            over.wait(0.02)

    thread = threading.Thread(target=writer)
    thread.start()
    patch.setattr(type(spark), "sql", watched)
    try:
        yield race
    finally:
        patch.undo()
        over.set()
        thread.join()


def _slow_view(spark: SparkSession, ctx: ExecutionContext, key_set: str, folder: str) -> None:
    from pyspark.sql.functions import udf

    seconds = _SECONDS

    @udf("string", useArrow=False)  # type: ignore[misc,unused-ignore]
    def wait_for_the_writer(key: str) -> str:
        asked = Path(folder, "asked")
        with suppress(FileNotFoundError):
            Path(folder, "armed").rename(asked)  # one key alone: waiting in two tasks would leave the writer no core
            end = time.monotonic() + seconds
            while asked.exists():
                if time.monotonic() > end:
                    raise TimeoutError("the other writer never came")
                time.sleep(0.02)
        return key

    plain = ctx.key_view(key_set)
    name = f"raced_{plain}"
    spark.table(plain).select(wait_for_the_writer("k").alias("k")).createOrReplaceTempView(name)
    ctx._views[key_set] = name
