"""Whose a gap is: the persons whom it comes from, where it comes from particular ones.

A plan for the others has no such gap. Who is named here too often waits for a plan of her own; who is not named leaves
the gap in the plan. So nobody is claimed to be erased in either case.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap
from planners.copies.persons_known_by_key_only import left_open_gap
from planners.gaps.tenant_keys import several_id
from planners.locate.subject_survey import Survey, World

SEARCHED = frozenset({GapKind.UNEXPECTED_COPY, GapKind.SAME_DIGITS})
"""Gaps of a place in which a search for each person alone shows whose values stand there."""
APART = frozenset({*SEARCHED, GapKind.STREAMING_STATE})
"""Gaps of a place whose waiver is for those persons of whom anything is there."""

_OF_HOLDS = frozenset(
    {
        GapKind.HOLD_UNMATCHED,
        GapKind.HOLD_KEEPS_REST,
        GapKind.HOLD_BLOCKS,
        GapKind.HOLD_EXPIRES,
        GapKind.HOLD_REFILLS,
        GapKind.HOLD_OVERWRITTEN,
        GapKind.HOLD_IN_BACKUP,
    }
)

Persons = frozenset[str]


def seen_persons(gap: Gap, surveys: Sequence[Survey], world: World, references: Mapping[str, str]) -> Persons:
    """Those whose values a gap shows: a waiver of it is for nobody else. All persons of the plan where that is not
    known. references: as of `requests_with_gaps`."""
    known: Persons = frozenset()
    if gap.kind in APART:
        known = world.whose.get(world.searched_at(gap) or "", frozenset())
    elif gap.kind in _COUNTED:
        known = _joined(map(_OF_VALUES[GapKind(gap.kind)], surveys))
    elif gap.kind in (GapKind.KEY_OF_SEVERAL, GapKind.KEY_ONLY):
        known = frozenset(references[r] for survey in surveys for r in references if _is_about(gap, survey, r))
    return known or frozenset(references.values())


def requests_with_gaps(
    gaps: Iterable[Gap],
    surveys: Sequence[Survey],
    world: World,
    references: Mapping[str, str],
    seen: Mapping[str, Persons],
    narrowed: Collection[str] = (),
) -> dict[str, tuple[str, ...]]:
    """By request, the kinds of the open gaps that come from its person. Empty where a gap comes from nobody in
    particular: it stays, whoever is left out.

    references: by request, of its person. seen: by location or lone file with a gap of `SEARCHED`, whose values stand
    there. narrowed: requests whose persons asked to keep something, from which every gap of a hold is taken to come.
    """
    requests: dict[str, list[str]] = {}
    for request, reference in references.items():
        requests.setdefault(reference, []).append(request)
    found: dict[str, set[str]] = {}
    for gap in gaps:
        if gap.waiver is not None:
            continue
        mine = {request for reference in _persons(gap, surveys, world, seen) for request in requests.get(reference, ())}
        mine |= {request for survey in surveys for request in _by_request(gap, survey)}
        mine |= {*narrowed} if gap.kind in _OF_HOLDS else set()
        if not mine:
            return {}
        for request in mine:
            found.setdefault(request, set()).add(str(gap.kind))
    return {request: tuple(sorted(kinds)) for request, kinds in sorted(found.items())}


def _persons(gap: Gap, surveys: Sequence[Survey], world: World, seen: Mapping[str, Persons]) -> Persons:
    """References of those whom a gap comes from, as far as their values say it."""
    if gap.kind in SEARCHED:
        return seen.get(world.searched_at(gap) or "", frozenset())
    if gap.kind == GapKind.OTHERS_ROWS:
        here = world.others.get((gap.dataset and world.location_of(gap.dataset)) or "", ())
        # a rebuilt table has them from another one
        told = here or tuple(one for all_ in world.others.values() for one in all_)
        return _joined(one.persons for one in told)
    known = _OF_VALUES.get(GapKind(gap.kind)) if gap.kind in _OF_VALUES else None
    return _joined(map(known, surveys)) if known else frozenset()


def _joined(parts: Iterable[Persons]) -> Persons:
    return frozenset[str]().union(*parts)


def _shared(found: Survey) -> Persons:
    keys = found.keys
    plain = {r for origin, pairs in keys.base.items() for r, value in pairs if value in keys.others[origin]}
    return _joined([frozenset(plain), *(derived.shared_of for derived in found.derived.values())])


def _former(found: Survey) -> Persons:
    return _joined([found.keys.ambiguous_of, *(derived.left_of for derived in found.derived.values())])


def _unsure(found: Survey) -> Persons:
    return _joined(derived.unsure_of for derived in found.derived.values())


_OF_VALUES: Mapping[GapKind, Callable[[Survey], Persons]] = {
    GapKind.SHARED_IDENTIFIER: _shared,
    GapKind.FORMER_VALUE: _former,
    GapKind.VALUE_NOT_CERTAIN: _unsure,
}
_COUNTED = frozenset({GapKind.SHARED_IDENTIFIER, GapKind.FORMER_VALUE})
"""Kinds of which it is known of everybody whether they are concerned."""


def _is_about(gap: Gap, found: Survey, request: str) -> bool:
    """Whether a gap is one request's own: its id says so."""
    return gap.id in (several_id(found, request), left_open_gap(request))


def _by_request(gap: Gap, found: Survey) -> Persons:
    """Requests whose key itself is what the gap is about."""
    keys = found.keys
    if gap.kind == GapKind.KEY_OF_SEVERAL:
        return frozenset(request for request in keys.same_key if several_id(found, request) == gap.id)
    if gap.kind == GapKind.KEY_ONLY and gap.dataset == found.source:
        if mine := {request for request in keys.unsearched if left_open_gap(request) == gap.id}:
            return frozenset(mine)
        return keys.key_only | keys.recased | {one.request for one in keys.earlier if one.origins}
    return frozenset()
