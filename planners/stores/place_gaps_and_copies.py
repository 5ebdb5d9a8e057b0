"""Gaps and copies of places in stores that are read file by file, whatever keeps the files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pii_tracer.lake.formats.plain_files.rewritten_files import ENDINGS
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.lake.stores.table_look_types import TableLocation
from pii_tracer.model.datasets import Carries, CopyKind, Format, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Copy, Examined, Found, Gap
from planners.copies.scan_evidence import PlaceEvidence
from planners.step_drafts import CopyDraft, slug

BY_KEY = frozenset({Carries.NONE, Carries.KEY, Carries.COMPUTED_KEY, Carries.BRIDGE, Carries.IDENTIFIERS})
_SHOWN = 5


@dataclass(frozen=True)
class Kept:
    """What a store kept: copies of which no row is written, datasets in which nobody is, and gaps."""

    items: tuple[CopyDraft, ...]
    examined: tuple[Examined, ...]
    gaps: tuple[Gap, ...]


def place_slug(location: str) -> str:
    """A place in the id of a copy or a gap."""
    return slug(location.removeprefix("hdfs://"))


def as_shown(gap: InventoryGap, shown: Mapping[str, str]) -> InventoryGap:
    """A gap without values of persons in the place's name, which its dataset has, too. shown: as of `World.masked`."""
    if gap.evidence not in shown:
        return gap
    return gap.model_copy(update={"evidence": shown[gap.evidence], "dataset": None})


def place_gap(gap: InventoryGap, seen: PlaceEvidence | None, state: str, told: Sequence[str]) -> Gap:
    """The gap of a place. state: what was seen, of which its id is made, so that no waiver of a place without the
    person covers one with them. told: the same in words, with the number of files first.
    """
    unread = seen.unread if seen else ()
    more = [f"{len(unread) - _SHOWN} more"] if len(unread) > _SHOWN else []
    return Gap(
        id=f"gap-{gap.kind}-{state}-{place_slug(gap.evidence)}",
        dataset=gap.dataset,
        kind=gap.kind,
        reason="; ".join([gap.reason, *told]),
        evidence="; ".join([gap.evidence, *unread[:_SHOWN], *more]),
        seen="; ".join([gap.reason, *(seen.places if seen else ()), *told[1:], gap.listed]),
    )


def remade_by_nobody(location: TableLocation, store: str, reason: str) -> Gap:
    """The gap of a place whose rows are made of the person's without a key. store: what it lies in."""
    return Gap(
        id=f"gap-{GapKind.CANNOT_BE_PROVED}-{place_slug(str(location))}",
        dataset=location.dataset,
        kind=GapKind.CANNOT_BE_PROVED,
        reason=(
            f"its rows are computed from the person's rows without a key, and no step in {store} recomputes them: run "
            "its job after the erasure"
        ),
        evidence=reason,
    )


def kept_copy(
    location: TableLocation,
    id_: str,
    strategy: Strategy,
    reason: str,
    seen: PlaceEvidence,
    names: Iterable[str],
    texts: Mapping[str, Any],
) -> Copy:
    """A copy of which files are deleted whole, or waited for. names: of all its files. texts: how text is read there,
    as facts."""
    return Copy(
        id=f"{id_}-{place_slug(str(location))}",
        kind=CopyKind.DERIVED,
        dataset=location.dataset,
        table=None,
        location=str(location),
        format=_format(names),
        carries=Carries.UNKNOWN,
        strategy=strategy,
        columns=(),
        lineage=(str(location),),
        reason=reason,
        found=Found(
            files_scanned=seen.files, files_with_person=seen.holders, rows=None, bytes=seen.bytes, unread=seen.unread
        ),
        facts=dict(texts),
    )


def _format(names: Iterable[str]) -> Format:
    """The format that most files are named by."""
    lower = [name.lower() for name in names]
    return max(ENDINGS, key=lambda kind: sum(name.endswith(ENDINGS[kind]) for name in lower))
