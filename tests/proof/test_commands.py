"""The proof commands as an auditor and an operator call them: exit codes, files, words."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pii_tracer.app import pdf
from pii_tracer.app.execution.run_folder import RunFolder, RunInfo
from pii_tracer.cli.main import run as command
from pii_tracer.model.canonical_json import parse_time
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import ErasurePlan, Gap
from pii_tracer.model.waivers import Waiver
from pii_tracer.proof.attestation import Others
from pii_tracer.proof.attestation_issuing import publish
from pii_tracer.proof.attestation_log import LOG_NAME, AttestationLog
from pii_tracer.proof.evidence_leaves import Erased, Reserved, ReservedKind
from pii_tracer.review.dsse import unseal
from pii_tracer.review.trusted_keys import public_pem
from reports.run.certificate import certificate, render_certificate
from tests.proof.attested import attest
from tests.proof.aws import RSA_KEY, START, TrailWriter, keys_json
from tests.proof.test_attestation import APPROVER, CHECKED, KEY, nonces, proven
from tests.reports.test_plan_reports import Page
from tests.review.plans import DEADLINE, copy, plan


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state folder with one complete, attested run."""
    state = tmp_path / "state"
    add_run(state, "plan-1")
    return state


def add_run(
    state: Path,
    name: str,
    exceptions: tuple[Reserved, ...] = (),
    uri: str = "s3://b/<b>k</b>",
    plan: ErasurePlan | None = None,
) -> RunFolder:
    folder = RunFolder(state / "runs" / name)
    folder.path.mkdir(parents=True)
    info = RunInfo(
        plan_id=name,
        plan_digest="sha256:00",
        plan_file="p",
        estate_file="e",
        policy_file="q",
        approvals=(),
        trusted=None,
        state=str(state),
    )
    folder.write_info(info)
    folder.result.write_text(json.dumps({"state": "complete", "residue": []}))
    said = proven(folder.path, plan)
    said = replace(said, exceptions=exceptions, erased=[*said.erased, Erased(copy_id="c1", uri=uri)])
    log = AttestationLog(state / LOG_NAME)
    publish(
        lambda history: attest(said, KEY, nonce=nonces(), history=history),
        folder.attestation,
        folder.evidence,
        log,
        name,
    )
    (state / "keys").mkdir(exist_ok=True)
    (state / "keys" / "attest.pem.pub").write_bytes(public_pem(KEY.public_key()))
    (state / "keys" / "approver.pub").write_bytes(public_pem(APPROVER.public_key()))
    return folder


def args(state: Path, *more: str) -> list[str]:
    run = state / "runs" / "plan-1"
    return ["attest", "verify", str(run / "attestation.json"), "--key", str(state / "keys/attest.pem.pub"), *more]


