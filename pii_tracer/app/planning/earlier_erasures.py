"""What earlier runs erased of the persons, by the deletion log: values that no table knows any more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from pii_tracer.config.subjects import Subject
from pii_tracer.model.datasets import DatasetId
from pii_tracer.proof.deletion_log import FILE, DeletionLog, Entry, EntryState, Selection

if TYPE_CHECKING:
    from pathlib import Path

    from planners.copies.match_key_resolution import Earlier, Keys, Wanted

_DONE = (EntryState.ERASED, EntryState.PARTIAL)


def erased_earlier(
    state: Path,
    estate: str,
    subject: Subject,
    wanted: Sequence[Wanted],
    keys: Keys,
    aliases: Mapping[str, DatasetId],
    known_by: Mapping[tuple[str, str], frozenset[str]] = MappingProxyType({}),
) -> tuple[Earlier, ...]:
    """For each person and each table that knows them, what the last run that worked there took away.

    state: the state folder. aliases: datasets by the names of the estate file. Of a run that did not end nobody can
    tell how far it came: what the table still knows of the person counts as known. known_by: by person (reference) and
    plan, the source columns of which the values of then are known from its sealed manifest.
    """
    from planners.copies.match_key_resolution import Earlier

    if not (state / FILE).exists():
        return ()
    log = DeletionLog(state / FILE, estate)
    found = []
    for person in wanted:
        mine = list(log.entries(Selection(subject=person.reference, newest=True)))
        for name, told in subject.by_table:
            here = [e for e in mine if name in aliases and e.step_id and e.dataset == str(aliases[name])]
            if not here:
                continue
            done = any(entry.state in _DONE for entry in here)
            known = {origin for origin, pairs in keys.base.items() if person.reference in dict(pairs)}
            origins = frozenset(o for o in told.origins.values() if done or o not in known)
            origins -= known_by.get((person.reference, here[-1].plan_id), frozenset())
            clean = frozenset(_clean(e for e in mine if e.plan_id == here[-1].plan_id))
            found.append(Earlier(person.request, name, origins, clean))
    return tuple(found)


def _clean(entries: Iterator[Entry]) -> Iterator[str]:
    """The datasets in which a run left nothing of the person, whatever it did there."""
    states: dict[str, set[EntryState]] = {}
    for entry in entries:
        states.setdefault(entry.dataset, set()).add(entry.state)
    yield from (dataset for dataset, seen in states.items() if seen == {EntryState.ERASED})
