"""What Hudi is called in estate files and plans, and what its steps do."""

from __future__ import annotations

from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format

HUDI = Format("hudi")

HUDI_DELETE_SAVEPOINTS = Action("hudi_delete_savepoints")
HUDI_DELETE_ROWS = Action("hudi_delete_rows")
HUDI_MASK_ROWS = Action("hudi_mask_rows")
HUDI_REBUILD = Action("hudi_rebuild")
HUDI_COMPACT = Action("hudi_compact")
HUDI_CLEAN = Action("hudi_clean")
HUDI_REBUILD_METADATA = Action("hudi_rebuild_metadata")
