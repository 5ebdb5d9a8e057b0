"""Places of an invented estate, and an obviously right model of what erasing from them takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import NamedTuple

from pii_tracer.config.estate_file import Prices
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import Ref, RefKind
from pii_tracer.lake.listing.listed_place import ListedFile, ListedPlace, Listing, PlaceKind
from pii_tracer.model.datasets import Format
from planners.estimate.arithmetic import Asked

NOW = datetime(2026, 11, 28, tzinfo=timezone.utc)
TAG = Ref(name="eoy", kind=RefKind.TAG, at="1")
PRICES = Prices(
    currency="USD",
    archive_object=0.02,
    restore_gb=30.0,
    scanned_gb=5.0,
    request_1000=0.4,
    spark_hour=3.6,
    storage_gb_month=2.0,
)


@dataclass(frozen=True)
class Made:
    """A place whose files can be listed again and again."""

    kind: PlaceKind
    files: tuple[ListedFile, ...]
    format: Format | None = None
    references: tuple[Ref, ...] = ()
    name: str = "p"

    def place(self) -> ListedPlace:
        return ListedPlace(self.name, self.name, self.kind, iter(self.files), self.format, self.references)


def listing(places: Sequence[Made]) -> Listing:
    return Listing(place.place() for place in places)


def asked(
    persons: int = 1, executors: int = 1, touched: float = 0.1, rate: float = 1e6, prices: Prices = PRICES
) -> Asked:
    return Asked(persons, executors, touched, rate, prices, NOW)


class Totals(NamedTuple):
    seconds: float = 0.0
    wall: float = 0.0
    cost: float = 0.0
    read: int = 0
    written: int = 0
    requests: int = 0


SPARK = {"delta_delete_rows", "delta_purge", "delta_vacuum", "delta_clean_log", "iceberg_delete_rows"} | {
    "iceberg_rewrite_files",
    "iceberg_rewrite_manifests",
    "iceberg_expire_snapshots",
    "iceberg_remove_orphans",
    "iceberg_rewrite_ref",
}
REWRITES = {"delta_delete_rows", "iceberg_delete_rows", "iceberg_rewrite_ref", "files_rewrite"} | {
    "hdfs_rewrite",
    "object_rewrite",
    "s3_rewrite_archive",
}


def kinds_of(place: Made) -> list[str]:
    """The working steps of a place, as docs and plans have them."""
    if place.kind is PlaceKind.SEARCHED or not any(file.data for file in place.files):
        return []
    if place.kind is PlaceKind.FOLDER:
        return ["files_rewrite", "verify_copy"]
    if place.kind is PlaceKind.HDFS_FOLDER:
        return ["hdfs_rewrite", "verify_copy"]
    if place.kind is PlaceKind.OBJECTS:
        return ["object_rewrite", "object_delete_versions", "verify_copy"]
    if place.kind is PlaceKind.ARCHIVE:
        cold = any(file.live and file.storage_class == "GLACIER" for file in place.files)
        old = ["old:s3_delete_versions"] if any(not file.live for file in place.files) else []
        restored = ["s3_restore"] if cold else []
        return [*restored, "s3_rewrite_archive", "s3_delete_versions", "verify_copy", *old, "again:verify_copy"]
    clear = ["s3_clear_versions"] if place.kind is PlaceKind.BUCKET_TABLE else []
    if place.format is DELTA:
        return ["delta_delete_rows", "delta_purge", "delta_vacuum", "delta_clean_log", *clear, "verify_copy"]
    assert place.format is ICEBERG
    steps = ["delete_rows", "rewrite_files", "rewrite_manifests", "expire_snapshots", "remove_orphans"]
    refs = ["iceberg_rewrite_ref", "again:verify_copy"] * len(place.references)
    return [*(f"iceberg_{step}" for step in steps), *clear, "verify_copy", *refs]


def fee(file: ListedFile) -> float:
    if file.storage_class not in ("GLACIER", "DEEP_ARCHIVE") or file.modified is None:
        return 0.0
    days = (NOW - datetime.fromisoformat(file.modified)).days
    stays = {"GLACIER": 90, "DEEP_ARCHIVE": 180}[file.storage_class]
    return 2.0 * max(0, stays - days) / 30 * file.size / 1e9


def brute(places: Sequence[Made], question: Asked, share: float) -> Totals:
    """Every step of every place by itself, from lists."""
    found = [Totals()]
    k, rate = question.executors, question.rate
    for place in places:
        files = list(place.files)
        if not files:
            continue
        charged = place.kind in (PlaceKind.BUCKET_TABLE, PlaceKind.ARCHIVE, PlaceKind.OBJECTS)
        each = [0.004 + file.size / rate for file in files]
        everything = sum(file.size for file in files)
        requests = len(files) if charged else 0
        looked = Totals(
            sum(each),
            max(sum(each) / k, max(each)),
            3.6 * sum(each) / 3600 + 5.0 * everything / 1e9 + 0.4 * math.ceil(requests / 1000),
            everything,
            0,
            requests,
        )
        found.append(looked)
        for kind in kinds_of(place):
            found += _step(kind, place, files, looked, share, k, charged=charged)
    if any(kinds_of(place) for place in places):
        found.append(Totals(30 + 5 + 5, 30 + 5 + 5))
    return Totals(*(sum(values) for values in zip(*found, strict=True)))  # type: ignore[arg-type]


def _step(
    kind: str, place: Made, files: list[ListedFile], looked: Totals, share: float, k: int, *, charged: bool
) -> list[Totals]:
    if kind.endswith("verify_copy"):
        fixed = Totals(120, 120, 3.6 * 120 / 3600)
        return [fixed] if kind.startswith("again") else [fixed, looked]
    mine, early = files, 0.0
    if place.kind is PlaceKind.ARCHIVE:
        if kind.startswith("old:"):
            mine = [file for file in files if not file.live]
        else:
            mine = [file for file in files if file.live and (kind != "s3_restore" or file.storage_class == "GLACIER")]
        count, size = len(mine), sum(file.size for file in mine)
        early = sum(map(fee, mine)) if kind.endswith("s3_delete_versions") else 0.0
    else:
        count = max(1, math.ceil(round(share * len(files), 9)))
        size = max(max(file.size for file in files), int(share * sum(file.size for file in files)))
    kind = kind.removeprefix("old:")
    bytes_seconds = size // 50_000_000
    seconds = 60 + bytes_seconds
    cost = 3.6 * seconds / 3600 + 5.0 * size / 1e9 if kind in SPARK else 0.0
    cost += 0.4 * math.ceil(count / 1000) if kind.startswith("s3_") else 0.0
    cost += 30.0 * size / 1e9 if kind == "s3_restore" else 0.0
    cost += 0.02 * count if kind == "s3_rewrite_archive" else 0.0
    again = size if kind in REWRITES else 0
    asked_for = count if charged and kind.startswith(("s3_", "object_")) else 0
    largest = min(size, max((file.size for file in files), default=0)) // 50_000_000
    return [Totals(seconds, 60 + max(bytes_seconds / k, largest), cost + early, again, again, asked_for)]
