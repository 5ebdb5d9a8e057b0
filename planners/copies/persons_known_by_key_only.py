"""Persons of whom an earlier run left nothing but the key to know: nobody can look for them by other values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pii_tracer.common.plurals import counted
from pii_tracer.config.backups import Backup
from pii_tracer.model.datasets import Carries, DatasetId
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import names_place
from pii_tracer.model.plan import Gap
from pii_tracer.model.planned_requests import PlannedRequest
from planners.copies.declared_origins import stored_places, tables_named
from planners.copies.match_key_resolution import Keys
from planners.locate.key_location import Carriage
from planners.locate.subject_survey import Survey, World
from planners.step_drafts import slug, whole_list
from planners.streams.kafka.topics import origins_in

_NAMED = 20
"""So many places are named as evidence; the rest is a number."""


def known_by_key_only(found: Survey, world: World, backups: Sequence[Backup]) -> list[Gap]:
    """A gap that names what other values than the key tell, with all that is stored of it: nobody looked there."""
    ways = {dataset for dataset, carriage in found.carriages.items() if _by_lost_values(found.keys, dataset, carriage)}
    stored = sorted({*_stored_of(ways, world, backups), *_topics(found, ways, world)})
    names = sorted({d.name for d in ways} - set(stored))
    recased = sorted(found.keys.recased)
    lost = list(_left_open(found))
    if not (names or stored or recased):
        return lost
    places = [*stored, *names]  # of what is stored elsewhere nobody thinks by himself
    more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
    return [
        *lost,
        Gap(
            id=f"gap-key_only-{slug(found.subject.name)}",
            dataset=found.source,
            kind=GapKind.KEY_ONLY,
            seen=whole_list(f"{_why(found)} {_recased(found.subject.source, recased)}", places),
            reason=(
                f"{_why(found)}; {counted(len(names), 'dataset')} with only other values of the persons, and "
                f"{counted(len(stored), 'copy', 'copies')} of these datasets (archive, topic, repository, backup), "
                "were not searched for these persons. "
            )
            + _way_out(found.keys)
            + _recased(found.subject.source, recased),
            evidence=", ".join(places[:_NAMED]) + more or found.subject.source,
        ),
    ]


def are_shown(surveys: Sequence[Survey], requests: Sequence[PlannedRequest], *, found: bool) -> bool:
    """Whether it is shown of each person that the key is right: by the source, by an earlier run, or by what is found.
    What several persons' keys find shows it of none of them: all of it can be of another one.

    found: whether the plan has copies.
    """
    if found and len({request.subject for request in requests}) == 1:
        return True
    needed = frozenset(request.id for request in requests)
    if found:
        needed &= frozenset[str]().union(*(survey.keys.key_only for survey in surveys))
    return needed <= _worked_on(surveys)


def _worked_on(surveys: Iterable[Survey]) -> frozenset[str]:
    """Requests whose persons an earlier run erased by their keys. Of all others nobody can tell whether the key is
    right, if nothing is found by it. A key of several columns is not among them: only rows show it, and what is no copy
    is searched by its bytes."""
    by_bytes = (found for found in surveys if not found.subject.several_columns)
    return frozenset(earlier.request for found in by_bytes for earlier in found.keys.earlier if earlier.shows_the_key)


def left_open_gap(request: str) -> str:
    """The id of the gap about a request that an earlier run left open, where values of then are not looked for."""
    return f"gap-key_only-open-{slug(request)}"


def _left_open(found: Survey) -> Iterator[Gap]:
    for request, places in found.keys.unsearched.items():
        yield Gap(
            id=left_open_gap(request),
            dataset=found.source,
            kind=GapKind.KEY_ONLY,
            reason=(
                f"an earlier run left the request {request} open: it found data of the person in "
                f"{counted(len(places), 'place')}, and this plan does not search for the values that found it. "
                "Restore the sealed manifest of that run, then plan again"
            ),
            evidence=", ".join(places) or found.subject.source,
        )


def _by_lost_values(keys: Keys, dataset: DatasetId, carriage: Carriage) -> bool:
    """Whether rows of a dataset are found by values that nobody knows any more, and not by the key alone."""
    if carriage.carries not in (Carries.BRIDGE, Carries.IDENTIFIERS):
        return False
    origins = {trace.origin for _, trace in carriage.terms}
    return bool(keys.key_only and origins) or any(
        origins & earlier.origins and str(dataset) not in earlier.clean for earlier in keys.earlier
    )


def _way_out(keys: Keys) -> str:
    if keys.unseen:
        return "Make the source readable, then plan again"
    shows = "its deletion log" if _is_logged(keys) else "its attestation"
    return f"Waive this gap only if the earlier run verified each of these copies ({shows} shows it)"


def _why(found: Survey) -> str:
    if found.keys.unseen:
        return f"the rows of {found.subject.source} cannot be read, so only the request's key is searched for"
    if found.keys.key_only:
        lost = ", ".join(sorted(found.keys.key_only))
        source = found.subject.source
        return f"no version of {source} contains the person of {lost}, so only the key is searched for"
    requests = ", ".join(sorted({e.request for e in found.keys.earlier if e.origins}))
    tables = ", ".join(sorted({e.table for e in found.keys.earlier if e.origins}))
    return (
        f"an earlier run erased the person of {requests} from {tables} (the deletion log "
        f"{'shows it' if _is_logged(found.keys) else 'does not contain it any more'}), so this plan does not search "
        "for the person's earlier values"
    )


def _is_logged(keys: Keys) -> bool:
    return all(earlier.logged for earlier in keys.earlier if earlier.origins)


def _recased(source: str, requests: Sequence[str]) -> str:
    """Who has a key in capitals and asks for it in small letters is in the source still."""
    if not requests:
        return ""
    return (
        f". {source} has the key of {', '.join(requests)} in a different case (capital or small letters). If that is "
        "the same person, write the key in the request as the table has it, then plan again"
    )


def _stored_of(ways: set[DatasetId], world: World, backups: Sequence[Backup]) -> Iterator[str]:
    """Archives with their replicas, vaults, lakeFS repositories and backups that are declared of these datasets."""

    def of_them(name: str) -> bool:
        tables = {state.dataset for state in tables_named(name, world.inventory.tables)}
        return bool(tables & ways) or any(names_place(name, None, dataset.name) for dataset in ways)

    yield from (place.location for place in stored_places(world) if of_them(place.of))
    yield from (state.location for state in world.inventory.lakefs if of_them(state.declared.of))
    yield from (f"backup {backup.name}" for backup in backups if any(of_them(name) for name in backup.of))


def _topics(found: Survey, ways: set[DatasetId], world: World) -> Iterator[str]:
    """Topics of these datasets, and those of which no declared place holds the key, but what is lost."""
    lost = frozenset[str]().union(*(earlier.origins for earlier in found.keys.earlier))
    for state in world.inventory.topics:
        origins = origins_in(found, state, world.inventory)
        of_them = {table.dataset for table in tables_named(state.declared.of, world.inventory.tables)} & ways
        other = found.subject.key not in origins and bool(origins if found.keys.key_only else origins & lost)
        if of_them or state.dataset in ways or other:
            yield state.location
