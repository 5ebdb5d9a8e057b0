"""An unfinished upload holds bytes that nobody can read: a place with one is not verified."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.app.verification import Verification
from pii_tracer.model.datasets import (
    Carries,
    CopyKind,
    DatasetId,
    Format,
    KeySet,
    Strategy,
)
from pii_tracer.model.plan import Copy, ErasurePlan
from tests.s3support import REGION, World, estate, standin, world
from tests.waivers import MARKS

__all__ = ["standin", "world"]


def no_spark() -> Any:
    raise AssertionError("objects are verified without Spark")


@pytest.mark.parametrize("kind", [CopyKind.ARCHIVE, CopyKind.REPLICA])
def test_a_place_with_an_unfinished_upload_is_not_clean_until_it_is_gone(
    world: World, tmp_path: Path, kind: CopyKind
) -> None:
    bucket, client = world.new("parts"), world.client()
    upload = client.create_multipart_upload(Bucket=bucket, Key="archive/half")["UploadId"]
    client.upload_part(Bucket=bucket, Key="archive/half", UploadId=upload, PartNumber=1, Body=b"bytes")
    copy = Copy(
        id="c-archive",
        kind=kind,
        dataset=DatasetId(namespace=f"s3://{bucket}", name="archive"),
        table=None,
        location=f"s3://{bucket}/archive/",
        format=Format.PARQUET,
        carries=Carries.KEY,
        strategy=Strategy.DELETE_VERSIONS,
        columns=(),
        lineage=(),
        reason="",
        facts={"region": REGION},
    )
    nothing: dict[str, Any] = {"copies": (copy,), "examined": (), "steps": (), "gaps": ()}
    verification = Verification(
        plan=ErasurePlan.model_construct(**nothing),
        estate=estate(world.endpoint_url),
        base=tmp_path,
        keys=(KeySet(name="pan", origin="pan", weak=False, values=(("person", "ABCDE1234F"),)),),
        marks=MARKS,
        spark=no_spark,
        now=lambda: datetime.now(timezone.utc),
    )
    verdict = verification.look(copy)
    assert verdict.bytes is not None
    assert not verdict.bytes.clean
    assert "1 unfinished multipart upload" in verdict.bytes.unverified[0]
    client.abort_multipart_upload(Bucket=bucket, Key="archive/half", UploadId=upload)
    verdict = verification.look(copy)
    assert verdict.bytes is not None
    assert verdict.bytes.clean
