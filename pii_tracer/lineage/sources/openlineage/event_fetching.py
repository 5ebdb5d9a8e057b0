"""Streams and services into the event log, so that a harvest itself reads files only.

What was fetched before stays known in `fetched.json` beside the log: a source that cannot be reached now is an error
the first time, and a gap afterwards.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.config.lineage import LineageSources
from pii_tracer.lineage.graph.edges import LineageGap
from pii_tracer.lineage.sources.openlineage.event_log import EventLog
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import LineageError
from pii_tracer.model.gap_kinds import LineageGapKind

_BATCH = 1_000
_TOLD_REJECTS = 20


class Unreachable(Exception):
    """A source that gives no answer, or one that makes no sense. The text holds no data."""


class Reject(Frozen):
    """Something a source held that is no event."""

    where: str
    reason: str


class Fetched(Frozen):
    """One source as of its last reading.

    positions: where each partition was read to; version: of which topic, where one can be made anew under an old name;
    lost: what was gone before it was read.
    """

    source: str
    at: str
    events: int
    version: str = ""
    positions: tuple[tuple[int, int], ...] = ()
    rejects: tuple[Reject, ...] = ()
    more_rejects: int = 0
    lost: tuple[str, ...] = ()


class State(Frozen):
    """`fetched.json`."""

    version: int = 1
    sources: tuple[Fetched, ...] = ()


@dataclass
class Reading:
    """What a source fills in while its events are taken out of it."""

    before: Fetched | None
    version: str = ""
    positions: dict[int, int] = field(default_factory=dict)
    rejects: list[Reject] = field(default_factory=list)
    more_rejects: int = 0
    lost: list[str] = field(default_factory=list)

    def reject(self, where: str, reason: str) -> None:
        """Something is no event."""
        if len(self.rejects) < _TOLD_REJECTS:
            self.rejects.append(Reject(where=where, reason=reason))
        else:
            self.more_rejects += 1


class Source(Protocol):
    """A stream or service."""

    @property
    def name(self) -> str:
        """As it is called in messages and in `fetched.json`."""
        ...

    def events(self, reading: Reading) -> Iterator[dict[str, Any]]:
        """Everything it holds now. Raises `Unreachable`."""
        ...


@dataclass(frozen=True)
class Gathered:
    """Numbers and gaps of all streams and services."""

    reads: tuple[tuple[str, int], ...]
    gaps: tuple[LineageGap, ...]


def sources_of(sources: LineageSources, base: Path) -> list[Source]:
    """The streams and services of an estate."""
    found: list[Source] = []
    if sources.kafka:
        from pii_tracer.lineage.sources.openlineage.kafka_events import KafkaSource

        found += [KafkaSource(topic, base) for topic in sources.kafka]
    if sources.marquez is not None:
        from pii_tracer.lineage.sources.openlineage.marquez import MarquezSource

        found.append(MarquezSource(sources.marquez.url))
    return found


def gather(sources: Sequence[Source], log: Path, now: str, say: Callable[[str], None]) -> Gathered:
    """Fetch all sources into the event log.

    Raises:
        LineageError: a source that was never read cannot be reached; the log cannot be written.
    """
    if not sources:
        return Gathered((), ())
    events, file = EventLog(log), log.with_name("fetched.json")
    state = {one.source: one for one in _load(file).sources}
    gaps: list[LineageGap] = []
    for number, source in enumerate(sources, 1):
        say(f"reading source {number} of {len(sources)} of events")
        before = state.get(source.name)
        try:
            state[source.name] = _fetch(source, before, events, now)
        except Unreachable as error:
            if before is None:
                raise LineageError(
                    f"{source.name} was never read, and cannot be read now: {error}",
                    where="the estate file, `lineage`",
                    todo="start the source, correct its address, or remove it from the estate file",
                ) from None
            gaps.append(_gap(LineageGapKind.SOURCE_UNREACHABLE, f"{source.name} cannot be read: {error}", before))
        gaps += _told(state[source.name])
        write_atomic(file, State(sources=tuple(state[n] for n in sorted(state))).model_dump_json(indent=1).encode())
    return Gathered(tuple((s.name, state[s.name].events) for s in sources), tuple(gaps))


def _fetch(source: Source, before: Fetched | None, log: EventLog, now: str) -> Fetched:
    reading, count = Reading(before), 0
    for batch in _batches(source.events(reading)):
        log.append(batch)
        count += len(batch)
    known = {r.where: r for r in before.rejects} if before else {}
    rejects = known | {r.where: r for r in reading.rejects}
    return Fetched(
        source=source.name,
        at=now,
        events=count,
        version=reading.version,
        positions=tuple(sorted(reading.positions.items())),
        rejects=tuple(rejects[w] for w in sorted(rejects)),
        more_rejects=max(reading.more_rejects, before.more_rejects if before else 0),
        lost=tuple(sorted({*reading.lost, *(before.lost if before else ())})),
    )


def _batches(events: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    stream = iter(events)
    while batch := list(itertools.islice(stream, _BATCH)):
        yield batch


def _told(fetched: Fetched) -> Iterator[LineageGap]:
    for reject in fetched.rejects:
        reason = f"{fetched.source} contains an entry that is not an event: {reject.reason}"
        yield LineageGap(
            dataset=None, kind=LineageGapKind.UNREADABLE_EVENT, reason=reason, evidence=reject.where,
            closes="correct the sender of these events",
        )  # fmt: skip
    if fetched.more_rejects:
        yield _gap(
            LineageGapKind.UNREADABLE_EVENT,
            f"{fetched.source} holds {fetched.more_rejects} more that are not events",
            fetched,
        )
    for text in fetched.lost:
        yield _gap(LineageGapKind.LOST_EVENTS, text, fetched)


def _gap(kind: LineageGapKind, reason: str, fetched: Fetched) -> LineageGap:
    evidence = f"{fetched.source}, read last at {fetched.at}"
    closes = (
        "read the source before its retention ends, or add the SQL of the jobs"
        if kind is LineageGapKind.LOST_EVENTS
        else "run `pii-tracer harvest` when the source is available"
    )
    return LineageGap(dataset=None, kind=kind, reason=reason, evidence=evidence, closes=closes)


def _load(file: Path) -> State:
    try:
        return State.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return State()
    except (OSError, ValidationError):
        raise LineageError(
            "the stored events of this source cannot be read",
            where=str(file),
            todo="restore the file, or remove it to read from the start",
        ) from None
