"""What every executor is given: the estate, the keys, the clock, and a Spark session that opens when it is needed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from executors.engine.spark_session import open_session
from executors.value_search_protocol import Finder, Finds, finds_nothing
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.non_key_columns import NoKeys, NotKeys, no_keys_at
from pii_tracer.model.number_keys import spelled
from pii_tracer.model.waivers import MarkKey

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pii_tracer.model.plan import Copy

IN_FLIGHT_HOURS = 24
"""Longer than jobs take from their first file to their commit; Iceberg's procedure draws the line there as well."""


class Keys(Protocol):
    """The opened sealed manifest."""

    def key_set(self, name: str) -> KeySet: ...


@dataclass(frozen=True)
class ExecutionContext:
    """Shared by the executors of one run. base: folder of the estate file.

    verified_at: when a step of the run was verified, from its journal; None where it was not. told: the facts of every
    answer that a step gave so far, also where it failed or waits, from the journal. note: puts facts of a step there
    before it answers, for what nobody can see any more when it is killed. everything: all key sets of the plan, for
    what is searched and not compared. not_keys: the plan's columns of other systems' numbers. stores: the schemes of
    those that the session reaches; it knows the tables that are declared there. finds: searches for the values of key
    sets. marks: of the estate's key, makes what the plan says of contents; by another key nothing is what was planned.
    """

    estate: Estate
    base: Path
    keyring: Keys
    now: Callable[[], datetime]
    verified_at: Callable[[str], datetime | None] = lambda step: None
    told: Callable[[str], Sequence[Mapping[str, Any]]] = lambda step: ()
    everything: tuple[KeySet, ...] = field(default=(), repr=False)
    note: Callable[[str, Mapping[str, Any]], None] = lambda step, facts: None
    stores: frozenset[str] = frozenset()
    finds: Finds = finds_nothing
    not_keys: tuple[NotKeys, ...] = ()
    marks: MarkKey = field(default=MarkKey(b""), repr=False)
    _views: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def spark(self) -> SparkSession:
        """The estate's session, opened at the first use.

        Raises:
            RunError: as `open`.
        """
        return self.open()

    def open(self) -> SparkSession:
        """The estate's session, for who wants to know that there is one.

        Raises:
            RunError: no Java, or Spark does not start.
        """
        return open_session(self.estate, self.base, stores=self.stores)

    @property
    def in_flight_hours(self) -> int:
        """How old a file that no commit names has to be before it may be swept: it can be one of a running writer.

        0 where the estate file says that every writer is stopped.
        """
        return IN_FLIGHT_HOURS if any(not writer.stopped for writer in self.estate.writers) else 0

    def no_keys(self, copy: Copy | None) -> NoKeys:
        """By column of a copy, the key sets that it holds none of, by the owner's word."""
        return no_keys_at(self.not_keys, copy.dataset, copy.location) if copy else {}

    def nobodys(self, copy: Copy | None) -> dict[str, frozenset[str]]:
        """By column of a copy, what is not the persons' where a whole cell is so: another system's numbers, and keys of
        other people that look like the persons'."""
        found: dict[str, set[str]] = {}
        for term in copy.match.terms if copy and copy.match else ():
            found.setdefault(term.label().lower(), set()).update(self.keyring.key_set(term.key_set).others)
        for values in found.values():  # another's key may be what a person has as an identifier
            values -= self._values
        for label, names in self.no_keys(copy).items():
            for name in names:
                found.setdefault(label.lower(), set()).update(spelled(self.keyring.key_set(name)))
        return {label: frozenset(values) for label, values in found.items() if values}

    @cached_property
    def _values(self) -> frozenset[str]:
        """Every value of the plan's persons."""
        return frozenset(value for key_set in self.everything for _, value in key_set.values)

    @cached_property
    def _finder(self) -> Finder:
        return self.finds(self.everything)

    def holds(self, text: str) -> bool:
        """Whether a text has any value of the plan's persons in it, by the same search as planning and verification."""
        return self._finder.in_text(text)

    @contextmanager
    def setting(self, name: str, value: str) -> Iterator[None]:
        """Inside, the session has this setting; afterwards what it had, or the engine's own."""
        conf = self.spark.conf
        before = conf.get(name, None)
        conf.set(name, value)
        try:
            yield
        finally:
            if before is None:
                conf.unset(name)
            else:
                conf.set(name, before)

    def key_view(self, key_set: str) -> str:
        """Name of a temporary view with one string column `k` that holds a key set's values.

        The values come from a data frame, so that no SQL text, plan or commit log ever holds one (hazards D5, E1).
        """
        if key_set not in self._views:
            name = "pii_keys_" + hashlib.sha256(key_set.encode()).hexdigest()[:12]
            values = sorted(spelled(self.keyring.key_set(key_set)))
            frame_of_rows(self.spark, [(v,) for v in values], "k string").createOrReplaceTempView(name)
            self._views[key_set] = name
        return self._views[key_set]

    def drop_views(self) -> None:
        """Drop the key views from the session."""
        for name in self._views.values():
            self.spark.catalog.dropTempView(name)
        self._views.clear()

    @property
    def views(self) -> tuple[str, ...]:
        """Names of the key views that exist."""
        return tuple(self._views.values())
