"""Places of a store that are no copies of a plan, and what has changed in those that are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.verify.verdicts import NO_COPY, SINCE, ByteVerdict


class Location(Protocol):
    """Where something lies; as a text, its address."""

    @property
    def dataset(self) -> DatasetId: ...


class Place(Protocol):
    """Files or objects that lie at one location."""

    @property
    def location(self) -> Location: ...


P = TypeVar("P", bound=Place)


def beside_copies(plan: ErasurePlan, places: Iterable[P], mask: Callable[[str], str]) -> Iterator[tuple[P, str, str]]:
    """Places that are no copies: examined ones, those that a gap names, waived or not, and those that came since.
    What a plan leaves out (`--only`) is not among them.

    Returns:
        The place, its location without values of persons, and the name of its verdict.
    """
    copies = {copy.dataset for copy in plan.copies}
    left_out = {gap.dataset for gap in plan.gaps if gap.kind == GapKind.LEFT_OUT}
    known = {item.dataset for item in plan.examined} | {gap.dataset for gap in plan.gaps}
    for place in places:
        dataset = place.location.dataset
        if dataset in copies or dataset in left_out:
            continue
        shown = mask(str(place.location))
        yield place, shown, f"{NO_COPY if dataset in known else SINCE}{shown}"


def other_files(before: ByteVerdict, now: ByteVerdict) -> bool:
    """Whether two verdicts are about different files, by path and hash."""
    return {(file.path, file.sha256) for file in now.files} != {(file.path, file.sha256) for file in before.files}
