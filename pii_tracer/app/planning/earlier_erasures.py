"""What earlier runs erased of the persons, by the deletion log: values that no table knows any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pii_tracer.app.execution.run_folder import folder_of
from pii_tracer.app.intake.request_store import existing_store
from pii_tracer.app.settings import Settings
from pii_tracer.config.subjects import Subject
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import PiiTracerError
from pii_tracer.proof.deletions.deletion_log import DeletionLog, log_in
from pii_tracer.proof.deletions.entries import Deed, EntryState

if TYPE_CHECKING:
    from planners.copies.match_key_resolution import Earlier, Keys, Wanted

_DONE = (EntryState.ERASED, EntryState.PARTIAL)


def erased_earlier(
    settings: Settings,
    subject: Subject,
    wanted: Sequence[Wanted],
    keys: Keys,
    aliases: Mapping[str, DatasetId],
    known_by: Mapping[tuple[str, str], frozenset[str]] = MappingProxyType({}),
) -> tuple[Earlier, ...]:
    """For each person and each table that knows them, what the last run that worked there took away.

    aliases: datasets by the names of the estate file. Of a run that did not end nobody can tell how far it came: what
    the table still knows of the person counts as known. known_by: by person (reference) and plan, the source columns of
    which the values of then are known from its sealed manifest.

    Whom a run erased but for what is kept, as the request store has it, and of whom the log has nothing any more, may
    have had any value in any of the tables.
    """
    from planners.copies.match_key_resolution import Earlier

    store = existing_store(settings)
    rest = store.erased_but_for_kept() if store else frozenset()
    references = [person.reference for person in wanted]
    log_of = log_in(settings.state, settings.estate().estate)
    if log_of is not None:
        log_of.check()
    logged, shows = log_of.newest_of(references) if log_of else {}, _shown_keys(settings.state, log_of)
    known_in = {origin: {reference for reference, _ in pairs} for origin, pairs in keys.base.items()} if logged else {}
    found: list[Earlier] = []
    for person in wanted:
        mine, before = logged.get(person.reference, ()), len(found)
        for name, told in subject.by_table if mine else ():
            here = [deed for deed in mine if name in aliases and deed.step_id and deed.dataset == str(aliases[name])]
            if not here:
                continue
            done = any(deed.state in _DONE for deed in here)
            known = {origin for origin, references in known_in.items() if person.reference in references}
            origins = frozenset(o for o in told.origins.values() if done or o not in known)
            origins -= known_by.get((person.reference, here[-1].plan_id), frozenset())
            clean = frozenset(_clean(deed for deed in mine if deed.plan_id == here[-1].plan_id))
            erased_by = {deed.plan_id for deed in here if deed.state in _DONE}
            shown = any(shows(plan, person.reference) for plan in sorted(erased_by))
            found.append(Earlier(person.request, name, origins, clean, shows_the_key=shown))
        if person.request in rest and len(found) == before:
            again = {origin for (who, _), known in known_by.items() if who == person.reference for origin in known}
            for name, told in subject.by_table:
                origins = frozenset(told.origins.values()) - again
                found.append(Earlier(person.request, name, origins, frozenset(), logged=False))
    return tuple(found)


def _shown_keys(state: Path, log: DeletionLog | None) -> Callable[[str, str], bool]:
    """Whether a run that erased a person shows that the key is hers, by its plan's id and the person's reference. Each
    plan is asked once: it may have had very many persons."""

    @cache
    def alone(plan_id: str) -> bool:
        return log is not None and log.has_one_person(plan_id)

    @cache
    def in_source(plan_id: str) -> frozenset[str]:
        try:
            made = folder_of(state, plan_id).approved().plan
        except PiiTracerError:
            return frozenset()
        if made.known_by_key is None:
            return frozenset()
        unseen = frozenset(made.known_by_key)
        by_key = {request.subject for request in made.requests if request.id in unseen}
        return frozenset(request.subject for request in made.requests) - by_key

    return lambda plan_id, reference: reference in in_source(plan_id) or alone(plan_id)


def _clean(deeds: Iterable[Deed]) -> Iterator[str]:
    """The datasets in which a run left nothing of the person, whatever it did there."""
    states: dict[str, set[EntryState]] = {}
    for deed in deeds:
        states.setdefault(deed.dataset, set()).add(deed.state)
    yield from (dataset for dataset, seen in states.items() if seen == {EntryState.ERASED})
