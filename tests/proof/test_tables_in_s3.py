"""Tables in S3: what was there before by key and version, what a proof names of it as gone, and what a trail must show."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pii_tracer.app.execution.attesting import erased_by, scope_of
from pii_tracer.app.execution.plan_run import Ran
from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.app.execution.storage_witnesses import watched
from pii_tracer.app.execution.verify_step import VerifyExecutor
from pii_tracer.app.verification import Verification
from pii_tracer.lake.formats.delta.vocabulary import DELTA_VACUUM
from pii_tracer.model.actions import Action
from pii_tracer.model.plan import Copy, ErasurePlan, Step
from pii_tracer.proof.cloudtrail.deletion_binding import check_trail
from pii_tracer.proof.evidence_leaves import Erased
from pii_tracer.proof.findings import Check as Finding
from pii_tracer.proof.storage_change_witness import before_place, before_step, read_before
from pii_tracer.review.plan_file import parse_plan
from pii_tracer.run.executor_protocol import Check, Outcome, Progress
from pii_tracer.run.journal import Journal, Kind
from pii_tracer.run.runner import run
from pii_tracer.verify.verdicts import RunVerdict
from tests.proof.attested import attest
from tests.proof.aws import RSA_KEY, keys_json, one
from tests.proof.cloudtrail.test_trail_binding import AT, trail
from tests.proof.test_attestation import KEY, nonces, proven
from tests.review.plans import plan, step
from tests.run.fakes import FakeLease, Ticking
from tests.s3support import World, standin, world
from tests.verify.s3lake import MAIL, OTHER, Lake, parquet

__all__ = ["standin", "world"]

OLD, NEW = "part-old.parquet", "part-new.parquet"


class Acting:
    """An executor whose steps are functions here."""

    def __init__(self, name: str, acts: dict[Action, Callable[[], Any]]) -> None:
        self.name = name
        self._acts = acts

    def check(self, step: Step, copy: Copy | None) -> None: ...

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        self._acts[step.action]()
        return Outcome({"request_ids": ["REQ1"]})

    def verify(self, step: Step, copy: Copy | None) -> Check:
        return Check(True)

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        return Progress.NOT_STARTED


class Erasure:
    """A plan for a table in a bucket, and the run that carries it out with a witness beside it."""

    def __init__(self, lake: Lake, folder: Path) -> None:
        self.lake, self.folder = lake, folder
        self.table = lake.copy(id="t1")
        where = {"bucket": lake.bucket, "prefix": lake.key}
        acts = (("delta", DELTA_VACUUM), ("s3", Action.S3_CLEAR_VERSIONS), ("verify", Action.VERIFY_COPY))
        self.steps = [
            step(f"t1/{n}", "t1", [f"t1/{n - 1}"] if n else [], executor=name, action=action, parameters=where)
            for n, (name, action) in enumerate(acts)
        ]
        self.plan: ErasurePlan = plan(steps=self.steps, copies=[self.table])
        self.verification: Verification = lake.verification()
        self.verification.plan = self.plan

    def vacuum(self) -> None:
        self.lake.put(NEW, parquet(OTHER))
        self.lake.hide(OLD)
        # a commit's place is written over, as that of `_last_checkpoint` is
        self.lake.put("_last_checkpoint", b'{"version": 1}')

    def run(self) -> Ran:
        inner = {
            "delta": Acting("delta", {DELTA_VACUUM: self.vacuum}),
            "s3": Acting("s3", {Action.S3_CLEAR_VERSIONS: self.lake.clear}),
        }
        verifier = VerifyExecutor(self.verification, RunFolder(self.folder).verdicts)
        executors = {**watched(inner, self.verification, self.folder), "verify": verifier}
        self.loaded = parse_plan(self.plan.to_bytes(), "p.plan.json")
        clock = Ticking()
        journal = Journal.open(self.folder / "journal.jsonl", clock)
        state = run(self.plan, executors, journal, clock=clock, lease=FakeLease(), plan_digest=self.loaded.digest)
        assert state.failed == ()
        ran = {"records": journal.records, "loaded": self.loaded, "folder": RunFolder(self.folder)}
        return cast(Ran, SimpleNamespace(**ran, verification=self.verification))

    def verdict(self) -> RunVerdict:
        from pii_tracer.app.execution.verify_step import read_verdicts

        return read_verdicts(RunFolder(self.folder).verdicts, self.plan.copies)

    def facts(self, ran: Ran, number: int) -> dict[str, Any]:
        verified = {r.facts["step"]: r.facts for r in ran.records if r.kind is Kind.STEP_VERIFIED}
        found = verified[self.steps[number].id]["facts"]
        return dict(found)


def erasure_of(lake: Lake, folder: Path) -> Erasure:
    lake.put(OLD, parquet(MAIL))
    lake.put("_last_checkpoint", b'{"version": 0}')
    (folder / "verdicts").mkdir(parents=True)
    return Erasure(lake, folder)


@pytest.fixture
def erasure(world: World, tmp_path: Path) -> Erasure:
    return erasure_of(Lake(world, tmp_path), tmp_path / "run")


def test_versions_are_witnessed_and_named_as_gone(erasure: Erasure) -> None:
    there = {(v["Key"].removeprefix(f"{erasure.lake.key}/"), v["VersionId"]) for v in erasure.lake.versions()}
    [old] = [version for name, version in there if name == OLD]
    [pointer] = [version for name, version in there if name == "_last_checkpoint"]
    ran = erasure.run()
    vacuumed, cleared = erasure.facts(ran, 0), erasure.facts(ran, 1)
    assert (vacuumed["files_removed"], vacuumed["files_added"]) == (0, 3), "a delete only hides"
    assert (cleared["files_removed"], cleared["files_added"]) == (3, 0)
    assert cleared["bytes_removed"] == len(parquet(MAIL)) + len(b'{"version": 0}')
    log = erasure.lake.client.get_object(
        Bucket=erasure.lake.bucket, Key=f"{erasure.lake.key}/_delta_log/00000000000000000000.json"
    )["Body"].read()
    assert cleared["manifest"] == f"sha256:{hashlib.sha256(log).hexdigest()}"
    before = {item.path: item.sha256 for item in read_before(before_place(erasure.folder, "t1"))}
    assert set(before) == {f"{name}?versionId={version}" for name, version in there}
    assert before[f"{OLD}?versionId={old}"] == hashlib.sha256(parquet(MAIL)).hexdigest()
    since = read_before(before_step(erasure.folder, erasure.steps[1].id))
    assert [(i.path.partition("?")[0], i.sha256) for i in since] == [(OLD, None)], "the marker; the rest is known"
    verdict = erasure.verdict()
    assert verdict.erased == ("t1",)
    gone = [(item.uri, item.version_id, item.sha256) for item in erased_by(ran, verdict)]
    assert gone == [
        (erasure.lake.uri, None, None),
        (f"{erasure.lake.uri}/{OLD}", since[0].path.rpartition("=")[2], None),
        (f"{erasure.lake.uri}/_last_checkpoint", pointer, hashlib.sha256(b'{"version": 0}').hexdigest()),
        (f"{erasure.lake.uri}/{OLD}", old, hashlib.sha256(parquet(MAIL)).hexdigest()),
    ]
    scope = {file.path.partition("?versionId=")[0] for file in scope_of(verdict.copies[0])}
    assert {f"t1/{NEW}", "t1/_last_checkpoint", "t1/_delta_log/00000000000000000000.json"} < scope
    assert f"t1/{OLD}" not in scope
    assert not any(MAIL.encode() in path.read_bytes() for path in erasure.folder.rglob("*") if path.is_file())


def test_a_copy_that_changed_since_its_verdict_is_looked_at_again(erasure: Erasure) -> None:
    erasure.run()
    [verdict] = erasure.verdict().copies
    changed = erasure.verification.changed
    assert not changed(erasure.table, verdict)
    erasure.lake.put(NEW, parquet(OTHER))
    assert changed(erasure.table, verdict), "the same bytes as another version are another version"


def test_an_upload_that_was_begun_since_is_a_change(erasure: Erasure) -> None:
    erasure.run()
    [verdict] = erasure.verdict().copies
    erasure.lake.client.create_multipart_upload(Bucket=erasure.lake.bucket, Key=f"{erasure.lake.key}/x.parquet")
    assert erasure.verification.changed(erasure.table, verdict)


def test_a_bucket_without_versions_names_what_was_written_over(world: World, tmp_path: Path) -> None:
    """`null` is no id of one version: it is compared by its bytes, named without it, and looked at again each time."""
    lake = Lake(world, tmp_path, versioned=False)
    erasure = erasure_of(lake, tmp_path / "run")
    ran = erasure.run()
    gone = [(item.uri, item.version_id, item.sha256) for item in erased_by(ran, erasure.verdict())]
    assert gone == [
        (lake.uri, None, None),
        (f"{lake.uri}/_last_checkpoint", None, hashlib.sha256(b'{"version": 0}').hexdigest()),
        (f"{lake.uri}/{OLD}", None, hashlib.sha256(parquet(MAIL)).hexdigest()),
    ]
    assert erasure.verification.changed(erasure.table, erasure.verdict().copies[0])


def test_a_masked_name_is_no_key_that_a_trail_could_show(world: World, tmp_path: Path) -> None:
    lake = Lake(world, tmp_path)
    lake.put(f"mail={MAIL}/a.parquet", parquet(OTHER))
    [version] = [v["VersionId"] for v in lake.versions(f"{lake.key}/mail=")]
    erasure = erasure_of(lake, tmp_path / "run")
    erasure.vacuum = lambda: lake.hide(f"mail={MAIL}/a.parquet") or lake.hide(OLD)  # type: ignore[method-assign,func-returns-value]
    gone = {(item.uri, item.version_id) for item in erased_by(erasure.run(), erasure.verdict())}
    assert (f"{lake.uri}/mail=[mail]/a.parquet?versionId={version}", None) in gone
    assert MAIL not in repr(gone)


def evidence_of(erasure: Erasure, folder: Path) -> tuple[Path, list[Erased]]:
    ran = erasure.run()
    gone = erased_by(ran, erasure.verdict())
    said = replace(
        proven(folder),
        loaded=erasure.loaded,
        clean={"t1"},
        journal=(erasure.folder / "journal.jsonl").read_bytes(),
        erased=gone,
    )
    attest(said, KEY, nonce=nonces()).write_evidence(folder / "evidence")
    return folder / "evidence", gone


def test_a_trail_shows_each_version_and_the_formats_own_deletes_are_its_upkeep(
    erasure: Erasure, tmp_path: Path
) -> None:
    evidence, gone = evidence_of(erasure, tmp_path)
    bucket, key = erasure.lake.bucket, erasure.lake.key
    versions = [(item.uri.removeprefix(f"s3://{bucket}/"), item.version_id) for item in gone if item.version_id]
    own = [one(bucket, f"{key}/{OLD}", None, "SPARK", AT), one(bucket, f"{key}/written-and-gone", "v9", "REQ1", AT)]
    records = [*own, *(one(bucket, name, str(version), "REQ1", AT) for name, version in versions)]
    report = check_trail(evidence, trail(tmp_path, records), keys_json(RSA_KEY))
    assert report.findings == ()
    assert any("2 deletions below tables of the plan" in note for note in report.notes)
    assert any("below 1 place where a table format removes files" in note for note in report.notes)


def test_a_version_without_a_record_is_found(erasure: Erasure, tmp_path: Path) -> None:
    evidence, gone = evidence_of(erasure, tmp_path)
    report = check_trail(evidence, trail(tmp_path, []), keys_json(RSA_KEY))
    assert [f.check for f in report.findings] == [Finding.UNMATCHED_DELETION] * (len(gone) - 1)
