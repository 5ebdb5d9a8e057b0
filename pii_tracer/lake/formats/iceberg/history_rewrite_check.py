"""Whether every snapshot of an Iceberg table can be written again without a person, and what stands against it.

Rules: https://iceberg.apache.org/spec/ ("Snapshots", "Manifests", "Row-level Deletes", "Row Lineage").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.iceberg.history_files import Entry, History
from pii_tracer.lake.inventory import KeptHistory
from pii_tracer.model.errors import EstateError

_VERSIONS = (1, 2)


def kept_history(metadata: Path, location: Path) -> KeptHistory:
    """What is known of it, from one metadata file of a table in a folder."""
    try:
        history = History.read(metadata)
    except EstateError as error:
        return KeptHistory(obstacles=(error.what,))
    return KeptHistory(obstacles=tuple(obstacles(history, location)), late=_late(history.document))


def obstacles(history: History, location: Path) -> Iterator[str]:
    """Why its snapshots cannot be written again, with what its owner can do; none where they can."""
    document = history.document
    version = document.get("format-version")
    if version not in _VERSIONS:
        yield (
            f"its format version is {version}, in which row ids and deletion vectors name rows by their number in a"
            " file"
        )
    if str((document.get("properties") or {}).get("gc.enabled", "true")).lower() == "false":
        yield "it forbids the removal of its files (gc.enabled is false), but the plan must remove old files"
    live = history.live
    if deletes := sum(entry.deletes for entry in live.values()):
        yield (
            f"its snapshots have {counted(deletes, 'delete file')} with row numbers or values of rows. Rewrite its "
            "data files without them (rewrite_data_files), and expire the snapshots that reference them"
        )
    yield from _unwritable(history, live)
    yield from _misplaced(live, location)
    if remade := _remade(document):
        yield (
            f"columns were dropped and recreated under the same name ({', '.join(remade)}), so a name does not show "
            "the column of an old value. Expire the snapshots from before the change"
        )


def _unwritable(history: History, live: Mapping[Path, Entry]) -> Iterator[str]:
    others = sorted({entry.kind for entry in live.values() if entry.kind != "PARQUET" and not entry.deletes})
    if others:
        yield f"it has data files in {', '.join(others)}, but the tool rewrites only Parquet files"
    locked = any(entry.encrypted for entry in live.values())
    if locked or any(listed.encrypted for lists in history.lists.values() for listed in lists):
        yield "it is encrypted (Iceberg table encryption)"


def _misplaced(live: Mapping[Path, Entry], location: Path) -> Iterator[str]:
    outside = sum(not path.resolve().is_relative_to(location.resolve()) for path in live)
    if outside:
        yield f"{outside} of its data files are outside of its folder, where no step removes files"
    gone = sum(not path.exists() for path in live)
    if gone:
        yield f"{counted(gone, 'data file')} of its snapshots cannot be found: restore them, or expire these snapshots"


def _remade(document: Mapping[str, Any]) -> list[str]:
    """Top-level columns of now whose name another column had, which is no more."""
    schemas = document.get("schemas") or [document["schema"]]
    now = _columns(_current(document))
    kept = set(now.values())
    former = {(name, number) for schema in schemas for name, number in _columns(schema).items() if number not in kept}
    return sorted(name for name, _ in former if name in now)


def _late(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Top-level columns of now, in lower case, that some schema does not have: files may lack them."""
    schemas = document.get("schemas") or [document["schema"]]
    had = [set(_columns(schema).values()) for schema in schemas]
    return tuple(
        sorted(name for name, number in _columns(_current(document)).items() if any(number not in h for h in had))
    )


def _current(document: Mapping[str, Any]) -> Mapping[str, Any]:
    schemas = document.get("schemas")
    if not schemas:
        return dict(document["schema"])
    return next(dict(s) for s in schemas if s["schema-id"] == document["current-schema-id"])


def _columns(schema: Mapping[str, Any]) -> dict[str, int]:
    """Ids of top-level columns by their name in lower case."""
    return {field["name"].lower(): field["id"] for field in schema["fields"]}
