"""What the toy format is called in estate files and plans, and what its steps do."""

from __future__ import annotations

from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format

TOY = Format("toy")

TOY_DELETE_ROWS = Action("toy_delete_rows")
TOY_REMOVE_OLD = Action("toy_remove_old")
