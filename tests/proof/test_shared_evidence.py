"""The evidence of a run is written once, and the proofs of all its requests rest on it: whatever is changed there, each
of them finds it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pii_tracer.app.execution.attesting import attest_run
from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.app.proof.attestation_checks import proof_of_request
from pii_tracer.proof.attestation_verifier import verify_attestation
from pii_tracer.proof.findings import Check
from pii_tracer.proof.requests_tree.request_proof import RequestProof
from pii_tracer.review.trusted_keys import load_private
from pii_tracer.verify.verdicts import ByteVerdict, CopyVerdict, RunVerdict, ScannedFile
from tests.proof.test_requests import CLEAN, ran, several

REQUESTS = ("REQ-1", "REQ-2")


@pytest.fixture
def two(tmp_path: Path) -> tuple[RunFolder, RunFolder]:
    """Two runs of the same estate, each of two requests, attested by one key."""
    folders = []
    for name, requests in (("a", REQUESTS), ("b", ("REQ-1", "REQ-3"))):
        done = ran(tmp_path / name, several(*requests))
        attest_run(done, CLEAN, ())
        folders.append(done.folder)
        if name == "a":
            shutil.copytree(tmp_path / "a" / "state" / "keys", tmp_path / "b" / "state" / "keys")
    return folders[0], folders[1]


def checks(folder: RunFolder, of: RequestProof | None, evidence: Path | None = None) -> set[Check]:
    key = load_private(folder.path.parents[1] / "keys" / "attest.pem").public_key()
    envelope = of.envelope if of else folder.attestation.read_bytes()
    return {f.check for f in verify_attestation(envelope, evidence or folder.evidence, [key], of=of).findings}


def proofs(folder: RunFolder) -> list[RequestProof | None]:
    """The attestation as a whole, and the proofs of both requests."""
    return [None, *(proof_of_request(folder, request) for request in REQUESTS)]


def swapped(name: str) -> Callable[[Path, Path], None]:
    return lambda mine, theirs: (mine / name).write_bytes((theirs / name).read_bytes())


def removed(name: str) -> Callable[[Path, Path], None]:
    return lambda mine, theirs: (mine / name).unlink()


def cut(name: str) -> Callable[[Path, Path], None]:
    return lambda mine, theirs: (mine / name).write_bytes((mine / name).read_bytes()[:-9])


def added(name: str) -> Callable[[Path, Path], None]:
    def add(mine: Path, theirs: Path) -> None:
        (mine / name).parent.mkdir(exist_ok=True)
        (mine / name).write_bytes(b"{}")

    return add


def linked(mine: Path, theirs: Path) -> None:
    (mine / "more").symlink_to(theirs)


def twice(name: str) -> Callable[[Path, Path], None]:
    def double(mine: Path, theirs: Path) -> None:
        lines = (mine / name).read_bytes().splitlines(keepends=True)
        (mine / name).write_bytes(b"".join([*lines, lines[-1]]))

    return double


FILES = ("plan.json", "journal.jsonl", "leaves.jsonl", "requests.jsonl", "scope.jsonl", "approvals/000.json")
FORGED = {
    **{f"{name} of another run": swapped(name) for name in FILES if name != "scope.jsonl"},
    **{f"{name} removed": removed(name) for name in FILES},
    **{f"{name} cut": cut(name) for name in FILES},
    **{f"{name} added": added(name) for name in ("note.txt", "approvals/001.json", "confirmations/000.json")},
    "a link to another run": linked,
    "a leaf twice": twice("leaves.jsonl"),
    "a request twice": twice("requests.jsonl"),
}


@pytest.mark.parametrize("how", FORGED)
def test_every_proof_finds_what_was_forged(two: tuple[RunFolder, RunFolder], how: str) -> None:
    mine, theirs = two
    made = proofs(mine)
    assert [checks(mine, of) for of in made] == [set()] * 3
    FORGED[how](mine.evidence, theirs.evidence)
    assert all(checks(mine, of) for of in made)


def test_the_evidence_of_another_run_is_refused_as_a_whole(two: tuple[RunFolder, RunFolder]) -> None:
    """Both answer a request of the same name."""
    mine, theirs = two
    for of in proofs(mine):
        assert {Check.PLAN, Check.JOURNAL, Check.INCLUSION} <= checks(mine, of, theirs.evidence)


def test_a_lost_attestation_is_made_again_and_the_proofs_with_it(tmp_path: Path) -> None:
    """The tables have other files by now."""
    done = ran(tmp_path, several(*REQUESTS))
    attest_run(done, CLEAN, ())
    done.folder.attestation.unlink()
    later = (ScannedFile(path="b.parquet", size=9, sha256="b" * 64, decoded_as="parquet"),)
    attest_run(
        done,
        RunVerdict(copies=(CopyVerdict(copy_id="c1", bytes=ByteVerdict(copy_id="c1", root="/", files=later)),)),
        (),
    )
    assert [checks(done.folder, of) for of in proofs(done.folder)] == [set()] * 3
