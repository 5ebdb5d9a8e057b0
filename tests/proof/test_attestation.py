"""Attestations: refused while anything is open, whole when made, and every change is found."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pii_tracer.model.datasets import DatasetId, Strategy
from pii_tracer.model.errors import ProofError
from pii_tracer.model.plan import ErasurePlan, Exemption, Gap, HeldColumn, Mask, PlannedHold
from pii_tracer.model.waivers import Waiver
from pii_tracer.proof.attestation import Others, Proven
from pii_tracer.proof.attestation_verifier import Given, verify_attestation
from pii_tracer.proof.evidence_leaves import (
    Erased,
    Reserved,
    ReservedKind,
    ScopeFile,
)
from pii_tracer.proof.findings import PREDICATE_TYPE, Check
from pii_tracer.proof.store_blind_spots import ANYWHERE, unlisted
from pii_tracer.review import dsse
from pii_tracer.review.plan_file import parse_plan
from pii_tracer.run.journal import Journal, Kind
from pii_tracer.run.runner import run
from pii_tracer.scan.hits import Reading
from reports.run.certificate import Checked, certificate, render_certificate
from tests.proof.attested import attest
from tests.review.plans import NOW, copy, plan
from tests.review.test_review import approved
from tests.run.fakes import (
    FakeExecutor,
    FakeLease,
    Ticking,
    World,
)

KEY = Ed25519PrivateKey.from_private_bytes(b"\x07" * 32)
CHECKED = Checked(persons=(("REQ-1", "hmac:0011", "dpdp"),), envelope=b"", signer="k")
APPROVER = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32)


def nonces() -> Any:
    counter = itertools.count()
    return lambda: f"{next(counter):032x}"


def proven(
    folder: Path, a_plan: ErasurePlan | None = None, notes: Mapping[str, Any] | None = None, **run_with: Any
) -> Proven:
    loaded = parse_plan((a_plan or plan()).to_bytes(), "p.plan.json")
    clock = Ticking()
    journal = Journal.open(folder / "run.jsonl", clock)

    def note(step: str) -> None:
        if notes:
            journal.append(Kind.STEP_NOTED, step=step, facts=notes)

    executor = FakeExecutor(World(), clock=clock, note=note, **run_with)
    run(loaded.plan, {"fake": executor}, journal, clock=clock, lease=FakeLease(), plan_digest=loaded.digest)
    return Proven(
        loaded=loaded,
        journal=(folder / "run.jsonl").read_bytes(),
        approvals=[approved(loaded)],
        scope=[ScopeFile(path="/lake/c1/b.parquet", sha256="bb" * 32), ScopeFile(path="/lake/c1/a", sha256="aa" * 32)],
        scanned_at=NOW,
        clean={copy.id for copy in loaded.plan.copies},
        erased=[
            Erased(copy_id="c1", uri="s3://b/k", version_id="v1", sha256="cc" * 32),
            Erased(copy_id="c1", uri="/lake/c1/old.parquet"),
        ],
        tools={"pii-tracer": "0.1.0"},
    )


def made(folder: Path, given: Proven | None = None) -> bytes:
    attestation = attest(given or proven(folder), KEY, nonce=nonces())
    attestation.write_evidence(folder / "evidence")
    (folder / "attestation.json").write_bytes(attestation.envelope)
    return attestation.envelope


def check(envelope: bytes, folder: Path) -> list[Check]:
    given = Given(approvers=[APPROVER.public_key()])
    return [f.check for f in verify_attestation(envelope, folder / "evidence", [KEY.public_key()], given).findings]


def test_it_says_which_files_were_not_decoded_again_and_the_certificate_too(tmp_path: Path) -> None:
    whole, key = proven(tmp_path), [KEY.public_key()]
    usual = dsse.unseal(made(tmp_path, whole), key).statement
    assert "reading" not in usual["predicate"]["scope"]
    words = render_certificate(certificate(usual, CHECKED))
    assert "was decoded by its format and searched. <strong>" in words
    reading = Reading(now=1, before=1, again=0, oldest=NOW)
    envelope = made(tmp_path, replace(whole, reading=reading))
    assert check(envelope, tmp_path) == []
    statement = dsse.unseal(envelope, key).statement
    assert statement["predicate"]["scope"]["reading"] == reading.model_dump(mode="json")
    words = render_certificate(certificate(statement, CHECKED))
    assert "again: 1 file with the same bytes (SHA-256) as in an earlier search, on 21 Nov 2026" in words


@pytest.mark.parametrize(
    ("by_store", "words"),
    [
        (1, "4 files with the same bytes (SHA-256; of 1 object the store's version and ETag) as in"),
        (4, "4 files with the same bytes (the store's version and ETag) as in"),
    ],
)
def test_it_says_of_which_objects_the_store_tells_that_they_are_the_same(
    tmp_path: Path, by_store: int, words: str
) -> None:
    reading = Reading(now=1, before=4, by_store=by_store, again=1, oldest=NOW)
    statement = dsse.unseal(made(tmp_path, replace(proven(tmp_path), reading=reading)), [KEY.public_key()]).statement
    assert statement["predicate"]["scope"]["reading"]["by_store"] == by_store
    assert words in unescape(render_certificate(certificate(statement, CHECKED)))


def test_it_says_which_column_chunks_were_not_decoded_and_the_certificate_too(tmp_path: Path) -> None:
    reading = Reading(now=2, shaped=1, chunks=3, left=4, drawn=1, in_parts=1, unfetched=2, refetched=1, oldest=NOW)
    envelope = made(tmp_path, replace(proven(tmp_path), reading=reading))
    assert check(envelope, tmp_path) == []
    statement = dsse.unseal(envelope, [KEY.public_key()]).statement
    assert statement["predicate"]["scope"]["reading"] == reading.model_dump(mode="json")
    words = render_certificate(certificate(statement, CHECKED))
    assert "Left out: 4 column chunks of Parquet whose recorded shape fits none of the values." in words
    assert "Of 1 object, not all pages were read. The others were read on 21 Nov 2026" in words


def test_the_certificate_says_of_known_objects_that_they_were_read_in_parts(tmp_path: Path) -> None:
    reading = Reading(now=1, before=1, by_store=1, again=1, in_parts=1, oldest=NOW)
    statement = dsse.unseal(made(tmp_path, replace(proven(tmp_path), reading=reading)), [KEY.public_key()]).statement
    words = render_certificate(certificate(statement, CHECKED))
    assert "Of 1 object, not all pages were read. The others were read on 21 Nov 2026" in words


def test_a_whole_attestation_holds_and_says_what_it_cannot_prove(tmp_path: Path) -> None:
    envelope = made(tmp_path)
    assert check(envelope, tmp_path) == []
    statement = dsse.unseal(envelope, [KEY.public_key()]).statement
    said = statement["predicate"]
    assert said["statement"].startswith("not found in scope sha256:")
    assert said["not_proved"]
    assert said["steps"][0]["result"] == {"snapshot": str(2**60 + 1)}
    assert statement["subject"][0] == {"name": "s3://b/k?versionId=v1", "digest": {"sha256": "cc" * 32}}
    assert set(statement["subject"][1]["digest"]) == {"evidenceLeafSha256"}


def test_it_names_the_stores_that_may_hold_what_they_do_not_list(tmp_path: Path) -> None:
    """Whoever trusts a listing is told whose: each bucket, broker and server, and what a store refused to tell."""
    places = ("s3://logs/a/", "s3://logs/b/", "s3://copy/a", "kafka://broker:9092/t", "glacier://eu/vault", "/lake/c1")
    copies = [copy(f"c{number}").model_copy(update={"location": place}) for number, place in enumerate(places, 1)]
    refused = "s3://logs/a/: ListMultipartUploads is rejected (AccessDenied), so its answer is unknown"
    gone = [Erased(copy_id=c.id, uri=c.location) for c in copies]
    given = replace(proven(tmp_path, plan(copies=copies)), not_asked=[refused, refused], erased=gone)
    envelope = made(tmp_path, given)
    assert check(envelope, tmp_path) == []
    said = dsse.unseal(envelope, [KEY.public_key()]).statement["predicate"]["not_proved"]
    assert [line.rpartition(" (")[2] for line in said if line.endswith(")")] == [
        "s3://copy, s3://logs)",
        "kafka://broker:9092)",
        "glacier://eu)",
    ]
    assert "object versions and unfinished uploads that a bucket keeps and does not list" in "\n".join(said)
    assert said.count(f"not asked, as a named person allowed: {refused}") == 1
    (tmp_path / "plain").mkdir()
    plain = dsse.unseal(made(tmp_path / "plain"), [KEY.public_key()]).statement["predicate"]["not_proved"]
    assert ANYWHERE in plain
    assert not any("s3://" in line for line in plain)


def test_it_names_the_stores_of_which_only_a_gap_tells() -> None:
    """A waived place is looked at again, by a listing of its store."""
    about: dict[str, Any] = {"kind": "object_place", "reason": "r", "evidence": "e"}
    gaps = tuple(
        Gap(id=f"g{n}", dataset=DatasetId(namespace=store, name="a"), **about)
        for n, store in enumerate(("gs://bucket", "hdfs://nn:8020", "abfss://c@account"))
    )
    said = "\n".join(unlisted(plan().model_copy(update={"gaps": gaps})))
    assert "gs://bucket)" in said
    assert "(hdfs://nn:8020)" in said
    assert "abfss://c@account" in said


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"residue": ["/lake/c1/a"]}, "still in 1 place"),
        ({"scope": []}, "nothing was verified"),
        ({"approvals": []}, "no approval"),
        ({"clean": ()}, "1 copy has no clean verdict, first c1"),
        ({"journal": b""}, "damaged, or belongs to a different plan"),
        ({"others": Others(compared=2, rows_lost=1)}, "other people"),
        ({"others": Others(compared=2, changed=1)}, "other people"),
    ],
)
def test_it_is_refused_while_anything_is_left(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ProofError, match=words):
        attest(replace(proven(tmp_path), **changes), KEY, nonce=nonces())


def test_it_is_refused_with_open_steps_and_blocked_copies(tmp_path: Path) -> None:
    with pytest.raises(ProofError, match="open"):
        attest(proven(tmp_path, broken={"c1/2"}), KEY, nonce=nonces())
    (tmp_path / "2").mkdir()
    given = proven(tmp_path / "2")
    blocked = plan(given.loaded.plan.steps, [copy("c1"), copy("c2", strategy=Strategy.BLOCKED)])
    with pytest.raises(ProofError, match="blocked"):
        attest(replace(given, loaded=replace(given.loaded, plan=blocked)), KEY, nonce=nonces())


def test_signatures_of_others_and_unknown_versions(tmp_path: Path) -> None:
    envelope = made(tmp_path)
    payload = dsse.unseal(envelope, []).payload
    assert check(dsse.seal(payload, APPROVER), tmp_path) == [Check.FOREIGN_KEY]
    changed = json.loads(envelope)
    changed["payload"] = base64.b64encode(payload.replace(b"c1/2", b"c1/9")).decode()
    assert check(json.dumps(changed).encode(), tmp_path) == [Check.SIGNATURE]
    newer = payload.replace(PREDICATE_TYPE.encode(), PREDICATE_TYPE.replace("v2", "v9").encode())
    assert check(dsse.seal(newer, KEY), tmp_path) == [Check.PREDICATE_VERSION]


FILES = {
    "plan.json": Check.PLAN,
    "journal.jsonl": Check.JOURNAL,
    "leaves.jsonl": Check.INCLUSION,
    "requests.jsonl": Check.INCLUSION,
    "scope.jsonl": Check.SCOPE,
    "approvals/000.json": Check.APPROVAL,
}


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    envelope = made(tmp_path)
    (tmp_path / "evidence" / name).unlink()
    found = verify_attestation(envelope, tmp_path / "evidence", [KEY.public_key()])
    assert [(f.check, name in f.message) for f in found.findings] == [(Check.MISSING, True)]


@pytest.mark.parametrize("name", ["notes.txt", ".hidden", "approvals/001.json", "confirmations/000.json", "more/a/b"])
def test_a_file_that_the_attestation_does_not_know_is_found(tmp_path: Path, name: str) -> None:
    envelope = made(tmp_path)
    path = tmp_path / "evidence" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((tmp_path / "evidence" / "approvals" / "000.json").read_bytes())
    found = verify_attestation(envelope, tmp_path / "evidence", [KEY.public_key()])
    assert [(f.check, name in f.message) for f in found.findings] == [(Check.EXTRA, True)]


def test_a_link_to_a_folder_is_extra_too_and_not_followed(tmp_path: Path) -> None:
    envelope = made(tmp_path)
    (tmp_path / "evidence" / "link").symlink_to("/")
    found = verify_attestation(envelope, tmp_path / "evidence", [KEY.public_key()])
    assert [(f.check, f.message.rpartition(" ")[2]) for f in found.findings] == [(Check.EXTRA, "link")]


@pytest.mark.parametrize("name", ["empty", "approvals/more", ".hidden"])
def test_an_empty_folder_is_extra_too(tmp_path: Path, name: str) -> None:
    envelope = made(tmp_path)
    (tmp_path / "evidence" / name / "inner").mkdir(parents=True)
    found = verify_attestation(envelope, tmp_path / "evidence", [KEY.public_key()])
    assert [(f.check, f.message.rpartition(" ")[2]) for f in found.findings] == [(Check.EXTRA, f"{name}/inner")]


@pytest.mark.parametrize("name", FILES)
def test_a_link_with_the_right_bytes_is_no_evidence(tmp_path: Path, name: str) -> None:
    """What it leads to can be changed from outside, and a copy of the folder may lack it."""
    envelope = made(tmp_path)
    (tmp_path / "evidence" / name).rename(tmp_path / "elsewhere")
    (tmp_path / "evidence" / name).symlink_to(tmp_path / "elsewhere")
    found = verify_attestation(envelope, tmp_path / "evidence", [KEY.public_key()])
    assert [(f.check, f.message.rpartition(" ")[2]) for f in found.findings] == [(Check.EXTRA, name)]


def test_a_linked_folder_of_evidence_is_found(tmp_path: Path) -> None:
    envelope = made(tmp_path)
    (tmp_path / "evidence" / "approvals").rename(tmp_path / "elsewhere")
    (tmp_path / "evidence" / "approvals").symlink_to(tmp_path / "elsewhere")
    found = verify_attestation(envelope, tmp_path / "evidence", [KEY.public_key()])
    assert [(f.check, f.message.rpartition(" ")[2]) for f in found.findings] == [(Check.EXTRA, "approvals")]


def test_of_many_extra_files_some_are_named(tmp_path: Path) -> None:
    envelope = made(tmp_path)
    for number in range(9):
        (tmp_path / "evidence" / f"x{number}").touch()
    (one,) = verify_attestation(envelope, tmp_path / "evidence", [KEY.public_key()]).findings
    assert one.message.endswith("x0, x1, x2, x3, x4 and 4 more")


def test_what_an_earlier_attestation_and_a_killed_writer_left_goes(tmp_path: Path) -> None:
    evidence = tmp_path / "evidence"
    left = ["approvals/007.json", "confirmations/000.json", ".plan.json.999999999.tmp", "approvals/.0.999999999.tmp"]
    for name in left:
        (evidence / name).parent.mkdir(parents=True, exist_ok=True)
        (evidence / name).touch()
    assert check(made(tmp_path), tmp_path) == []


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), name=st.sampled_from(sorted(FILES)), cut=st.booleans())
def test_any_changed_byte_of_the_evidence_is_found(tmp_path: Path, data: st.DataObject, name: str, cut: bool) -> None:
    if not (tmp_path / "attestation.json").exists():
        made(tmp_path)
    envelope = (tmp_path / "attestation.json").read_bytes()
    path = tmp_path / "evidence" / name
    whole = path.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda b: b != whole[place]))
    try:
        path.write_bytes(whole[:place] if cut else whole[:place] + bytes([byte]) + whole[place + 1 :])
        found = check(envelope, tmp_path)
        assert FILES[name] in found
    finally:
        path.write_bytes(whole)


def test_a_step_that_the_journal_does_not_hold_is_found(tmp_path: Path) -> None:
    envelope = made(tmp_path)
    payload = dsse.unseal(envelope, []).payload
    claimed = payload.replace(b'"id":"c1/2"', b'"id":"c1/9"')
    assert claimed != payload
    assert set(check(dsse.seal(claimed, KEY), tmp_path)) == {Check.JOURNAL, Check.INCLUSION, Check.COVERAGE}


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_changed_byte_of_the_envelope_is_found(tmp_path: Path, data: st.DataObject) -> None:
    if not (tmp_path / "attestation.json").exists():
        made(tmp_path)
    whole = (tmp_path / "attestation.json").read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda b: b != whole[place]))
    changed = whole[:place] + bytes([byte]) + whole[place + 1 :]
    if not check(changed, tmp_path):
        # white space of the JSON around: the signed bytes are the same
        assert dsse.unseal(changed, ()).payload == dsse.unseal(whole, ()).payload


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        (b'"result":{"snapshot":"1152921504606846977"}', b'"result":{"snapshot":"7"}'),
        (b'"seen":{"rows":0}', b'"seen":{"rows":1}'),
    ],
)
def test_facts_that_the_journal_does_not_hold_are_found(tmp_path: Path, said: bytes, instead: bytes) -> None:
    payload = dsse.unseal(made(tmp_path), []).payload
    assert said in payload
    assert set(check(dsse.seal(payload.replace(said, instead, 1), KEY), tmp_path)) == {Check.JOURNAL}


def test_what_stays_or_was_not_proved_is_an_exception_by_its_kind(tmp_path: Path) -> None:
    until = NOW + timedelta(days=3650)
    held = copy("c2", strategy=Strategy.EXEMPT, reason="law", exemption=Exemption(holds=("h",), until=until))
    mask = Mask(columns=("note",), held=(HeldColumn(name="pan", holds=("h",), until=until),))
    part = held.model_copy(update={"id": "c4", "strategy": Strategy.MASK_COLUMNS, "mask": mask, "reason": "kept: pan"})
    waiver = Waiver(who="dpo", why="the vendor said so", until=until)
    gap = Gap(id="g", dataset=None, kind="not_scanned", reason="r", evidence="e", waiver=waiver)
    hold = PlannedHold(
        id="h", kind="law", basis="b", citation="c", from_=NOW, until=until, approver="counsel", copies=("c2", "c4")
    )
    given = proven(tmp_path, plan(copies=[copy("c1"), held, part], gaps=[gap], holds=(hold,)))
    unread = Reserved(kind=ReservedKind.UNVERIFIED, what="(no copy) t", why="the broker is silent")
    envelope = made(tmp_path, replace(given, exceptions=[unread]))
    assert check(envelope, tmp_path) == []
    said = dsse.unseal(envelope, [KEY.public_key()]).statement["predicate"]["exceptions"]
    day = "2036-11-18T09:00:00.000000Z"
    assert [tuple(item[name] for name in ("kind", "what", "who", "until")) for item in said] == [
        ("hold", "c2", "counsel", day),
        ("hold", "c4", "counsel", day),
        ("waived", "g", "dpo", day),
        ("unverified", "(no copy) t", None, None),
    ]
