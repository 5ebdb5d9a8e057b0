"""What lies in S3 and is no copy is looked at when a run ends: what was examined, and what has come since."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pii_tracer.config.estate_file import Estate
from pii_tracer.model.datasets import Carries, CopyKind, DatasetId
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Examined, Gap
from tests.kits.waived_places_kit import Place, looked_at_again, persons_apart, persons_apart_in_copy
from tests.s3support import World, standin, world
from tests.verify.s3lake import MAIL, OTHER, Lake, parquet

__all__ = ["standin", "world"]


@pytest.fixture
def lake(world: World, tmp_path: Path) -> Lake:
    return Lake(world, tmp_path)


def examined(lake: Lake, key: str | None = None) -> Examined:
    place = DatasetId(namespace=f"s3://{lake.bucket}", name=key or lake.key)
    return Examined(dataset=place, table="sales.orders", carries=Carries.NONE, reason="nobody is in it")


def told(lake: Lake, *copies: Any, **parts: Any) -> list[tuple[str, int, tuple[str, ...]]]:
    """Name, places with the person, and what was not looked at."""
    found = lake.verification(*copies, **parts).elsewhere()
    assert MAIL not in repr(found)
    return [(v.copy_id, len(v.residue), v.unverified) for v in found]


def test_who_came_to_an_examined_table_is_found_in_old_versions_too(lake: Lake) -> None:
    assert told(lake, examined=[examined(lake)]) == [("(no copy) sales.orders", 0, ())]
    lake.put("a.parquet", parquet(MAIL))
    lake.hide("a.parquet")
    [(_, places, unread)] = told(lake, examined=[examined(lake)])
    assert (places > 0, unread) == (True, ())


def test_what_of_the_plan_lies_in_it_is_looked_at_apart(lake: Lake) -> None:
    """A copy, an archive that a hold keeps, another examined table, and a place that somebody waived."""
    names = ("inner", "kept-2024", "other", "waived")
    for name in names:
        lake.put(f"{name}/a.parquet", parquet(MAIL))
    inner = lake.copy(id="inner").model_copy(update={"location": f"{lake.uri}/inner"})
    archive = inner.model_copy(update={"location": f"{lake.uri}/kept-", "kind": CopyKind.ARCHIVE})
    place = DatasetId(namespace=f"s3://{lake.bucket}", name=f"{lake.key}/waived")
    gap = Gap(id="g", dataset=place, kind="remote_table", reason="", evidence="")
    alone = told(lake, examined=[examined(lake)])
    assert alone[0][1] > 0
    found = told(lake, inner, archive, examined=[examined(lake), examined(lake, f"{lake.key}/other")], gaps=[gap])
    assert [places > 0 for _, places, _ in found] == [False, True]


def test_a_table_that_a_catalog_names_since_is_looked_at(lake: Lake) -> None:
    lake.write([MAIL], key="wh/new")
    verification = lake.verification(examined=[examined(lake)])
    declared = {"name": "sales.new", "format": "delta", "location": f"s3a://{lake.bucket}/wh/new"}
    data = verification.estate.model_dump(mode="json", by_alias=True, exclude_none=True)
    data["catalogs"] = {"spark_catalog": {"type": "declared", "tables": [declared]}}
    verification.estate = Estate.model_validate(data)
    found = {v.copy_id: bool(v.residue) for v in verification.elsewhere()}
    assert found == {"(no copy) sales.orders": False, "(new) sales.new": True}


def test_what_cannot_be_looked_at_is_told(lake: Lake) -> None:
    upload = lake.client.create_multipart_upload(Bucket=lake.bucket, Key=f"{lake.key}/a.parquet")["UploadId"]
    [(_, places, [unread])] = told(lake, examined=[examined(lake)])
    assert (places, "1 unfinished multipart upload" in unread) == (0, True)
    lake.client.abort_multipart_upload(Bucket=lake.bucket, Key=f"{lake.key}/a.parquet", UploadId=upload)
    lake.put("old.parquet", parquet(OTHER), StorageClass="GLACIER")
    [(_, places, [unread])] = told(lake, examined=[examined(lake)])
    assert (places, unread.endswith("archived (GLACIER) and not restored")) == (0, True)
    lake.bucket = "no-such-bucket"
    assert told(lake, examined=[examined(lake)]) == [
        ("(no copy) sales.orders", 0, ("the bucket cannot be listed: NoSuchBucket",))
    ]
    verification = lake.verification(examined=[examined(lake)])
    verification.estate = verification.estate.model_copy(update={"s3": None})
    [verdict] = verification.elsewhere()
    assert verdict.unverified == ("not looked at: the estate file has no settings for S3 (`s3`)",)


def waived_table(lake: Lake) -> Place:
    """A folder in S3 of a table that a catalog names and no step erases."""
    declared = {"name": "sales.new", "format": "csv", "location": lake.uri}
    data = lake.verification().estate.model_dump(mode="json", by_alias=True, exclude_none=True)
    data["catalogs"] = {"spark_catalog": {"type": "declared", "tables": [declared]}}
    place = DatasetId(namespace=f"s3://{lake.bucket}", name=lake.key)
    return Place(Estate.model_validate(data), lake.base, place, GapKind.REMOTE_TABLE, lake.uri)


def test_a_waived_place_is_looked_at_again(lake: Lake) -> None:
    looked_at_again(waived_table(lake), lambda name, data: lake.put(name, data))


def test_what_is_left_of_one_person_is_hers_alone(lake: Lake) -> None:
    persons_apart(waived_table(lake), lambda name, data: lake.put(f"{name}.csv", data))


@pytest.mark.parametrize("kind", [CopyKind.SOURCE, CopyKind.ARCHIVE])
def test_a_copy_with_something_of_one_person_is_erased_of_the_others(lake: Lake, kind: CopyKind) -> None:
    """A table, and the objects of an archive."""
    looks, copy = lake.verification(), lake.copy(kind=kind)
    persons_apart_in_copy(looks.estate, lake.base, copy, lambda name, data: lake.put(f"{name}.csv", data))
