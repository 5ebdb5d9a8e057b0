"""What archives, vaults and backups are declared to be of, and what is said where that is no copy.

A table keeps rows for weeks, and its archive for years: that the table holds nothing of the person today says nothing
of what was stored of it before. Only lineage can, and where it does not, people are told that nobody looked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pii_tracer.lake.inventory import TableState
from pii_tracer.model.datasets import Carries, DatasetId
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import names_place
from pii_tracer.model.plan import Examined, Gap
from planners.locate.subject_survey import World
from planners.step_drafts import CopyDraft, is_named, slug, whole_list


def origin_of(of: str, drafts: Iterable[CopyDraft]) -> CopyDraft | None:
    """The table among the drafts that an archive or a vault is declared to be of; by its very name first."""
    named = [d for d in drafts if d.copy.origin is None and is_named(of, d.copy)]
    return next((d for d in named if d.copy.table == of), named[0] if named else None)


def stored_of(item: CopyDraft) -> str | None:
    """What an archive or a vault is declared to be of; None for everything else."""
    if item.objects is not None:
        return item.objects.of
    return item.vault.declared.of if item.vault is not None else None


def is_stored_of(item: CopyDraft, table: str | None, *places: str) -> bool:
    """Whether a copy is an archive or a vault of this table."""
    of = stored_of(item)
    return of is not None and names_place(of, table, *places)


@dataclass(frozen=True)
class Stored:
    """An archive or a vault that holds something. told: the part of the estate file that declares it. listed: digest of
    all that is listed there."""

    of: str
    dataset: DatasetId
    location: str
    told: str
    listed: str


def stored_places(world: World) -> Iterator[Stored]:
    """Every archive, with its replicas, and every vault that holds something."""
    for objects in world.inventory.objects:
        if objects.uploads or any(not v.delete_marker for v in objects.versions):
            yield Stored(objects.of, objects.dataset, objects.location, "archives", objects.listing())
    for vault in world.inventory.vaults:
        if any(not a.of_others for a in vault.archives):
            yield Stored(vault.declared.of, vault.dataset, vault.location, "vaults", vault.listing())


def is_stored(state: TableState, world: World) -> bool:
    """Whether an archive, a vault, a topic or a repository is declared to have rows of a table."""
    inventory = world.inventory
    declared = [place.of for place in stored_places(world)]
    declared += [topic.declared.of for topic in inventory.topics] + [one.declared.of for one in inventory.lakefs]
    return any(names_place(of, state.table, state.location, state.dataset.name) for of in declared)


def unconnected(world: World, origins: Sequence[CopyDraft], examined: Sequence[Examined]) -> list[Gap | Examined]:
    """Archives and vaults that are of no copy, or of nobody knows what: as a gap, or as not looked into.

    origins: copies, and tables that lineage connects with the persons.
    """
    found: list[Gap | Examined] = []
    for stored in stored_places(world):
        states, origin = tables_named(stored.of, world.inventory.tables), origin_of(stored.of, origins)
        unclear = _unclear(stored.of, states) or ("" if origin else untold((stored.of,), world))
        if unclear:
            found.append(_unmatched(stored, unclear))
        elif origin is None:
            carries = next((e.carries for e in examined if e.dataset == states[0].dataset), Carries.NONE)
            of = known_of(stored.of, examined)
            reason = f"{stored.location} is an archive of {of}; its contents were not searched"
            if states[0].in_objects and stored.dataset == states[0].dataset:  # a bare folder is no archive of another
                reason = f"{stored.location} contains the objects of {of}, and was searched together with it"
            found.append(Examined(dataset=stored.dataset, table=None, carries=carries, reason=reason))
    return found


def given_away(world: World, origins: Sequence[CopyDraft]) -> list[Gap]:
    """What a manifest gives to another table, which holds a person, or did: nobody would look into it.

    One place has one archive, so that no other declaration covers it.
    """
    told = [(o.location, o.other_tables, "archives") for o in world.inventory.objects]
    told += [(v.location, v.other_tables, "vaults") for v in world.inventory.vaults]
    gaps = []
    for location, tables, part in told:
        persons = [name for name in tables if any(_may_mean(name, d) for d in origins)]
        if persons:
            reason = (
                f"the manifest of {location} assigns objects to {', '.join(persons)}. These objects were not "
                "searched, and may contain a person. Move them to a place that is declared separately, or remove "
                "them from the manifest, then plan again"
            )
            gap_id = f"gap-manifest_of_copy-{slug(location.partition('://')[2])}"
            evidence = f"the estate file, `{part}`, `manifest`"
            gaps.append(Gap(id=gap_id, dataset=None, kind=GapKind.MANIFEST_OF_COPY, reason=reason, evidence=evidence))
    return gaps


def _may_mean(name: str, draft: CopyDraft) -> bool:
    """Whether a manifest's name may be a table's, with or without its catalog and namespace."""
    table, name = (draft.copy.table or "").lower(), name.lower()
    alike = bool(table) and (table.endswith(f".{name}") or name.endswith(f".{table}"))
    return alike or is_named(name, draft.copy)


def known_of(of: str, examined: Iterable[Examined]) -> str:
    """A dataset that is no copy, with what planning knows of it."""
    known = next((e for e in examined if names_place(of, e.table, e.dataset.name)), None)
    if known is None or known.carries is Carries.NONE:
        return f"{of}, which lineage does not connect with the person"
    return f"{of} ({known.reason})"


def untold(of: Iterable[str], world: World) -> str:
    """Why lineage cannot say that the persons never were in one of these tables; empty where it can.

    That such a table holds nothing of them today settles it for the table, and for nothing that was stored of it.
    """
    lost = {dataset for gap in world.graph.gaps for dataset in (gap.dataset, gap.same_as)}
    lacking = ", ".join(name for name in of if lost & {s.dataset for s in tables_named(name, world.inventory.tables)})
    return (
        f"and lineage of {lacking} is not complete: load the missing lineage, or check the objects by hand"
        if lacking
        else ""
    )


def tables_named(of: str, tables: Iterable[TableState]) -> list[TableState]:
    """The tables that people mean who write this name; by its very name first."""
    states = [s for s in tables if names_place(of, s.table, s.location, s.dataset.name)]
    return [s for s in states if s.table == of] or states


def _unclear(of: str, states: Sequence[TableState]) -> str:
    """Why nobody knows which table is meant; empty where it is plain."""
    places = sorted({s.location for s in states})
    if not places:
        return (
            "which is not in the inventory: use the table's name in the inventory, or its folder. If the table was "
            "dropped, search its stored copies by hand"
        )
    return f"which could be {' or '.join(places)}: write the full name or path" if len(places) > 1 else ""


def _unmatched(stored: Stored, why: str) -> Gap:
    return Gap(
        id=f"gap-archive_unmatched-{slug(stored.location.partition('://')[2])}",
        dataset=None,
        kind=GapKind.ARCHIVE_UNMATCHED,
        reason=f"{stored.location} is declared as a copy of {stored.of}, {why}. A person may be in it",
        evidence=f"the estate file, `{stored.told}`",
        seen=whole_list(f"{stored.location} of {stored.of}, {why}", [stored.listed]),
    )
