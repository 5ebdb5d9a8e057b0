"""Unity Catalog and Spark: the session is not told of it, and steps reach its tables by their places."""

from __future__ import annotations

from executors.catalogs.base import CatalogOnSpark


class UnityOnSpark(CatalogOnSpark):
    """It needs nothing."""
