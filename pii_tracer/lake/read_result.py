"""What reading one place gave: its state and what could not be told."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pii_tracer.lake.inventory import InventoryGap, TableState
from pii_tracer.model.canonical_json import canonical
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.gap_kinds import GapKind


@dataclass(frozen=True)
class Found:
    """One table or folder with the gaps met while it was read.

    references: data files that any snapshot names (Iceberg), links followed, to see tables that share files.
    """

    state: TableState
    gaps: tuple[InventoryGap, ...] = ()
    references: frozenset[Path] = frozenset()


def in_order(gaps: Iterable[InventoryGap]) -> tuple[InventoryGap, ...]:
    """Gaps as an inventory has them: by dataset, kind and evidence."""
    return tuple(sorted(gaps, key=lambda g: (str(g.dataset or ""), g.kind, g.evidence)))


def gap(
    dataset: DatasetId | None, kind: GapKind, reason: str, evidence: str, listed: Iterable[object] = ()
) -> InventoryGap:
    """A gap of discovery; `evidence` names a file or folder, never a value. listed: all files that it is about, where
    reason and evidence show only some of them."""
    names = sorted(map(str, listed))
    digest = hashlib.sha256(canonical(names)).hexdigest()[:16] if names else ""
    return InventoryGap(dataset=dataset, kind=kind, reason=reason, evidence=evidence, listed=digest)
