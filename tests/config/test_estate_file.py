"""What an estate file may not say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pii_tracer.config import strict_yaml
from pii_tracer.config.estate_file import S3, load_estate, load_policy, load_request
from pii_tracer.config.strict_yaml import load_yaml
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


@pytest.mark.parametrize(("load", "made"), [(load_estate, True), (load_policy, True), (load_request, False)])
def test_a_missing_file_names_the_command_that_makes_it_and_no_other(
    tmp_path: Path, load: Callable[[Path], object], made: bool
) -> None:
    with pytest.raises(ConfigError, match="file is missing") as error:
        load(tmp_path / "none.yaml")
    assert error.value.todo == "name the right path" + (", or run `pii-tracer init`" if made else "")


def test_one_value_where_a_list_belongs_says_to_write_a_list(tmp_path: Path) -> None:
    """The message is about YAML, and repeats nothing of the file."""
    file = tmp_path / "pii-tracer.yaml"
    file.write_text(ESTATE.format(table="shop.users").replace("roots: [tables]", "roots: tables"))
    with pytest.raises(ConfigError, match=r"roots: write a list, each entry behind `- ` or all in `\[ \]`") as error:
        load_estate(file)
    assert "tuple" not in str(error.value)


def test_the_address_of_a_server_holds_no_password(tmp_path: Path) -> None:
    file = tmp_path / "pii-tracer.yaml"
    address = "http://store.example:9000"
    section = "s3:\n  region: eu-west-1\n  endpoint_url: {}\n"
    file.write_text(ESTATE.format(table="shop.users") + section.format(address))
    assert load_estate(file).s3 == S3(region="eu-west-1", endpoint_url=address)
    file.write_text(ESTATE.format(table="shop.users") + section.format("http://minio:s3cr3t@store.example:9000"))
    with pytest.raises(ConfigError, match="endpoint_url") as error:
        load_estate(file)
    assert "s3cr3t" not in str(error.value)


def test_mistakes_are_told_in_words_of_the_file(tmp_path: Path) -> None:
    """Not in those of the library that finds them."""
    file = tmp_path / "pii-tracer.yaml"
    twice = "key: uid, tabels: [], tables: [{table: t}, {table: t, key: a}]"
    file.write_text(ESTATE.format(table="lake.users").replace("key: uid", twice))
    with pytest.raises(ConfigError) as error:
        load_estate(file)
    assert str(error.value).splitlines()[1:3] == [
        "    subjects.0.tables.0.key: it is missing",
        "    subjects.0.tabels: unknown key",
    ]
    file.write_text(ESTATE.format(table="lake.users"))
    with pytest.raises(ConfigError, match=r"lake\.users has a schema") as error:
        load_estate(file)
    assert "Value error" not in str(error.value)


def test_a_file_that_is_read_again_is_as_it_is_then_and_nobody_elses(tmp_path: Path) -> None:
    """A command reads it many times; each reading has values of its own."""
    file = tmp_path / "pii-tracer.yaml"
    file.write_text(ESTATE.format(table="shop.users"))
    load_yaml(file, "estate")["catalogs"].clear()
    assert list(load_yaml(file, "estate")["catalogs"]) == ["lake", "spark_catalog"]
    file.write_text(ESTATE.format(table="shop.others"))
    assert load_yaml(file, "estate")["catalogs"]["spark_catalog"]["tables"][0]["name"] == "shop.others"


def test_a_request_with_its_persons_is_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "request.yaml"
    file.write_text("subject: {key: 4417700102}")
    before = strict_yaml._loaded_before.cache_info()
    load_yaml(file, "request")
    assert strict_yaml._loaded_before.cache_info() == before
