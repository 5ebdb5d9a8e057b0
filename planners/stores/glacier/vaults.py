"""Glacier vaults: every archive that can hold the person is fetched, written again and deleted, or deleted whole.

An archive cannot be changed in place, and its id says nothing: what no manifest gives to other tables can hold
anybody. A vault has no lifecycle, so that nothing in it lapses. That an archive is gone only a later inventory tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pii_tracer.lake.stores.glacier.vault_state import VaultArchive, VaultState
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import CopyKind, Strategy
from pii_tracer.model.plan import Override
from planners.copies.declared_origins import origin_of
from planners.locate.subject_survey import World
from planners.step_drafts import (
    CopyDraft,
    Draft,
    StepWriter,
    slug,
)


def vaults(world: World, tables: Iterable[CopyDraft]) -> list[CopyDraft]:
    """A copy of kind ARCHIVE for each vault with archives of one of the tables."""
    tables = tuple(tables)
    items: list[CopyDraft] = []
    for state in world.inventory.vaults:
        origin = origin_of(state.declared.of, tables)
        if origin is None or not _holding(state):
            continue
        whole = state.declared.delete_whole is not None
        # a table whose rows no key finds is rebuilt; its archives hold rows that nothing can tell apart
        possible = whole or origin.copy.match is not None or bool(origin.copy.mentions)  # which `mentions` blocks
        named = world.named.get(state.location)
        strategy = Strategy.DELETE_ARCHIVES if whole else Strategy.RESTORE_REWRITE_ARCHIVE
        copy = origin.copy.model_copy(
            update={
                "id": "c-" + slug(state.location.removeprefix("glacier://")),
                "kind": CopyKind.ARCHIVE,
                "dataset": state.dataset,
                "table": None,
                "location": state.location,
                "format": state.declared.format,
                "strategy": strategy if possible and not named else Strategy.BLOCKED,
                "lineage": (*origin.copy.lineage, state.location),
                "reason": f"archives of {state.declared.of} in a Glacier vault, as of {state.taken:%Y-%m-%d %H:%M} UTC"
                + ("" if possible else "; no key finds the person's rows in them: delete them whole (`delete_whole`)"),
                "origin": None,
                "mentions": (),
                "found": None,
                "facts": {"region": state.declared.region, "vault": state.declared.vault},
            }
        )
        usable = possible and not named
        carriage, upstream = origin.carriage, str(origin.copy.dataset)
        items.append(CopyDraft(copy=copy, vault=state if usable else None, carriage=carriage, upstream=upstream))
    return items


def _holding(state: VaultState) -> list[VaultArchive]:
    """Archives that can hold rows of the table."""
    return [a for a in state.archives if not a.of_others]


def vault_steps(item: CopyDraft, state: VaultState) -> tuple[Draft, ...]:
    """Fetch, write again, delete, and wait for an inventory that tells so; or delete at once."""
    declared = state.declared
    where = {
        "vault": declared.vault,
        "account_id": declared.account_id,
        "region": declared.region,
        "endpoint_url": declared.endpoint_url,
    }
    steps = StepWriter(item.copy, "vault", where)
    archives = [a.model_dump(exclude={"of_others"}) for a in _holding(state)]
    rewritten: str | None = None
    if declared.delete_whole is None:
        rewritten = _rewrite(steps, archives, item)
    steps.add(
        Action.VAULT_DELETE,
        "the old archives of rewritten ones still contain the person"
        if rewritten
        else "whole archives are deleted, with the data of all persons: the estate file states the reason",
        hazards=("S5", "S6"),
        verification="Glacier accepted every deletion; the next step verifies that they are gone",
        archives=archives,
        rewritten_by=rewritten,
    )
    steps.add(
        Action.VAULT_AWAIT_INVENTORY,
        "an archive is gone when an inventory made after its deletion does not list it, and its fetched output has "
        "expired",
        hazards=("S6",),
        verification="an inventory newer than the deletions lists every new archive, and none of the deleted archives",
        irreversible=False,
        archives=archives,
        others=sorted(a.id for a in state.archives if a.of_others),
        rewritten_by=rewritten,
        deleted_by=steps.drafts[-1].id,
    )
    return tuple(steps.drafts)


def _rewrite(steps: StepWriter, archives: Sequence[object], item: CopyDraft) -> str:
    """Fetch and rewrite; the id of the step that rewrites."""
    steps.add(
        Action.VAULT_RETRIEVE,
        "an archive can be read only after a job has fetched it",
        hazards=("S5",),
        verification="every archive can be read",
        irreversible=False,
        archives=archives,
        tier="Standard",
    )
    match = item.copy.match
    steps.add(
        Action.VAULT_REWRITE,
        "each archive contains many people: the step rewrites it without the person, as a new archive",
        hazards=("S5", "F3"),
        verification="every archive was read; it does not contain the person, or has a successor that does not",
        irreversible=False,
        archives=archives,
        tier="Standard",
        format=item.copy.format.value,
        match=match.model_dump(mode="json") if match else None,
        other_keys=list(item.copy.other_keys),
    )
    return steps.drafts[-1].id


def whole_deletions(items: Iterable[CopyDraft]) -> tuple[Override, ...]:
    """Vaults whose archives are deleted with everybody in them, for reviewers."""
    found = {
        f"{item.vault.location}: {item.vault.declared.delete_whole}"
        for item in items
        if item.vault is not None and item.vault.declared.delete_whole and item.drafts
    }
    return tuple(Override(kind="vault_delete_whole", reason=reason) for reason in sorted(found))
