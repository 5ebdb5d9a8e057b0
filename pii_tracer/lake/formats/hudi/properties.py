"""Properties of Hudi tables that tell what can be done with them."""

from __future__ import annotations

HUDI_BOOTSTRAPPED = "hoodie.bootstrap.base.path"
"""The place whose files a table was made of, and may read still."""

HUDI_WRITABLE = frozenset({6, 8, 9})
"""Versions of tables that Hudi 1.2 writes as they are (https://hudi.apache.org/docs/configurations/#hoodiewritetableversion)."""
