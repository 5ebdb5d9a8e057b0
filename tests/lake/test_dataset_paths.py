from __future__ import annotations

import string
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.config.catalogs import Catalog, CatalogType
from pii_tracer.config.estate_file import Estate, Relocation
from pii_tracer.config.lineage import LineageSources
from pii_tracer.config.subjects import Subject
from pii_tracer.lake.dataset_paths import EstatePaths, local_path
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import EstateError
from tests.lake.s3_lakehouse import estate_of

BASE = Path(tempfile.gettempdir()).resolve() / "estate that need not exist"
PATHS = EstatePaths(estate_of(), BASE)
# hostile on purpose: spaces, quotes, percent signs, dots, other scripts
NAMES = st.text(alphabet=string.ascii_letters + string.digits + " '\"`%?#.;&=éßप漢\\", min_size=1, max_size=20).filter(
    lambda name: name not in (".", "..")
)


def estate(**changes: object) -> Estate:
    return estate_of().model_copy(update=changes)


@given(st.lists(NAMES, min_size=1, max_size=5))
def test_real_path_to_dataset_and_back(parts: list[str]) -> None:
    real = BASE / "warehouse" / Path(*parts)
    dataset = PATHS.dataset_of(real)
    assert dataset.name == "/lakehouse/warehouse/" + "/".join(parts)
    assert PATHS.real_path(dataset) == real


@given(st.lists(NAMES, min_size=1, max_size=3))
def test_nothing_outside_the_roots(parts: list[str]) -> None:
    outside = BASE / "warehouse2" / Path(*parts)
    with pytest.raises(EstateError, match="outside"):
        PATHS.dataset_of(outside)
    assert PATHS.real_path(DatasetId(namespace="file", name=str(outside))) is None
    assert PATHS.real_path(DatasetId(namespace="file", name="/lakehouse/warehouse/../" + parts[0])) is None


@given(st.lists(NAMES, min_size=1, max_size=3))
def test_uris_are_decoded_and_plain_paths_are_not(parts: list[str]) -> None:
    path = BASE / Path(*parts)
    assert local_path(path.as_uri()) == path
    assert local_path(str(path)) == path


def test_dots_are_refused_even_when_they_lead_back_inside() -> None:
    with pytest.raises(EstateError):
        PATHS.checked(BASE / "warehouse" / ".." / "warehouse" / "t")


def test_links_out_of_the_estate_are_refused(tmp_path: Path) -> None:
    (tmp_path / "warehouse").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "warehouse" / "link").symlink_to(tmp_path / "elsewhere")
    paths = EstatePaths(estate(), tmp_path)
    with pytest.raises(EstateError, match="outside"):
        paths.dataset_of(tmp_path / "warehouse" / "link" / "t")
    assert paths.real_path(DatasetId(namespace="file", name="/lakehouse/warehouse/link")) is None


def test_without_relocation_the_real_path_is_the_identity() -> None:
    paths = EstatePaths(estate(relocations=()), BASE)
    table = BASE / "warehouse" / "t"
    assert paths.dataset_of(table) == DatasetId(namespace="file", name=str(table))
    assert paths.real_path(paths.dataset_of(table)) == table


def test_the_most_specific_relocation_wins() -> None:
    nested = (
        Relocation.model_validate({"from": "/data", "to": "warehouse"}),
        Relocation.model_validate({"from": "/exports/", "to": "warehouse/out"}),
    )
    paths = EstatePaths(estate(relocations=nested), BASE)
    assert paths.dataset_of(BASE / "warehouse" / "out" / "a").name == "/exports/a"
    assert paths.dataset_of(BASE / "warehouse" / "outer").name == "/data/outer"
    assert paths.real_path(DatasetId(namespace="file", name="/exports/a")) == BASE / "warehouse" / "out" / "a"


@pytest.mark.parametrize(
    "dataset",
    [
        DatasetId(namespace="s3://bucket", name="/lakehouse/warehouse/t"),
        DatasetId(namespace="file", name="lakehouse/warehouse/t"),
        DatasetId(namespace="file", name="/lakehouse/warehouses/t"),
    ],
)
def test_other_namespaces_and_lookalikes_have_no_place(dataset: DatasetId) -> None:
    assert PATHS.real_path(dataset) is None


def test_names_of_tables(tmp_path: Path) -> None:
    for table in ("prod/payments", "prod/deep/er", "prod/dotted.name", "alone"):
        metadata = tmp_path / "warehouse" / "lake" / table / "metadata"
        metadata.mkdir(parents=True)
        (metadata / "v1.metadata.json").write_text("{}", encoding="utf-8")
    paths = EstatePaths(estate(), tmp_path)
    aliases = paths.aliases
    assert aliases["lake.prod.payments"].name == "/lakehouse/warehouse/lake/prod/payments"
    assert set(aliases) == {
        "lake.prod.payments",
        "lake.prod.deep.er",
        *(f"{prefix}prod.{name}" for prefix in ("", "spark_catalog.") for name in ("wallets", "trips", "gone")),
    }
    assert aliases["spark_catalog.prod.wallets"] == aliases["prod.wallets"]
    assert paths.table_at(tmp_path / "warehouse" / "delta" / "wallets") == "prod.wallets"
    assert paths.table_at(tmp_path / "warehouse" / "lake" / "prod" / "dotted.name") is None
    assert paths.table_at(tmp_path / "warehouse" / "lake" / "alone") is None


def test_development_roots() -> None:
    assert PATHS.is_dev(str(BASE / "warehouse" / "dev" / "a"))
    assert PATHS.is_dev((BASE / "warehouse" / "dev" / "a b").as_uri())
    assert not PATHS.is_dev(str(BASE / "warehouse" / "development"))
    assert not PATHS.is_dev("s3://bucket/dev")


def test_a_warehouse_is_a_root_and_a_bucket_is_one_of_its_own() -> None:
    outside = Catalog(type=CatalogType.ICEBERG_HADOOP, warehouse="lake2")
    assert EstatePaths(estate(catalogs={"lake": outside}), BASE).inside(BASE / "lake2" / "a")
    with pytest.raises(EstateError, match="`s3`"):
        EstatePaths(estate(catalogs={"lake": Catalog(type=CatalogType.ICEBERG_HADOOP, warehouse="s3://b/w")}), BASE)
    paths = EstatePaths(estate(roots=("s3a://bucket/lake/",)), BASE)
    assert [(t.title, str(t.location)) for t in paths.remote] == [(None, "s3://bucket/lake")]
    assert not any("bucket" in str(root) for root in paths.roots)
    with pytest.raises(EstateError, match="another host"):
        local_path("file://host/share")


def test_an_estate_made_by_hand_needs_nothing_else(tmp_path: Path) -> None:
    small = Estate(
        version=1,
        estate="small",
        environment="local",
        catalogs={},
        roots=(str(tmp_path),),
        lineage=LineageSources(),
        subjects=(Subject(name="customer", source="a.b", key="uid"),),
    )
    assert EstatePaths(small, Path("/nowhere")).aliases == {}
