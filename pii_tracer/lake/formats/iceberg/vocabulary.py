"""What Iceberg is called in estate files and plans, and what its steps do."""

from __future__ import annotations

from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format

ICEBERG = Format("iceberg")

ICEBERG_DELETE_ROWS = Action("iceberg_delete_rows")
ICEBERG_MASK_ROWS = Action("iceberg_mask_rows")
ICEBERG_REBUILD = Action("iceberg_rebuild")
ICEBERG_REWRITE_FILES = Action("iceberg_rewrite_files")
ICEBERG_REWRITE_HISTORY = Action("iceberg_rewrite_history")
ICEBERG_REWRITE_REF = Action("iceberg_rewrite_ref")
ICEBERG_AWAIT_REF = Action("iceberg_await_ref")
ICEBERG_REWRITE_MANIFESTS = Action("iceberg_rewrite_manifests")
ICEBERG_EXPIRE_SNAPSHOTS = Action("iceberg_expire_snapshots")
ICEBERG_REMOVE_ORPHANS = Action("iceberg_remove_orphans")

ICEBERG_DATA_PATHS = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")
"""Where a table's data files go, newest name first
(https://iceberg.apache.org/docs/latest/aws/#object-store-file-layout)."""

LEADING = (*ICEBERG_DATA_PATHS, "write.metadata.path")
"""Properties that lead files elsewhere."""
