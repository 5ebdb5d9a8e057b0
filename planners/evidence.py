"""What the scan at planning saw, in the planner's terms. Filled by the command line from `pii_tracer.scan`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Evidence:
    """One location, every file of it decoded.

    strong: names of key sets whose unmistakable values were found. weak: columns (or `text`) in which only a short
    number was found. unread: files that could not be decoded, with the reason.
    """

    files: int
    files_with_person: int
    bytes: int
    strong: frozenset[str] = frozenset()
    weak: frozenset[str] = frozenset()
    unread: tuple[str, ...] = ()
    rows: int | None = None

    @property
    def found(self) -> bool:
        """True when anything of the person was seen for certain."""
        return bool(self.strong)
