"""Spark that reaches S3, in a process of its own: the suite's session has no jars for it, and cannot get them later.

What runs there is named here, with words and answers that travel; the tests themselves stay where they are.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from botocore.client import BaseClient

from executors.context import ExecutionContext
from executors.registry import build
from pii_tracer.app.execution.executor_value_search import ScanFinder
from pii_tracer.cli.main import run
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.delta.vocabulary import DELTA, DELTA_PURGE
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format, Match
from pii_tracer.model.errors import PiiTracerError
from pii_tracer.model.plan import Step
from pii_tracer.scan.folder_scan import scan_bytes
from pii_tracer.scan.value_forms import build_patterns
from sample_lineage import s3_standin
from tests.executors.crashes import Effects, die_and_resume
from tests.executors.world import BY_UID, EMAIL, NOW, Keyring, Steps, frame, rows
from tests.review.plans import plan
from tests.s3support import REGION, World
from tests.sparksession import small_spark

_WRITES = re.compile(r"\s*(DELETE|INSERT|UPDATE|MERGE|ALTER|REORG|VACUUM|CALL)\b", re.IGNORECASE)


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    """The process, until a file's tests are done."""
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
        """Rows of `world.rows` into the Delta table of a place, or an Iceberg table; columns: more, by their SQL."""
        self.pool.submit(_append, self.estate, self.base, location, (first, count, person), columns).result()

    def step(
        self, action: Action, table: str | None, location: str, match: Match | None = BY_UID, **parameters: Any
    ) -> dict[str, Any]:
        """Check, run and verify one step with executors made anew; its facts."""
        work = (table, location, match, action, parameters)
        return self.pool.submit(_step, self.estate, self.base, *work).result()

    def command(self, *words: str) -> tuple[int, str]:
        """A command of pii-tracer in the process: how it ended, and what it printed."""
        return self.pool.submit(_command, words).result()

    def killed(
        self, *order: tuple[Action, dict[str, Any]], location: str, journal: Path, table: str | None = None
    ) -> list[str]:
        """Run the steps, die at each moment once, and resume each time; the moments at which processes died."""
        return self.pool.submit(_killed, self.estate, self.base, order, (table, location), journal).result()


def engine_of(world: World, base: Path, pool: ProcessPoolExecutor, table: str, catalogs: dict[str, Any]) -> Engine:
    """Of an estate with these catalogs, whose persons are told by a table of theirs."""
    told = {"version": 1, "estate": "shop", "environment": "local", "roots": [], "lineage": {}}
    told |= {"spark": small_spark(), "catalogs": catalogs, "writers": [{"job": "shop"}]}
    told["subjects"] = [{"name": "customer", "source": table, "key": "uid"}]
    told["s3"] = {"endpoint_url": world.endpoint_url, "region": REGION}
    return Engine(pool, Estate.model_validate(told), base)


PATTERNS = build_patterns(k for k in Keyring.sets.values() if k.values)


@dataclass(frozen=True)
class InBucket(ABC):
    """A bucket with a table at `wh/NAME`."""

    world: World
    bucket: str
    name: str
    engine: Engine

    @property
    def location(self) -> str:
        return f"s3://{self.bucket}/wh/{self.name}"

    def clearing(self) -> tuple[Action, dict[str, Any]]:
        where = {"bucket": self.bucket, "region": REGION, "plan_id": "p", "prefix": f"wh/{self.name}/"}
        return Action.S3_CLEAR_VERSIONS, where

    def put(self, name: str, body: bytes = b"somebody's") -> str:
        self.world.put(self.bucket, f"wh/{self.name}/{name}", body)
        return f"wh/{self.name}/{name}"

    def keys(self) -> set[str]:
        found = self.world.client().get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        return {item["Key"] for page in found for item in page.get("Contents", ())}

    def holding(self) -> tuple[list[str], list[str]]:
        """Current objects and older versions in which the person stands, names and delete markers included."""
        found: tuple[list[str], list[str]] = ([], [])
        for page in self.world.client().get_paginator("list_object_versions").paginate(Bucket=self.bucket):
            for version in page.get("Versions", ()):
                data = self.world.get(self.bucket, version["Key"], version["VersionId"])
                if scan_bytes(version["Key"], data, PATTERNS).hits:
                    found[not version["IsLatest"]].append(version["Key"])
            found[1].extend(v["Key"] for v in page.get("DeleteMarkers", ()) if scan_bytes(v["Key"], b"", PATTERNS).hits)
        return found

    @abstractmethod
    def run(self, *steps: tuple[Action, dict[str, Any]]) -> dict[Action, dict[str, Any]]:
        """The facts of each."""

    def clear(self) -> dict[str, Any]:
        return self.run(self.clearing())[Action.S3_CLEAR_VERSIONS]

    def rid_of_old_versions(self) -> set[str]:
        """After all other steps the person stands in old versions alone: these go, and nothing else. Names of the rest."""
        now, old = self.holding()
        assert now == []
        assert len(old) > 5, "all of it is still there as old versions"
        kept = self.keys()
        cleared = self.clear()
        assert self.holding() == ([], [])
        assert EMAIL not in str(cleared)
        assert self.keys() == kept
        versions = self.world.client().list_object_versions(Bucket=self.bucket, Prefix=f"wh/{self.name}/")
        assert all(v["IsLatest"] for v in versions["Versions"])
        assert "DeleteMarkers" not in versions
        return kept


