"""Spark that reaches S3, in a process of its own: the suite's session has no jars for it, and cannot get them later.

What runs there is named here, with words and answers that travel; the tests themselves stay where they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from executors.context import ExecutionContext
from executors.registry import build
from pii_tracer.actions import Action
from pii_tracer.config import Estate
from pii_tracer.model import Format, Match
from sample_lineage import s3_standin
from tests.executors.world import BY_UID, NOW, Keyring, Steps, frame, rows


def started() -> Iterator[ProcessPoolExecutor]:
    """For a fixture: the process, until its tests are done."""
    with ProcessPoolExecutor(1, get_context("spawn"), _begin) as pool:
        yield pool
        pool.submit(_end).result()


def _begin() -> None:
    os.environ.update(s3_standin.demo_credentials())


def _end() -> None:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()


@dataclass(frozen=True)
class Engine:
    """One estate's session over there. pool: the process."""

    pool: ProcessPoolExecutor
    estate: Estate
    base: Path

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        return self.pool.submit(_sql, self.estate, self.base, statement).result()

    def append(self, location: str, first: int, count: int, person: tuple[int, ...] = (), **columns: str) -> None:
        """Rows of `world.rows` into the Delta table of a place; columns: more, by their SQL."""
        self.pool.submit(_append, self.estate, self.base, location, (first, count, person), columns).result()

    def step(
        self, action: Action, table: str | None, location: str, match: Match | None = BY_UID, **parameters: Any
    ) -> dict[str, Any]:
        """Check, run and verify one step with executors made anew; its facts."""
        work = (table, location, match, action, parameters)
        return self.pool.submit(_step, self.estate, self.base, *work).result()


def _context(estate: Estate, base: Path) -> ExecutionContext:
    known = tuple(Keyring.sets.values())
    return ExecutionContext(estate=estate, base=base, keyring=Keyring(), now=lambda: NOW, everything=known, s3=True)


def _sql(estate: Estate, base: Path, statement: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in _context(estate, base).spark.sql(statement).collect()]


def _append(estate: Estate, base: Path, location: str, made: tuple[Any, ...], columns: dict[str, str]) -> None:
    data = frame(_context(estate, base).spark, rows(*made)).selectExpr(
        "*", *(f"{sql} AS {name}" for name, sql in columns.items())
    )
    data.write.format("delta").mode("append").save(location)


def _step(
    estate: Estate,
    base: Path,
    table: str | None,
    location: str,
    match: Match | None,
    action: Action,
    parameters: dict[str, Any],
) -> dict[str, Any]:
    ctx = _context(estate, base)
    steps = Steps(ctx, "s3" if action is Action.S3_CLEAR_VERSIONS else "delta", table, location, Format.DELTA, match)
    try:
        facts = steps.once(action, **parameters)
        assert steps.executor in build(ctx)
        return dict(facts)
    finally:
        ctx.drop_views()
