"""Persons whose rows the source lost already: nobody can look for them by anything but the key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pii_tracer.config_backups import Backup
from pii_tracer.gap_kinds import GapKind
from pii_tracer.locations import names_place
from pii_tracer.model import DatasetId
from pii_tracer.plan import Gap
from planners.drafts import slug
from planners.origins import stored_places, tables_named
from planners.survey import Survey, World
from planners.topics import origins_in

_NAMED = 20
"""So many places are named as evidence; the rest is a number."""


def known_by_key_only(found: Survey, world: World, backups: Sequence[Backup]) -> list[Gap]:
    """A gap that names what other values than the key tell, with all that is stored of it: nobody looked there."""
    lost = sorted(found.keys.key_only)
    ways = {
        dataset
        for dataset, carriage in found.carriages.items()
        if carriage.terms and all(trace.origin != found.subject.key for _, trace in carriage.terms)
    }
    stored = sorted({*_stored_of(ways, world, backups), *_topics(found, ways, world)})
    names = sorted({d.name for d in ways} - set(stored))
    recased = sorted(found.keys.recased)
    if not lost or not (names or stored or recased):
        return []
    places = [*stored, *names]  # of what is stored elsewhere nobody thinks by himself
    more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
    return [
        Gap(
            id=f"gap-key_only-{slug(found.subject.name)}",
            dataset=found.source,
            kind=GapKind.KEY_ONLY,
            reason=f"no version of {found.subject.source} knows the person of {', '.join(lost)} any more, so that only"
            f" the key is looked for; {len(names)} dataset(s) that other values tell, and {len(stored)} archive(s),"
            " topic(s), repositories and backup(s) of such, were not searched for them. Waive this only where the"
            " earlier run verified each of these (its deletion log tells)" + _recased(found.subject.source, recased),
            evidence=", ".join(places[:_NAMED]) + more or found.subject.source,
        )
    ]


def _recased(source: str, requests: Sequence[str]) -> str:
    """Who has a key in capitals and asks for it in small letters is in the source still."""
    if not requests:
        return ""
    return (
        f". {source} has the key of {', '.join(requests)} in another case (capital or small letters): if that is the"
        " same person, write the key in the request as it stands there, and plan again"
    )


def _stored_of(ways: set[DatasetId], world: World, backups: Sequence[Backup]) -> Iterator[str]:
    """Archives with their replicas, vaults, lakeFS repositories and backups that are declared of these datasets."""

    def of_them(name: str) -> bool:
        tables = {state.dataset for state in tables_named(name, world)}
        return bool(tables & ways) or any(names_place(name, None, dataset.name) for dataset in ways)

    yield from (place.location for place in stored_places(world) if of_them(place.of))
    yield from (state.location for state in world.inventory.lakefs if of_them(state.declared.of))
    yield from (f"backup {backup.name}" for backup in backups if any(of_them(name) for name in backup.of))


def _topics(found: Survey, ways: set[DatasetId], world: World) -> Iterator[str]:
    """Topics of these datasets, and those of which no declared place holds the key."""
    for state in world.inventory.topics:
        origins = origins_in(found, state, world.inventory)
        of_them = {table.dataset for table in tables_named(state.declared.of, world)} & ways
        if of_them or state.dataset in ways or (origins and found.subject.key not in origins):
            yield state.location
