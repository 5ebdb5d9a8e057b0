"""Another system's numbers in an archive in S3 of the table that the owner's word is about."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.hdfs import shop
from tests.kits.other_numbers_kit import ROWS, STAY, WRITERS, as_parquet, erased_around, said
from tests.s3support import REGION, World, standin, world

__all__ = ["standin", "world"]


@dataclass
class Shop(shop.Shop):
    """A table of users that is held, and what was archived of it."""

    world: World = field(default_factory=lambda: World(""))
    bucket: str = ""
    kind: str = "csv"

    def _places(self) -> dict[str, Any]:
        place = {"bucket": self.bucket, "prefix": "archive/", "format": self.kind}
        return {
            "roots": ["tables"],
            "s3": {"endpoint_url": self.world.endpoint_url, "region": REGION},
            "archives": [{"name": "old", "of": "shop.users", **place}],
        }

    def write(self, **more: Any) -> None:
        super().write(**more)
        (self.base / "tables" / "users" / "part-0.parquet").write_bytes(as_parquet(*ROWS))


@pytest.fixture
def archived(world: World, tmp_path: Path) -> Shop:
    return Shop(None, tmp_path, "", world=world, bucket=world.new("archive"))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_number_stays_in_its_column_and_the_person_leaves(archived: Shop, kind: str) -> None:
    archived.kind, write = kind, WRITERS[kind]
    key = f"archive/a.{kind}"
    archived.world.put(archived.bucket, key, write(*ROWS))
    kept = write(*STAY)

    def read() -> bytes:
        body = archived.world.client().get_object(Bucket=archived.bucket, Key=key)["Body"].read()
        return kept if kind == "parquet" else bytes(body)

    plan = erased_around(archived, read, kept, subjects=said("shop.users"))
    place = f"s3://{archived.bucket}/archive/"
    told = {item["table"]: item["copied_from"] for item in plan["not_keys"]}
    assert told == {"shop.users": None, place: "shop.users.driver"}


@pytest.mark.parametrize("said_of", ["nothing", "another column"])
def test_without_the_word_the_number_is_residue(archived: Shop, said_of: str) -> None:
    data, more = WRITERS["csv"](*ROWS), {}
    if said_of == "another column":
        data, more = data.replace(b"driver", b"rival"), {"subjects": said("shop.users")}
    archived.world.put(archived.bucket, "archive/a.csv", data)
    archived.plan(**more)
    archived.approve()
    _, result = archived.apply()
    assert result["state"] != "complete"
    assert {item["copy"] for item in result["residue"]} == {f"c-{archived.bucket}-archive"}
