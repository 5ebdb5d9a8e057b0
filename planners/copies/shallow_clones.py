"""Shallow clones without the persons, whose origins are copies: what removes the origin's old files would break them.

A clone's log names files of its origin, and VACUUM of the origin knows nothing of clones (hazard D8;
https://docs.delta.io/latest/delta-utility.html#shallow-clone-a-delta-table).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from pii_tracer.lake.inventory import TableState
from pii_tracer.model.datasets import BY_ROWS
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap
from planners.locate.subject_survey import World, title
from planners.step_drafts import CopyDraft, origins_of_clone, slug


def clones_taken_along(
    items: Sequence[CopyDraft], clean: Iterable[CopyDraft], world: World
) -> tuple[list[CopyDraft], list[Gap]]:
    """Clean clones of copies: copies as well where a step can take their files into their own folder, otherwise gaps.

    clean: tables that hold nothing of the persons, as they would be treated.
    """
    by_location = {s.location: s for s in world.inventory.tables}
    erased = {i.copy.location: i for i in items}
    ready = {i.copy.location: i for i in clean if i.copy.strategy in BY_ROWS and i.copy.match and i.copy.match.terms}
    taken, gaps = [], []
    for state in world.inventory.tables:
        origin = _erased_origin(state, erased, by_location)
        if origin is None or state.location in erased:
            continue
        name = title(by_location[origin])
        if item := ready.get(state.location):
            reason = (
                f"{item.copy.reason}; it contains nothing of the person, but reads files of {name}: the step copies "
                "these files into the clone"
            )
            taken.append(replace(item, copy=item.copy.model_copy(update={"reason": reason})))
        else:
            gaps.append(_gap(state, name))
    return taken, gaps


def _erased_origin(state: TableState, erased: Collection[str], by_location: dict[str, TableState]) -> str | None:
    return next((place for place in origins_of_clone(state, by_location) if place in erased), None)


def _gap(state: TableState, origin: str) -> Gap:
    return Gap(
        id=f"gap-{GapKind.CLONE_READS_FILES}-{slug(title(state))}",
        dataset=state.dataset,
        kind=GapKind.CLONE_READS_FILES,
        reason=f"a shallow clone that reads files of {origin}: it contains nothing of the person, but becomes"
        " unreadable when the origin's old files are removed",
        evidence=(
            "copy the clone into an independent table (CREATE OR REPLACE TABLE … AS SELECT * FROM the clone), or "
            "drop the clone, then plan again. If nobody needs the clone, waive this gap"
        ),
    )
