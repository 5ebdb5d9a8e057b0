"""Tables of a Nessie catalog: on every branch and tag, and those that only old commits still name.

Nessie keeps one pointer to a metadata file for each table and commit; branches and tags share files until they differ
(https://projectnessie.org/guides/tables/iceberg/, hazard C2).
"""

from __future__ import annotations

from pathlib import PurePosixPath

from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import (
    CatalogEntry,
    Head,
    Listing,
    catalog_gap,
    sql_name,
)
from pii_tracer.lake.catalogs.default_table_format import NESSIE_TABLE, NESSIE_VIEW, TABLES
from pii_tracer.lake.catalogs.nessie.client import (
    Content,
    NessieClient,
    Reference,
    RefType,
)
from pii_tracer.lake.inventory import NESSIE_WORK_BRANCH, InventoryGap, RefKind
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind

_NO_BYTES = frozenset({NESSIE_VIEW, "UDF", "NAMESPACE"})
KINDS = {RefType.BRANCH: RefKind.NESSIE_BRANCH, RefType.TAG: RefKind.NESSIE_TAG}


def list_nessie(name: str, catalog: Catalog) -> Listing:
    """One entry for each table on each reference. What the server refuses is a gap."""
    client = NessieClient(name, catalog)
    try:
        default = catalog.ref or client.default_branch()
        client.default_branch()  # whether it speaks our version of the API
        references = client.references()
    except EstateError as error:
        return Listing((), (catalog_gap(name, GapKind.CATALOG_UNREADABLE, f"{error.what}, so its tables are unknown"),))
    gaps: list[InventoryGap] = []
    if not any(r.name == default and r.type is RefType.BRANCH for r in references):
        reason = f"the catalog has no branch {default}, which the tool uses to name tables"
        return Listing((), (catalog_gap(name, GapKind.CATALOG_UNREADABLE, reason),))
    entries: list[CatalogEntry] = []
    for reference in references:
        if reference.name == NESSIE_WORK_BRANCH:
            reason = "the work branch of a run exists: resume that run, or delete the branch if no run is active"
            gaps.append(catalog_gap(name, GapKind.WORK_BRANCH_LEFT, reason, reference.name))
            continue
        try:
            contents = client.contents(reference)
        except EstateError as error:
            reason = f"{error.what}, so the contents of {reference.name} are unknown"
            gaps.append(catalog_gap(name, GapKind.CATALOG_UNREADABLE, reason, reference.name))
            continue
        for content in contents:
            if content.kind == NESSIE_TABLE:
                entries.append(_entry(name, content, reference, default))
            elif content.kind not in _NO_BYTES:
                reason = f"an object of the unknown kind {content.kind}"
                gaps.append(catalog_gap(name, GapKind.UNKNOWN_VERSION, reason, reference.name, *content.key))
    live = frozenset(str(entry.metadata) for entry in entries)
    try:
        committed = _committed(client, references)
    except EstateError as error:
        committed = live
        gaps.append(catalog_gap(name, GapKind.CATALOG_UNREADABLE, f"{error.what}: old commits are unknown"))
    # without an account there is nothing that could be hidden from it
    return Listing(tuple(entries), tuple(gaps), _former(live, committed), committed if client.has_token else None)


def table_name(catalog: str, key: tuple[str, ...], ref: str, default: str) -> str | None:
    """What Spark calls a table of a reference: the plain name on the default branch, `table@ref` elsewhere.

    None where a name cannot be told from another one: a dot in a part of it or in the reference, `@` or `#` in a key.
    """
    if not key or any(sign in part for part in key for sign in "@#`"):
        return None
    last = key[-1] if ref == default else f"{key[-1]}@{ref}"
    return sql_name(catalog, *key[:-1], last)


def _entry(catalog: str, content: Content, reference: Reference, default: str) -> CatalogEntry:
    head = Head(catalog, reference.name, KINDS[reference.type], content.snapshot, reference.name == default)
    name = table_name(catalog, content.key, reference.name, default)
    return CatalogEntry(name, content.key, TABLES, None, content.metadata, head)


def _committed(client: NessieClient, references: tuple[Reference, ...]) -> frozenset[str]:
    """Every metadata file that a commit of any reference's history names."""
    commits = (commit for _, commit in client.commits(references))
    return frozenset(content.metadata for commit in commits for content in commit.puts if content.metadata)


def _former(live: frozenset[str], committed: frozenset[str]) -> tuple[str, ...]:
    """Metadata files of tables that no reference names any more, one for each table folder."""
    folders = {_folder(place) for place in live}
    found = {_folder(place): place for place in sorted(committed, reverse=True)}
    return tuple(found[folder] for folder in sorted(found) if folder not in folders)


def _folder(metadata: str) -> str:
    return str(PurePosixPath(metadata).parent)
