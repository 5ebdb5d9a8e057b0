"""What a snapshot's summary counts, after its files were written again: https://iceberg.apache.org/spec/#snapshots.

A number is put right where the old one was what the old manifests say; otherwise nobody knows what it counts, and it is
left out. The summary is informative: no reader needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pii_tracer.lake.formats.iceberg.history_files import ADDED, DELETED, Entry

_PARTITION = "partitions."
_INCLUDED = "partition-summaries-included"


def counts(entries: Iterable[Entry], snapshot: int) -> dict[str, str]:
    """What the entries of a snapshot's manifests come to. Each entry's `snapshot` is filled in."""
    entries = tuple(entries)
    live = [entry for entry in entries if entry.status != DELETED]
    added = [entry for entry in entries if entry.status == ADDED and entry.snapshot == snapshot]
    gone = [entry for entry in entries if entry.status == DELETED and entry.snapshot == snapshot]
    found = {
        "total-data-files": len(live),
        "total-records": sum(entry.rows for entry in live),
        "total-files-size": sum(entry.size for entry in live),
        "added-data-files": len(added),
        "added-records": sum(entry.rows for entry in added),
        "added-files-size": sum(entry.size for entry in added),
        "deleted-data-files": len(gone),
        "deleted-records": sum(entry.rows for entry in gone),
        "removed-files-size": sum(entry.size for entry in gone),
        "changed-partition-count": len({entry.partition for entry in (*added, *gone)}),
    }
    return {name: str(number) for name, number in found.items()}


def corrected(summary: Mapping[str, str], before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """The summary of a snapshot whose manifests were written again. before, after: what these come to.

    Summaries of single partitions are left out: their names are values, and their numbers are of the old files.
    """
    found = {}
    for name, told in summary.items():
        if name.startswith(_PARTITION) or name == _INCLUDED:
            continue
        if name not in before or before[name] == after[name]:
            found[name] = told
        elif told == before[name]:
            found[name] = after[name]
    return found
