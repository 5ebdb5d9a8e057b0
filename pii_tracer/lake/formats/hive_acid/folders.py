"""The folders of a transactional table of Hive's: what a name says, and which folders have the rows of now.

https://orc.apache.org/docs/acid.html, https://hive.apache.org/docs/latest/user/hive-transactions/ ("Base and Delta
Directories"). In Hive 4, and in Cloudera's Hive 3, a compaction adds the number of its transaction (`_v0000042`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

_NAME = re.compile(
    r"(?:(?P<base>base_(?P<upto>\d+))|(?P<kind>delta|delete_delta)_(?P<first>\d+)_(?P<last>\d+)(?:_(?P<part>\d+))?)"
    r"(?:_v(?P<by>\d+))?"
)
BUCKET = re.compile(r"bucket_\d+(?:_\d+)?")
"""A file with rows, or with the numbers of deleted rows; a second number is of the task's attempt."""
OF_COMPACTION = "_metadata_acid"
BESIDE_ROWS = frozenset({"_orc_acid_version", OF_COMPACTION})
"""Files in which Hive keeps the version of the format, and that a base is from a compaction."""

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class AcidFolder:
    """One folder of write ids. kind: `base`, `delta` or `delete_delta`. part: of a statement among several. by: the
    transaction of the compaction that wrote it, where its name has one."""

    name: str
    kind: str
    first: int
    last: int
    part: int = -1
    by: int | None = None

    @property
    def has_rows(self) -> bool:
        """Whether its files have rows; a `delete_delta` only has the numbers of deleted ones."""
        return self.kind != "delete_delta"


def acid_folder(name: str) -> AcidFolder | None:
    """What the name of a folder says; None of another folder."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    by = int(found["by"]) if found["by"] else None
    if found["base"]:
        return AcidFolder(name, "base", 0, int(found["upto"]), by=by)
    part = int(found["part"]) if found["part"] else -1
    return AcidFolder(name, found["kind"], int(found["first"]), int(found["last"]), part, by)


@dataclass(frozen=True)
class Partition:
    """A partition, or a whole table without any, as its folders say. live: those that readers of now read, in order;
    old: those that the cleaner removes. twice: two folders say the same, which only a compaction at work does."""

    live: tuple[AcidFolder, ...]
    old: tuple[AcidFolder, ...]
    twice: bool = False

    @property
    def base_alone(self) -> bool:
        """Whether one base has everything."""
        return not self.old and len(self.live) <= 1 and all(one.kind == "base" for one in self.live)


def partition_of(names: Iterable[str]) -> Partition:
    """Which of these folders have the rows of now: the newest base, and what was written after it.

    A minor compaction puts several deltas together, and the wider one counts.
    """
    found = sorted(
        (one for one in map(acid_folder, names) if one), key=lambda one: (one.first, -one.last, one.part, one.name)
    )
    twice = len({(one.kind, one.first, one.last, one.part) for one in found}) != len(found)
    base = max((one for one in found if one.kind == "base"), key=lambda one: one.last, default=None)
    live = [base] if base else []
    for kind in ("delta", "delete_delta"):
        upto, parts = base.last if base else 0, False
        for one in (one for one in found if one.kind == kind):
            # statements of one transaction have folders of their own
            if one.last > upto or (one.last == upto and parts and one.part >= 0):
                live.append(one)
                upto, parts = one.last, one.part >= 0
    return Partition(tuple(live), tuple(one for one in found if one not in live), twice)


def by_partition(folders: Iterable[str]) -> Mapping[str, Partition]:
    """The partitions among folders below a table's, by their own folder: paths with slashes, empty of the table."""
    found: dict[str, list[str]] = {}
    for path in folders:
        above, _, name = path.rpartition("/")
        if acid_folder(name):
            found.setdefault(above, []).append(name)
    return {above: partition_of(names) for above, names in sorted(found.items())}


def partition_values(partition: str) -> Iterator[tuple[str, str | None]]:
    """The columns of a partition with their values, by the folder of it, whose names are escaped (`day=x%2Fy`)."""
    for part in partition.split("/"):
        name, sign, value = part.partition("=")
        if sign:
            yield _unescaped(name), None if value == _NO_VALUE else _unescaped(value)


def _unescaped(text: str) -> str:
    return unquote(text, errors="surrogateescape")
