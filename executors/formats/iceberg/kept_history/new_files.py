"""Files that lie beside a table's own until its metadata names them, for the same readers. Nobody reads them before.

Their names are made of what they take the place of, so that a run that is resumed gives the same ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from uuid import UUID, uuid5

from executors.engine.local_files import TEMPORARY, let_in
from pii_tracer.common.atomic_files import sync_folder

PREFIX = "pii-tracer-"
"""What the names of new files begin with; a UUID follows, by which sweeps know them for the table's own."""


@dataclass
class NewFiles:
    """The new files of one rewrite. table: the table's uuid; rewrite: what tells this rewrite from others."""

    table: UUID
    rewrite: str
    made: list[Path] = field(default_factory=list)

    def unique(self, what: str) -> UUID:
        """The same for the same thing of the same rewrite."""
        return uuid5(self.table, f"{self.rewrite}\n{what}")

    def beside(self, text: str, end: str) -> str:
        """What takes the place of a file, written as that file's path is. end: of its name."""
        return f"{text.rpartition('/')[0]}/{PREFIX}{self.unique(text)}{end}"

    def put(self, old: Path, new: Path, write: Callable[[IO[bytes]], None]) -> None:
        """Write a file that whoever reads the old one may read.

        Raises:
            RunError: it cannot be given the old one's group.
        """
        self.made.append(new)
        new.touch(mode=0o600)
        with new.open("w+b") as sink:
            write(sink)
            sink.flush()
            os.fsync(sink.fileno())
        let_in(old, new)
        sync_folder(new.parent)

    def discard(self) -> None:
        """Remove what was written: no metadata names it."""
        for path in self.made:
            path.unlink(missing_ok=True)
        self.made.clear()


def is_left_over(path: Path) -> bool:
    """Whether a file is one of a rewrite, or one that a catalog's pointer began, by its name."""
    return path.name.startswith((PREFIX, TEMPORARY))
