"""Short numbers in what is no copy: those that came after planning were judged by nobody.

They count where planning needs no other rows to judge them: in columns that are called as the key, and where lineage
leads. Elsewhere a number is the key if its column holds keys of the source, and nobody reads these again: in a table
that grows, numbers of other things would equal a key by chance at every look.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pii_tracer.model.datasets import Carries, DatasetId, KeySet
from pii_tracer.model.number_keys import FEW, bare, bare_parts, is_short_number
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.scan.hits import FileScan, key_set_in, short_numbers, stands_in
from pii_tracer.verify.verdicts import SINCE

Place = tuple[str, str]
"""A key set, and the column or the kind of place in which a short number of it stands."""

_ANY = "id"
"""Every table may have a column of this name: it says nothing."""


@dataclass(frozen=True)
class ShortNumbersThen:
    """What a plan knows of the short numbers in a place that is no copy.

    known: how many there were at planning. certain: others are the persons'. connected: lineage connects the place
    with the persons, so that others may be theirs in any column, and are theirs in one that is called as the key.
    explained: columns in which they mean something else. called: by key set, what columns with it are called. tiny: key
    sets of which all numbers stand everywhere by chance: they count only in columns called so.
    """

    known: Mapping[Place, int] = field(default_factory=dict)
    certain: bool = False
    connected: bool = False
    explained: frozenset[str] = frozenset()
    called: Mapping[str, frozenset[str]] = field(default_factory=dict)
    tiny: frozenset[str] = frozenset()

    def since(self, scans: Iterable[FileScan]) -> frozenset[Place]:
        """Where more stand now than at planning, and nothing explains them."""
        now = short_numbers(scans)
        return frozenset(
            at for at, count in now.items() if not self._expected(at, count) and (self.certain or self._may_be(at))
        )

    def residue(self, at: Place) -> bool:
        """Whether what stands there since planning is the persons' for certain."""
        return self.certain or (self.connected and self._is_called(at))

    def _expected(self, at: Place, count: int) -> bool:
        return (at in self.known and count <= self.known[at]) or stands_in(at[1], self.explained) is not None

    def _may_be(self, at: Place) -> bool:
        return self._is_called(at) or (self.connected and at[0] not in self.tiny)

    def _is_called(self, at: Place) -> bool:
        return bool(self.called.get(at[0], frozenset()) & bare_parts(at[1]))


def unjudged(places: Iterable[Place]) -> tuple[str, ...]:
    """Why a place with such numbers is not verified."""
    return tuple(
        f"digits of a short key ({key_set}) are in {place}, but were not there at planning: nobody knows whether they "
        "belong to the person. Plan again to check them. If the column has numbers of a different system, declare it "
        "under `not_keys`"
        for key_set, place in sorted(set(places))
    )


def short_numbers_then(
    plan: ErasurePlan, dataset: DatasetId, name: str, key_sets: Sequence[KeySet]
) -> ShortNumbersThen | None:
    """How short numbers count in what is no copy; None where they mean nothing.

    A plan without copies has no rows to compare, so that only these tell whether the persons are in a place that
    lineage connects with them, or that is new. name: of the verdict.
    """
    examined = next((item for item in plan.examined if item.dataset == dataset), None)
    new = examined is None and name.startswith(SINCE)
    connected = examined is not None and examined.carries is not Carries.NONE
    if not (new or connected or (examined and examined.digits is not None)):
        return None
    return ShortNumbersThen(
        known={(d.key_set, d.place): d.count for d in (examined.digits if examined else None) or ()},
        certain=not plan.copies and (new or connected),
        connected=connected,
        explained=frozenset(examined.other_keys) if examined else frozenset(),
        called=_called(plan, key_sets),
        tiny=_tiny(key_sets),
    )


def short_numbers_in_file(plan: ErasurePlan, shown: str, key_sets: Sequence[KeySet]) -> ShortNumbersThen | None:
    """The same of a file that belongs to no table. One without a gap had none at planning, or was not there; a gap does
    not say how many. shown: its path, as a gap shows it."""
    if any(gap.evidence == shown for gap in plan.gaps):
        return None
    return ShortNumbersThen(called=_called(plan, key_sets), tiny=_tiny(key_sets))


def _called(plan: ErasurePlan, key_sets: Iterable[KeySet]) -> dict[str, frozenset[str]]:
    """By key set, what its columns are called in the source and in the copies."""
    names = {key_set_in(keys.name): {bare(keys.origin)} for keys in key_sets}
    terms = [term for copy in plan.copies if copy.places for term in copy.places.terms]
    for term in terms:
        parts = [part for part in re.split(r"[^0-9A-Za-z_]+", term.label()) if part]
        names.setdefault(term.key_set, set()).add(bare(parts[-1] if parts else term.column))
    return {key_set: frozenset(called) - {_ANY, ""} for key_set, called in names.items()}


def _tiny(key_sets: Iterable[KeySet]) -> frozenset[str]:
    longest: dict[str, int] = {}
    for keys in key_sets:
        mine = max((len(value.strip()) for value in _short(keys)), default=0)
        longest[key_set_in(keys.name)] = max(mine, longest.get(key_set_in(keys.name), 0))
    return frozenset(name for name, digits in longest.items() if digits < FEW)


def _short(keys: KeySet) -> Collection[str]:
    return [value for _, value in keys.values if is_short_number(value.strip())]
