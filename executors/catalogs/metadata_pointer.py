"""Which metadata file of a table counts, and its replacement by compare-and-swap.

Only types of catalogs whose adapter says so (`TableCatalog.no_swap`) have one.
"""

from __future__ import annotations

from typing import Protocol
from uuid import UUID


class MetadataPointer(Protocol):
    """Of one Iceberg table on this machine."""

    def current(self) -> str:
        """The metadata file that counts, as the catalog writes it.

        Raises:
            RunError: the catalog has no such table, or cannot be read.
        """

    def successor(self, current: str, unique: UUID) -> str:
        """What the metadata file after the current one is called, written as that one is."""

    def swap(self, current: str, successor: str, data: bytes) -> bool:
        """Write the successor, and have it count in place of the current one. False: the current one counts no more.

        Raises:
            RunError: the catalog cannot be written, and may or may not have taken it.
        """
