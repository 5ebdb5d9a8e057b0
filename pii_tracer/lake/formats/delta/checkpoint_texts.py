"""What every checkpoint of a Delta table repeats beside its files' names, values and bounds.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Checkpoints": cutting the log removes none of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pii_tracer.lake.formats.delta.log_paths import decoded
from pii_tracer.lake.formats.delta.retention import interval_days
from pii_tracer.lake.formats.delta.transaction_log import DeltaSnapshot, live_adds
from pii_tracer.lake.formats.retention_terms import DAY_MS
from pii_tracer.lake.stores.any_place import AnyPlace
from pii_tracer.lake.table_descriptions import (
    COLUMNS,
    DOMAINS,
    NAME,
    PROPERTIES,
    REST,
    TAGS,
    WRITERS,
    FileNotes,
)

TRANSACTIONS_KEPT = "delta.setTransactionRetentionDuration"
"""How long a checkpoint keeps the id of a writer that writes no more; for ever where it is not set."""


def checkpoint_texts(log: DeltaSnapshot[Any], now: int) -> Mapping[str, Any]:
    """By kind of place: documents with what the next checkpoint will say. now: ms since 1970."""
    return {
        NAME: [log.name, log.comment],
        PROPERTIES: log.configuration,
        COLUMNS: log.schema,
        WRITERS: _kept(log, now),
        TAGS: [file.tags for file in log.files if file.tags],
        DOMAINS: log.domains,
        REST: log.rest,
    }


def notes_of_files(folder: AnyPlace) -> Iterator[FileNotes]:
    """What the next checkpoint says of each live file beside its tags.

    Raises:
        EstateError: the log cannot be read.
    """
    adds, partitioned_by = live_adds(folder)
    for add in adds:
        path, whole = decoded(add["path"])
        told = dict(add.get("partitionValues") or {})
        values = tuple(str(value) for name, value in told.items() if value is not None and name in partitioned_by)
        rest = {name: value for name, value in add.items() if name not in ("path", "tags")}
        yield FileNotes((path if whole else str(folder / path),), values, rest)


def _kept(log: DeltaSnapshot[Any], now: int) -> list[str]:
    """Ids that the next checkpoint does not drop. One without a time is dropped as soon as there is a retention."""
    setting = log.configuration.get(TRANSACTIONS_KEPT)
    days = None if setting is None else interval_days(setting)
    if days is None:
        return list(log.transactions)
    return [name for name, at in log.transactions.items() if at is not None and at > now - days * DAY_MS]
