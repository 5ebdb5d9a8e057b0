"""The events of each run put together, and all runs that say the same counted as one.

Events of a run come in any order and more than once (https://openlineage.io/docs/spec/run-cycle), so nothing can be
said of a run before everything is read. What is remembered of an event until then is 17 bytes and the run's id, in
temporary files by run: memory grows with what jobs do, not with how often they do it.
"""

from __future__ import annotations

import struct
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import IO
from zlib import crc32

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.lineage.sources.evidence_merging import Proof
from pii_tracer.lineage.sources.openlineage.event_parsing import Part
from pii_tracer.model.datasets import ColumnId, DatasetId

_FILES = 64
_RECORD = struct.Struct("<IIBq")
_STATES = {"START": 1, "RUNNING": 2, "COMPLETE": 4, "FAIL": 8, "ABORT": 16, "OTHER": 32}
_DECLARED = 0


class Ended(StrEnum):
    """How runs ended. DECLARED: no run at all, the job or dataset was described beforehand."""

    COMPLETE = "complete"
    FAILED = "failed"
    OPEN = "open"
    DECLARED = "declared"


@dataclass
class Shape:
    """Runs that say the same: first and last of them as (microseconds, run), and their number."""

    parts: frozenset[int]
    ended: Ended
    first: tuple[int, str]
    last: tuple[int, str]
    runs: int


@dataclass(frozen=True)
class Run:
    """What some runs of a job say. sql: texts, each with the dialect that the event names or its engine has.

    checked, made, unread, grown, placed: as of `Part`. kept: outputs of which every event says so. wrong: what of it
    could not be read, and of which dataset.
    """

    proof: Proof
    ended: Ended
    parts: frozenset[int]
    inputs: frozenset[DatasetId]
    outputs: frozenset[DatasetId]
    told: frozenset[DatasetId]
    edges: tuple[tuple[ColumnId, ColumnId, Subtype, bool], ...]
    members: tuple[tuple[ColumnId, DatasetId, Subtype], ...]
    sql: tuple[tuple[str, str], ...]
    code: tuple[str, ...]
    checked: frozenset[DatasetId]
    kept: frozenset[DatasetId]
    grown: frozenset[DatasetId]
    placed: frozenset[DatasetId]
    made: frozenset[ColumnId]
    unread: tuple[str, ...]
    wrong: tuple[tuple[DatasetId | None, str], ...]


class RunBook:
    """Notes one line an event; `shapes` puts them together. Use as a context manager: the files go with it."""

    def __init__(self) -> None:
        self._files: dict[int, IO[bytes]] = {}
        self._numbers: dict[Part, int] = {}
        self.parts: list[Part] = []

    def __enter__(self) -> RunBook:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()

    def add(self, run: str, part: Part, state: str | None, at: int) -> None:
        """An event of a run (state None: not of a run). Unknown states count as OTHER."""
        number = self._numbers.get(part)
        if number is None:
            number = self._numbers[part] = len(self.parts)
            self.parts.append(part)
        bits = _DECLARED if state is None else _STATES.get(state, _STATES["OTHER"])
        name = run.encode("utf-8", "surrogatepass")
        place = crc32(name) % _FILES
        if place not in self._files:
            self._files[place] = tempfile.TemporaryFile()  # noqa: SIM115 (closed in __exit__)
        self._files[place].write(_RECORD.pack(len(name), number, bits, at) + name)

    def shapes(self) -> list[Shape]:
        """All runs, by what they say."""
        shapes: dict[tuple[frozenset[int], Ended], Shape] = {}
        for file in self._files.values():
            for run, (parts, bits, at) in _runs(file).items():
                key = frozenset(parts), _ended(bits)
                mark = at, run
                known = shapes.get(key)
                if known is None:
                    shapes[key] = Shape(*key, mark, mark, 1)
                else:
                    known.first, known.last = min(known.first, mark), max(known.last, mark)
                    known.runs += 1
        return list(shapes.values())


def _runs(file: IO[bytes]) -> dict[str, tuple[set[int], int, int]]:
    """Parts, states and last time of each run of one file."""
    parts: dict[str, set[int]] = defaultdict(set)
    told: dict[str, tuple[int, int]] = {}
    for name, number, bits, at in _records(file):
        states, last = told.get(name, (0, 0))
        told[name] = states | bits, max(last, at)
        parts[name].add(number)
    return {name: (parts[name], *told[name]) for name in told}


def _records(file: IO[bytes]) -> Iterator[tuple[str, int, int, int]]:
    file.seek(0)
    data, place = file.read(), 0
    while place < len(data):
        length, number, bits, at = _RECORD.unpack_from(data, place)
        place += _RECORD.size + length
        yield data[place - length : place].decode("utf-8", "surrogatepass"), number, bits, at


def _ended(bits: int) -> Ended:
    if bits & _STATES["COMPLETE"]:
        return Ended.COMPLETE
    if bits & (_STATES["FAIL"] | _STATES["ABORT"]):
        return Ended.FAILED
    return Ended.OPEN if bits else Ended.DECLARED