@dataclass(frozen=True)
class Declared(InBucket):
    """With the table `sales.NAME`, which the estate file declares."""

    @property
    def sql_name(self) -> str:
        return f"sales.{self.name}"

    @property
    def path(self) -> str:
        """As Spark writes it."""
        return self.location.replace("s3:", "s3a:")


def declared(world: World, base: Path, pool: ProcessPoolExecutor, kind: Format) -> tuple[World, str, str, Engine]:
    """What a `Declared` is made of: a new bucket, and the name of a table that is yet to be made."""
    bucket, name = world.new("lake"), f"t{uuid.uuid4().hex[:8]}"
    table = {"name": f"sales.{name}", "format": kind.value, "location": f"s3://{bucket}/wh/{name}"}
    catalogs = {"spark_catalog": {"type": "declared", "tables": [table]}}
    return world, bucket, name, engine_of(world, base, pool, table["name"], catalogs)


def _context(estate: Estate, base: Path) -> ExecutionContext:
    known = tuple(Keyring.sets.values())
    return ExecutionContext(
        estate=estate,
        base=base,
        keyring=Keyring(),
        now=lambda: NOW,
        everything=known,
        stores=frozenset({"s3"}),
        finds=ScanFinder,
    )


def _sql(estate: Estate, base: Path, statement: str) -> list[tuple[Any, ...]]:
    try:
        return [tuple(row) for row in _context(estate, base).spark.sql(statement).collect()]
    except Exception as error:
        raise AssertionError(str(error)[:2000]) from None  # it does not travel as it is


def _command(words: tuple[str, ...]) -> tuple[int, str]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        return run(words), printed.getvalue()


def _append(estate: Estate, base: Path, location: str, made: tuple[Any, ...], columns: dict[str, str]) -> None:
    data = frame(_context(estate, base).spark, rows(*made)).selectExpr(
        "*", *(f"{sql} AS {name}" for name, sql in columns.items())
    )
    if "/" in location:
        data.write.format("delta").mode("append").save(location)
    else:
        data.writeTo(location).append()


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
    try:
        return dict(_steps(ctx, action, table, location, match).once(action, **parameters))
    except PiiTracerError as error:
        raise AssertionError(f"{error.what} {error.where}") from None  # it does not travel as it is
    finally:
        ctx.drop_views()


def _steps(ctx: ExecutionContext, action: Action, table: str | None, location: str, match: Match | None) -> Steps:
    kind = _kind(ctx.estate, table)
    if action is Action.S3_CLEAR_VERSIONS:
        return _Clearing(ctx, "s3", table, location, kind, match)
    return Steps(ctx, kind.value, table, location, kind, match)


def _kind(estate: Estate, table: str | None) -> Format:
    """An Iceberg table is known by its catalog's name, and a Hudi table by its own; a Delta table by its place, too."""
    if table and table.count(".") == 2:
        return ICEBERG
    declared = {t.name: t.format for catalog in estate.catalogs.values() for t in catalog.tables}
    return declared.get(table or "", DELTA)


class _Clearing(Steps):
    """Steps of a bucket have neither a table nor its place."""

    def step(self, action: Action, **parameters: Any) -> Step:
        return super().step(action).model_copy(update={"parameters": parameters})


def _killed(
    estate: Estate,
    base: Path,
    order: tuple[tuple[Action, dict[str, Any]], ...],
    of: tuple[str | None, str],
    journal: Path,
) -> list[str]:
    ctx, made = _context(estate, base), list[Step]()
    for number, (action, words) in enumerate(order):
        one = _steps(ctx, action, *of, BY_UID).step(action, **words)
        before = (made[-1].id,) if made else ()
        made.append(one.model_copy(update={"id": f"c1/{number:02}", "depends_on": before, "irreversible": True}))
    a_plan = plan(made, [_steps(ctx, DELTA_PURGE, *of, BY_UID).copy])
    effects = Effects()
    with pytest.MonkeyPatch.context() as patch:
        _watch(patch, effects, type(ctx.spark))
        die_and_resume(a_plan, lambda: build(_context(estate, base)), journal, effects, acts=False)
    return effects.deaths


def _watch(patch: pytest.MonkeyPatch, effects: Effects, session: type) -> None:
    """Every statement that changes a table, and every request that deletes, is an effect."""
    sql, call = vars(session)["sql"], BaseClient._make_api_call

    def watched_sql(self: Any, statement: str, *more: Any, **named: Any) -> Any:
        writes = _WRITES.match(statement)
        if writes:
            effects.refuse_the_dead()
        answer = sql(self, statement, *more, **named)
        if writes:
            effects.after(" ".join(statement.split()))
        return answer

    def watched_call(self: Any, operation: str, words: dict[str, Any]) -> Any:
        deletes = operation == "DeleteObjects" and bool(words["Delete"]["Objects"])
        if deletes:
            # without ids of versions, which are others each time
            what = f"{operation} {sorted({item['Key'] for item in words['Delete']['Objects']})}"
            effects.before(what)
        answer = call(self, operation, words)
        if deletes:
            effects.after(what)
        return answer

    patch.setattr(session, "sql", watched_sql)
    patch.setattr(BaseClient, "_make_api_call", watched_call)
