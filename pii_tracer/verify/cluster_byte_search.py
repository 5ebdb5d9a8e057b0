"""Bytes searched by Spark's executors, where Spark is a cluster: the same code, on as many cores as it has.

The persons' values and the names of files go there sealed; the key that opens them goes another way and is thrown
away afterwards, so that no disk of the cluster holds both: PySpark writes what a job is made of into files, the rows
as well as large functions. What an executor does not see as this machine does (its size, its time, or at all) is
searched here, and so is everything where executors cannot: nothing is clean because nobody looked.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from heapq import heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pii_tracer.config.estate_file import Spark
from pii_tracer.model.errors import ScanError
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.scanner_version import scanner_version
from pii_tracer.scan.search_workers import (
    THREADS,
    Look,
    Searchers,
    Stamp,
)
from pii_tracer.scan.value_forms import Patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
Marked = tuple[T, Stamp]

JOB = 5_000
"""So many things are searched in one job of Spark, and wait here at most."""
PACKET_BYTES = 128 * 1024 * 1024
PACKET_THINGS = 200
"""A task searches about so many bytes, and at most so many things; a larger thing is a task by itself."""
TASKS_PER_CORE = 4
LEAST_PACKET_BYTES = 4 * 1024 * 1024
"""A few tasks for each core of the cluster, so that none waits long for the last one; not less in one than starting it
costs."""
THING_BYTES = 64 * 1024
"""Opening a thing takes as long as searching so many bytes."""

_NONCE = 12
_OTHER_VERSION = "a Spark executor runs a different version of pii-tracer"


def searchers_of(settings: Spark, spark: Callable[[], SparkSession], warn: Callable[[str], None]) -> Searchers:
    """Executors, where the estate's Spark is a cluster that this process drives; threads of this process otherwise.

    warn: is told, once, why executors do not search.
    """
    return Executors(spark, warn) if settings.is_cluster else THREADS


@dataclass
class Executors:
    """Searches on a cluster's executors, whose Python needs the same pii-tracer as this one.

    Encrypted Parquet files are opened by keys that stay on this machine, so that estates with such keys are searched
    here.
    """

    spark: Callable[[], SparkSession]
    warn: Callable[[str], None]
    refused: bool = False

    def search(self, look: Look[T], things: Iterable[T], patterns: Patterns) -> Iterator[tuple[T, FileScan]]:
        """As `Searchers.search`."""
        if look.only_here:
            yield from THREADS.search(look, things, patterns)
            return
        waiting = iter(things)
        while part := list(islice(waiting, JOB)):
            told = self._told(look, part, patterns)
            left = (thing for thing, scan in zip(part, told, strict=True) if scan is None)
            here = THREADS.search(look, left, patterns)
            for thing, scan in zip(part, told, strict=True):
                yield (thing, scan) if scan is not None else next(here)

    def _told(self, look: Look[T], things: Sequence[T], patterns: Patterns) -> list[FileScan | None]:
        """What executors say of each; None where it has to be searched here."""
        nothing: list[FileScan | None] = [None] * len(things)
        if self.refused or patterns.file_keys is not None:
            return nothing
        marked = [(thing, look.stamp(thing)) for thing in things]
        try:
            spark = self.spark()
            packets = _packets([stamp[0] for _, stamp in marked], spark.sparkContext.defaultParallelism)
            answers = _ask(spark, look, [[marked[number] for number in packet] for packet in packets], patterns)
        except Exception as error:  # of Spark, Java or a worker: whatever it is, this machine can search as well
            self.refused = True
            self.warn(f"Spark's executors search no files: {_reason(error)}; this machine searches them instead")
            return nothing
        if [len(answer) for answer in answers] != [len(packet) for packet in packets]:
            return nothing
        told = {
            n: scan
            for packet, answer in zip(packets, answers, strict=True)
            for n, scan in zip(packet, answer, strict=True)
        }
        return [told[number] for number in range(len(things))]


def _packets(sizes: Sequence[int], cores: int) -> list[list[int]]:
    """The numbers of things of these sizes in bytes, in tasks for so many cores, those that take longest first.

    The largest thing goes to the task that has least, then the next one: tasks of even sizes end together (Graham's
    rule of the longest processing time).
    """
    costs = [max(0, size) + THING_BYTES for size in sizes]
    total = sum(costs)
    tasks = max(
        -(-total // PACKET_BYTES),
        -(-len(sizes) // PACKET_THINGS),
        min(TASKS_PER_CORE * cores, total // LEAST_PACKET_BYTES),
        1,
    )
    if tasks > cores:  # as many for each core
        tasks = -(-tasks // cores) * cores
    open_tasks: list[tuple[int, int, list[int]]] = [(0, number, []) for number in range(tasks)]
    full: list[tuple[int, int, list[int]]] = []
    for thing in sorted(range(len(sizes)), key=lambda thing: -costs[thing]):
        cost, number, packet = heappop(open_tasks)
        packet.append(thing)
        task = (cost + costs[thing], number, packet)
        if len(packet) < PACKET_THINGS:
            heappush(open_tasks, task)
        else:
            full.append(task)
    return [packet for _, _, packet in sorted([*open_tasks, *full], key=lambda task: -task[0]) if packet]


def _ask(
    spark: SparkSession, look: Look[T], packets: Sequence[Sequence[Marked[T]]], patterns: Patterns
) -> list[list[FileScan | None]]:
    secret = AESGCM.generate_key(bit_length=256)
    sets = (*patterns.key_sets, *patterns.row_sets)
    common = _sealed(secret, (scanner_version(), sets, patterns.key_columns, look))
    rows = [(common, _sealed(secret, packet)) for packet in packets]
    context = spark.sparkContext
    context.setJobDescription("pii-tracer: search the bytes of files")
    try:
        return context.parallelize(rows, len(rows)).map(partial(_searched, secret)).collect()
    finally:
        context.setJobDescription(None)  # type: ignore[arg-type]  # null takes the property away


def _searched(secret: bytes, row: tuple[bytes, bytes]) -> list[FileScan | None]:
    """On an executor: what stands in a packet's things. Raises as `_prepared`."""
    look, patterns = _prepared(secret, row[0])
    return [_seen(look, thing, stamp, patterns) for thing, stamp in _opened(secret, row[1])]


