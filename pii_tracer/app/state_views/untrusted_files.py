"""Files of a state folder as somebody left them there: keys for their names, results kept while they stay the same."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")
Mark = tuple[int, int, int, int]


@dataclass(frozen=True)
class Broken:
    """A file that cannot be read. what, todo: in fixed words; nothing of its content, which can be anything."""

    key: str
    name: str
    what: str
    todo: str


def key_of(name: str) -> str:
    """16 hex digits that stand for a name in an address: a name can hold slashes, dots and bytes that are no text."""
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:16]


class Remembered(Generic[T]):
    """What was made from files, kept as long as inode, size and time of change stay what they were. For threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[str, tuple[Mark, T]] = OrderedDict()
        self._lock = Lock()

    def get(self, path: Path, make: Callable[[], T]) -> T:
        """The result for a file. Raises `OSError` where it is not there, and whatever `make` raises."""
        found = path.stat()
        mark = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        with self._lock:
            kept = self._kept.get(str(path))
            if kept is not None and kept[0] == mark:
                self._kept.move_to_end(str(path))
                return kept[1]
        made = make()
        with self._lock:
            self._kept[str(path)] = mark, made
            self._kept.move_to_end(str(path))
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made
