"""Copies that their owners compute again: no file may be left that was there when their sources were erased."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.app.execution.run_journal_facts import noted_of
from pii_tracer.app.stored_places.written_files import written_files
from pii_tracer.app.verification import Verification
from pii_tracer.config.estate_file import Estate
from pii_tracer.model.actions import Action
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.datasets import Carries, CopyKind, DatasetId, Format, KeySet, Strategy
from pii_tracer.model.plan import Copy
from pii_tracer.model.waivers import MarkKey
from pii_tracer.proof.attestation import recomputed_words
from pii_tracer.run.journal import Kind, Record
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.computed_again import Noted, note_of, noted_in
from pii_tracer.verify.verdicts import STILL_THERE, ByteVerdict, ComputedAgain
from tests.review.plans import NOW, plan, step
from tests.storeservers import ACCESS, REGION, SECRET, Store, signed, versioned
from tests.waivers import MARKS

__all__ = ["signed"]

MAIL = "asha.rao@mail.example"
KEYS = (KeySet(name="user.mail", origin="mail", weak=False, values=(("subj_1", MAIL),)),)
NOTHING = Noted(frozenset(), frozenset())


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


def looked(copy: Copy, noted: Noted | None, told: Estate | None = None) -> ByteVerdict:
    """What the verification says of a copy now."""
    look = Verification(
        plan=plan(copies=[copy]),
        estate=told or estate(),
        base=Path("/"),
        keys=KEYS,
        marks=MARKS,
        spark=lambda: pytest.fail("no rows are read"),
        now=lambda: NOW,
        noted=lambda _: noted,
    )
    seen = look.look(copy).bytes
    assert seen is not None
    return seen


def noted(copy: Copy, told: Estate | None = None) -> Noted:
    """What a run notes now."""
    found = noted_in([note_of(written_files(told or estate(), copy, build_patterns(KEYS), MARKS))], erased_since=False)
    assert found is not None
    return found


def later(path: Path) -> None:
    """What was written is from another moment, whatever the file system's clock shows."""
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000_000))


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


def test_written_again_with_the_same_bytes_is_told(folder: Path) -> None:
    copy = counts(str(folder))
    before = noted(copy)
    (folder / "1.csv").write_text("people\n2\n")
    (folder / "2.csv").write_text("people\n5\n")
    later(folder / "2.csv")
    seen = looked(copy, before)
    assert (seen.residue, seen.unverified) == ((), ())
    assert seen.again == ComputedAgain(before=2, after=2, same_bytes=1)
    assert "Now 2 files are there, 1 of them with the same bytes as a file of before" in recomputed_words(
        {"computed_again": seen.again.model_dump()}
    )


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
    assert (seen.clean, seen.again) == (True, ComputedAgain(before=2, after=0, same_bytes=0))
    folder.rmdir()
    assert looked(copy, before).clean
    assert "no file is there" in recomputed_words({"computed_again": seen.again.model_dump()})


def test_a_folder_that_is_gone_with_the_folder_around_it_is_unverified(tmp_path: Path) -> None:
    copy = counts(str(tmp_path / "mnt" / "counts"))
    assert looked(copy, NOTHING).unverified == ("the folder is gone with the folder around it",)


def test_nobody_without_the_key_can_guess_what_a_small_file_held(folder: Path) -> None:
    copy = counts(str(folder))
    ours, others = (written_files(estate(), copy, build_patterns(KEYS), key) for key in (MARKS, MarkKey(b"another")))
    assert not {file.content for file in ours} & {file.content for file in others}
    assert not {file.write for file in ours} & {file.write for file in others}


def test_without_a_run_nobody_knows(folder: Path) -> None:
    (why,) = looked(counts(str(folder)), None).unverified
    assert "no run has noted" in why


def test_a_source_that_was_erased_again_makes_the_note_void(folder: Path) -> None:
    (why,) = looked(counts(str(folder)), Noted(frozenset(), frozenset(), erased_since=True)).unverified
    assert "a source was erased again" in why


def test_the_journal_tells_what_was_noted_last_and_whether_a_source_was_erased_since(folder: Path) -> None:
    copy = counts(str(folder))
    source, note = step("c-src/99-verify"), step("c-counts/01-note-files", copy.id, action=Action.NOTE_FILES)
    made = plan(copies=[copy], steps=[source, note.model_copy(update={"depends_on": (source.id,)})])
    facts = note_of(written_files(estate(), copy, build_patterns(KEYS), MARKS))

    def record(seq: int, kind: Kind, name: str, **more: Any) -> Record:
        return Record(seq=seq, time=iso(NOW), kind=kind, facts={"step": name, **more}, prev="", hash=str(seq))

    records = [
        record(0, Kind.STEP_VERIFIED, source.id),
        record(1, Kind.STEP_RESULT, note.id, facts={"files": 0, "there": [], "bytes": []}),
        record(2, Kind.STEP_RESULT, note.id, facts=facts),
        record(3, Kind.STEP_VERIFIED, note.id, facts={}),
    ]
    assert noted_of(records[:1], made, copy) is None
    assert noted_of(records, made, copy) == noted(copy)
    again = noted_of([*records, record(4, Kind.STEP_VERIFIED, source.id)], made, copy)
    assert again is not None
    assert again.erased_since


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
    assert seen.again == ComputedAgain(before=1, after=1, same_bytes=0)
    for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket):
        for item in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
            client.delete_object(Bucket=bucket, Key=item["Key"], VersionId=item["VersionId"])
    assert looked(copy, before, told).clean, "all of it is gone"
