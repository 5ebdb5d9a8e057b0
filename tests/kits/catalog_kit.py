"""What every type of catalogs must do. A test of a catalog inherits `CatalogKit` and says how its tables are made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from executors.catalogs.registry import spark_catalog_of
from executors.formats.iceberg.catalog_settings import catalog_conf
from pii_tracer.config.catalogs import Catalog
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.lineage import LineageSources
from pii_tracer.config.subjects import Subject
from pii_tracer.lake.catalogs.base import Capability, Listing
from pii_tracer.lake.catalogs.registry import catalog_of
from pii_tracer.lake.discovery import discover
from pii_tracer.model.gap_kinds import GapKind


@dataclass(frozen=True)
class Filled:
    """A catalog called `name` with tables. tables: what Spark calls them; base: folder of the estate file."""

    name: str
    catalog: Catalog
    base: Path
    tables: tuple[str, ...]

    def estate(self) -> Estate:
        """The estate that has this catalog alone."""
        return Estate(
            version=1,
            estate="kit",
            environment="local",
            catalogs={self.name: self.catalog},
            roots=("warehouse",),
            lineage=LineageSources(),
            subjects=(Subject(name="customer", source=self.tables[0], key="uid"),),
        )

    def listing(self) -> Listing:
        """What the catalog answers; skips where it has nothing to ask."""
        adapter = catalog_of(self.catalog.type)
        if not adapter.can(Capability.TABLES):
            pytest.skip("it does not list tables")
        return adapter.tables(self.name, self.catalog, self.base)


class CatalogKit:
    """Abstract: fixtures `filled`, a catalog with at least one table, and `silent`, one that does not answer."""

    @pytest.fixture
    def filled(self) -> Filled:
        raise NotImplementedError

    @pytest.fixture
    def silent(self) -> Catalog:
        pytest.skip("there is nobody to ask")

    def test_its_tables_are_found_by_their_names(self, filled: Filled) -> None:
        found = discover(filled.estate(), filled.base)
        assert not [gap for gap in found.gaps if gap.kind is GapKind.CATALOG_UNREADABLE]
        assert set(filled.tables) <= {state.table for state in found.tables}

    def test_each_table_is_listed_with_its_place(self, filled: Filled) -> None:
        listing = filled.listing()
        assert set(filled.tables) <= {entry.name for entry in listing.entries}
        assert all(entry.metadata or entry.location for entry in listing.entries)
        assert listing.gaps == ()

    def test_only_catalogs_with_references_tell_of_some(self, filled: Filled) -> None:
        has = catalog_of(filled.catalog.type).can(Capability.REFERENCES)
        assert {entry.head is not None for entry in filled.listing().entries} == {has}

    def test_one_that_does_not_answer_is_a_gap(self, silent: Catalog, tmp_path: Path) -> None:
        listing = catalog_of(silent.type).tables("mute", silent, tmp_path)
        assert [gap.kind for gap in listing.gaps] == [GapKind.CATALOG_UNREADABLE]
        assert listing.entries == ()

    def test_it_is_refused_without_what_it_needs(self, filled: Filled) -> None:
        adapter, given = catalog_of(filled.catalog.type), filled.catalog.model_dump(exclude_defaults=True)
        for key in adapter.needed:
            with pytest.raises(ValueError, match=f"needs `{key}`"):
                Catalog.model_validate({name: value for name, value in given.items() if name != key})

    def test_spark_is_told_of_it(self, filled: Filled) -> None:
        options = spark_catalog_of(filled.catalog.type).options(filled.name, filled.catalog, filled.base)
        conf = catalog_conf(filled.estate(), filled.base)
        assert bool(options) == (f"spark.sql.catalog.{filled.name}" in conf)
        assert {f"spark.sql.catalog.{filled.name}.{key}" for key in options} <= conf.keys()
