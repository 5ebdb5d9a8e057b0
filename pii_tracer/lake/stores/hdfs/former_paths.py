"""Where a file lay that HDFS keeps in a snapshot or in a trash.

https://hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-hdfs/HdfsSnapshots.html; trash:
https://hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-hdfs/HdfsDesign.html (`TrashPolicyDefault`).
"""

from __future__ import annotations

import re
from itertools import combinations

from pii_tracer.lake.stores.hdfs.webhdfs import SNAPSHOTS

TRASH = ".Trash"
_CHECKPOINT = re.compile(r"Current|\d{10,}(-\d+)?")
"""The folders of a trash, below it or below the one of a user."""


_DELETED_AGAIN = re.compile(r"(.+)[12]\d{12}")
"""A trash has a folder of the same name already: the next one gets the time, in milliseconds since 1970."""
_MOST_RENAMED = 2
"""Of the parts of one path: what was deleted, and a folder above whose name a file in the trash has."""


def former_paths(path: str) -> tuple[str, ...]:
    """The paths that a file may have had; its own where it lies in neither. The first one has all its names as they
    are; of a file in a trash, others are without the times that the trash may have added to folders."""
    parts = path.split("/")
    if SNAPSHOTS in parts:
        at = parts.index(SNAPSHOTS)
        parts = [*parts[:at], *parts[at + 2 :]]
    if TRASH in parts:
        below = parts[parts.index(TRASH) + 1 :]
        for number, name in enumerate(below[:2], 1):
            if _CHECKPOINT.fullmatch(name):
                return _without_times(["", *below[number:]])
    return ("/".join(parts),)


def _without_times(parts: list[str]) -> tuple[str, ...]:
    before = {at: found[1] for at, name in enumerate(parts[:-1]) if (found := _DELETED_AGAIN.fullmatch(name))}
    return tuple(
        "/".join(before[at] if at in renamed else name for at, name in enumerate(parts))
        for count in range(_MOST_RENAMED + 1)
        for renamed in combinations(before, count)
    )
