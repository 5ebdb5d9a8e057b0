"""What a run calls gone: no more than was verified, and not less after a crash."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from pii_tracer.app.execution.attesting import erased_by
from pii_tracer.app.execution.plan_run import Ran
from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.model.actions import Action
from pii_tracer.model.canonical_json import canonical
from pii_tracer.model.datasets import CopyKind, Strategy
from pii_tracer.model.plan import ErasurePlan, digest_of
from pii_tracer.proof.storage_change_witness import FileBefore, before_place, before_step
from pii_tracer.review.plan_file import LoadedPlan
from pii_tracer.run.journal import Kind, Record
from pii_tracer.verify.verdicts import (
    ByteVerdict,
    CopyVerdict,
    RunVerdict,
    ScannedFile,
)
from tests.review.plans import NOW, copy, plan, step

VERSIONS = [{"key": f"old/{n}", "version_id": f"v{n}", "sha256": None} for n in range(4)]


def run_of(folder: Path, made: ErasurePlan, facts: dict[str, Any]) -> Ran:
    record = Record(0, NOW, Kind.STEP_RESULT, {"step": made.steps[0].id, "facts": facts}, "", "")
    loaded = LoadedPlan(made, made.to_bytes(), digest_of(made.to_bytes()), "p")
    looks = SimpleNamespace(patterns=SimpleNamespace(mask=lambda text: text.replace("old/3", "[uid]")))
    return cast(Ran, SimpleNamespace(loaded=loaded, records=(record,), folder=RunFolder(folder), verification=looks))


def gone(folder: Path, facts: dict[str, Any]) -> list[tuple[str, str | None, str | None]]:
    archive = copy("a1", kind=CopyKind.ARCHIVE, location="s3://archive/old")
    kept = copy("k1", location="/lake/kept", strategy=Strategy.EXEMPT)
    parameters = {"bucket": "archive", "versions": VERSIONS}
    made = plan(
        steps=[step("a1/1", "a1", action=Action.S3_DELETE_VERSIONS, parameters=parameters)], copies=[archive, kept]
    )
    found = erased_by(run_of(folder, made, facts), RunVerdict(copies=()))
    return [(item.uri, item.version_id, item.sha256) for item in found]


def test_what_stays_by_right_is_not_called_gone(tmp_path: Path) -> None:
    facts = {"deleted": VERSIONS, "spared": [], "replaced_in_place": []}
    assert all(uri != "/lake/kept" for uri, _, _ in gone(tmp_path, facts))


def test_versions_that_an_interrupted_attempt_deleted_count_and_spared_ones_do_not(tmp_path: Path) -> None:
    facts = {"deleted": VERSIONS[3:], "already_gone": 1, "spared": VERSIONS[1:2], "replaced_in_place": VERSIONS[2:3]}
    assert gone(tmp_path, facts) == [
        ("s3://archive/old", None, None),
        ("s3://archive/old/0", "v0", None),
        ("s3://archive/old/3", "v3", None),
    ]


def test_a_version_is_named_with_the_hash_that_was_taken_before_it_was_deleted(tmp_path: Path) -> None:
    path = before_step(tmp_path, "a1/1")
    path.parent.mkdir()
    lines = [FileBefore(path=f"{k}?versionId=v{n}", size=1, sha256="ab" * 32) for n, k in ((2, "old/2"), (3, "[uid]"))]
    path.write_bytes(b"".join(canonical(line.model_dump()) + b"\n" for line in lines))
    facts = {"deleted": VERSIONS[2:], "spared": VERSIONS[:2], "replaced_in_place": []}
    assert gone(tmp_path, facts)[1:] == [
        ("s3://archive/old/2", "v2", "ab" * 32),
        ("s3://archive/old/3", "v3", "ab" * 32),
    ]


def test_a_step_that_was_only_probed_claims_no_version(tmp_path: Path) -> None:
    assert gone(tmp_path, {"probed": True}) == [("s3://archive/old", None, None)]


def test_a_file_is_gone_when_the_verifier_did_not_find_its_bytes_there(tmp_path: Path) -> None:
    before = [FileBefore(path=f"{n}.parquet", size=9, sha256=n * 64) for n in "abc"]
    path = before_place(tmp_path, "c1")
    path.parent.mkdir()
    path.write_bytes(b"".join(canonical(line.model_dump()) + b"\n" for line in before))
    now = [
        ScannedFile(path="a.parquet", size=9, sha256="a" * 64, decoded_as="parquet"),
        ScannedFile(path="b.parquet", size=9, sha256="e" * 64, decoded_as="parquet"),
    ]
    verdict = RunVerdict(copies=(CopyVerdict(copy_id="c1", bytes=ByteVerdict(copy_id="c1", root="/", files=now)),))
    # what the step says itself is not told twice
    facts = {"files": [{"file": "b.parquet", "sha256_before": "b" * 64, "sha256_after": "e" * 64}]}
    made = plan(steps=[step("c1/1", parameters={"location": "/lake/c1"})])
    found = [(item.uri, item.sha256) for item in erased_by(run_of(tmp_path, made, facts), verdict)]
    assert found == [("/lake/c1", None), ("/lake/c1/b.parquet", "b" * 64), ("/lake/c1/c.parquet", "c" * 64)]
    path.unlink()
    found = [(item.uri, item.sha256) for item in erased_by(run_of(tmp_path, made, facts), verdict)]
    assert found == [("/lake/c1", None), ("/lake/c1/b.parquet", "b" * 64)]
