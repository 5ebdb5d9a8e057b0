"""Which folders around tables become the roots of a draft, and which are those of development."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import PurePath
from typing import TypeVar

from planners.draft.column_guesses import may_tell_of_person

_TOP = 3
"""Parts of the path of a folder right below the top (`/data/lake`): what is around it is no root."""
_DEVELOPMENT = frozenset({"dev", "sandbox", "scratch", "playground"})
P = TypeVar("P", bound=PurePath)


def roots_around(tables: Collection[P]) -> list[P]:
    """The folders of databases that tables lie in; of several databases, the folder around them; sorted."""
    databases = {table.parent if len(table.parts) > _TOP else table for table in tables}
    around = Counter(database.parent for database in databases)
    roots = {place.parent if around[place.parent] > 1 and len(place.parts) > _TOP else place for place in databases}
    return sorted(root for root in roots if not roots.intersection(root.parents))


def development_roots(tables: Iterable[str], roots: Collection[str]) -> tuple[str, ...]:
    """The outermost folders below the roots that are called as development is; and such roots beside others.

    tables, roots: places as the estate file writes them, in stores and on this machine. A folder on whose way a name
    may tell of a person is none.
    """
    called = {root for root in roots if root.rstrip("/").rpartition("/")[2].lower() in _DEVELOPMENT}
    if len(called) == len(roots):  # whoever names such folders alone means them
        called = set()
    fronts = {"" if root == "." else f"{root.rstrip('/')}/" for root in roots}
    for table in tables:
        front = max((front for front in fronts if f"{table}/".startswith(front)), key=len, default=None)
        if front is None or ("://" in table and not front):
            continue
        way = table[len(front) :].split("/")[:-1]
        place = next((place for place, name in enumerate(way) if name.lower() in _DEVELOPMENT), None)
        if place is not None and not any(map(may_tell_of_person, way[: place + 1])):
            called.add(front + "/".join(way[: place + 1]))
    return tuple(sorted(called))
