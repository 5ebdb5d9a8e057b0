"""What transactional tables of Hive's are called in plans, and what their steps do."""

from __future__ import annotations

from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format

HIVE_ACID = Format("hive_acid")

HIVE_ACID_DELETE_ROWS = Action("hive_acid_delete_rows")
HIVE_ACID_COMPACT = Action("hive_acid_compact")
HIVE_ACID_CLEAN = Action("hive_acid_clean")
