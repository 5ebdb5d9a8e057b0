"""What every executor works with: the estate, the persons' keys, one Spark session, and the clock."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pii_tracer.config import Estate
from pii_tracer.errors import RunError
from pii_tracer.model import KeySet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEW_PREFIX = "pii_tracer_keys_"


class Keyring(Protocol):
    """Opens the sealed manifest of a plan."""

    def key_set(self, name: str) -> KeySet:
        """The key set of this name. Raises `PlanError` (or `KeyError`) when the manifest has none."""


@dataclass(frozen=True)
class ExecutionContext:
    """Everything an executor may use.

    base: folder of the estate file; relative paths in the estate start here.
    now: the clock, for reports; engines have their own.
    """

    estate: Estate
    base: Path
    keyring: Keyring
    now: Callable[[], datetime]
    views: set[str] = field(default_factory=set, repr=False, compare=False)

    @cached_property
    def spark(self) -> SparkSession:
        """The estate's session, started at first use. Raises `RunError` when Spark does not start."""
        from executors.spark import open_session

        return open_session(self.estate, self.base)

    def keys(self, key_set: str) -> frozenset[str]:
        """The values of a key set.

        Raises:
            RunError: the manifest has no such set, or the set is empty.
        """
        try:
            values = frozenset(value for _, value in self.keyring.key_set(key_set).values)
        except KeyError:
            values = frozenset()
        if not values:
            raise RunError(
                f"the key set `{key_set}` is missing or empty",
                todo="use the sealed manifest that belongs to this plan, or plan again",
            )
        return values

    def key_view(self, key_set: str) -> str:
        """Name of a temporary view with one string column `k` that holds the key set's distinct values.

        The values travel as rows, never as literals, so that no statement, query plan or commit log holds them
        (hazards D5 and E1). The name is a hash and says nothing.
        """
        name = VIEW_PREFIX + hashlib.sha256(key_set.encode()).hexdigest()[:16]
        if name not in self.views:
            rows = [(value,) for value in sorted(self.keys(key_set))]
            self.spark.createDataFrame(rows, "k string").createOrReplaceTempView(name)
            self.views.add(name)
        return name

    def drop_key_views(self) -> int:
        """Drop every key view of this session, whoever made it; returns how many there were."""
        names = [t.name for t in self.spark.catalog.listTables() if t.isTemporary and t.name.startswith(VIEW_PREFIX)]
        for name in names:
            self.spark.catalog.dropTempView(name)
        self.views.clear()
        return len(names)
