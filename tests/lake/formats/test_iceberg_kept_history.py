"""`keep_history` in the estate file, and what discovery says of the tables that it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from executors.catalogs.registry import spark_catalog_of
from pii_tracer.common import plugins
from pii_tracer.config.catalogs import GROUP, Catalog, CatalogType
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.catalogs.registry import catalog_of
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.inventory import Inventory
from pii_tracer.model.gap_kinds import GapKind
from tests.executors.formats.iceberg.kept_history.people import NAME, People
from tests.executors.world import EMAIL, UID

NEEDED: dict[str, dict[str, Any]] = {
    "iceberg-rest": {"uri": "http://localhost:1"},
    "glue": {"region": "ap-south-1"},
    "hive": {"uri": "thrift://localhost:9083"},
    "nessie": {"uri": "http://localhost:19120/api/v2", "warehouse": "w"},
    "unity": {"uri": "https://localhost/api/2.1/unity-catalog"},
    "declared": {},
    "iceberg-sql": {"uri": "sqlite:///core.db", "warehouse": "core"},
    "iceberg-hadoop": {"warehouse": "core"},
}


def found(people: People, *kept: str) -> Inventory:
    told = people.estate.model_dump(exclude_defaults=True)
    told["catalogs"]["core"]["keep_history"] = kept
    return discover(Estate.model_validate(told), people.base)


@pytest.mark.parametrize("kind", sorted(NEEDED))
def test_only_catalogs_with_compare_and_swap_take_the_word(kind: str, tmp_path: Path) -> None:
    adapter = catalog_of(CatalogType(kind))
    if kind in ("iceberg-sql", "iceberg-hadoop"):
        made = Catalog(type=CatalogType(kind), keep_history=("core.eu.people",), **NEEDED[kind])
        assert made.keep_history == ("core.eu.people",)
        assert spark_catalog_of(made.type).metadata_pointer("core", made, tmp_path, ("eu", "people"), tmp_path.absolute)
        return
    with pytest.raises(ValidationError, match=r"`keep_history` is not supported in an? .* catalog: "):
        Catalog(type=CatalogType(kind), keep_history=("core.eu.people",), **NEEDED[kind])
    made = Catalog(type=CatalogType(kind), **NEEDED[kind])
    assert adapter.no_swap
    assert (
        spark_catalog_of(made.type).metadata_pointer("core", made, tmp_path, ("eu", "people"), tmp_path.absolute)
        is None
    )


def test_every_type_of_catalogs_is_asked_above() -> None:
    assert set(NEEDED) == set(plugins.names(GROUP)) - {"toy"}


def test_a_name_of_another_catalog_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=r"`keep_history` of the catalog core names eu\.people"):
        found(People(tmp_path), "eu.people")


def test_a_table_whose_history_can_stay(tmp_path: Path) -> None:
    people = People(tmp_path)
    people.append([(1, UID, EMAIL)])
    assert found(people).tables[0].kept_history is None
    inventory = found(people, NAME)
    (state,) = inventory.tables
    assert state.kept_history is not None
    assert state.kept_history.obstacles == ()
    assert inventory.gaps == ()


def test_obstacles_are_found_when_the_plan_is_made(tmp_path: Path) -> None:
    people = People(tmp_path, properties={"gc.enabled": "false"})
    people.append([(1, UID, EMAIL)])
    (state,) = found(people, NAME).tables
    assert state.kept_history is not None
    assert "gc.enabled" in state.kept_history.obstacles[0]


def test_a_name_that_no_table_has_is_a_gap(tmp_path: Path) -> None:
    """Its snapshots would expire though somebody wants to keep them."""
    people = People(tmp_path)
    people.append([(1, UID, EMAIL)])
    (gap,) = found(people, NAME, "core.eu.poeple").gaps
    assert (gap.kind, gap.evidence) == (GapKind.KEEP_HISTORY, "core.eu.poeple")
