"""What Delta is called in estate files and plans, and what its steps do."""

from __future__ import annotations

from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format

DELTA = Format("delta")

DELTA_DELETE_ROWS = Action("delta_delete_rows")
DELTA_MASK_ROWS = Action("delta_mask_rows")
DELTA_REBUILD = Action("delta_rebuild")
DELTA_PURGE = Action("delta_purge")
DELTA_VACUUM = Action("delta_vacuum")
DELTA_CLEAN_LOG = Action("delta_clean_log")
