"""Sizes of one place, summed while its files pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from pii_tracer.config.estate_file import Prices
from pii_tracer.lake.listing.listed_place import ListedFile
from pii_tracer.model.timestamps import instant
from planners.schedule.step_costs import early_fee
from planners.stores.s3.archives import COLD


@dataclass
class Group:
    """Files of one sort. early: fees for deleting them now."""

    files: int = 0
    bytes: int = 0
    early: float = 0.0

    def add(self, size: int, fee: float) -> None:
        """One more file."""
        self.files += 1
        self.bytes += size
        self.early += fee


@dataclass
class PlaceSizes:
    """live: what stands under its name now; old: versions of before. cold: live ones that must be restored first.

    largest: size of the largest file. data: there is a data file. locked_until: the last day of a lock, ISO 8601.
    """

    live: Group
    old: Group
    cold: Group
    largest: int = 0
    data: bool = False
    locked_until: datetime | None = None

    @property
    def files(self) -> int:
        """All files and versions."""
        return self.live.files + self.old.files

    @property
    def bytes(self) -> int:
        """Of all of them."""
        return self.live.bytes + self.old.bytes


def sizes_of(files: Iterable[ListedFile], prices: Prices, at: datetime) -> PlaceSizes:
    """Sum up the files of a place. at: when what is deleted early would be deleted."""
    found = PlaceSizes(Group(), Group(), Group())
    live, count, total, largest, seen = found.live, 0, 0, 0, False
    for size, data, is_live, storage_class, modified, locked in files:
        if size > largest:
            largest = size
        if data:
            seen = True
        if is_live and not storage_class and locked is None:  # every file of a file system: there are millions
            count += 1
            total += size
            continue
        fee = early_fee(storage_class, modified, size, prices, at)
        (live if is_live else found.old).add(size, fee)
        if is_live and storage_class in COLD:
            found.cold.add(size, 0.0)
        if locked is not None:
            end = instant(locked)
            found.locked_until = max(found.locked_until or end, end)
    live.files += count
    live.bytes += total
    found.largest, found.data = largest, seen
    return found
