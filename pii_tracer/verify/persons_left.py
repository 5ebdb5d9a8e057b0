"""Of whom a run left something, as far as anybody knows. Whoever may be one of them counts as one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Looked:
    """What the look at a place showed.

    place: its name in verdicts. found: whether there is residue. unread: whether something there could not be looked
    at. persons: keyed references of those whose the residue is. others_clean: whether all others were looked for in
    the same bytes without these, and nothing of them is there.
    """

    place: str
    found: bool
    unread: bool = False
    persons: frozenset[str] = frozenset()
    others_clean: bool = False


@dataclass(frozen=True)
class PersonsLeft:
    """persons: all of whom something is left, or may be. places: of each whom the search named, where."""

    persons: frozenset[str] = frozenset()
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


NOBODY = PersonsLeft()


def persons_left(looked: Iterable[Looked], everybody: Collection[str]) -> PersonsLeft:
    """Of whom something is left. A place that was not wholly read, and residue that nobody could be named for, counts
    for all. everybody: keyed references of the persons of the plan.
    """
    everybody = frozenset(everybody)
    found: dict[str, set[str]] = {}
    for look in looked:
        mine = look.persons & everybody
        if look.unread or (look.found and not (mine and look.others_clean)):
            return PersonsLeft(everybody)
        for person in mine if look.found else ():
            found.setdefault(person, set()).add(look.place)
    return PersonsLeft(frozenset(found), {person: tuple(sorted(places)) for person, places in sorted(found.items())})
