"""Deleted versions bound to records, in every shape that the logs have; what binds to nothing is told apart."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import CopyKind, Format
from pii_tracer.model.plan import Copy, Step
from pii_tracer.proof.cloudtrail.deletion_binding import (
    Claim,
    Claims,
    bind,
    check_trail,
)
from pii_tracer.proof.cloudtrail.deletion_events import Source, access_log_deletions, trail_deletions
from pii_tracer.proof.evidence_leaves import Erased
from pii_tracer.proof.findings import Check, Report
from pii_tracer.review.plan_file import parse_plan
from pii_tracer.run.executor_protocol import Outcome
from pii_tracer.run.journal import Journal
from pii_tracer.run.runner import run
from tests.proof.attested import attest
from tests.proof.aws import RSA_KEY, START, TrailWriter, access_line, call, event, keys_json, one
from tests.proof.test_attestation import KEY, nonces, proven
from tests.review.plans import NOW, acts, copy, plan, step
from tests.run.fakes import (
    FakeExecutor,
    FakeLease,
    Ticking,
    World,
)

HOUR = timedelta(hours=1)
AT = NOW + timedelta(seconds=3)
GONE = (("old/a.parquet", "v1"), ("old/b c.parquet", "v2"), ("old/d.parquet", "null"))


class Deleting(FakeExecutor):
    """Reports the request ids of its calls, as the S3 executor does."""

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        super().run(step, copy)
        return Outcome({"deleted": [], "request_ids": ["REQ1", "REQ2"] if step.copy_ == "a1" else []})


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    """Of a run that deleted three versions of an archive, and rewrote a table that lies in the same bucket."""
    archive = copy("a1", kind=CopyKind.ARCHIVE, location="s3://archive/old", format=Format.PARQUET)
    table = copy("t1", location="s3a://archive/tables/t1")
    steps = [
        step("a1/1", "a1", action=Action.S3_DELETE_VERSIONS, parameters={"bucket": "archive"}),
        step("a1/2", "a1", after=["a1/1"], action=Action.VERIFY_COPY),
        *acts(table),
    ]
    made = plan(steps=steps, copies=[archive, table])
    said = proven(tmp_path)
    loaded = parse_plan(made.to_bytes(), "p.plan.json")
    clock = Ticking()
    journal = Journal.open(tmp_path / "s3.jsonl", clock)
    executor = Deleting(World(), clock=clock)
    run(made, {"fake": executor}, journal, clock=clock, lease=FakeLease(), plan_digest=loaded.digest)
    erased = [
        Erased(copy_id="a1", uri="s3://archive/old"),
        Erased(copy_id="t1", uri="s3a://archive/tables/t1"),
        *(Erased(copy_id="a1", uri=f"s3://archive/{key}", version_id=version) for key, version in GONE),
    ]
    said = replace(said, loaded=loaded, clean={"a1", "t1"}, journal=(tmp_path / "s3.jsonl").read_bytes(), erased=erased)
    attest(said, KEY, nonce=nonces()).write_evidence(tmp_path / "evidence")
    return tmp_path / "evidence"


def trail(folder: Path, records: list[dict[str, Any]], hours: int = 2) -> Path:
    writer = TrailWriter(folder / "trail")
    writer.hour(START, records)
    for n in range(1, hours):
        writer.hour(START + n * HOUR)
    return folder / "trail"


def checked(evidence: Path, records: list[dict[str, Any]], hours: int = 2, access: list[str] | None = None) -> Report:
    folder = evidence.parent
    logs = None
    if access is not None:
        logs = folder / "access"
        logs.mkdir()
        (logs / "2026-11-21-09-00-00-ABC").write_text("\n".join(access) + "\n")
    return check_trail(evidence, trail(folder, records, hours), keys_json(RSA_KEY), logs)


def each(requests: tuple[str, ...] = ("REQ1", "REQ1", "REQ2"), time: datetime = AT) -> list[dict[str, Any]]:
    return [one("archive", key, version, request, time) for (key, version), request in zip(GONE, requests, strict=True)]


def checks(report: Report) -> list[Check]:
    return [f.check for f in report.findings]


def test_one_event_an_object_and_one_a_call(evidence: Path) -> None:
    report = checked(evidence, [call("archive", "REQ1", AT), call("archive", "REQ2", AT), *each()])
    assert report.findings == ()
    assert any("table format removes files" in note for note in report.notes)
    assert not any("names no object" in note for note in report.notes)


@pytest.mark.parametrize(
    "listing",
    [
        {"parameters": {"delete": {"quiet": True, "objects": [{"key": k, "versionId": v} for k, v in GONE]}}},
        {"parameters": {"Delete": {"Object": [{"Key": k, "VersionId": v} for k, v in GONE]}}},
        {"additionalEventData": {"objects": [{"key": k, "versionId": v} for k, v in GONE]}},
        {"responseElements": {"deleted": [{"key": k, "versionId": v} for k, v in GONE]}},
    ],
)
def test_a_call_that_names_its_objects(evidence: Path, listing: dict[str, Any]) -> None:
    report = checked(evidence, [event("DeleteObjects", "archive", "REQ1", AT, **listing)])
    assert report.findings == ()
    assert not any("names no object" in note for note in report.notes)


def test_old_records_name_only_the_call_and_the_report_says_so(evidence: Path) -> None:
    report = checked(evidence, [call("archive", "REQ1", AT)])
    assert report.findings == ()
    assert any("3 versions are bound to a DeleteObjects call" in note for note in report.notes)


def test_access_logs_name_what_old_records_do_not(evidence: Path) -> None:
    lines = [
        access_line("BATCH.DELETE.OBJECT", "archive", key.replace(" ", "%2520"), version, "REQ1", AT)
        for key, version in GONE
    ]
    report = checked(evidence, [call("archive", "REQ1", AT)], access=lines)
    assert report.findings == ()
    assert any("3 versions are bound only by access logs" in note for note in report.notes)
    assert any("unsigned" in note for note in report.notes)


def test_lifecycle_deletions_are_bound_to_access_logs_or_unmatched(evidence: Path) -> None:
    expired = access_line("S3.EXPIRE.OBJECT", "archive", GONE[0][0], "v1", "LC1", AT, status="-")
    records = each()[1:]
    report = checked(evidence, records, access=[expired])
    assert report.findings == ()
    assert any("1 version was removed by a lifecycle rule" in note for note in report.notes)


def test_a_deletion_without_a_record_is_unmatched(evidence: Path) -> None:
    report = checked(evidence, each()[:2])
    assert checks(report) == [Check.UNMATCHED_DELETION]
    assert "version null" in report.findings[0].message


@pytest.mark.parametrize(
    "wrong",
    [
        {"eventName": "DeleteObjectTagging"},
        {"eventSource": "s3express.amazonaws.com"},
        {"errorCode": "AccessDenied"},
    ],
)
def test_a_record_of_something_else_binds_nothing(evidence: Path, wrong: dict[str, Any]) -> None:
    records = each()
    records[0].update(wrong)
    assert checks(checked(evidence, records)) == [Check.UNMATCHED_DELETION]


@pytest.mark.parametrize("change", ["bucket", "key", "version"])
def test_each_part_of_the_name_must_agree(evidence: Path, change: str) -> None:
    first = {"bucket": "archive", "key": GONE[0][0], "version": "v1", change: "another"}
    record = one(first["bucket"], first["key"], first["version"], "REQ1", AT)
    report = checked(evidence, [record, *each()[1:]])
    assert Check.UNMATCHED_DELETION in checks(report)


def test_a_delete_marker_is_not_the_end_of_the_object_it_hides(evidence: Path) -> None:
    hides = one("archive", GONE[2][0], None, "REQ2", AT, responseElements={"x-amz-delete-marker": "true"})
    report = checked(evidence, [*each()[:2], hides])
    assert checks(report) == [Check.UNMATCHED_DELETION, Check.UNEXPLAINED_DELETION]


def test_a_plan_that_works_on_a_whole_bucket() -> None:
    claims = Claims((), frozenset(), NOW, NOW, (("b", ""),), (), 0)
    stranger = one("b", "any/key", "v", "X", NOW)
    records = list(trail_deletions("p", json.dumps({"Records": [stranger]}).encode()))
    assert checks(bind(claims, records)) == [Check.UNEXPLAINED_DELETION]


def test_somebody_elses_request_is_not_the_runs(evidence: Path) -> None:
    stranger = {"type": "IAMUser", "arn": "arn:aws:iam::123456789012:user/other"}
    records = each(("OTHER", "REQ1", "REQ2"))
    records[0]["userIdentity"] = stranger
    report = checked(evidence, records)
    assert set(checks(report)) == {Check.UNMATCHED_DELETION, Check.UNEXPLAINED_DELETION}


def test_a_crash_between_call_and_record_is_told_and_not_hidden(evidence: Path) -> None:
    report = checked(evidence, each(("LOST", "REQ1", "REQ2")))
    assert report.findings == ()
    assert any("1 version was deleted by the run's identity" in note for note in report.notes)


def test_deletions_that_no_plan_explains(evidence: Path) -> None:
    other = {"userIdentity": {"arn": "arn:aws:iam::123456789012:user/other"}}
    below = [one("archive", "old/more.parquet", "v9", "X1", AT, **other)]
    ours = [one("archive", "elsewhere/x", "v9", "REQ1", AT, **other)]
    identity = [one("archive", "elsewhere/x", "v9", "X2", AT)]
    for strange in (below, ours, identity):
        report = check_trail(
            evidence, trail(evidence.parent / strange[0]["requestID"], [*each(), *strange]), keys_json(RSA_KEY)
        )
        assert checks(report) == [Check.UNEXPLAINED_DELETION]
        assert "record 3" in report.findings[0].message
        assert strange[0]["requestParameters"]["key"] not in report.findings[0].message


def test_what_has_nothing_to_do_with_the_plan_is_counted_only(evidence: Path) -> None:
    other = {"userIdentity": {"arn": "arn:aws:iam::123456789012:user/other"}}
    records = [
        one("archive", "tables/t1/data/f.parquet", None, "X1", AT),
        one("archive", "elsewhere/x", "v9", "X2", AT, **other),
        one("archive", "old/before.parquet", "v9", "X3", AT - HOUR / 4, **other),
        one("another-bucket", "old/x", "v9", "X4", AT, **other),
    ]
    report = checked(evidence, [*each(), *records])
    assert report.findings == ()
    assert any("1 deletion below tables of the plan" in note for note in report.notes)
    assert any("1 deletion by others" in note for note in report.notes)


def test_digests_must_reach_past_the_end_of_the_erasure(evidence: Path) -> None:
    """The journal ends at 09:00 and some seconds; the first digest ends at 09:30, and starts before the run."""
    assert checked(evidence, each(), hours=1).findings == ()


def test_a_cut_tail_is_a_failure_of_its_own(tmp_path: Path, evidence: Path) -> None:
    writer = TrailWriter(tmp_path / "early")
    writer.hour(START - 2 * HOUR)
    writer.hour(START - HOUR)
    report = check_trail(evidence, tmp_path / "early", keys_json(RSA_KEY))
    assert checks(report) == [Check.TRAIL_COVERAGE, *[Check.UNMATCHED_DELETION] * 3]
    late = TrailWriter(tmp_path / "late")
    late.hour(START + HOUR)
    assert Check.TRAIL_COVERAGE in checks(check_trail(evidence, tmp_path / "late", keys_json(RSA_KEY)))


def test_access_logs_alone(evidence: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    lines = [access_line("REST.DELETE.OBJECT", "archive", k.replace(" ", "%20"), v, "REQ1", AT) for k, v in GONE]
    (logs / "a").write_text("\n".join(lines))
    report = check_trail(evidence, None, b"", logs)
    assert report.findings == ()
    (logs / "a").write_text("\n".join(lines[:2]))
    assert checks(check_trail(evidence, None, b"", logs)) == [Check.UNMATCHED_DELETION]


def test_evidence_without_its_files_is_not_guessed(tmp_path: Path) -> None:
    assert checks(check_trail(tmp_path, None, b"")) == [Check.FORM]


def test_a_log_file_with_another_content_is_named(evidence: Path) -> None:
    folder = trail(evidence.parent, [*each(), {"eventSource": "s3.amazonaws.com", "eventName": "DeleteObject"}])
    assert Check.TRAIL_CHAIN in checks(check_trail(evidence, folder, keys_json(RSA_KEY)))


@pytest.mark.parametrize(
    "line",
    [
        access_line("REST.DELETE.OBJECT", "b", "k", "v", "R", AT, status="403", error="AccessDenied"),
        access_line("BATCH.DELETE.OBJECT", "b", "k", "v", "R", AT, status="403", error="AccessDenied"),
        access_line("REST.GET.OBJECT", "b", "k", "v", "R", AT, status="200"),
        access_line("S3.CREATE.DELETEMARKER", "b", "k", "v", "R", AT, status="-"),
        access_line("S3.TRANSITION_SIA.OBJECT", "b", "k", "v", "R", AT, status="-"),
    ],
)
def test_lines_that_delete_nothing(line: str) -> None:
    assert access_log_deletions("f", line) == ([], 0)


def test_access_lines_are_read_by_their_fields() -> None:
    uri = '"DELETE /k%2520x?versionId=v HTTP/1.1"'
    line = access_line("REST.DELETE.OBJECT", "b", "k%2520x", "v", "R1", AT, uri=uri, agent='"a \\"quoted\\" agent"')
    (found,), unread = access_log_deletions("f", "\n\n" + line + "\nnot a line\n")
    assert unread == 1
    assert (found.source, found.bucket, found.version_id, found.request_id) == (Source.ACCESS_LOG, "b", "v", "R1")
    assert "k x" in found.keys
    assert found.time == AT
    assert found.where == "f, line 3"
    assert access_log_deletions("f", line.replace("Nov", "Foo")) == ([], 1)
    assert access_log_deletions("f", line + '"' * 10**6) == ([], 1)


def test_many_findings_are_counted_not_listed() -> None:
    gone = tuple(Claim("b", f"k{n}", "v") for n in range(100))
    report = bind(Claims(gone, frozenset(), NOW, NOW, (), (), 0), [])
    assert len(report.findings) == 21
    assert report.findings[-1].message == "and 80 more"


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"Records": {}}', b'{"Records": [1]}', b"[" * 100_000])
def test_what_is_no_log_file_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"records|object|nested|Expecting"):
        list(trail_deletions("p", content))
