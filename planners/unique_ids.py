"""Ids that tell apart what has the same name: two folders called `orders`, two gaps of one kind in places alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pii_tracer.model.datasets import Carries
from pii_tracer.model.plan import Examined, Gap
from planners.step_drafts import CopyDraft, short_digest


def distinct_items(items: Sequence[CopyDraft]) -> list[CopyDraft]:
    """Copies whose id another one has too get a part of their location's hash; the others keep theirs."""
    seen = Counter(item.copy.id for item in items)
    return [_renamed(item) if seen[item.copy.id] > 1 else item for item in items]


def _renamed(item: CopyDraft) -> CopyDraft:
    return replace(item, copy=item.copy.model_copy(update={"id": f"{item.copy.id}-{short_digest(item.copy.location)}"}))


def distinct_examined(examined: Iterable[Examined]) -> list[Examined]:
    """One of each dataset, by name. Where lineage connects it with one kind of person and not with another, it does. A
    column means something else only if it does for all kinds.
    """
    last: dict[str, Examined] = {}
    for one in sorted(examined, key=lambda one: one.carries is not Carries.NONE):
        before = last.get(str(one.dataset), one)
        others = tuple(column for column in one.other_keys if column in before.other_keys)
        last[str(one.dataset)] = one.model_copy(update={"other_keys": others})
    return sorted(last.values(), key=lambda one: one.table or one.dataset.name)


def distinct_gaps(gaps: Iterable[Gap]) -> dict[str, Gap]:
    """Gaps by id. Different ones never share an id, so that none is lost, and none is waived with another."""
    by_id: dict[str, set[Gap]] = {}
    for gap in gaps:
        by_id.setdefault(gap.id, set()).add(gap)
    found = {}
    for gap_id, same in by_id.items():
        for gap in sorted(same, key=Gap.model_dump_json):
            mine = (
                gap
                if len(same) == 1
                else gap.model_copy(update={"id": f"{gap_id}-{short_digest(gap.model_dump_json())}"})
            )
            found[mine.id] = mine
    return found
