"""Canary persons: where lineage leads them, where they were seen, and where the two differ."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.readiness.findings import Finding, FindingKind, Level


class Arrival(StrEnum):
    """arrived: seen where lineage leads. missing: not seen there. filtered: not seen; a filter or join is on the way.

    absent: not seen, as the estate file says. unknown: seen where lineage does not lead. unread: could not be searched.
    """

    ARRIVED = "arrived"
    MISSING = "missing"
    FILTERED = "filtered"
    ABSENT = "absent"
    UNKNOWN = "unknown"
    UNREAD = "unread"


@dataclass(frozen=True)
class Searched:
    """One place after the search, for one canary. expected: lineage leads the canary there.

    filtered: a filter or join on the way may leave it out. absent: the estate file says that it is left out.
    """

    where: str
    owner: str
    expected: bool
    seen: bool
    unread: bool = False
    filtered: bool = False
    absent: bool = False


@dataclass(frozen=True)
class CanaryPlace:
    """Where one canary is, or is not."""

    where: str
    owner: str
    arrival: Arrival


@dataclass(frozen=True)
class CanaryAnswer:
    """One canary. in_source: whether its source has it now. places: expected ones, and those where it was seen."""

    name: str
    subject: str
    source: str
    owner: str
    in_source: bool
    places: tuple[CanaryPlace, ...]

    def count(self, *arrivals: Arrival) -> int:
        """How many places have one of these answers."""
        return sum(place.arrival in arrivals for place in self.places)


@dataclass(frozen=True)
class CanarySearch:
    """All canaries. not_looked_at: places that this search does not read."""

    canaries: tuple[CanaryAnswer, ...] = ()
    not_looked_at: tuple[str, ...] = ()


def places_of(searched: Sequence[Searched]) -> tuple[CanaryPlace, ...]:
    """The answer for each place that is worth naming, sorted by name."""
    found = []
    for one in searched:
        arrival = _arrival(one)
        if arrival is not None:
            found.append(CanaryPlace(one.where, one.owner, arrival))
    return tuple(sorted(found, key=lambda place: place.where))


def _arrival(one: Searched) -> Arrival | None:
    if one.seen and not one.expected:
        return Arrival.UNKNOWN
    if one.unread:
        return Arrival.UNREAD
    if one.seen:
        return Arrival.ARRIVED
    if not one.expected:
        return None
    if one.absent:
        return Arrival.ABSENT
    return Arrival.FILTERED if one.filtered else Arrival.MISSING


_TEXTS = {
    Arrival.UNKNOWN: (
        FindingKind.CANARY_UNKNOWN_COPY,
        Level.BLOCKING,
        "the canary {name} was seen here, and lineage does not lead here: an unknown copy",
        "find the job that wrote it, and load its lineage; or remove the copy",
    ),
    Arrival.MISSING: (
        FindingKind.CANARY_MISSING,
        Level.WARNING,
        "lineage leads the canary {name} here, and it was not seen",
        "see whether the job ran; if it leaves the row out on purpose, name the table under `absent_from`",
    ),
    Arrival.FILTERED: (
        FindingKind.CANARY_MISSING,
        Level.NOTE,
        "lineage leads the canary {name} here through a filter or join, and it was not seen",
        "if the job leaves the row out on purpose, name the table under `absent_from`",
    ),
    Arrival.UNREAD: (
        FindingKind.CANARY_UNREAD,
        Level.BLOCKING,
        "not everything here could be searched for the canary {name}: a plan could not read it either",
        "give the rights, or fix the files; then take another reading",
    ),
}


def canary_findings(canaries: Collection[CanaryAnswer]) -> Iterator[Finding]:
    """What is wrong with the canaries."""
    for canary in canaries:
        if not canary.in_source:
            text = f"the canary {canary.name} is not in the source of its subject `{canary.subject}`"
            todo = "put its row into the source again, or correct its `key`"
            yield Finding(
                FindingKind.CANARY_NOT_IN_SOURCE, Level.BLOCKING, canary.source, canary.owner, text, todo, canary.name
            )
        for place in canary.places:
            if place.arrival in _TEXTS and (canary.in_source or place.arrival in (Arrival.UNKNOWN, Arrival.UNREAD)):
                kind, level, text, todo = _TEXTS[place.arrival]
                text = text.format(name=canary.name)
                yield Finding(kind, level, place.where, place.owner, text, todo, canary.name)