def test_verify_says_what_it_did_not_look_at(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(args(state)) == 0
    out = capsys.readouterr().out
    assert "not checked: deletions on S3" in out
    assert out.endswith("everything holds\n")
    log = str(state / LOG_NAME)
    assert (
        command(args(state, "--format", "json", "--log", log, "--approver-key", str(state / "keys/approver.pub"))) == 0
    )
    said = json.loads(capsys.readouterr().out)
    assert said["holds"] is True
    assert not any("log of attestations" in note or "approv" in note for note in said["notes"])


def test_the_attestation_before_is_found_beside(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    second = add_run(state, "plan-2")
    key = ["--key", str(state / "keys/attest.pem.pub")]
    assert command(["attest", "verify", str(second.attestation), *key]) == 0
    assert "the previous attestation" not in capsys.readouterr().out
    first = state / "runs/plan-1/attestation.json"
    first.write_bytes(first.read_bytes() + b"\n")
    assert command(["attest", "verify", str(second.attestation), *key]) == 1
    assert "✘ consistency" in capsys.readouterr().out
    first.unlink()
    assert command(["attest", "verify", str(second.attestation), *key]) == 0
    assert "not checked: the previous attestation" in capsys.readouterr().out


def test_an_attestation_made_again_keeps_the_one_before_it(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = RunFolder(state / "runs/plan-1")
    said = replace(proven(state), others=Others(compared=1))
    first = folder.attestation.read_bytes()
    publish(
        lambda history: attest(said, KEY, nonce=nonces(), history=history),
        folder.attestation,
        folder.evidence,
        AttestationLog(state / LOG_NAME),
        "plan-1",
    )
    assert first in [path.read_bytes() for path in folder.path.glob("attestation-*.json")]
    assert command(args(state, "--log", str(state / LOG_NAME))) == 0
    assert "the previous attestation" not in capsys.readouterr().out


def test_a_key_that_was_changed_is_given_beside_the_new_one(state: Path) -> None:
    assert command(args(state, "--key", str(state / "keys/approver.pub"))) == 0


def test_a_half_copied_folder_has_one_finding_a_file(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evidence = state / "runs/plan-1/evidence"
    (evidence / "scope.jsonl").unlink()
    (evidence / "approvals/000.json").unlink()
    assert command(args(state, "--format", "json")) == 1
    said = json.loads(capsys.readouterr().out)
    assert [f["check"] for f in said["findings"]] == ["missing_file", "missing_file"]


def test_a_pipe_among_the_evidence_is_not_waited_for(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leaves = state / "runs/plan-1/evidence/leaves.jsonl"
    leaves.unlink()
    os.mkfifo(leaves)
    assert command(args(state, "--format", "json")) == 1
    assert [f["check"] for f in json.loads(capsys.readouterr().out)["findings"]] == ["missing_file"]


def test_an_oversized_file_is_not_read(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (state / "runs/plan-1/evidence/leaves.jsonl").open("r+b") as stream:
        stream.truncate(2**30 + 1)
    assert command(args(state, "--format", "json")) == 1
    assert [f["check"] for f in json.loads(capsys.readouterr().out)["findings"]] == ["oversized"]
    with (state / "runs/plan-1/attestation.json").open("r+b") as stream:
        stream.truncate(2**30 + 1)
    assert command(args(state)) == 1
    assert "too large" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [b"[" * 100_000, b'{"payload": "", "payload": ""}', b"\x00", b"{}"])
def test_what_is_no_attestation_is_refused(state: Path, wrong: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    (state / "runs/plan-1/attestation.json").write_bytes(wrong)
    assert command(args(state, "--format", "json")) == 1
    assert [f["check"] for f in json.loads(capsys.readouterr().out)["findings"]] == ["form"]


def test_a_trail_is_checked_with_its_keys(state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    TrailWriter(tmp_path / "trail").hour(START)
    (tmp_path / "keys.json").write_bytes(keys_json(RSA_KEY))
    assert command(args(state, "--trail", str(tmp_path / "trail"))) == 2
    assert "--trail-keys" in capsys.readouterr().err
    trail = ["--trail", str(tmp_path / "trail"), "--trail-keys", str(tmp_path / "keys.json"), "--format", "json"]
    assert command(args(state, *trail)) == 1
    said = json.loads(capsys.readouterr().out)
    assert [f["check"] for f in said["findings"]] == ["unmatched_deletion"]
    (state / "runs/plan-1/evidence/plan.json").unlink()
    assert command(args(state, *trail)) == 1
    assert [f["check"] for f in json.loads(capsys.readouterr().out)["findings"]] == ["missing_file"]


def test_an_object_is_proved_and_checked_without_the_rest(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = ["attest", "prove", "plan-1", "--state", str(state)]
    out = tmp_path / "proof.json"
    assert command([*base, "--object", "s3://b/k?versionId=v1", "--out", str(out)]) == 0
    (tmp_path / "given.json").write_bytes((state / "runs/plan-1/attestation.json").read_bytes())
    check = ["attest", "verify-object", str(out), "--attestation", str(tmp_path / "given.json")]
    assert command([*check, "--key", str(state / "keys/attest.pem.pub")]) == 0
    assert command([*check, "--key", str(state / "keys/approver.pub")]) == 1
    capsys.readouterr()
    assert command([*base, "--leaf", "0"]) == 0
    assert capsys.readouterr().out.strip().endswith("proofs/leaf-000000.json")
    assert command([*base]) == 2
    assert command([*base, "--object", "s3://b/other"]) == 1
    assert "no leaf has this name" in capsys.readouterr().err


def test_the_certificate_says_no_more_than_the_attestation(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["attest", "certificate", "plan-1", "--state", str(state)]) == 0
    text = Path(capsys.readouterr().out.strip()).read_text()
    page = Page(text)
    words = " ".join(" ".join(page.words).split())
    assert "Not found in scope S at time T" in words
    assert "What this cannot prove" in words
    assert "copies outside the inventory" in words
    assert "none: no authority was asked" in words
    assert "s3://b/<b>k</b>" in page.words
    assert "script" not in page.tags
    assert any("default-src 'none'" in value for _, value in page.attributes)
    assert "size:A4" in text


@pytest.mark.parametrize(
    ("result", "code", "words"),
    [
        ({"state": "complete", "residue": [{"copy": "c1"}]}, 9, "found after the erasure"),
        ({"state": "waiting", "residue": []}, 8, "the run waits"),
        ({"state": "partial", "residue": []}, 7, "not complete"),
    ],
)
def test_there_is_no_certificate_of_an_open_run(
    state: Path, result: dict[str, object], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (state / "runs/plan-1/result.json").write_text(json.dumps(result))
    assert command(["attest", "certificate", "plan-1", "--state", str(state)]) == code
    assert words in capsys.readouterr().err
    assert not (state / "runs/plan-1/certificate.html").exists()


def test_there_is_no_certificate_of_what_stays_or_does_not_hold(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_run(state, "plan-2", exceptions=(Reserved(kind=ReservedKind.HOLD, what="c9", why="tax law"),))
    assert command(["attest", "certificate", "plan-2", "--state", str(state)]) == 1
    assert "data remains" in capsys.readouterr().err
    (state / "runs/plan-1/evidence/plan.json").write_bytes(b"{}")
    assert command(["attest", "certificate", "plan-1", "--state", str(state)]) == 1
    assert "does not hold (plan" in capsys.readouterr().err
    stranger = public_pem(Ed25519PrivateKey.generate().public_key())
    (state / "keys/stranger.pub").write_bytes(stranger)
    assert (
        command(["attest", "certificate", "plan-1", "--state", str(state), "--key", str(state / "keys/stranger.pub")])
        == 1
    )
    assert "foreign_key" in capsys.readouterr().err
    (state / "runs/plan-1/attestation.json").unlink()
    assert command(["attest", "certificate", "plan-1", "--state", str(state)]) == 1
    assert "was not attested" in capsys.readouterr().err


def test_what_a_destroyed_key_keeps_and_a_named_person_answers_for_limits_the_certificate(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who was erased by destroying a key, or past a waived gap, gets a certificate that says so, with dates."""
    waiver = Waiver(who="Dr. Rao", why="the <b>vendor</b> wiped it", until=DEADLINE)
    waived = Gap(
        id="gap-missing_root-1", dataset=None, kind=GapKind.MISSING_ROOT, reason="not there", evidence="", waiver=waiver
    )
    unread = Reserved(
        kind=ReservedKind.UNVERIFIED, what="(no copy) x", why="cut off", who="Dr. Sen", until="2027-01-01"
    )
    sealed = copy("c2", strategy=Strategy.DESTROY_KEY)
    a_plan = plan(copies=[copy("c1"), sealed], gaps=[waived])
    add_run(state, "plan-2", exceptions=(unread,), plan=a_plan)
    assert command(["attest", "certificate", "plan-2", "--state", str(state)]) == 0
    words = " ".join(" ".join(Page(Path(capsys.readouterr().out.strip()).read_text()).words).split())
    statement = unseal((state / "runs/plan-2/attestation.json").read_bytes(), [KEY.public_key()]).statement
    at = max(s["verified_at"] for s in statement["predicate"]["steps"] if s["copy"] == "c2")
    seen = parse_time(at).strftime("%Y-%m-%d %H:%M:%S")
    plain, _, auditors = words.partition("For auditors")
    assert "1 encrypted copy stays that nobody can read: what opened it was destroyed by " in plain
    assert "1 doubt was not cleared up by the search. A responsible person accepted this, until 2026-12-21" in plain
    assert "1 place could not be read. A responsible person accepted this, until 2027-01-01 at the latest." in plain
    assert "Whom to ask" in plain
    technical = (
        "gap-missing_root-1",
        "Rao",
        "Sen",
        "vendor",
        "c2",
        "s3://",
        "/lake",
        "sha256",
        "Merkle",
        "keyed reference",
        "plan-",
    )
    assert [name for name in technical if name in plain] == []
    assert [name for name in technical if name not in auditors] == []
    assert "with 3 qualifications" in words
    assert f"c2 : unreadable since {seen} UTC at the latest, ciphertext kept" in words
    assert "gap-missing_root-1 : waived: the <b>vendor</b> wiped it. Dr. Rao answers for it, until 2026-12-21" in words
    assert "(no copy) x : nobody could look at it: cut off. Dr. Sen answers for it, until 2027-01-01" in words


@pytest.mark.parametrize("kind", [k for k in ReservedKind if k not in (ReservedKind.CONFIRMED, ReservedKind.SEALED)])
def test_what_nobody_answers_for_is_refused_whatever_its_kind(
    state: Path, kind: ReservedKind, capsys: pytest.CaptureFixture[str]
) -> None:
    add_run(state, "plan-2", exceptions=(Reserved(kind=kind, what="c9", why="so"),))
    assert command(["attest", "certificate", "plan-2", "--state", str(state)]) == 1
    assert f"{kind.value} c9" in capsys.readouterr().err


def test_without_a_chromium_the_pdf_is_refused_and_the_page_stands(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pdf.shutil, "which", lambda _: None)
    wanted = ["attest", "certificate", "plan-1", "--state", str(state), "--pdf", str(tmp_path / "c.pdf")]
    assert command(wanted) == 1
    assert "Chromium was not found" in capsys.readouterr().err
    assert (state / "runs/plan-1/certificate.html").exists()
    broken = tmp_path / "browser"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(pdf.shutil, "which", lambda _: str(broken))
    assert command(wanted) == 1
    assert "did not print" in capsys.readouterr().err
    assert not (tmp_path / "c.pdf").exists()


def test_the_part_for_auditors_keeps_its_length_however_long_the_names_are(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_run(state, "plan-2", uri="s3://b/" + "k" * 1000)
    statement = unseal((state / "runs/plan-2/attestation.json").read_bytes(), [KEY.public_key()]).statement
    persons = tuple((f"REQ-{n}", "subj_0", "dpdp") for n in range(40))
    names = [*statement["subject"], *({"name": f"/lake/{n}/" + "x" * 100} for n in range(500))]
    made = certificate({**statement, "subject": names}, replace(CHECKED, persons=persons))
    assert sum(-(-len(name) // 88) for name in made.shown) <= 12
    assert made.shown[:2] == ("s3://b/k?versionId=v1", "/lake/c1/old.parquet")
    assert len(made.shown[2]) == 2 * 88
    words = " ".join(" ".join(Page(render_certificate(made)).words).split())
    assert "503 places" in words
    assert "and 496 more, which the attestation lists" in words
    assert "and 34 more" in words
