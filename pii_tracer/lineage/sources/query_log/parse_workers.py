"""Shapes of a query log parsed in several processes. The results, and their order, are those of `parse_here`.

Each process is a Python of its own that reads lists of texts from its standard input and writes a reading for each to
its standard output, framed by their lengths. So nothing of the calling program runs in it a second time. A process that
dies at a text makes that text a gap, and another one goes on behind it.
"""

from __future__ import annotations

import os
import selectors
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO, cast

import msgspec

from pii_tracer.common.gc_pause import rare_collections
from pii_tracer.lineage.sources.query_log.shape_parsing import Parser, Query, Reading, parse_here, parse_one
from pii_tracer.lineage.sources.table_candidates import Tables
from pii_tracer.lineage.sql.text.table_names import Loose
from pii_tracer.model.errors import LineageError

FEW = 1_000
"""Texts that are parsed sooner than processes have started."""
_AT_ONCE = 50
"""Texts that a process is given in one go."""
_AHEAD = 4
"""Lists for each process that may be done or under way before the first one of them is handed on."""
_LENGTH = struct.Struct("<I")
_DIED = "the process that parsed the text ended too early"

_Known = list[tuple[str, bool, list[tuple[str, str]]]]
"""Tables with their columns; whether nobody knows the order of these."""


class _Task(msgspec.Struct, array_like=True):
    text: str
    dialect: str
    database: str
    known: _Known


_TASKS = msgspec.json.Decoder(list[_Task])
_READING = msgspec.json.Decoder(Reading)


def parser_in(processes: int) -> Parser:
    """A parser that shares many texts out over so many processes, and parses few of them itself."""

    def parse(queries: Sequence[Query], tables: Tables) -> Iterator[Reading]:
        return (
            parse_here(queries, tables) if processes < 2 or len(queries) < FEW else _shared(queries, tables, processes)
        )

    return parse


def cores() -> int:
    """How many processes this one may run side by side."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class _Part:
    """A list of texts under way, with the readings that came back so far."""

    queries: Sequence[Query]
    done: list[Reading] = field(default_factory=list)

    @property
    def left(self) -> Sequence[Query]:
        return self.queries[len(self.done) :]


class _Worker:
    """A process and what it is at."""

    def __init__(self) -> None:
        path = os.pathsep.join(filter(None, sys.path))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pii_tracer.lineage.sources.query_log.parse_workers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # what a buffer holds, a selector does not see
            stderr=subprocess.DEVNULL,  # what a dying process shows could be a person's value
            env=os.environ | {"PYTHONPATH": path},
        )
        self.part: _Part | None = None
        if _frame(self.output) is None:
            self.stop()
            raise LineageError(
                "a process that parses query logs could not be started",
                todo="check that this Python can start processes, or run `pii-tracer harvest --workers 1`",
            )

    @property
    def output(self) -> BinaryIO:
        return cast(BinaryIO, self.process.stdout)

    def give(self, part: _Part, tables: Tables) -> None:
        self.part = part
        tasks = [_Task(q.text, q.dialect, q.database, _told(tables, q.text)) for q in part.left]
        stdin = cast(BinaryIO, self.process.stdin)
        try:
            _send(stdin, msgspec.json.encode(tasks))
        except BrokenPipeError:
            return  # it died: nothing comes back, and the one who reads notices

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                cast(BinaryIO, pipe).close()
            except BrokenPipeError:
                continue


def _shared(queries: Sequence[Query], tables: Tables, processes: int) -> Iterator[Reading]:
    parts = [_Part(queries[n : n + _AT_ONCE]) for n in range(0, len(queries), _AT_ONCE)]
    first, given = 0, 0
    with _workers(min(processes, len(parts))) as (idle, selector):
        while first < len(parts):
            while idle and given < len(parts) and given < first + _AHEAD * processes:
                worker = idle.pop()
                worker.give(parts[given], tables)
                selector.register(worker.output, selectors.EVENT_READ, worker)
                given += 1
            for key, _ in selector.select():
                worker = cast(_Worker, key.data)
                part = cast(_Part, worker.part)
                frame = _frame(worker.output)
                if frame is not None:
                    part.done.append(_READING.decode(frame))
                    if not part.left:
                        selector.unregister(worker.output)
                        idle.append(worker)
                    continue
                selector.unregister(worker.output)
                worker.stop()
                part.done.append(Reading(error=_DIED))
                worker = _Worker()
                if part.left:
                    worker.give(part, tables)
                    selector.register(worker.output, selectors.EVENT_READ, worker)
                else:
                    idle.append(worker)
            while first < given and not parts[first].left:
                yield from parts[first].done
                parts[first] = _Part(())
                first += 1


@contextmanager
def _workers(count: int) -> Iterator[tuple[list[_Worker], selectors.BaseSelector]]:
    """Workers that have nothing to do yet; all that were started from there are ended afterwards."""
    idle: list[_Worker] = []
    with selectors.DefaultSelector() as selector:
        try:
            for _ in range(count):
                idle.append(_Worker())
            yield idle, selector
        finally:
            for worker in [*idle, *(cast(_Worker, key.data) for key in (selector.get_map() or {}).values())]:
                worker.stop()


def _told(tables: Tables, text: str) -> _Known:
    return [(name, isinstance(columns, Loose), list(columns)) for name, columns in tables.of(text).items()]


def _send(stream: BinaryIO, content: bytes) -> None:
    left = memoryview(_LENGTH.pack(len(content)) + content)
    while left:
        left = left[stream.write(left) :]
    stream.flush()


def _frame(stream: BinaryIO) -> bytes | None:
    """One message; None where the other side is gone."""
    head = _exactly(stream, _LENGTH.size)
    return None if head is None else _exactly(stream, _LENGTH.unpack(head)[0])


def _exactly(stream: BinaryIO, size: int) -> bytes | None:
    """So many bytes; None where the other side is gone before."""
    found = bytearray()
    while len(found) < size:
        more = stream.read(size - len(found))
        if not more:
            return None
        found += more
    return bytes(found)


def work(tasks: BinaryIO, readings: BinaryIO) -> None:
    """Answer lists of texts until there are no more."""
    _send(readings, b"")
    while (frame := _frame(tasks)) is not None:
        with rare_collections():
            for task in _TASKS.decode(frame):
                known = {name: Loose(columns) if loose else columns for name, loose, columns in task.known}
                reading = parse_one(Query(task.text, task.dialect, task.database), known)
                _send(readings, msgspec.json.encode(reading))


if __name__ == "__main__":
    work(sys.stdin.buffer, sys.stdout.buffer)
