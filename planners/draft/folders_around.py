"""Which folders around tables become the roots of a draft."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import PurePath
from typing import TypeVar

_TOP = 3
"""Parts of the path of a folder right below the top (`/data/lake`): what is around it is no root."""
P = TypeVar("P", bound=PurePath)


def roots_around(tables: Collection[P]) -> list[P]:
    """The folders of databases that tables lie in; of several databases, the folder around them; sorted."""
    databases = {table.parent if len(table.parts) > _TOP else table for table in tables}
    around = Counter(database.parent for database in databases)
    roots = {place.parent if around[place.parent] > 1 and len(place.parts) > _TOP else place for place in databases}
    return sorted(root for root in roots if not roots.intersection(root.parents))
