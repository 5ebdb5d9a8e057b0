"""Where something lies, as journals, logs and events may have it: a file can be named after a person.

A plan knows its own persons' values and no others', so what a name may show is not found by searching for values. What
shows are names that writers of tables make, and folders that look like no value; of each other name, its kind and four
digits by which whoever sees the folder finds it.
"""

from __future__ import annotations

import re
from hashlib import sha256

_SUFFIX = re.compile(
    r"parquet|orc|avro|jsonl?|ndjson|csv|tsv|txt|log|xml|bin|crc|hfile"
    r"|gz|gzip|bz2|zstd?|snappy|lz4|deflate|tmp|inprogress|pending|commit"
)
_WORD = re.compile(
    r"part|data|file|base|delta|deletion|vector|bucket|attempt|task|snap|manifest|metadata|checkpoint|compacted"
    r"|success|started|committed|version|hint|last|hoodie"
)
_MADE_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ID = "id"
_SHORT = re.compile(r"0?[0-9]{1,4}|[a-z][0-9]{0,5}|0{13,19}[0-9]{1,7}")
_OF_SNAPSHOT = re.compile(r"[0-9]{14}|[0-9]{17,19}")
_DATE = re.compile(r"(?<![0-9])20[0-9]{2}([-_]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12][0-9]|3[01])(?![0-9])")
_TELLING = re.compile(r"@|%40|[0-9](?:[-_ .()/+]*[0-9]){4}|[0-9a-f]{16}")
_SHOWN_DIGITS = 4
"""Of a name's SHA-256: they tell a file from the others of its folder, and are too few to tell whose name it was."""


def shown_place(place: str) -> str:
    """A place as journals have it: the name of a table as it is, a path as `shown_path` has it."""
    return shown_path(place) if "/" in place else place


def shown_path(path: str) -> str:
    """A path, absolute or relative or of a store, without what could be a person's value: the values of partitions
    (hazard F2), names of files that no writer of tables makes, and names of folders that hold an address, a number of
    five digits or a hash.
    """
    scheme, mark, rest = path.rpartition("://")
    *folders, last = rest.split("/")
    kept, folders = (folders[:1], folders[1:]) if mark else ([], folders)
    is_file = "." in last and "=" not in last
    shown = (last if _is_made(last) else _digest(last)) if is_file else _folder(last)
    return scheme + mark + "/".join([*kept, *map(_folder, folders), shown])


def without_partition_values(path: str) -> str:
    """A path as facts of steps have it: whoever checks the proof of one file asks by its name."""
    return "/".join(part.partition("=")[0] + "=…" if "=" in part else part for part in path.split("/"))


def _folder(name: str) -> str:
    column, is_partition, _ = name.partition("=")
    if is_partition:
        return f"{column}=…"
    if name.startswith("arn:"):
        return name
    return _digest(name) if _TELLING.search(_DATE.sub("", _MADE_ID.sub(_ID, name.lower()))) else name


def _is_made(name: str) -> bool:
    """Whether a writer of tables named it: of words that it uses, short numbers and ids that were drawn."""
    tokens = [one for one in re.split(r"[-_.]", _MADE_ID.sub(_ID, name.lower())) if one]
    while tokens and _SUFFIX.fullmatch(tokens[-1]):
        tokens.pop()
    drawn, is_log = _ID in tokens, tokens[:1] and tokens[0].startswith("0" * 13)
    if not (is_log or (drawn and len(tokens) > 1) or any(map(_WORD.fullmatch, tokens))):
        return False
    return all(
        one == _ID or _WORD.fullmatch(one) or _SHORT.fullmatch(one) or (drawn and _OF_SNAPSHOT.fullmatch(one))
        for one in tokens
    )


def _digest(name: str) -> str:
    suffix = name.rpartition(".")[2].lower()
    shown = f".{suffix}" if _SUFFIX.fullmatch(suffix) else ""
    return f"…{sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:_SHOWN_DIGITS]}{shown}"
