"""Whose residue is: where a look found something of the persons of a plan, each of them is looked for apart, and then
all others together. Only what that second look finds free of these is called so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from pii_tracer.app.verification import Verification
from pii_tracer.model.errors import ScanError
from pii_tracer.model.plan import Copy
from pii_tracer.verify.persons_left import Looked, PersonsLeft, persons_left
from pii_tracer.verify.verdicts import ByteVerdict, CopyVerdict, Residue, RunVerdict

Place = tuple[str, str]
"""Name of a verdict about what is no copy, and its root: names alone are not unique."""


class ResidueOfPersons:
    """The looks of one plan. `verification` is the one that found the residue."""

    def __init__(self, verification: Verification) -> None:
        self._all = verification

    @cached_property
    def _persons(self) -> frozenset[str]:
        return frozenset(request.subject for request in self._all.plan.requests)

    @cached_property
    def _each(self) -> Verification:
        return self._all.of_each_person()

    def told_apart(self, copy: Copy, verdict: CopyVerdict) -> CopyVerdict:
        """The verdict with whose its residue is, where that can be known."""
        if not verdict.residue or verdict.unverified or len(self._persons) < 2:
            return verdict
        persons = _named(self._each.look(copy).residue)
        rest = self._without(persons)
        if rest is None:
            return verdict
        again = rest.look(copy)
        clean = not again.residue and not again.unverified and _scope(again) == _scope(verdict)
        return verdict.model_copy(update={"left_of": tuple(sorted(persons))}) if clean else verdict

    def left(self, verdict: RunVerdict, elsewhere: Iterable[ByteVerdict]) -> PersonsLeft:
        """Of whom something is left, in copies and in what is none."""
        elsewhere = tuple(elsewhere)
        beside = [seen for seen in elsewhere if seen.residue]
        looked = [
            Looked(
                copy.copy_id, bool(copy.residue), bool(copy.unverified), frozenset(copy.left_of), copy.erased_of_others
            )
            for copy in verdict.copies
        ]
        named = self._named_beside(elsewhere, {seen.copy_id for seen in beside})
        looked += [
            Looked(seen.copy_id, True, persons=named.get(_place(seen), frozenset()), others_clean=_place(seen) in named)
            for seen in beside
        ]
        return persons_left(looked, self._persons)

    def _named_beside(self, first: Sequence[ByteVerdict], names: Collection[str]) -> Mapping[Place, frozenset[str]]:
        """By place that is no copy, whose residue is there. Without those of which nobody knows it, and without those
        of a name by which not the very same places were looked at each time."""
        if not names or len(self._persons) < 2:
            return {}
        seen = self._each.elsewhere(names)
        found: dict[Place, set[str]] = {}
        for one in seen:
            found.setdefault(_place(one), set()).update(_named(one.residue))
        rest = self._without(frozenset[str]().union(*found.values()))
        again = rest.elsewhere(names) if rest is not None else ()
        unclean = {_place(one) for one in again if not one.clean}
        same = {name for name in names if _places(first, name) == _places(seen, name) == _places(again, name)}
        return {
            place: frozenset(persons)
            for place, persons in found.items()
            if persons and place[0] in same and place not in unclean
        }

    def _without(self, persons: frozenset[str]) -> Verification | None:
        """The look for all others; None where the residue names nobody, or nobody else is there."""
        if not persons or not self._persons - persons:
            return None
        try:
            return self._all.without(persons)
        except ScanError:
            return None


def _named(residue: Iterable[Residue]) -> frozenset[str]:
    return frozenset(item.person for item in residue if item.person is not None)


def _place(seen: ByteVerdict) -> Place:
    return seen.copy_id, seen.root


def _places(looks: Iterable[ByteVerdict], name: str) -> Counter[Place]:
    """The places that were looked at by a name."""
    return Counter(_place(one) for one in looks if one.copy_id == name)


def _scope(verdict: CopyVerdict) -> tuple[set[tuple[str, str]], set[tuple[str, bool]]]:
    """What a verdict is about: files with their hashes, and states of the table, with whether each was read."""
    files = {(file.path, file.sha256) for file in (verdict.bytes.files if verdict.bytes else ())}
    return files, {(one.state, one.rows is not None) for one in (verdict.rows.states if verdict.rows else ())}
