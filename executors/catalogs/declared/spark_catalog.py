"""Tables that the estate file names: Spark has them in its session catalog, where each session is told of them."""

from __future__ import annotations

from executors.catalogs.base import CatalogOnSpark


class DeclaredOnSpark(CatalogOnSpark):
    """It needs nothing."""
