"""What a table that no catalog names is called in a draft: by the last two folders of its place."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MARK = re.compile(r"[^a-z0-9_]+")


def names_of(locations: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """A name `folder.table` for each location, in letters that Spark SQL takes without quotes; no name twice.

    taken: names that are given already, in any case.
    """
    used = {name.lower() for name in taken}
    found = {}
    for location in sorted(locations):
        parts = [_word(part) for part in location.rstrip("/").split("/") if part]
        base = ".".join(["lake", *parts][-2:])
        name, number = base, 2
        while name in used:
            name, number = f"{base}_{number}", number + 1
        used.add(name)
        found[location] = name
    return found


def _word(part: str) -> str:
    word = _MARK.sub("_", part.lower()).strip("_") or "folder"
    return f"t_{word}" if word[0].isdigit() else word
