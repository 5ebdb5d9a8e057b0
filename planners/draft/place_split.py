"""How a place in an object store is cut, so that each folder of files is a dataset of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from planners.draft.object_tables import is_data_file


@dataclass
class Cut:
    """places: none holds another one. left: keys that lie in none of them, beside their folders."""

    places: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def cut_place(at: str, keys: Collection[str], folders: Collection[str]) -> Cut:
    """The places that a prefix becomes. keys: of all versions below it. folders: those that are a dataset each.

    A prefix with data files of its own stays one place: to cut it would leave these out.
    """
    inside = [folder for folder in folders if not at or folder.startswith(f"{at}/")]
    if at in folders or not inside:
        return Cut([at])
    front = f"{at}/" if at else ""
    below: dict[str, list[str]] = defaultdict(list)
    own = []
    for key in keys:
        first, slash, _ = key[len(front) :].partition("/")
        if slash and first:
            below[front + first].append(key)
        elif first or slash:
            own.append(key)
    if any(is_data_file(key) for key in own):
        return Cut([at])
    for folder in inside:
        below.setdefault(front + folder[len(front) :].partition("/")[0], [])
    cut = Cut(left=own)
    for child, mine in sorted(below.items()):
        further = cut_place(child, mine, inside)
        cut.places += further.places
        cut.left += further.left
    return cut
