"""What an estate file may not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from pii_tracer.config.estate_file import load_estate
from pii_tracer.model.errors import ConfigError

ESTATE = """
version: 1
estate: shop
environment: local
spark: {{profile: "3.5"}}
catalogs:
  lake: {{type: iceberg-hadoop, warehouse: warehouse}}
  spark_catalog: {{type: declared, tables: [{{name: {table}, format: delta, location: tables/users}}]}}
roots: [tables]
lineage: {{}}
subjects: [{{name: user, source: lake.users, key: uid}}]
"""


def test_a_declared_table_may_not_lie_in_a_schema_with_the_name_of_a_catalog(tmp_path: Path) -> None:
    """Spark takes the first part of `lake.users` for the catalog: its steps would not reach the declared table."""
    file = tmp_path / "pii-tracer.yaml"
    file.write_text(ESTATE.format(table="shop.users"))
    assert load_estate(file).estate == "shop"
    file.write_text(ESTATE.format(table="lake.users"))
    with pytest.raises(ConfigError, match=r"lake\.users has a schema with the name of a catalog"):
        load_estate(file)