@lru_cache(maxsize=1)
def _prepared(secret: bytes, common: bytes) -> tuple[Look[Any], Patterns]:
    """How a job's things are searched; kept by a worker for the job's next packet, as patterns of many take a second.

    Raises:
        ScanError: another pii-tracer is installed here.
    """
    code, key_sets, columns, look = _opened(secret, common)
    if code != scanner_version():
        raise ScanError(
            _OTHER_VERSION,
            todo="install the same version for Spark's Python on every machine",
        )
    patterns = Patterns(key_sets)
    patterns.key_columns = columns
    return look, patterns


def _seen(look: Look[T], thing: T, stamp: Stamp, patterns: Patterns) -> FileScan | None:
    try:
        if look.stamp(thing) != stamp:
            return None
        scan = look(thing, patterns)
    except Exception:  # Spark would write what it says into logs of the cluster; the search here meets it again
        return None
    return scan if scan.sha256 else None


def _sealed(secret: bytes, content: Any) -> bytes:
    nonce = os.urandom(_NONCE)
    return nonce + AESGCM(secret).encrypt(nonce, pickle.dumps(content), None)


def _opened(secret: bytes, sealed: bytes) -> Any:
    return pickle.loads(AESGCM(secret).decrypt(sealed[:_NONCE], sealed[_NONCE:], None))  # noqa: S301 of `_sealed` only


def _reason(error: Exception) -> str:
    """Why executors cannot, without anything that a value could stand in."""
    told = str(error)
    if _OTHER_VERSION in told or "No module named" in told:
        return "their Python lacks this version of pii-tracer, or one of its packages"
    if "PYTHON_VERSION_MISMATCH" in told:
        return "their Python version differs from this one"
    return type(error).__name__
