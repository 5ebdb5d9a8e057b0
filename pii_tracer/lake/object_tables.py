"""Which tables lie below a prefix of a bucket, by the keys of its objects alone."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from pii_tracer.lake.formats.registry import format_of, metadata_folders, table_formats
from pii_tracer.model.datasets import PLAIN, Format

_ENDINGS = {
    "parquet": Format.PARQUET,
    "orc": Format.ORC,
    "avro": Format.AVRO,
    "csv": Format.CSV,
    "json": Format.JSON,
    "jsonl": Format.JSON,
    "ndjson": Format.JSON,
}
_YEAR, _MONTH, _DATE, _HOUR = (
    r"(?:19|20)\d\d",
    r"(?:0?[1-9]|1[0-2])",
    r"(?:0?[1-9]|[12]\d|3[01])",
    r"(?:[01]?\d|2[0-3])",
)
_DAY = re.compile(
    rf"(?:^|/)(?:{_YEAR}(?:/{_MONTH}(?:/{_DATE}(?:/{_HOUR})?)?)?|{_YEAR}-{_MONTH}(?:-{_DATE})?"
    r"|(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[01]\d|2[0-3])?)$"
)
_NUMBER = re.compile(r"\d+")
_KEY = re.compile(r"[^@\s]@[^@\s]|[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}|\d{6,}", re.IGNORECASE)
_DATES = re.compile(r"(?<!\d)(?:19|20)\d\d-?(?:0[1-9]|1[0-2])(?:-?(?:0[1-9]|[12]\d|3[01]))?(?!\d)")
_AT_MOST = 50
"""Tables of one format that are told one by one beside each other."""
_PACKED = (".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate")


def signs_of_tables() -> dict[Format, re.Pattern[str]]:
    """By format, what the key of a file in a table's folder has behind that folder."""
    found = {one.name: "|".join(one.listed_signs()) for one in table_formats()}
    return {name: re.compile(f"(?:^|/)(?:{signs})") for name, signs in found.items() if signs}


def tables_below(keys: Iterable[str], above: str) -> dict[str, Format]:
    """Folders (without an end slash) that are tables by their metadata, or bare folders of files of one format.

    above: the key of the folder that they lie in, or are. A folder with metadata of two formats is none. Hidden folders
    (`_temporary`) are none, and one of many that have one format and one folder around them; nor are those whose names
    may be keys of persons (`_may_be_keys`).
    """
    listed, signs = list(keys), signs_of_tables()
    signed: dict[str, set[Format]] = defaultdict(set)
    for key in listed:
        for name, sign in signs.items():
            if seen := sign.search(key, len(above)):
                signed[key[: seen.start()]].add(name)
    owned = {inner for inner in signed for outer in _around(inner) if _owns(signed.get(outer, ()), outer, inner)}
    tables = {at: next(iter(kinds)) for at, kinds in signed.items() if len(kinds) == 1 and at not in owned}
    marks, front = dict.fromkeys(metadata_folders()), _front(above)
    shown = [key for key in listed if not _is_hidden(key[len(front) :].split("/")[:-1], marks)]
    bare = tables_of(shown, marks, dated=True)
    inside = {at: kind for at, kind in bare.items() if kind in PLAIN and (at == above or at.startswith(front))}
    found = {at: kind for at, kind in (inside | tables).items() if not _is_hidden(at[len(front) :].split("/"), ())}
    beside = Counter((at.rpartition("/")[0], kind) for at, kind in found.items())
    keys = _may_be_keys(listed, found, above)
    return {
        at: kind for at, kind in found.items() if at not in keys and beside[at.rpartition("/")[0], kind] <= _AT_MOST
    }


def _is_hidden(folders: Iterable[str], marks: Collection[str]) -> bool:
    return any(part.startswith(("_", ".")) and part not in marks for part in folders)


def _may_be_keys(keys: Iterable[str], tables: Iterable[str], above: str) -> set[str]:
    """Tables with a name on their way that may be a person's key: it has a mail address, a UUID or a long number, or
    differs from that of another folder beside it by a number alone."""
    front = _front(above)
    folders = {key.rpartition("/")[0][len(front) :] for key in keys}
    names: dict[tuple[str, str], set[str]] = defaultdict(set)
    for way in {place for folder in folders for place in (folder, *_around(folder))}:
        around, _, name = way.rpartition("/")
        names[around, _NUMBER.sub("0", name)].add(name)
    alike = {(around, name) for (around, _), many in names.items() if len(many) > 1 for name in many}

    def tells(way: str) -> bool:
        around, _, name = way.rpartition("/")
        return bool(_KEY.search(_DATES.sub("", name))) or (around, name) in alike

    return {at for at in tables if any(map(tells, (at[len(front) :], *_around(at[len(front) :]))))}


def _owns(kinds: Iterable[Format], outer: str, inner: str) -> bool:
    """Whether a table's own metadata looks like another table."""
    parts = tuple(inner[len(_front(outer)) :].split("/"))
    return any(format_of(kind).owns_place(parts) for kind in kinds)


def _front(folder: str) -> str:
    return f"{folder}/" if folder else ""


def like(key: str) -> str:
    """One key for all in a folder whose names begin and end alike: buckets have millions of objects."""
    folder, slash, name = key.rpartition("/")
    hidden = "_" if name.startswith(("_", ".")) else ""
    return f"{folder}{slash}{hidden}x.{'.'.join(name.rsplit('.', 2)[1:])}"


def tables_of(keys: Iterable[str], marks: Mapping[str, Format | None], *, dated: bool = False) -> dict[str, Format]:
    """Folders (without an end slash) that are a table, or a bare folder of files of one format, by their format.

    marks: names of folders that make the folder around them a table, with its format; None where a catalog has to name
    such a table. dated: whether folders of days, such as `2026/11/30`, are parts of the folder around them. Folders
    with files of several formats, and folders in tables or around other folders, are in none.
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
    if dated:
        found = _by_table(found, tables)
    around = {place for other in (*found, *tables) for place in _around(other)}
    bare = {place: next(iter(kinds)) for place, kinds in found.items() if len(kinds) == 1 and place not in around}
    return bare | {place: kind for place, kind in tables.items() if kind is not None}


def _by_table(found: Mapping[str, set[Format]], tables: Iterable[str]) -> dict[str, set[Format]]:
    """Folders with those of their days. Where something else lies beside the days, each day stays a folder."""
    days = {folder: without_day(folder) or folder for folder in found}
    around = {place for other in (*days.values(), *tables) for place in _around(other)}
    joined: dict[str, set[Format]] = defaultdict(set)
    for folder, kinds in found.items():
        joined[folder if days[folder] in around else days[folder]] |= kinds
    return dict(joined)


def without_day(folder: str) -> str:
    """A folder's path without the year, month, day and hour at its end."""
    return _DAY.sub("", folder)


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
