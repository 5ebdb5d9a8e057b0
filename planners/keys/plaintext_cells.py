"""What is declared to be encrypted and nobody has seen to be: it counts as plain, until somebody looked."""

from __future__ import annotations

from collections.abc import Sequence

from pii_tracer.common.plurals import counted
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.keys.key_facts import PlainCells
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import names_place
from pii_tracer.model.plan import Gap
from planners.copies.declared_origins import stored_places
from planners.locate.subject_survey import World, title
from planners.step_drafts import CopyDraft, slug


def plain_beside(state: TableState, known: Sequence[PlainCells]) -> list[Gap]:
    """A gap where a dataset has values that are no cells, or files that do not tell. known: as planning saw it."""
    gaps = []
    for one in (k for k in known if k.location == state.location):
        told = [f"{counted(number, 'value')} in {column}" for column, number in one.cells]
        told += [f"{counted(one.files, 'file')} could not be searched for unencrypted values"] if one.files else []
        reason = (
            f"rows that may be the persons', old versions included, contain plain text: {'; '.join(told)}. These "
            "values remain readable when the key is destroyed. Encrypt or erase them, let their old versions expire, "
            "then plan again. If a check shows that they are not the person's, waive this gap"
        )
        name, evidence = slug(title(state)), "the estate file, `keys`"
        gap_id = f"gap-plain_cells-{name}"
        gaps.append(Gap(id=gap_id, dataset=state.dataset, kind=GapKind.PLAIN_CELLS, reason=reason, evidence=evidence))
    return gaps


def unseen(state: TableState, world: World, treated: Sequence[CopyDraft]) -> list[Gap]:
    """A gap for every archive and vault of an encrypted dataset: an object is as old as its table's first backup.

    Planning reads no object. treated: copies whose rows leave, or that are deleted whole.
    """
    ways = (Strategy.RESTORE_REWRITE_ARCHIVE, Strategy.DELETE_ARCHIVES)
    erased = {i.copy.location for i in treated if i.copy.strategy in ways}
    places = (state.table, state.location, state.dataset.name)
    return [
        Gap(
            id=f"gap-plain_archive-{slug(one.location.partition('://')[2])}",
            dataset=one.dataset,
            kind=GapKind.PLAIN_ARCHIVE,
            reason=(
                f"{one.location} is declared as a copy of {title(state)}, whose columns are encrypted. Nobody checked "
                "whether the cells of this copy are encrypted, too: data stored before encryption began has the "
                "person in plain text. Check every object and old version there, erase the person in plain text, "
                "then waive this gap"
            ),
            evidence=f"the estate file, `keys` and `{one.told}`",
        )
        for one in stored_places(world)
        if names_place(one.of, *places) and one.location not in erased
    ]
