"""Where a journal ends, kept beside it: a chain of hashes shows every change but a tail that was cut off.

The file is replaced as a whole after each record, so a crash leaves it at the record before: a journal may know more
than its end file, and never less. A journal that is gone, or ends before the record that the file names, lost what was
done.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.common.plurals import counted
from pii_tracer.model.errors import JournalError

RESTORE = (
    "do not resume with this journal: pii-tracer would take the steps in the missing records for never done. "
    "Restore the journal and its end file from their newest copy. If there is no copy, plan again"
)
"""What to do about a journal that lacks records."""


class Hashed(Protocol):
    """What the end needs of a record: its hash."""

    @property
    def hash(self) -> str:
        """SHA-256 over the record's line."""


@dataclass(frozen=True)
class End:
    """The last record that was written. records: how many there are; head: hash of the last one."""

    records: int
    head: str


def end_file(journal: Path) -> Path:
    """Where the end of a journal is kept."""
    return journal.with_name(journal.name + ".end")


def write_end(journal: Path, end: End) -> None:
    """Keep the end; it is on the disk when this returns. Raises `OSError` as the system says."""
    line = json.dumps({"head": end.head, "records": end.records}, sort_keys=True) + "\n"
    write_atomic(end_file(journal), line.encode(), mode=0o600)


def read_end(journal: Path) -> End | None:
    """The end that was kept; None where none is. To be read before the journal, which a runner may write meanwhile.

    Raises:
        JournalError: the file is there and cannot be read.
    """
    path = end_file(journal)
    try:
        raw = json.loads(path.read_bytes())
        end = End(records=raw["records"], head=raw["head"])
        if type(end.records) is not int or type(end.head) is not str or end.records < 0:
            raise ValueError
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        raise JournalError(
            "the file that says where the journal ends cannot be read", where=str(path), todo=RESTORE
        ) from None
    return end


def refuse_lost(journal: Path, end: End | None, records: Sequence[Hashed] | None) -> None:
    """Refuse a journal that does not reach its end.

    records: None where there is no journal at all.

    Raises:
        JournalError: the journal is missing or lacks records (says which), or nobody can tell where it ended.
    """
    where = str(journal)
    if end is None:
        if records:
            raise JournalError(
                "the end of the journal cannot be checked: its end file, beside the journal, is missing",
                where=str(end_file(journal)),
                todo=RESTORE,
            )
        return
    if not records and end.records:
        what = "missing" if records is None else "empty"
        raise JournalError(
            f"the journal of a run that began is {what}: {counted(end.records, 'record was', 'records were')} written",
            where=where,
            todo=RESTORE,
        )
    there = len(records or ())
    if records and there < end.records:
        raise JournalError(
            f"the end of the journal is missing: it stops behind record {there - 1}, and record {end.records - 1}"
            f" ({end.head}) was written",
            where=where,
            todo=RESTORE,
        )
    if records and end.records and records[end.records - 1].hash != end.head:
        raise JournalError(
            f"record {end.records - 1} of the journal is not the one that was written ({end.head})",
            where=where,
            todo=RESTORE,
        )
