"""What a table that no catalog names is called in a draft: as jobs call it, or by the last two folders of its place."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

_MARK = re.compile(r"[^a-z0-9_]+")
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*")


def names_of(
    locations: Iterable[str],
    taken: Iterable[str] = (),
    catalogs: Collection[str] = (),
    called: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """A name `folder.table` for each location, in letters that Spark SQL takes without quotes; no name twice.

    taken: names that are given already, in any case. catalogs: their names, which are no first parts of the names.
    called: what jobs call tables, by location. A table beside these, in a folder that is one schema to the jobs, is
    taken for a table of that schema.
    """
    used, first = {name.lower() for name in taken}, {name.lower() for name in catalogs}
    found: dict[str, str] = {}
    known = {}
    for location, name in sorted((called or {}).items()):
        if _PLAIN.fullmatch(name) and name not in used and name.partition(".")[0] not in first:
            known[location] = name
            used.add(name)
    schemas = _schemas(known)
    for location in sorted(locations):
        if location in known:
            found[location] = known[location]
            continue
        parts = [word_of(part) for part in location.rstrip("/").split("/") if part] or ["folder"]
        schema, table = ["lake", *parts][-2:]
        schema = schemas.get(_folder(location), f"t_{schema}" if schema in first else schema)
        name, number = f"{schema}.{table}", 2
        while name in used:
            name, number = f"{schema}.{table}_{number}", number + 1
        used.add(name)
        found[location] = name
    return found


def _schemas(known: Mapping[str, str]) -> dict[str, str]:
    """The schema of all tables in a folder that are called as their own folders are, where it is one."""
    found = defaultdict[str, set[str]](set)
    for location, name in known.items():
        schema, _, table = name.partition(".")
        if word_of(location.rstrip("/").rpartition("/")[2]) == table:
            found[_folder(location)].add(schema)
    return {folder: schemas.pop() for folder, schemas in found.items() if len(schemas) == 1}


def _folder(location: str) -> str:
    return location.rstrip("/").rpartition("/")[0]


def word_of(part: str) -> str:
    """A folder's name as the name of a table."""
    word = _MARK.sub("_", part.lower()).strip("_") or "folder"
    return f"t_{word}" if word[0].isdigit() else word
