"""Copies that their owners compute again: no file may be left that was there when their sources were erased."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.app.execution.run_verification import noted_of
from pii_tracer.app.execution.verify_step import VerifyExecutor
from pii_tracer.app.plan_verification import PlanVerification
from pii_tracer.app.stored_places.file_write_marks import place_of, written_files
from pii_tracer.app.verification import Verification
from pii_tracer.config.estate_file import Estate
from pii_tracer.model.actions import COMPUTES, Action
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.datasets import Carries, CopyKind, DatasetId, Format, KeySet, Strategy
from pii_tracer.model.errors import ScanError
from pii_tracer.model.plan import Copy, ErasurePlan, Step
from pii_tracer.model.waivers import MarkKey
from pii_tracer.proof.attestation import on_owners_word, recomputed_words
from pii_tracer.proof.request_answers.answer import Standing
from pii_tracer.proof.request_answers.answer_rules import Proved, items_of
from pii_tracer.run.journal import Kind, Record
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.recomputation_evidence import Noted, contents_of, mark, note_of, noted_in
from pii_tracer.verify.verdicts import STILL_THERE, ByteVerdict, ComputedAgain, CopyVerdict, RunVerdict
from tests.planners.test_recomputed_copies import COUNTS as RECOMPUTED
from tests.planners.test_recomputed_copies import lake, waived
from tests.review.plans import NOW, plan, step
from tests.storeservers import ACCESS, REGION, SECRET, Store, signed, versioned
from tests.waivers import MARKS

__all__ = ["signed"]

MAIL = "asha.rao@mail.example"
KEYS = (KeySet(name="user.mail", origin="mail", weak=False, values=(("subj_1", MAIL),)),)
AT = datetime.now(timezone.utc).replace(microsecond=500_000) - timedelta(hours=1)
BEGAN = AT + timedelta(minutes=1)
NOTHING = Noted(frozenset(), frozenset(), frozenset(), "", AT, BEGAN)


def counts(location: str, kind: Format = Format.CSV) -> Copy:
    return Copy(
        id="c-counts",
        kind=CopyKind.DERIVED,
        dataset=DatasetId(namespace="file", name=location),
        table="shop.counts",
        location=location,
        format=kind,
        carries=Carries.AGGREGATE,
        strategy=Strategy.RECOMPUTED,
        columns=(),
        lineage=(),
        reason="",
    )


def estate(**more: Any) -> Estate:
    return Estate.model_validate(
        {
            "version": 1,
            "estate": "t",
            "environment": "local",
            "catalogs": {},
            "roots": ["w"],
            "lineage": {},
            "subjects": [{"name": "user", "source": "users", "key": "mail"}],
            **more,
        }
    )


def verification(copy: Copy, noted: Noted | None, told: Estate | None = None) -> Verification:
    return Verification(
        plan=plan(copies=[copy]),
        estate=told or estate(),
        base=Path("/"),
        keys=KEYS,
        marks=MARKS,
        spark=lambda: pytest.fail("no rows are read"),
        now=lambda: AT,
        noted=lambda _: noted,
    )


def noting(copy: Copy) -> dict[str, Any]:
    return verification(copy, None).note_files(copy)


def looked(copy: Copy, noted: Noted | None, told: Estate | None = None) -> ByteVerdict:
    """What the verification says of a copy now."""
    seen = verification(copy, noted, told).look(copy).bytes
    assert seen is not None
    return seen


def noted(copy: Copy, told: Estate | None = None) -> Noted:
    """What a run notes of the files that are there now, an hour ago; the job began a minute later."""
    facts = note_of(written_files(told or estate(), copy, build_patterns(KEYS), MARKS), place_of(copy, MARKS), AT)
    found = noted_in([facts], began=BEGAN, erased_since=False)
    assert found is not None
    return found


def written_at(path: Path, at: datetime) -> None:
    os.utime(path, (at.timestamp(), at.timestamp()))


def old(verdict: ByteVerdict) -> list[str]:
    assert all(item.form == "file" for item in verdict.residue if item.where == STILL_THERE)
    return [item.file for item in verdict.residue if item.where == STILL_THERE]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "counts"
    made.mkdir()
    for name, text in (("1.csv", "people\n3\n"), ("2.csv", "people\n5\n"), ("_SUCCESS", "")):
        (made / name).write_text(text)
    return made


def test_files_of_before_are_left(folder: Path) -> None:
    copy = counts(str(folder))
    before = noted(copy)
    assert len(before.writes) == 2, "an empty file holds no counts"
    assert old(looked(copy, before)) == ["1.csv", "2.csv"]
    (folder / "1.csv").write_text("people\n2\n")
    (folder / "2.csv").rename(folder / "3.csv")
    assert old(looked(copy, before)) == ["3.csv"], "a file that was moved was not written again"


def test_all_files_written_again_are_told(folder: Path) -> None:
    copy = counts(str(folder))
    before = noted(copy)
    (folder / "1.csv").write_text("people\n2\n")
    (folder / "2.csv").write_text("people\n4\n")
    seen = looked(copy, before)
    assert (seen.residue, seen.unverified) == ((), ())
    assert seen.again == ComputedAgain(before=2, after=2)
    assert "2 files were there, and none of these is left. Now 2 files are there" in recomputed_words(
        {"computed_again": seen.again.model_dump()}
    )


def test_a_file_with_the_bytes_of_one_of_before_is_left(folder: Path) -> None:
    """It was restored or copied back, or it was computed again and is the same: nobody can tell."""
    copy = counts(str(folder))
    before = noted(copy)
    (folder / "1.csv").write_text("people\n2\n")
    (folder / "2.csv").unlink()
    (folder / "back.csv").write_text("people\n5\n")
    assert old(looked(copy, before)) == ["back.csv"]


def test_a_file_that_was_appended_to_is_left(folder: Path) -> None:
    copy = counts(str(folder))
    before = noted(copy)
    (folder / "2.csv").unlink()
    with (folder / "1.csv").open("a") as stream:
        stream.write("2\n")
    assert old(looked(copy, before)) == ["1.csv"]


def test_a_file_that_others_were_merged_behind_is_left(folder: Path) -> None:
    copy = counts(str(folder))
    before = noted(copy)
    merged = "".join((folder / name).read_text() for name in ("2.csv", "1.csv"))
    for path in folder.iterdir():
        path.unlink()
    (folder / "all.csv").write_text(merged)
    assert old(looked(copy, before)) == ["all.csv"]


@given(st.lists(st.binary(max_size=4), max_size=5), st.sets(st.integers(0, 20), max_size=5))
def test_the_first_bytes_are_marked_up_to_each_size(pieces: list[bytes], sizes: set[int]) -> None:
    whole = b"".join(pieces)
    ends = {size for size in sizes if 0 < size <= len(whole)} | {len(whole)}
    assert contents_of(MARKS, pieces, sizes) == {
        mark(MARKS, end, hashlib.sha256(whole[:end]).hexdigest()) for end in ends
    }


def test_a_checksum_of_an_empty_file_is_no_file(folder: Path) -> None:
    """Hadoop writes it after each job, with the same bytes."""
    (folder / "._SUCCESS.crc").write_bytes(b"crc\0\0\0\2\0")
    copy = counts(str(folder))
    before = noted(copy)
    for path in folder.iterdir():
        path.unlink()
    (folder / "1.csv").write_text("people\n2\n")
    (folder / "._SUCCESS.crc").write_bytes(b"crc\0\0\0\2\0")
    assert old(looked(copy, before)) == []


def test_a_path_that_leads_elsewhere_than_at_the_note_is_unverified(folder: Path) -> None:
    """What it led to before stays there with its files."""
    first, second, link = folder.rename(folder.parent / "v1"), folder.parent / "v2", folder
    link.symlink_to(first)
    copy = counts(str(link))
    before = noted(copy)
    second.mkdir()
    (second / "1.csv").write_text("people\n2\n")
    link.unlink()
    link.symlink_to(second)
    (why,) = looked(copy, before).unverified
    assert "references a different folder" in why


@pytest.mark.parametrize(
    ("at", "left"),
    [
        (AT - timedelta(days=9), True),
        (AT, True),
        (BEGAN - timedelta(seconds=2), True),
        (BEGAN + timedelta(seconds=1), False),
    ],
    ids=["before the note", "at the note", "before the job began", "after it"],
)
def test_a_new_file_that_is_not_from_after_the_job_began_is_left(folder: Path, at: datetime, left: bool) -> None:
    """It was away while files were noted, or a job in flight wrote it from what it had read before the erasure."""
    copy = counts(str(folder))
    before = noted(copy)
    for path in folder.iterdir():
        path.unlink()
    (folder / "0.csv").write_text("people\n9\n")
    written_at(folder / "0.csv", at)
    assert old(looked(copy, before)) == (["0.csv"] if left else [])


def test_a_time_that_no_calendar_has_is_an_old_one(folder: Path) -> None:
    copy = counts(str(folder))
    before = noted(copy)
    (folder / "1.csv").write_text("people\n8\n")
    os.utime(folder / "1.csv", (10.0**12, 10.0**12))
    assert old(looked(copy, before)) == ["1.csv", "2.csv"]


def test_a_file_of_the_second_in_which_the_job_began_is_new_and_one_from_before_the_note_is_not(folder: Path) -> None:
    """Stores tell times to the second."""
    copy = counts(str(folder))
    before = replace(noted(copy), began=AT + timedelta(milliseconds=200))
    for path in folder.iterdir():
        path.unlink()
    for name, late in (("0.csv", -1), ("1.csv", 100)):
        (folder / name).write_text(f"people\n{late}\n")
        written_at(folder / name, AT + timedelta(milliseconds=late))
    assert old(looked(copy, before)) == ["0.csv"]


def test_a_table_that_is_away_is_not_noted(folder: Path) -> None:
    """Put back after the note, its files would pass for new ones."""
    copy, away = counts(str(folder)), folder.parent / "away"
    folder.rename(away)
    with pytest.raises(ScanError, match="no file with rows is there"):
        noting(copy)
    away.rename(folder)
    assert noting(copy)["files"] == 2
    for name in ("1.csv", "2.csv"):
        (folder / name).unlink()
    with pytest.raises(ScanError, match="no file with rows is there"):
        noting(copy)


def test_nobody_said_when_the_job_began(folder: Path) -> None:
    copy = counts(str(folder))
    (why,) = looked(copy, replace(noted(copy), began=None)).unverified
    assert "when the job began" in why


def test_the_person_in_a_new_file_is_found(folder: Path) -> None:
    copy = counts(str(folder))
    before = noted(copy)
    for path in folder.iterdir():
        path.unlink()
    (folder / "1.csv").write_text(f"name,people\n{MAIL},1\n")
    seen = looked(copy, before)
    assert old(seen) == []
    assert [item.file for item in seen.residue] == ["1.csv"]


def test_a_folder_that_is_gone_or_empty_is_clean(folder: Path) -> None:
    copy = counts(str(folder))
    before = noted(copy)
    for path in folder.iterdir():
        path.unlink()
    seen = looked(copy, before)
    assert (seen.clean, seen.again) == (True, ComputedAgain(before=2, after=0))
    folder.rmdir()
    assert looked(copy, before).clean
    assert "no file is there" in recomputed_words({"computed_again": seen.again.model_dump()})


def test_a_folder_that_is_gone_with_the_folder_around_it_is_unverified(tmp_path: Path) -> None:
    copy = counts(str(tmp_path / "mnt" / "counts"))
    assert looked(copy, NOTHING).unverified == ("the folder is gone with the folder around it",)


def test_nobody_without_the_key_can_guess_what_a_small_file_held(folder: Path) -> None:
    copy = counts(str(folder))
    ours, others = (written_files(estate(), copy, build_patterns(KEYS), key) for key in (MARKS, MarkKey(b"another")))
    assert not {one for file in ours for one in file.contents} & {one for file in others for one in file.contents}
    assert not {file.write for file in ours} & {file.write for file in others}


def test_without_a_run_nobody_knows(folder: Path) -> None:
    (why,) = looked(counts(str(folder)), None).unverified
    assert "no run listed" in why


def test_a_source_that_was_erased_again_makes_the_note_void(folder: Path) -> None:
    (why,) = looked(counts(str(folder)), replace(NOTHING, erased_since=True)).unverified
    assert "a source was erased again" in why


@pytest.fixture
def run(folder: Path) -> tuple[Copy, ErasurePlan, list[Record]]:
    """The journal of a run: a source is erased, files are noted twice, and the owner says when the job began."""
    copy = counts(str(folder))
    erasing = step("c-src/01", "c-src")
    source = step("c-src/99-verify", "c-src", [erasing.id], action=Action.VERIFY_COPY)
    note = step("c-counts/01-note-files", copy.id, [source.id], action=Action.NOTE_FILES)
    task = step("tasks/01", None, [note.id], action=Action.OWNER_TASK, parameters={COMPUTES: [copy.id]})
    other = step("tasks/02", None, action=Action.OWNER_TASK)
    facts = note_of(written_files(estate(), copy, build_patterns(KEYS), MARKS), place_of(copy, MARKS), AT)
    told: list[tuple[Kind, Step, dict[str, Any]]] = [
        (Kind.STEP_RESULT, erasing, {}),
        (Kind.STEP_VERIFIED, source, {}),
        (Kind.STEP_RESULT, note, {**facts, "there": [], "bytes": []}),
        (Kind.STEP_RESULT, note, facts),
        (Kind.STEP_VERIFIED, note, {}),
        (Kind.STEP_RESULT, task, {"waits_for": "sales"}),
        (Kind.STEP_RESULT, task, {"began": iso(BEGAN)}),
        (Kind.STEP_RESULT, other, {"began": iso(BEGAN + timedelta(days=1))}),
    ]
    records = [record(n, kind, s, facts) for n, (kind, s, facts) in enumerate(told)]
    return copy, plan(copies=[copy], steps=[erasing, source, note, task, other]), records


def record(seq: int, kind: Kind, of: Step, facts: dict[str, Any]) -> Record:
    return Record(seq=seq, time=NOW, kind=kind, facts={"step": of.id, "facts": facts}, prev="", hash=str(seq))


def test_the_journal_tells_what_was_noted_last(run: tuple[Copy, ErasurePlan, list[Record]]) -> None:
    copy, made, records = run
    assert noted_of(records[:2], made, copy) is None
    early = noted_of(records[:6], made, copy)
    assert early is not None
    assert early.began is None
    assert noted_of(records, made, copy) == noted(copy)
    note, look = (next(s for s in made.steps if s.id == name) for name in ("c-counts/01-note-files", "c-src/99-verify"))
    looked_back = [*records, record(98, Kind.STEP_RESULT, look, {})]
    assert noted_of(looked_back, made, copy) == noted(copy), "a source was looked at again, and not erased again"
    unread = [*records, record(97, Kind.STEP_FAILED, look, {}), record(98, Kind.STEP_VERIFIED, look, {})]
    assert noted_of(unread, made, copy) == noted(copy), "a look that failed erases nothing"
    late = noted_of([*records, record(99, Kind.STEP_RESULT, note, dict(records[3].facts["facts"]))], made, copy)
    assert late is not None
    assert late.began is None, "that word was given about the note before"


@pytest.mark.parametrize(
    ("kind", "step_id"), [(Kind.STEP_NOTED, "c-src/99-verify"), (Kind.STEP_INTENT, "c-src/01")], ids=["seen", "done"]
)
def test_a_source_that_is_erased_again_makes_the_note_void(
    run: tuple[Copy, ErasurePlan, list[Record]], kind: Kind, step_id: str
) -> None:
    copy, made, records = run
    of = next(one for one in made.steps if one.id == step_id)
    again = noted_of([*records, record(99, kind, of, {})], made, copy)
    assert again is not None
    assert again.erased_since


def test_what_its_owner_computed_again_is_not_called_erased() -> None:
    made = waived(lake())
    looks = [ByteVerdict(copy_id=one.id, root=one.location, files=()) for one in made.copies]
    again = ComputedAgain(before=2, after=1)
    looks = [one.model_copy(update={"again": again} if one.copy_id == RECOMPUTED else {}) for one in looks]
    verdict = RunVerdict(copies=tuple(CopyVerdict(copy_id=one.copy_id, bytes=one) for one in looks))
    told = PlanVerification(made, verdict).as_json()
    assert (told["copies_total"], told["copies_erased"], told["copies_confirmed"]) == (4, 3, 1)
    (one,) = told["computed_again"]
    assert one["copy"] == RECOMPUTED
    assert one["proved"].startswith("computed again by its owner, not erased, and no proof by bytes")
    (word,) = on_owners_word(made)
    assert word.startswith(RECOMPUTED)
    assert "owner's word" in word
    assert on_owners_word(lake().plan()) == ()


def test_files_are_not_noted_while_a_source_holds_a_person(
    run: tuple[Copy, ErasurePlan, list[Record]], tmp_path: Path
) -> None:
    """Of several persons one may be left there: what is computed then counts that one."""
    copy, made, _ = run
    note = next(one for one in made.steps if one.id == "c-counts/01-note-files")
    left = {"c-src/99-verify": frozenset({"subj_1"})}
    executor = VerifyExecutor(verification(copy, None), tmp_path, noted=lambda step: left.get(step, frozenset()))
    with pytest.raises(ScanError, match="1 source still holds a person"):
        executor.run(note, copy)
    left.clear()
    assert executor.run(note, copy).facts["files"] == 2


def test_a_look_that_finds_somebody_is_noted(folder: Path, tmp_path: Path) -> None:
    """So a note of the files of what is computed from it is void, also when somebody removes it by hand."""
    (folder / "1.csv").write_text(f"name\n{MAIL}\n")
    source = counts(str(folder)).model_copy(update={"id": "c-src", "strategy": Strategy.DELETE_BY_KEY})
    look, found = step("c-src/99-verify", source.id, action=Action.VERIFY_COPY), []
    executor = VerifyExecutor(verification(source, None), tmp_path, lambda name, facts: found.append((name, facts)))
    executor.run(look, source)
    ((name, noted),) = found
    assert (name, noted["left_of"], noted["residue"] > 0) == (look.id, [], True)
    (folder / "1.csv").write_text("name\n")
    executor.run(look, source)
    assert len(found) == 1


def test_no_answer_calls_it_computed_again_to_whom_is_left_in_a_source() -> None:
    made = waived(lake())
    again = {"facts": {"computed_again": ComputedAgain(before=2, after=1).model_dump()}}
    records = [record(n, Kind.STEP_VERIFIED, one, again["facts"]) for n, one in enumerate(made.steps)]
    subject = made.requests[0].subject
    clean = frozenset(one.id for one in made.copies)

    def standing(left_of: dict[str, frozenset[str]]) -> Standing:
        proved = Proved(made, records, clean=clean, left_of=left_of)
        (item,) = (one for one in items_of(proved, subject, None) if one.what == "prod.counts")
        return item.standing

    assert standing({}) is Standing.ANSWERED
    assert standing({"c-prod.events": frozenset({subject})}) is Standing.UNCONFIRMED
    assert standing({"c-prod.events": frozenset({"subj_other"})}) is Standing.ANSWERED
    assert standing({RECOMPUTED: frozenset({subject})}) is Standing.FOUND


# -- in S3 -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with versioned(tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.mark.parametrize("keeps", [True, False], ids=["versions", "none"])
def test_in_s3_each_version_is_a_file(store: Store, keeps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    client, bucket = store.client(), f"counts-{keeps}".lower()
    client.create_bucket(Bucket=bucket)
    if keeps:
        client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    copy = counts(f"s3://{bucket}/counts")
    told = estate(s3={"region": REGION, "endpoint_url": store.endpoint_url})

    def put(text: str) -> str:
        answer = client.put_object(Bucket=bucket, Key="counts/1.csv", Body=text.encode())
        return str(answer.get("VersionId", "null"))

    first = put("people\n3\n")
    client.put_object(Bucket=bucket, Key="counts/_SUCCESS", Body=b"")
    before = noted(copy, told)
    assert old(looked(copy, before, told)) == [f"1.csv?versionId={first}"]
    put("people\n2\n")
    if keeps:
        assert old(looked(copy, before, told)) == [f"1.csv?versionId={first}"], "the former version"
        client.delete_object(Bucket=bucket, Key="counts/1.csv")
        assert old(looked(copy, before, told)) == [f"1.csv?versionId={first}"], "behind a marker"
        client.delete_object(Bucket=bucket, Key="counts/1.csv", VersionId=first)
    seen = looked(copy, before, told)
    assert (old(seen), seen.unverified) == ([], ())
    assert seen.again == ComputedAgain(before=1, after=1)
    for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket):
        for item in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
            client.delete_object(Bucket=bucket, Key=item["Key"], VersionId=item["VersionId"])
    assert looked(copy, before, told).clean, "all of it is gone"


def test_in_s3_the_same_bytes_are_old_whatever_the_store_calls_their_checksum(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ETag of an object that came in parts, or that is encrypted, is no digest of its bytes."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    client, bucket = store.client(), "counts-parts"
    client.create_bucket(Bucket=bucket)
    copy, told = counts(f"s3://{bucket}/counts"), estate(s3={"region": REGION, "endpoint_url": store.endpoint_url})
    upload = {"Bucket": bucket, "Key": "counts/1.csv"}
    upload["UploadId"] = client.create_multipart_upload(**upload)["UploadId"]
    tag = client.upload_part(**upload, PartNumber=1, Body=b"people\n3\n")["ETag"]
    client.complete_multipart_upload(**upload, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": tag}]})
    before = noted(copy, told)
    client.copy_object(Bucket=bucket, Key="counts/2.csv", CopySource={"Bucket": bucket, "Key": "counts/1.csv"})
    client.delete_object(Bucket=bucket, Key="counts/1.csv")
    (left,) = old(looked(copy, before, told))
    assert left.startswith("2.csv")
