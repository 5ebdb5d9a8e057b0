"""The attester's key from a file, from a secret of the environment, and in AWS KMS; each checked by another tool, too."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from pii_tracer.cli.main import run as command
from pii_tracer.config.proof import AttestationKey, KmsKey
from pii_tracer.model.errors import PiiTracerError, ProofError
from pii_tracer.proof.attestation_verifier import verify_attestation
from pii_tracer.proof.attester_keys import KmsSigner, attester, public_file
from pii_tracer.proof.evidence_leaves import Erased
from pii_tracer.proof.findings import Check
from pii_tracer.review import dsse
from pii_tracer.review.trusted_keys import public_pem
from tests.proof.attested import attest
from tests.proof.aws import REGION
from tests.proof.aws_server import ALIAS, Kms, environment, serving
from tests.proof.test_attestation import nonces, proven

IN_KMS = AttestationKey(kms=KmsKey(key_id=ALIAS, region=REGION))


@pytest.fixture
def kms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kms]:
    keys = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("one", "two")}
    service = Kms(keys, {ALIAS: "one"})
    with serving(tmp_path, service) as url:
        for name, value in environment(url, tmp_path).items():
            monkeypatch.setenv(name, value)
        yield service


def made(folder: Path, key: Ed25519PrivateKey | KmsSigner) -> bytes:
    given = proven(folder)
    many = [Erased(copy_id="c1", uri=f"/lake/c1/{n}.parquet", sha256=f"{n:064x}") for n in range(30)]
    attestation = attest(replace(given, erased=[*given.erased, *many]), key, nonce=nonces())
    attestation.write_evidence(folder / "evidence")
    (folder / "attestation.json").write_bytes(attestation.envelope)
    return attestation.envelope


def test_a_key_in_kms_signs_and_its_public_half_verifies_offline(tmp_path: Path, kms: Kms) -> None:
    key = attester(IN_KMS, tmp_path, tmp_path / "state", local=False)
    assert isinstance(key, KmsSigner)
    envelope = made(tmp_path, key)
    assert len(base64.b64decode(json.loads(envelope)["payload"])) > 4096, "more than KMS would sign as it is"
    pem = public_file(tmp_path / "state")
    arguments = ["attest", "verify", str(tmp_path / "attestation.json"), "--key", str(pem)]
    assert command(arguments) == 0
    other = tmp_path / "two.pub"
    other.write_bytes(public_pem(kms.keys["two"].public_key()))
    assert command([*arguments[:-1], str(other)]) == 1
    public = load_pem_public_key(pem.read_bytes())
    keyid = json.loads(envelope)["signatures"][0]["keyid"]
    Envelope.from_dict(json.loads(envelope)).verify([SSlibKey.from_crypto(public, keyid=keyid)], threshold=1)
    stranger = SSlibKey.from_crypto(kms.keys["two"].public_key(), keyid=keyid)
    with pytest.raises(VerificationError):
        Envelope.from_dict(json.loads(envelope)).verify([stranger], threshold=1)
    changed = json.loads(envelope)
    changed["payload"] = changed["payload"].replace("A", "B", 1)
    report = verify_attestation(json.dumps(changed).encode(), tmp_path / "evidence", [key.public])
    assert [f.check for f in report.findings] == [Check.SIGNATURE]


def test_a_key_that_may_not_sign_signs_nothing(tmp_path: Path, kms: Kms) -> None:
    key = attester(IN_KMS, tmp_path, tmp_path / "state", local=False)
    kms.disabled.add("one")
    with pytest.raises(ProofError, match="AWS KMS refuses: DisabledException"):
        made(tmp_path, key)
    with pytest.raises(ProofError, match="DisabledException"):
        attester(IN_KMS, tmp_path, tmp_path / "state", local=False)
    kms.aliases.clear()
    with pytest.raises(ProofError, match="NotFoundException"):
        attester(IN_KMS, tmp_path, tmp_path / "state", local=False)
    kms.aliases[ALIAS], kms.algorithms = "two", ("ECDSA_SHA_384",)
    with pytest.raises(ProofError, match="cannot sign attestations"):
        attester(IN_KMS, tmp_path, tmp_path / "state", local=False)


def test_an_alias_that_moves_changes_no_signer(tmp_path: Path, kms: Kms) -> None:
    key = attester(IN_KMS, tmp_path, tmp_path / "state", local=False)
    kms.aliases[ALIAS] = "two"
    envelope = made(tmp_path, key)
    assert dsse.unseal(envelope, [kms.keys["one"].public_key()]).keyids
    kms.keys["one"] = kms.keys["two"]  # what KMS never does: another key under the same id
    with pytest.raises(ProofError, match="a key that differs"):
        key.sign(b"message")


def test_a_secret_of_the_environment_signs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = AttestationKey(environment="ATTEST_KEY")
    private = Ed25519PrivateKey.generate()
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    monkeypatch.setenv("ATTEST_KEY", pem)
    envelope = made(tmp_path, attester(settings, tmp_path, tmp_path / "state", local=False))
    assert dsse.unseal(envelope, [private.public_key()]).keyids
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert pem.splitlines()[1].encode() not in written
    for wrong in ("", "not a key", pem.splitlines()[1]):
        monkeypatch.setenv("ATTEST_KEY", wrong)
        with pytest.raises(PiiTracerError) as refused:
            attester(settings, tmp_path, tmp_path / "state", local=True)
        assert not wrong or wrong not in str(refused.value)


def test_a_key_that_was_changed_leaves_the_public_half_of_the_one_before(tmp_path: Path) -> None:
    state = tmp_path / "state"
    first = attester(None, tmp_path, state, local=True)
    assert isinstance(first, Ed25519PrivateKey)
    again = attester(None, tmp_path, state, local=True)
    assert isinstance(again, Ed25519PrivateKey)
    assert again.private_bytes_raw() == first.private_bytes_raw()
    second = attester(AttestationKey(file="own.pem"), tmp_path, state, local=True)
    assert isinstance(second, Ed25519PrivateKey)
    assert (tmp_path / "own.pem").stat().st_mode & 0o077 == 0
    kept = {path.read_bytes() for path in (state / "keys").glob("*.pem.pub")}
    assert kept == {public_pem(first.public_key()), public_pem(second.public_key())}
    assert public_file(state).read_bytes() == public_pem(second.public_key())
    with pytest.raises(ProofError, match="no key for attestations"):
        attester(AttestationKey(file="none.pem"), tmp_path, state, local=False)
    with pytest.raises(ValueError, match="name one place"):
        AttestationKey(file="a", environment="B")
