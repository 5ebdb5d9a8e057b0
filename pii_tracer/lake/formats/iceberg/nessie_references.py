"""One table under several references of a catalog with branches (Nessie): the heads of one physical place.

Branches and tags share files until they differ, so the unit of an erasure is the place, and each reference that has
the table is a head of it, to be erased of its own (hazard C2).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.common.plurals import counted
from pii_tracer.lake.catalogs.registered_tables import PlacedHead
from pii_tracer.lake.dataset_paths import EstatePaths, local_path
from pii_tracer.lake.formats.iceberg.table_state import files_of, iceberg_state, load_iceberg
from pii_tracer.lake.inventory import (
    InventoryGap,
    NessieTable,
    Ref,
    RefKind,
)
from pii_tracer.lake.read_result import Found, gap
from pii_tracer.model.gap_kinds import GapKind

if TYPE_CHECKING:
    from pyiceberg.table import StaticTable

_NONE = -1


def iceberg_table(location: Path, paths: EstatePaths) -> Found:
    """The Iceberg table in a folder, with every reference of a Nessie catalog that has it.

    Raises:
        EstateError: metadata or manifests cannot be read, of whichever reference.
    """
    found = iceberg_state(location, paths)
    registered = paths.registered_at(location)
    heads = registered.heads if registered else ()
    if registered is None or not heads:
        return found
    refs, references = list(found.state.refs), set(found.references)
    gaps = [*found.gaps, *_unseen(found, registered.committed)]
    for head in heads:
        table = load_iceberg(location, head.metadata)
        gaps += _head_gaps(found, head, table)
        if head is heads[0]:
            continue
        files = files_of(table, location)
        references |= files.referenced
        missing = [f.file_path for f in files.current if not local_path(f.file_path).exists()]
        if missing:
            reason = (
                f"{counted(len(missing), 'file')} of {head.head.ref} cannot be found, so the table cannot be read there"
            )
            gaps.append(gap(found.state.dataset, GapKind.MISSING_FILES, reason, str(missing[0]), missing))
        refs.append(Ref(name=head.head.ref, kind=head.head.kind, at=str(head.head.snapshot), table=head.table))
        # Iceberg's own references below one of Nessie's
        own = (name for name in table.refs() if name != "main")
        refs += [Ref(name=f"{head.head.ref}/{name}", kind=RefKind.BRANCH, at=head.head.ref) for name in sorted(own)]
    first = heads[0].head
    state = found.state.model_copy(
        update={"refs": tuple(refs), "nessie": NessieTable(catalog=first.catalog, ref=first.ref, kind=first.kind)}
    )
    return Found(state, tuple(gaps), frozenset(references))


def _unseen(found: Found, committed: frozenset[str] | None) -> list[InventoryGap]:
    """Metadata files of commits that the account does not see: what they name would be taken for nobody's."""
    if committed is None:
        return []
    named = {Path(place.removeprefix("file:")).resolve() for place in committed}
    files = sorted((Path(found.state.location) / "metadata").glob("*.metadata.json*"))
    unseen = [path for path in files if not path.name.startswith(".") and path.resolve() not in named]
    if not unseen:
        return []
    reason = (
        f"{counted(len(unseen), 'metadata file belongs', 'metadata files belong')} to commits that no visible history "
        "has: of a branch that was deleted, or"
    )
    reason += " of a branch that this account cannot see, whose files the sweep would remove"
    return [gap(found.state.dataset, GapKind.UNSEEN_COMMITS, reason, str(unseen[0]), unseen)]


def deletes_metadata(table: StaticTable) -> bool:
    """Whether each commit deletes older metadata files, which other references may still name.

    Nessie's client turns this off in tables that are made through it.
    https://iceberg.apache.org/docs/latest/maintenance/#remove-old-metadata-files
    """
    return table.properties.get("write.metadata.delete-after-commit.enabled", "false").lower() == "true"


def _head_gaps(found: Found, head: PlacedHead, table: StaticTable) -> list[InventoryGap]:
    state, told, current = found.state, [], table.metadata.current_snapshot_id
    if deletes_metadata(table):
        reason = f"on {head.head.ref} each commit deletes metadata files that other references may use: set"
        reason += " write.metadata.delete-after-commit.enabled to false there"
        told.append(gap(state.dataset, GapKind.DELETES_METADATA, reason, str(head.metadata)))
    if (_NONE if current is None else current) != (_NONE if head.head.snapshot is None else head.head.snapshot):
        reason = (
            f"on {head.head.ref} the snapshot in Nessie differs from the table's metadata, so the current snapshot is "
            "unknown"
        )
        told.append(gap(state.dataset, GapKind.NESSIE_STATE, reason, str(head.metadata)))
    if not head.metadata.resolve().is_relative_to(state.location):
        reason = f"the metadata of {head.head.ref} is outside of the table's folder, where no sweep removes old files"
        told.append(gap(state.dataset, GapKind.EXTERNAL_METADATA, reason, str(head.metadata)))
    if head.table is None:
        reason = f"on {head.head.ref} the table has no name that SQL can write (a dot, `@` or `#` in a name)"
        told.append(gap(state.dataset, GapKind.UNNAMEABLE_TABLE, reason, str(head.metadata)))
    return told
