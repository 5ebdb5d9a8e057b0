"""A type of catalogs that a package of its own brings: registered by entry points alone, no product file changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from executors.catalogs import registry as spark_registry
from executors.catalogs.base import CatalogOnSpark
from pii_tracer.common import plugins
from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs import registry
from pii_tracer.lake.catalogs.base import Capability, CatalogEntry, Listing, TableCatalog, sql_name
from pii_tracer.model.datasets import Format
from tests.kits.catalog_kit import CatalogKit, Filled
from tests.lake.catalogs.test_catalogs import ROWS

_CACHED = (plugins.registered, plugins.names, plugins.load, registry.catalog_of, spark_registry.spark_catalog_of)


class ToyCatalog(TableCatalog):
    """Every folder of its warehouse is a table of Parquet files."""

    capabilities = frozenset({Capability.TABLES})
    needed = frozenset({"warehouse"})

    def tables(self, name: str, catalog: Catalog, base: Path) -> Listing:
        folders = sorted((base / str(catalog.warehouse)).iterdir())
        entries = (CatalogEntry(sql_name("toys", f.name), ("toys", f.name), Format.PARQUET, str(f)) for f in folders)
        return Listing(tuple(entries), ())


class ToyOnSpark(CatalogOnSpark):
    other_formats = True


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    info = tmp_path / "packages" / "toycatalog-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toycatalog\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{registry.GROUP}]\ntoy-box = {__name__}:ToyCatalog\n[{spark_registry.GROUP}]\ntoy-box = {__name__}:ToyOnSpark\n"
    )
    monkeypatch.syspath_prepend(str(info.parent))
    for made in _CACHED:
        made.cache_clear()
    yield
    monkeypatch.undo()
    for made in _CACHED:
        made.cache_clear()


class TestToyKit(CatalogKit):
    @pytest.fixture
    def filled(self, installed: None, tmp_path: Path) -> Filled:
        (tmp_path / "warehouse" / "people").mkdir(parents=True)
        pq.write_table(ROWS, tmp_path / "warehouse" / "people" / "1.parquet")
        made = Catalog.model_validate({"type": "toy-box", "warehouse": "warehouse"})
        return Filled("box", made, tmp_path, ("toys.people",))
