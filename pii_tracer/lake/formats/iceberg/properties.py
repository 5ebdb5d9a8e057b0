"""Properties of Iceberg tables by which their files are led to places."""

from __future__ import annotations

ICEBERG_DATA_PATHS = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")
"""Where a table's data files go, newest name first
(https://iceberg.apache.org/docs/latest/aws/#object-store-file-layout)."""

LEADING = (*ICEBERG_DATA_PATHS, "write.metadata.path")
"""Properties that lead files elsewhere."""
