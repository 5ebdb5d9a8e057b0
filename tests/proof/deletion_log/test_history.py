"""The log of attestations: each proves that the log before it only grew; cutting, changing and forking are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.model.errors import ProofError
from pii_tracer.model.plan import digest_of
from pii_tracer.proof import attestation_issuing
from pii_tracer.proof.attestation_issuing import publish, recover
from pii_tracer.proof.attestation_log import AttestationLog, log_line
from pii_tracer.proof.attestation_verifier import Given, previous_of, verify_attestation
from pii_tracer.proof.findings import Check
from tests.proof.attested import attest
from tests.proof.test_attestation import KEY, nonces, proven


def run_folder(root: Path, number: int) -> Path:
    return root / "runs" / f"plan-{number}"


def published(root: Path, number: int, log: AttestationLog | None = None) -> bytes:
    """The attestation of a run of its own, made over the log as it is."""
    folder = run_folder(root, number)
    folder.mkdir(parents=True)
    said = proven(folder)
    nonce = nonces()
    for _ in range(number * 10):
        nonce()
    publish(
        lambda history: attest(said, KEY, nonce=nonce, history=history),
        folder / "attestation.json",
        folder / "evidence",
        log or AttestationLog(root / "attestations.jsonl"),
        f"plan-{number}",
    )
    return (folder / "attestation.json").read_bytes()


def found(root: Path, number: int, **given: Any) -> list[Check]:
    folder = run_folder(root, number)
    envelope = (folder / "attestation.json").read_bytes()
    return [
        f.check for f in verify_attestation(envelope, folder / "evidence", [KEY.public_key()], Given(**given)).findings
    ]


def test_each_is_consistent_with_the_one_before_and_with_the_log(tmp_path: Path) -> None:
    made = [published(tmp_path, n) for n in range(6)]
    log = (tmp_path / "attestations.jsonl").read_bytes()
    for n, envelope in enumerate(made):
        before = made[n - 1] if n else None
        assert found(tmp_path, n, previous=before, log=log) == []
        assert previous_of(envelope) == ((digest_of(made[n - 1]), f"plan-{n - 1}") if n else None)


def test_what_was_not_given_is_said_to_be_unchecked(tmp_path: Path) -> None:
    published(tmp_path, 0)
    envelope = published(tmp_path, 1)
    folder = run_folder(tmp_path, 1)
    notes = verify_attestation(envelope, folder / "evidence", [KEY.public_key()]).notes
    assert any("the previous attestation" in note for note in notes)
    assert any("log of attestations" in note for note in notes)


def test_another_attestation_is_not_the_one_before(tmp_path: Path) -> None:
    made = [published(tmp_path, n) for n in range(3)]
    for wrong in (made[0], made[2], made[1] + b"\n", b"{}"):
        assert found(tmp_path, 2, previous=wrong) == [Check.CONSISTENCY]
    assert found(tmp_path, 0, previous=made[1]) == [Check.CONSISTENCY]


def test_a_log_that_was_cut_changed_or_rolled_back_is_found(tmp_path: Path) -> None:
    for n in range(4):
        published(tmp_path, n)
    log = (tmp_path / "attestations.jsonl").read_bytes()
    lines = log.splitlines(keepends=True)
    assert found(tmp_path, 3, log=b"".join(lines[:3])) == [Check.CONSISTENCY]
    assert found(tmp_path, 3, log=b"".join([lines[1], lines[0], *lines[2:]])) == [Check.CONSISTENCY]
    assert Check.CONSISTENCY in found(tmp_path, 3, log=b"".join([*lines[:1], *lines[2:], lines[3]]))
    assert found(tmp_path, 3, log=b"") == [Check.CONSISTENCY]


@pytest.mark.parametrize("after", [b"no line of a log\n", b'{"attestation":"x"}\n'])
def test_what_stands_behind_an_attestation_must_be_of_a_log(tmp_path: Path, after: bytes) -> None:
    published(tmp_path, 0)
    log = (tmp_path / "attestations.jsonl").read_bytes()
    assert found(tmp_path, 0, log=log + after) == [Check.CONSISTENCY]
    assert found(tmp_path, 0, log=log + after[:5]) == []  # torn: nobody was told that it stands


def test_an_estate_that_forgets_an_attestation_is_found_by_the_next(tmp_path: Path) -> None:
    published(tmp_path, 0)
    forgotten = published(tmp_path, 1)
    log = tmp_path / "attestations.jsonl"
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[0])
    published(tmp_path, 2)
    assert found(tmp_path, 2, log=log.read_bytes()) == []  # a consistent story, alone
    assert found(tmp_path, 2, previous=forgotten) == [Check.CONSISTENCY]
    assert found(tmp_path, 1, log=log.read_bytes()) == [Check.CONSISTENCY]


def test_a_broken_log_is_refused_and_a_torn_line_is_cut(tmp_path: Path) -> None:
    log = AttestationLog(tmp_path / "log")
    with log.locked():
        log.append(log_line(b"one", "p"))
    with (tmp_path / "log").open("ab") as stream:
        stream.write(b'{"attestation":')
    with log.locked() as lines:
        assert lines == (log_line(b"one", "p"),)
    assert (tmp_path / "log").read_bytes() == log_line(b"one", "p") + b"\n"
    (tmp_path / "log").write_bytes(b'{"plan": "p"}\n')
    with pytest.raises(ProofError, match="broken"), log.locked():
        pass


class _Died(BaseException):
    pass


@pytest.mark.parametrize("moment", ["write_atomic", "log", "rename"])
def test_a_crash_leaves_no_line_without_its_attestation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    class Dying(AttestationLog):
        def append(self, line: bytes) -> None:
            if moment == "log":
                raise _Died
            super().append(line)

    def dies(*_: object) -> None:
        raise _Died

    def dies_at_the_envelope(path: Path, data: bytes) -> None:
        if path.name.endswith(".pending"):
            raise _Died
        write_atomic(path, data)

    with monkeypatch.context() as patched:
        if moment == "write_atomic":
            patched.setattr(attestation_issuing, "write_atomic", dies_at_the_envelope)
        if moment == "rename":
            patched.setattr(attestation_issuing, "_rename", dies)
        with pytest.raises(_Died):
            published(tmp_path, 0, Dying(tmp_path / "attestations.jsonl"))
    envelope = run_folder(tmp_path, 0) / "attestation.json"
    log = AttestationLog(tmp_path / "attestations.jsonl")
    assert not envelope.exists()
    recover(envelope, log, "plan-0")
    with log.locked() as lines:
        stands = list(lines)
    assert envelope.exists() == (moment == "rename")
    assert stands == ([log_line(envelope.read_bytes(), "plan-0")] if envelope.exists() else [])
    assert not list(envelope.parent.glob("*.pending"))
    if envelope.exists():
        assert found(tmp_path, 0, log=(tmp_path / "attestations.jsonl").read_bytes()) == []
