"""Keys of several columns in S3, in archives and bare folders, versions included: one person leaves, and nobody else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.app.planning import test_numbers_in_archives as archives
from tests.kits.tenants_kit import ASHA, BY_KEY, ESTATE, OTHERS, WRITERS, Row, erased, opened, waived
from tests.s3support import World, standin, world

__all__ = ["standin", "world"]


@dataclass
class Shop(archives.Shop):
    """bare: whether the folder is a table that a job filled, and no archive."""

    bare: bool = False
    declared: bool = True
    """Whether the catalog knows the bare folder; else it is a root alone."""

    def _places(self) -> dict[str, Any]:
        places = super()._places()
        if self.bare and not self.declared:
            return {**places, "archives": [], "roots": ["tables", f"s3://{self.bucket}/archive"]}
        if not self.bare:
            return places
        users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
        out = {"name": "shop.out", "format": self.kind, "location": f"s3://{self.bucket}/archive"}
        declared = {"spark_catalog": {"type": "declared", "tables": [users, out]}}
        return {**places, "archives": [], "catalogs": declared}

    def _dataset(self, folder: str) -> dict[str, str]:
        return {"namespace": f"s3://{self.bucket}", "name": folder}

    def write(self, **more: Any) -> None:
        self.exports = ["archive"] if self.bare else []
        super().write(**{**self._places(), **more})
        (self.base / "tables" / "users" / "part-0.parquet").write_bytes(self.users)

    def put_rows(self, *rows: Row, name: str = "a") -> None:
        self.world.put(self.bucket, f"archive/{name}.{self.kind}", WRITERS[self.kind](*rows))

    def bodies(self) -> list[bytes]:
        """Of every version that lies there."""
        client = self.world.client()
        listed = client.list_object_versions(Bucket=self.bucket, Prefix="archive/")
        assert not listed.get("DeleteMarkers")
        return [
            client.get_object(Bucket=self.bucket, Key=v["Key"], VersionId=v["VersionId"])["Body"].read()
            for v in listed["Versions"]
        ]


@pytest.fixture(params=["an archive", "a bare folder"])
def shop(request: pytest.FixtureRequest, world: World, tmp_path: Path) -> Shop:
    bucket, bare = world.new("archive"), request.param == "a bare folder"
    return Shop(None, tmp_path, "", world=world, bucket=bucket, bare=bare)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_one_person_leaves_every_version_and_her_namesake_stays(shop: Shop, kind: str) -> None:
    shop.kind = kind
    shop.put_rows(ASHA, *OTHERS)
    shop.put_rows(BY_KEY, *OTHERS)
    kept = [WRITERS[kind](*OTHERS)] if kind == "csv" else []
    erased(shop, 1, lambda: shop.bodies() if kept else (), kept)
    assert len(shop.bodies()) == 1


@pytest.mark.parametrize(("row", "clean"), [(BY_KEY, False), (OTHERS[0], True), (OTHERS[3], True)])
def test_the_verification_finds_her_and_not_her_namesake(shop: Shop, row: Row, clean: bool) -> None:
    shop.put_rows(BY_KEY, *OTHERS)
    erased(shop, 1, lambda: (), ())
    shop.put_rows(row, name="late")
    assert (shop.verify() == 0) is clean


def test_an_object_without_the_tenant_is_left_and_never_clean(shop: Shop) -> None:
    """The step stops before it writes; of a bare folder planning says so."""
    shop.put_rows(BY_KEY, *OTHERS)
    shop.world.put(shop.bucket, "archive/b.csv", b"uid,mail\n7,\n")
    opened(shop)
    _, plan = shop.plan(**ESTATE)
    before = shop.bodies()
    assert bool(waived(plan)) is shop.bare
    if not waived(plan):
        shop.approve()
        code, result = shop.apply()
        assert (code != 0, result["state"] != "complete") == (True, True)
    assert shop.bodies()[-1] == before[-1] == b"uid,mail\n7,\n"


def test_a_folder_that_becomes_a_table_is_planned_as_without_the_ledger(world: World, tmp_path: Path) -> None:
    """As a root it was searched by its bytes, which show no key of several columns."""
    shop = Shop(None, tmp_path, "", world=world, bucket=world.new("archive"), bare=True, declared=False)  # type: ignore[arg-type]
    for number in range(3):
        shop.put_rows(("west", 1000 + number, None), name=f"others-{number}")
    shop.put_rows(BY_KEY, *OTHERS, name="z")
    opened(shop)
    shop.plan(**ESTATE)
    shop.declared = True
    (code, kept), (_, bare) = shop.plan(**ESTATE), shop.plan(**ESTATE, scan_ledger=False)
    assert code == 0
    assert (kept["copies"], kept["gaps"]) == (bare["copies"], bare["gaps"])
    assert [step["id"] for step in kept["steps"]] == [step["id"] for step in bare["steps"]]
    (found,) = (copy["found"] for copy in kept["copies"] if copy["location"].startswith("s3:"))
    assert (found["files_with_person"], found["rows"]) == (1, 1)
