"""Versions in a bucket: counted beside the executor that deletes them, and hashed before, where their bytes can be had."""

from __future__ import annotations

import hashlib
from datetime import datetime, timezone
from pathlib import Path

from pii_tracer.app.execution.storage_witnesses import watched
from pii_tracer.app.verification import Verification
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import CopyKind, Format
from pii_tracer.proof.storage_change_witness import FileBefore, before_step, read_before
from tests.review.plans import copy, plan
from tests.s3support import PERSON, PLAN, World, estate, keyring, standin, step, world
from tests.waivers import MARKS

__all__ = ["standin", "world"]


def test_versions_are_hashed_before_they_go_and_counted_after(world: World, tmp_path: Path) -> None:
    bucket = world.new("witness")
    bodies = [b"one", b"two", b"three"]
    old = [world.put(bucket, f"archive/{PERSON}.parquet", body) for body in bodies]
    frozen = world.put(bucket, "archive/cold.parquet", b"cold", StorageClass="DEEP_ARCHIVE")
    other = world.put(bucket, "archive/kept.parquet", b"kept")
    versions = [*old[:2], frozen]
    removal = step(Action.S3_DELETE_VERSIONS, {"bucket": bucket, "versions": versions, "plan_id": PLAN})
    archive = copy("a1", kind=CopyKind.ARCHIVE, location=f"s3://{bucket}/archive/", format=Format.PARQUET, table=None)
    made = plan(steps=[removal.model_copy(update={"copy_": "a1"})], copies=[archive])
    verification = Verification(
        plan=made,
        estate=estate(world.endpoint_url),
        base=tmp_path,
        keys=keyring().key_sets,
        marks=MARKS,
        spark=lambda: None,  # type: ignore[arg-type,return-value]
        now=lambda: datetime.now(timezone.utc),
    )
    executor = watched({"s3": world.executor()}, verification, tmp_path)["s3"]
    executor.run(made.steps[0], archive)
    facts = executor.verify(made.steps[0], archive).facts
    assert (facts["files_removed"], facts["bytes_removed"], facts["files_added"]) == (3, 10, 0)
    assert facts["manifest_before"] != facts["manifest"]
    assert [key for key, _ in world.versions(bucket) if key == other["key"]] == [other["key"]]
    before = {item.path: item for item in read_before(before_step(tmp_path, removal.id))}
    assert set(before) == {
        f"archive/[user_id].parquet?versionId={old[0]['version_id']}",
        f"archive/[user_id].parquet?versionId={old[1]['version_id']}",
        f"archive/cold.parquet?versionId={frozen['version_id']}",
    }
    known = [before[f"archive/[user_id].parquet?versionId={v['version_id']}"] for v in old[:2]]
    assert [item.sha256 for item in known] == [hashlib.sha256(body).hexdigest() for body in bodies[:2]]
    cold = before[f"archive/cold.parquet?versionId={frozen['version_id']}"]
    assert cold == FileBefore(path=cold.path, size=4, sha256=None), "nobody restored it only to take its hash"
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert PERSON.encode() not in written
