"""Where a file lay that HDFS keeps in a snapshot or in a trash.

https://hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-hdfs/HdfsSnapshots.html; trash:
https://hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-hdfs/HdfsDesign.html (`TrashPolicyDefault`).
"""

from __future__ import annotations

import re

from pii_tracer.lake.stores.hdfs.webhdfs import SNAPSHOTS

TRASH = ".Trash"
_CHECKPOINT = re.compile(r"Current|\d{10,}(-\d+)?")
"""The folders of a trash, below it or below the one of a user."""


def former_path(path: str) -> str:
    """The path that a file had; its own where it lies in neither."""
    parts = path.split("/")
    if SNAPSHOTS in parts:
        at = parts.index(SNAPSHOTS)
        parts = [*parts[:at], *parts[at + 2 :]]
    if TRASH in parts:
        below = parts[parts.index(TRASH) + 1 :]
        for number, name in enumerate(below[:2], 1):
            if _CHECKPOINT.fullmatch(name):
                parts = ["", *below[number:]]
                break
    return "/".join(parts)
