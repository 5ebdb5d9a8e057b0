"""Time stamps of a real authority (openssl), verified offline, and refused when anything about them is another's."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from pii_tracer.app.proof.attestation_checks import attest_verify
from pii_tracer.model.errors import ProofError
from pii_tracer.proof.attestation import NO_AUTHORITY
from pii_tracer.proof.attestation_issuing import publish, stamp_of
from pii_tracer.proof.attestation_log import AttestationLog
from pii_tracer.proof.attestation_verifier import Given, verify_attestation
from pii_tracer.proof.findings import Check, Report
from pii_tracer.proof.requests_tree.request_leaves import REQUESTS
from pii_tracer.proof.requests_tree.request_proof import prove_request
from pii_tracer.proof.rfc3161_timestamps import load_certificates, request_stamp, verify_stamp
from pii_tracer.review import dsse
from pii_tracer.review.trusted_keys import public_pem
from tests.proof.attested import attest
from tests.proof.authority import make_authority, serving
from tests.proof.test_attestation import KEY, made, nonces, proven


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("tsa") / "a"
    root = make_authority(folder)
    with serving(folder) as url:
        yield url, root


def stamped(folder: Path, authority: tuple[str, Path], scanned_at: datetime | None = None) -> Path:
    url, root = authority
    at = scanned_at or datetime.now(timezone.utc)
    said = replace(proven(folder), authority=url, scanned_at=at)
    envelope = folder / "attestation.json"
    publish(
        lambda history: attest(said, KEY, nonce=nonces(), history=history),
        envelope,
        folder / "evidence",
        AttestationLog(folder / "log"),
        "plan-1",
        lambda data: request_stamp(url, data, load_certificates(root)),
    )
    return envelope


def verified(envelope: Path, **given: object) -> Report:
    return verify_attestation(
        envelope.read_bytes(),
        envelope.parent / "evidence",
        [KEY.public_key()],
        Given(**given),  # type: ignore[arg-type]
    )


def test_a_stamp_is_made_verified_offline_and_openssl_agrees(tmp_path: Path, authority: tuple[str, Path]) -> None:
    envelope = stamped(tmp_path, authority)
    stamp = stamp_of(envelope).read_bytes()
    roots = load_certificates(authority[1])
    assert verified(envelope, stamp=stamp, authority=roots).findings == ()
    assert abs(verify_stamp(stamp, envelope.read_bytes(), roots) - datetime.now(timezone.utc)) < timedelta(minutes=5)
    arguments = ["-verify", "-data", str(envelope), "-in", str(stamp_of(envelope)), "-CAfile", str(authority[1])]
    subprocess.run(["openssl", "ts", *arguments], check=True, capture_output=True)


def test_missing_changed_and_foreign_stamps_are_found(tmp_path: Path, authority: tuple[str, Path]) -> None:
    envelope = stamped(tmp_path, authority)
    stamp, roots = stamp_of(envelope).read_bytes(), load_certificates(authority[1])
    assert [f.check for f in verified(envelope, authority=roots).findings] == [Check.MISSING]
    assert any("certificate was not given" in note for note in verified(envelope, stamp=stamp).notes)
    foreign = load_certificates(make_authority(tmp_path / "other"))
    assert [f.check for f in verified(envelope, stamp=stamp, authority=foreign).findings] == [Check.TIMESTAMP]
    for place in range(0, len(stamp), 97):
        changed = stamp[:place] + bytes([stamp[place] ^ 1]) + stamp[place + 1 :]
        if [f.check for f in verified(envelope, stamp=changed, authority=roots).findings] != [Check.TIMESTAMP]:
            # a certificate that came along and that nothing leads to may differ: the time is the same
            at = verify_stamp(changed, envelope.read_bytes(), roots)
            assert at == verify_stamp(stamp, envelope.read_bytes(), roots)
    with pytest.raises(ProofError, match="is not valid for this file"):
        verify_stamp(stamp, b"other bytes", roots)


def test_the_proof_of_a_request_has_the_stamp_in_it(tmp_path: Path, authority: tuple[str, Path]) -> None:
    envelope = stamped(tmp_path, authority)
    leaves = (tmp_path / "evidence" / REQUESTS).read_bytes()
    key, file = tmp_path / "key.pub", tmp_path / "alone" / "proof.json"
    key.write_bytes(public_pem(KEY.public_key()))
    file.parent.mkdir()

    def found(stamp: bytes | None, root: Path = authority[1]) -> list[Check]:
        proof = prove_request(envelope.read_bytes(), stamp, leaves, "REQ-1")
        assert proof is not None
        file.write_bytes(proof.to_bytes())
        report = attest_verify(file, [key], authority=root, requests=["REQ-1"])
        assert not any("time stamp" in note for note in report.notes)
        return [finding.check for finding in report.findings]

    stamp = stamp_of(envelope).read_bytes()
    assert found(stamp) == []
    assert found(None) == [Check.MISSING]
    assert found(stamp[:-1]) == [Check.TIMESTAMP]
    assert found(stamp, make_authority(tmp_path / "other")) == [Check.TIMESTAMP]


def test_a_stamp_older_than_the_scan_is_found(tmp_path: Path, authority: tuple[str, Path]) -> None:
    envelope = stamped(tmp_path, authority, datetime.now(timezone.utc) + timedelta(hours=1))
    roots = load_certificates(authority[1])
    report = verified(envelope, stamp=stamp_of(envelope).read_bytes(), authority=roots)
    assert [f.check for f in report.findings] == [Check.TIMESTAMP]


def test_without_an_authority_the_attestation_says_so(tmp_path: Path, authority: tuple[str, Path]) -> None:
    statement = dsse.unseal(made(tmp_path), ()).statement
    assert statement["predicate"]["timestamp"] == {"authority": None}
    assert NO_AUTHORITY in statement["predicate"]["not_proved"]
    report = verified(tmp_path / "attestation.json", authority=load_certificates(authority[1]))
    assert [f.check for f in report.findings] == [Check.TIMESTAMP]


@pytest.mark.parametrize("again", [True, False])
def test_the_stamp_goes_with_its_attestation(tmp_path: Path, authority: tuple[str, Path], again: bool) -> None:
    envelope = stamped(tmp_path, authority)
    first = {p.suffix: p.read_bytes() for p in (envelope, stamp_of(envelope))}
    url, root = authority
    roots = load_certificates(root)
    (tmp_path / "again").mkdir()
    said = replace(proven(tmp_path / "again"), authority=url if again else None, scanned_at=datetime.now(timezone.utc))
    publish(
        lambda history: attest(said, KEY, nonce=nonces(), history=history),
        envelope,
        tmp_path / "evidence",
        AttestationLog(tmp_path / "log"),
        "plan-1",
        (lambda data: request_stamp(url, data, roots)) if again else None,
    )
    assert {p.suffix: p.read_bytes() for p in tmp_path.glob("attestation-*")} == first
    assert stamp_of(envelope).exists() == again
    stamp = stamp_of(envelope).read_bytes() if again else None
    assert verified(envelope, stamp=stamp, authority=roots if again else None).findings == ()
    assert not list(tmp_path.glob("*.pending"))


def test_nothing_is_attested_while_the_authority_is_silent(tmp_path: Path, authority: tuple[str, Path]) -> None:
    with pytest.raises(ProofError, match="does not answer"):
        stamped(tmp_path, ("http://127.0.0.1:9/", authority[1]))
    assert not (tmp_path / "attestation.json").exists()
    assert (tmp_path / "log").read_bytes() == b""
    with pytest.raises(ProofError, match="http"):
        request_stamp("file:///etc/hosts", b"x", load_certificates(authority[1]))
    with pytest.raises(ProofError, match="cannot be read"):
        load_certificates(tmp_path / "none.pem")
