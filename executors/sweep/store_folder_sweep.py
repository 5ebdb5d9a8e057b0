"""What a table's folder in a store holds, and how a sweep removes of it: answered by the store's own adapter."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from pii_tracer.model.errors import RunError


@dataclass(frozen=True)
class Listed:
    """A file as it was listed. path: absolute, or a whole URI; parts: of its path below the folder; modified: in
    milliseconds since 1970."""

    path: str
    parts: tuple[str, ...]
    size: int
    modified: int


def undeleted(refused: Collection[str], asked: str, where: str, todo: str) -> RunError:
    """The error of a store that deleted some. refused: its code for each of the others. asked: how many of what."""
    codes = ", ".join(sorted(set(refused)))
    return RunError(f"{len(refused)} of {asked} could not be deleted: {codes}", where=where, todo=todo)


class ListedFolder(NamedTuple):
    """A folder below a table's, or what stands for one. path, parts: as of a file."""

    path: str
    parts: tuple[str, ...]


class StoredFiles(Protocol):
    """The files of one table in a store. Listings raise `OSError` with the store's code where it refuses.

    title: of the store. todo: what its owner can do when it refuses.
    """

    title: ClassVar[str]
    todo: ClassVar[str]

    def listed(self) -> tuple[list[Listed], list[ListedFolder]]:
        """All files, sorted, and all folders."""

    def named(self, text: str) -> str:
        """An absolute path or URI of the table's metadata, decoded, as listings have it."""

    def remove(self, paths: Sequence[str]) -> None:
        """Remove files; those that are gone already count as removed.

        Raises:
            RunError: the store refuses some; the others are gone.
        """

    def remove_folders(self, paths: Sequence[str]) -> None:
        """Remove folders, the deepest first; one into which a writer has just put a file stays.

        Raises:
            RunError: the store refuses some.
        """
