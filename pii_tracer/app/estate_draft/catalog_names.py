"""What Spark SQL calls the catalogs that somebody named: as they call themselves, or as jobs call them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pii_tracer.app.estate_draft.given_places import Places
from pii_tracer.app.estate_draft.lineage_of_draft import DraftLineage
from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import catalog_evidence, secret_name
from pii_tracer.lake.catalogs.registry import catalog_of
from pii_tracer.lake.inventory import Inventory
from pii_tracer.model.errors import UsageError
from pii_tracer.model.gap_kinds import GapKind
from planners.draft.column_guesses import may_tell_of_person
from planners.draft.lineage_hints import catalogs_called

Catalogs = Mapping[str, Mapping[str, Any]]
"""By name, as the estate file has them."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def by_themselves(catalogs: Catalogs, base: Path) -> dict[str, tuple[str, ...]]:
    """The names that catalogs have for themselves, where these are others than theirs here."""
    own = {name: _own_names(name, entry, base) for name, entry in catalogs.items()}
    return {name: names for name, names in own.items() if names and name not in names}


def by_jobs(lineage: DraftLineage, found: Inventory, catalogs: Catalogs, base: Path) -> dict[str, tuple[str, ...]]:
    """The names that jobs have for catalogs without a name of their own, where they have no others."""
    tables = {
        catalog: [table.table.removeprefix(f"{catalog}.") for table in _tables_of(catalog, found)]
        for catalog, entry in catalogs.items()
        if lineage.unknown and not _own_names(catalog, entry, base)
    }
    return {catalog: (name,) for catalog, name in catalogs_called(lineage.unknown, tables).items()}


def _own_names(name: str, entry: Mapping[str, Any], base: Path) -> tuple[str, ...]:
    catalog = Catalog.model_validate(entry)
    return catalog_of(catalog.type).own_names(name, catalog, base)


def renamed(
    catalogs: Catalogs, called: Mapping[str, Sequence[str]], taken: Sequence[str], notes: list[str]
) -> dict[str, dict[str, Any]]:
    """The catalogs by other names. One whose credentials are set for the old name alone keeps it, and is noted."""
    made = dict[str, dict[str, Any]]()
    for name, entry in catalogs.items():
        others = [other for other in called.get(name, ()) if _PLAIN.fullmatch(other) and not may_tell_of_person(other)]
        lacking = [other for other in others if _has_secrets(name) and not _has_secrets(other)]
        if others and not lacking and not {*taken, *made, *catalogs}.intersection(others):
            made |= {other: dict(entry) for other in others}
            notes.append(
                f"the catalog {name} is {', '.join(others)} here, because the jobs or the catalog itself call it so:"
                " correct it if they do not"
            )
            continue
        made[name] = dict(entry)
        notes += [
            f"the catalog {name} is {other} elsewhere: set the variables {secret_name(other, '…')} as you set"
            f" {secret_name(name, '…')}, and run this command again"
            for other in lacking
        ]
    return made


def refuse_silent(found: Inventory, places: Places) -> None:
    """Look whether each catalog that was named answers.

    Raises:
        UsageError: one does not.
    """
    for name, entry in places.catalogs.items():
        gaps = {gap.evidence: gap for gap in found.gaps if gap.kind is GapKind.CATALOG_UNREADABLE}
        gap = gaps.get(catalog_evidence(name))
        if gap is not None and not _tables_of(name, found):
            where = entry.get("uri") or entry.get("region") or name
            raise UsageError(gap.reason, where=str(where), todo="correct the address, the credentials or the rights")


def _tables_of(catalog: str, found: Inventory) -> list[Any]:
    return [table for table in found.tables if (table.table or "").startswith(f"{catalog}.")]


def _has_secrets(catalog: str) -> bool:
    return any(name.startswith(secret_name(catalog, "")) for name in os.environ)
