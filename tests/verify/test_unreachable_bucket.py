"""A bucket that cannot be listed is unverified: neither clean nor a crash."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.app.verification import Verification
from pii_tracer.config.estate_file import S3, Estate
from pii_tracer.config.lineage import LineageSources
from pii_tracer.config.subjects import Subject
from pii_tracer.model.datasets import (
    Carries,
    CopyKind,
    DatasetId,
    Format,
    KeySet,
    Strategy,
)
from pii_tracer.model.plan import Copy, ErasurePlan
from tests.waivers import MARKS


def no_spark() -> Any:
    raise AssertionError("objects are verified without Spark")


@pytest.fixture
def verification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Verification:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "nobody")
    estate = Estate(
        version=1,
        estate="test",
        environment="local",
        catalogs={},
        roots=(),
        lineage=LineageSources(),
        subjects=(Subject(name="customer", source="lake.prod.payments", key="user_id"),),
        # port 9 (discard) is bound by nobody
        s3=S3(endpoint_url="http://127.0.0.1:9", region="ap-south-1"),
    )
    nothing: dict[str, Any] = {"copies": (), "examined": (), "steps": (), "gaps": ()}
    return Verification(
        plan=ErasurePlan.model_construct(**nothing),
        estate=estate,
        base=tmp_path,
        keys=(KeySet(name="pan", origin="pan", weak=False, values=(("person", "ABCDE1234F"),)),),
        marks=MARKS,
        spark=no_spark,
        now=lambda: datetime.now(timezone.utc),
    )


@pytest.mark.parametrize("kind", [CopyKind.ARCHIVE, CopyKind.REPLICA, CopyKind.OBJECT_VERSION])
def test_an_unreachable_bucket_is_unverified(verification: Verification, kind: CopyKind) -> None:
    copy = Copy(
        id="c-archive",
        kind=kind,
        dataset=DatasetId(namespace="s3://lake", name="archive"),
        table=None,
        location="s3://lake/archive",
        format=Format.PARQUET,
        carries=Carries.KEY,
        strategy=Strategy.DELETE_VERSIONS,
        columns=(),
        lineage=(),
        reason="an archive",
    )
    verdict = verification.look(copy)
    assert verdict.unverified == ("the bucket cannot be listed: EndpointConnectionError",)
    assert not verdict.erased
