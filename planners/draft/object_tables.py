"""Which tables lie below a prefix of a bucket, by the keys of its objects alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from pii_tracer.model.datasets import Format

_ENDINGS = {
    "parquet": Format.PARQUET,
    "orc": Format.ORC,
    "avro": Format.AVRO,
    "csv": Format.CSV,
    "json": Format.JSON,
    "jsonl": Format.JSON,
    "ndjson": Format.JSON,
}
_PACKED = (".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate")


def tables_of(keys: Iterable[str], marks: Mapping[str, Format | None]) -> dict[str, Format]:
    """Folders (without an end slash) that are a table, or a bare folder of files of one format, by their format.

    marks: names of folders that make the folder around them a table, with its format; None where a catalog has to name
    such a table. Folders with files of several formats, and folders in tables or around other folders, are in none.
    """
    listed = list(keys)
    tables: dict[str, Format | None] = {}
    for key in listed:
        parts = key.split("/")[:-1]
        for place, part in enumerate(parts):
            if place and part in marks:
                tables.setdefault("/".join(parts[:place]), marks[part])
                break
    tables = {at: kind for at, kind in tables.items() if tables.keys().isdisjoint(_around(at))}
    found: dict[str, set[Format]] = defaultdict(set)
    for key in listed:
        *folders, name = key.split("/")
        kind = _format_of(name)
        while folders and "=" in folders[-1]:
            folders.pop()
        folder = "/".join(folders)
        if (
            kind
            and folder
            and not name.startswith(("_", "."))
            and folder not in tables
            and tables.keys().isdisjoint(_around(folder))
        ):
            found[folder].add(kind)
    around = {place for other in (*found, *tables) for place in _around(other)}
    bare = {place: next(iter(kinds)) for place, kinds in found.items() if len(kinds) == 1 and place not in around}
    return bare | {place: kind for place, kind in tables.items() if kind is not None}


def is_data_file(key: str) -> bool:
    """Whether a key ends as a data file's does, and no engine hides it."""
    name = key.rpartition("/")[2]
    return _format_of(name) is not None and not name.startswith(("_", "."))


def _around(place: str) -> Iterator[str]:
    """The folders that it lies in, the innermost first."""
    while "/" in place:
        place = place.rpartition("/")[0]
        yield place


def _format_of(name: str) -> Format | None:
    for packed in _PACKED:
        name = name.removesuffix(packed)
    return _ENDINGS.get(name.rsplit(".", 1)[-1].lower()) if "." in name else None
