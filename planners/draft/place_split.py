"""How a place in an object store is cut, so that each folder of files is a dataset of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from pii_tracer.lake.object_tables import is_data_file
from planners.draft.column_guesses import may_tell_of_person


@dataclass
class Cut:
    """places: none holds another one. left: keys that lie in none of them, beside their folders. whole: places that
    were not cut, as names of folders in them may tell of persons.
    """

    places: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    whole: list[str] = field(default_factory=list)


def cut_place(at: str, keys: Collection[str], folders: Collection[str], named: Collection[str] = ()) -> Cut:
    """The places that a prefix becomes. keys: of all versions below it. folders: those that are a dataset each. named:
    those that catalogs name, whatever their names look like.

    A prefix with data files of its own stays one place: to cut it would leave these out. So does one around folders
    whose names may tell of persons: estate files have no such names.
    """
    datasets = {*folders, *named}
    inside, known = _by_first(at, datasets), _by_first(at, named)
    if at in datasets or not inside:
        return Cut([at])
    front = f"{at}/" if at else ""
    below: dict[str, list[str]] = defaultdict(list)
    own = []
    for key in keys:
        first, slash, _ = key[len(front) :].partition("/")
        if slash and first:
            below[first].append(key)
        elif first or slash:
            own.append(key)
    if any(is_data_file(key) for key in own):
        return Cut([at])
    children = sorted(below.keys() | inside.keys())
    if any(may_tell_of_person(child) for child in children if child not in known):
        return Cut([at], whole=[at])
    cut = Cut(left=own)
    for child in children:
        further = cut_place(front + child, below[child], inside.get(child, ()), known.get(child, ()))
        cut.places += further.places
        cut.left += further.left
        cut.whole += further.whole
    return cut


def _by_first(at: str, folders: Collection[str]) -> dict[str, list[str]]:
    """Folders below a prefix, by the first part of their way from there. Where that is empty, they are in none."""
    front = f"{at}/" if at else ""
    found: dict[str, list[str]] = defaultdict(list)
    for folder in folders:
        first = folder[len(front) :].partition("/")[0] if folder.startswith(front) else ""
        if first:
            found[first].append(folder)
    return found
