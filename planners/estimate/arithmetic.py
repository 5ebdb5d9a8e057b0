"""From sizes of places to work, wall time and cost. Each place is summed up and forgotten."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from pii_tracer.config.estate_file import Prices
from pii_tracer.lake.listing.listed_place import REQUESTED, ListedPlace, Listing
from pii_tracer.model.actions import Action
from pii_tracer.model.estimate import Amounts, Cases, PlaceEstimate, StepEstimate
from planners.estimate.place_sizes import PlaceSizes, sizes_of
from planners.estimate.step_templates import Extent, Template, plan_wide, templates
from planners.schedule.step_costs import engine_cost, exact_cost, request_cost
from planners.schedule.step_dates import duration
from planners.step_drafts import Draft

SEARCH = "search"
"""The kind of the work that no step of a plan does: every file is decoded and searched before there is a plan."""
FILE_SECONDS = 0.004
"""What opening and decoding a small file takes beside its bytes (docs/benchmarks.md)."""
MIB = 1 << 20
_HAIR = 1e-9
"""A share times a number can be 3.0000000000000004 and means 3."""


@dataclass(frozen=True)
class Asked:
    """What somebody wants to know. touched: share of a place's files that one person is in. rate: bytes of files that
    one executor searches in a second. at: when the erasure would begin. dearest: so many places are named.
    """

    persons: int
    executors: int
    touched: float
    rate: float
    prices: Prices
    at: datetime
    dearest: int = 20

    @property
    def touched_by_all(self) -> float:
        """Share of files that any of the persons is in, where persons are in files independently of each other."""
        if self.touched >= 1:
            return 1.0
        return -math.expm1(self.persons * math.log1p(-self.touched))

    def search_seconds(self, files: int, size: int) -> float:
        """Work of one executor."""
        return files * FILE_SECONDS + size / self.rate


class Work(NamedTuple):
    """As `Amounts`, for sums."""

    files: int = 0
    read: int = 0
    written: int = 0
    requests: int = 0
    seconds: float = 0.0
    wall: float = 0.0
    cost: float = 0.0


NO_WORK = Work()


@dataclass
class CaseSums:
    """Sums over work in each case. steps: how many steps were added."""

    steps: int = 0
    low: Work = NO_WORK
    expected: Work = NO_WORK
    high: Work = NO_WORK

    def add(self, low: Work, expected: Work, high: Work) -> None:
        """One more step."""
        self.steps += 1
        self.low, self.expected, self.high = _sum(self.low, low), _sum(self.expected, expected), _sum(self.high, high)

    def frozen(self) -> Cases:
        """As the estimate has it."""
        return Cases(low=_amounts(self.low), expected=_amounts(self.expected), high=_amounts(self.high))


def _sum(one: Work, other: Work) -> Work:
    return Work(
        one.files + other.files,
        one.read + other.read,
        one.written + other.written,
        one.requests + other.requests,
        one.seconds + other.seconds,
        one.wall + other.wall,
        one.cost + other.cost,
    )


def _amounts(work: Work) -> Amounts:
    return Amounts(
        files=work.files,
        bytes_read=work.read,
        bytes_written=work.written,
        requests=work.requests,
        work_seconds=round(work.seconds, 3),
        wall_seconds=round(work.wall, 3),
        cost=round(work.cost, 2),
    )


@dataclass
class Sums:
    """What is left of all places. waiting: by what keeps bytes, how many places; see `planners.estimate.waits`."""

    places: int = 0
    files: int = 0
    bytes: int = 0
    total: CaseSums = field(default_factory=CaseSums)
    kinds: dict[str, CaseSums] = field(default_factory=dict)
    formats: set[str] = field(default_factory=set)
    cold: int = 0
    soft_delete_seconds: int = 0
    locked_until: datetime | None = None
    _dearest: list[tuple[float, float, int, PlaceEstimate]] = field(default_factory=list)

    @property
    def dearest(self) -> tuple[PlaceEstimate, ...]:
        """The dearest first."""
        return tuple(entry[-1] for entry in sorted(self._dearest, key=lambda e: e[:-1], reverse=True))

    @property
    def steps(self) -> tuple[StepEstimate, ...]:
        """The search first, then the other kinds in the order in which they came."""
        return tuple(StepEstimate(kind=k, steps=s.steps, cases=s.frozen()) for k, s in self.kinds.items())

    def add(self, place: ListedPlace, asked: Asked) -> None:
        """Sum up one place, and forget it unless it is one of the dearest. One without a file is none."""
        sizes = sizes_of(place.files, asked.prices, asked.at)
        if not sizes.files:
            return
        mine = CaseSums()
        for kind, cases in place_work(place, sizes, asked):
            for sums in (mine, self.total, self.kinds.setdefault(kind, CaseSums())):
                sums.add(*cases)
        self.places += 1
        self.files += sizes.files
        self.bytes += sizes.bytes
        self._note_waits(place, sizes)
        self._keep(place, sizes, mine, asked.dearest)

    def add_plan_wide(self, asked: Asked) -> None:
        """The steps that a plan has once, if it has a copy."""
        for draft in plan_wide() if len(self.kinds) > 1 else ():
            seconds = duration(draft).total_seconds()
            work = Work(seconds=seconds, wall=seconds, cost=exact_cost(draft, asked.prices))
            for sums in (self.total, self.kinds.setdefault(draft.action.value, CaseSums())):
                sums.add(NO_WORK, work, work)

    def _note_waits(self, place: ListedPlace, sizes: PlaceSizes) -> None:
        if place.format is not None and sizes.data:
            self.formats.add(place.format.value)
        self.cold += sizes.cold.files
        self.soft_delete_seconds = max(self.soft_delete_seconds, place.soft_delete_seconds)
        if sizes.locked_until is not None:
            self.locked_until = max(self.locked_until or sizes.locked_until, sizes.locked_until)

    def _keep(self, place: ListedPlace, sizes: PlaceSizes, mine: CaseSums, most: int) -> None:
        order = (mine.expected.cost, mine.expected.seconds, -self.places)  # of two alike the first
        if most <= 0 or (len(self._dearest) == most and order <= self._dearest[0][:-1]):
            return
        kept = PlaceEstimate(
            name=place.name,
            location=place.location,
            kind=place.kind.value,
            format=place.format.value if place.format else None,
            files=sizes.files,
            bytes=sizes.bytes,
            cases=mine.frozen(),
        )
        entry = (*order, kept)
        if len(self._dearest) < most:
            heapq.heappush(self._dearest, entry)
        else:
            heapq.heapreplace(self._dearest, entry)


def sum_up(listing: Listing, asked: Asked) -> Sums:
    """Read the stream to its end. Memory does not grow with files, nor with places that are not among the dearest."""
    sums = Sums()
    for place in listing.places:
        sums.add(place, asked)
    sums.add_plan_wide(asked)
    return sums


def place_work(place: ListedPlace, sizes: PlaceSizes, asked: Asked) -> Iterator[tuple[str, tuple[Work, Work, Work]]]:
    """The work on one place by kind: the search, then each step; in the low, the expected and the high case."""
    charged = place.kind in REQUESTED
    searched = _looked_at(sizes, asked, charged=charged)
    yield SEARCH, (searched, searched, searched)
    for template in templates(place.kind, place.format, place.references, sizes.data):
        if template.extent is Extent.COLD and not sizes.cold.files:
            continue
        if template.extent is Extent.OLD and not sizes.old.files:
            continue
        expected, high = (_step(template, sizes, asked, share, charged) for share in (asked.touched_by_all, 1.0))
        yield template.draft.action.value, (NO_WORK, expected, high)


def _looked_at(sizes: PlaceSizes, asked: Asked, *, charged: bool) -> Work:
    """Every file decoded and searched. A file is not divided among executors."""
    seconds = asked.search_seconds(sizes.files, sizes.bytes)
    wall = max(seconds / asked.executors, asked.search_seconds(1, sizes.largest))
    requests = sizes.files if charged else 0
    cost = engine_cost(seconds, sizes.bytes, asked.prices) + request_cost(requests, asked.prices)
    return Work(sizes.files, sizes.bytes, 0, requests, seconds, wall, cost)


def _step(template: Template, sizes: PlaceSizes, asked: Asked, share: float, charged: bool) -> Work:
    """One step. Its fixed time is nobody's to share, its bytes are; a file is not divided."""
    if template.draft.action is Action.VERIFY_COPY:
        return _verified(template, sizes, asked, charged)
    files, size, early = _extent(template.extent, sizes, share)
    draft = replace(template.draft, files=files, bytes=size)
    fixed, whole = _seconds(template.draft, 0), _seconds(template.draft, size)
    largest = _seconds(template.draft, min(size, sizes.largest)) - fixed
    return Work(
        files=files,
        read=size if template.rewrites else 0,
        written=size if template.rewrites else 0,
        requests=files if charged and draft.executor in ("s3", "objects") else 0,
        seconds=whole,
        wall=fixed + max((whole - fixed) / asked.executors, largest),
        cost=exact_cost(draft, asked.prices) + (early if draft.action is Action.S3_DELETE_VERSIONS else 0.0),
    )


def _verified(template: Template, sizes: PlaceSizes, asked: Asked, charged: bool) -> Work:
    """The fixed time of a verification, and another look at every file."""
    fixed = _seconds(template.draft, 0)
    paid = engine_cost(fixed, 0, asked.prices)
    if template.extent is Extent.NOTHING:
        return Work(seconds=fixed, wall=fixed, cost=paid)
    looked = _looked_at(sizes, asked, charged=charged)
    return _sum(looked, Work(seconds=fixed, wall=fixed, cost=paid))


def _seconds(draft: Draft, size: int) -> float:
    return duration(replace(draft, bytes=size)).total_seconds()


def _extent(extent: Extent, sizes: PlaceSizes, share: float) -> tuple[int, int, float]:
    """Files, bytes, and the fee for deleting them early.

    Touched is at least the largest file: a copy with the persons has a file with them, and nobody knows which.
    """
    if extent is Extent.TOUCHED:
        files = math.ceil(share * sizes.files - _HAIR)
        return max(1, files), max(sizes.largest, int(share * sizes.bytes)), 0.0
    group = {Extent.LIVE: sizes.live, Extent.COLD: sizes.cold, Extent.OLD: sizes.old}[extent]
    return group.files, group.bytes, group.early
