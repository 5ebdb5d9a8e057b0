"""SSH signatures: what we sign ssh-keygen verifies, what ssh-keygen signs we verify, and nothing else passes.

Needs OpenSSH's client (`ssh-keygen`, `ssh-agent`, `ssh-add`) on the path.
"""

from __future__ import annotations

import base64
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_public_key
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_tracer.app.execution.approvals import detached, signing_key
from pii_tracer.config.estate_file import Policy
from pii_tracer.model.errors import NotApproved, ReviewError, UsageError
from pii_tracer.review import dsse
from pii_tracer.review.allowed_signers import looks_like_signers, parse_signers
from pii_tracer.review.approval import approve, verify_approvals
from pii_tracer.review.plan_file import parse_plan
from pii_tracer.review.ssh_signatures import (
    NAMESPACE,
    KeygenSigner,
    SshSigner,
    armoured,
    load_signer,
    parse_public,
    unarmoured,
)
from pii_tracer.review.trusted_keys import Approver, load_trusted, trusted_yaml
from tests.review.plans import DIGEST, NOW, plan

LOADED = parse_plan(plan().to_bytes(), "p.plan.json")
KINDS = {
    "ed25519": ["-t", "ed25519"],
    "p256": ["-t", "ecdsa", "-b", "256"],
    "p384": ["-t", "ecdsa", "-b", "384"],
    "p521": ["-t", "ecdsa", "-b", "521"],
    "rsa": ["-t", "rsa", "-b", "3072"],
}


def keygen(*arguments: str, data: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["ssh-keygen", *arguments], input=data, capture_output=True, check=False)


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("ssh")
    weak = {"weak": ["-t", "rsa", "-b", "2048"], "other": ["-t", "ed25519"]}
    for name, options in {**KINDS, **weak}.items():
        assert keygen("-q", "-N", "", "-C", "", "-f", str(folder / name), *options).returncode == 0
    assert keygen("-q", "-N", "secret", "-C", "", "-t", "ed25519", "-f", str(folder / "locked")).returncode == 0
    return {p.name: p for p in folder.iterdir() if not p.suffix}


def line_of(key: Path) -> str:
    return Path(f"{key}.pub").read_text().strip()


def signers(folder: Path, key: Path, options: str = "") -> Path:
    path = folder / "allowed_signers"
    path.write_text(f"# approvers\n\nasha {options} {line_of(key)} data protection officer\n")
    return path


def keygen_verifies(signers_file: Path, message: bytes, signature: Path, namespace: str = NAMESPACE) -> bool:
    options = ["-Y", "verify", "-f", str(signers_file), "-I", "asha", "-n", namespace, "-s", str(signature)]
    return keygen(*options, data=message).returncode == 0


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_ssh_keygen_verifies_what_we_sign(kind: str, keys: dict[str, Path], tmp_path: Path) -> None:
    trusted, signature = signers(tmp_path, keys[kind]), tmp_path / "m.sig"
    signature.write_bytes(armoured(load_signer(keys[kind]).sign(b"message")))
    assert keygen_verifies(trusted, b"message", signature)
    assert not keygen_verifies(trusted, b"another", signature)
    assert not keygen_verifies(trusted, b"message", signature, "file")
    assert not keygen_verifies(signers(tmp_path, keys["other"]), b"message", signature)


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("hashing", ["sha256", "sha512"])
def test_we_verify_what_ssh_keygen_signs(kind: str, hashing: str, keys: dict[str, Path], tmp_path: Path) -> None:
    message = tmp_path / "m"
    message.write_bytes(b"message")
    done = keygen("-Y", "sign", "-O", f"hashalg={hashing}", "-n", NAMESPACE, "-f", str(keys[kind]), str(message))
    assert done.returncode == 0, done.stderr
    signature = unarmoured((tmp_path / "m.sig").read_bytes())
    public = parse_public(line_of(keys[kind]), "k")
    assert public.verifies(signature, b"message")
    assert not public.verifies(signature, b"another")
    assert not parse_public(line_of(keys["other"]), "k").verifies(signature, b"message")


def test_a_signature_for_another_purpose_is_none(keys: dict[str, Path], tmp_path: Path) -> None:
    message = tmp_path / "m"
    message.write_bytes(b"message")
    assert keygen("-Y", "sign", "-n", "git", "-f", str(keys["ed25519"]), str(message)).returncode == 0
    signature = unarmoured((tmp_path / "m.sig").read_bytes())
    assert not parse_public(line_of(keys["ed25519"]), "k").verifies(signature, b"message")


def test_fingerprints_are_those_of_ssh_keygen(keys: dict[str, Path]) -> None:
    for kind in KINDS:
        shown = keygen("-l", "-f", f"{keys[kind]}.pub").stdout.decode()
        assert shown.split()[1] == parse_public(line_of(keys[kind]), "k").fingerprint


SIGNER = SshSigner(Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_changed_byte_of_a_signature_passes(data: st.DataObject) -> None:
    whole = bytearray(SIGNER.sign(b"message"))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] = data.draw(st.integers(0, 255).filter(lambda b: b != whole[place]))
    assert SIGNER.public.verifies(SIGNER.sign(b"message"), b"message")
    assert not SIGNER.public.verifies(bytes(whole), b"message")


@given(st.binary(max_size=200), st.booleans())
def test_noise_is_no_signature(noise: bytes, begun: bool) -> None:
    assert not SIGNER.public.verifies((b"SSHSIG\0\0\0\1" if begun else b"") + noise, b"message")


@pytest.mark.parametrize(
    "text", [b"", b"x", b"-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----", b"\xff" * 9]
)
def test_what_is_no_armour_is_refused(text: bytes) -> None:
    with pytest.raises(ReviewError):
        unarmoured(text)


# --- approvals


def approved(key: SshSigner | KeygenSigner, **changes: Any) -> bytes:
    fields = {
        "approver": "asha",
        "role": "data protection officer",
        "reason": "REQ-1",
        "expires": NOW + timedelta(hours=24),
        "policy": Policy(version=1),
        "policy_digest": DIGEST,
        "production": key is not None,
        "now": NOW,
        "nonce": "0" * 32,
    }
    return approve(LOADED, key, **{**fields, **changes})  # type: ignore[arg-type]


def check(envelope: bytes, trusted: tuple[Approver, ...], **changes: Any) -> Any:
    fields = {
        "policy": Policy(version=1, production_approvers=1),
        "policy_digest": DIGEST,
        "production": True,
        "planner": "chitra",
        "now": NOW + timedelta(hours=1),
        "consumed": None,
        "run": "run-1",
    }
    return verify_approvals(LOADED, [envelope], trusted, **{**fields, **changes})  # type: ignore[arg-type]


def test_an_approval_by_ssh_key_holds_and_ssh_keygen_agrees(keys: dict[str, Path], tmp_path: Path) -> None:
    path = signers(tmp_path, keys["ed25519"], f'namespaces="git,{NAMESPACE}"')
    envelope = approved(load_signer(keys["ed25519"]))
    (one,) = check(envelope, load_trusted(path))
    assert (one.predicate.approver, one.predicate.role, one.signed) == ("asha", "data protection officer", True)
    files = detached(envelope)
    (tmp_path / "a.sig").write_bytes(files[".signed.sig"])
    assert keygen_verifies(path, files[".signed"], tmp_path / "a.sig")
    assert LOADED.digest.removeprefix("sha256:").encode() in base64.b64decode(dsse.strict_json(envelope)["payload"])


@pytest.mark.parametrize(
    ("key", "options", "changes", "words"),
    [
        ("other", "", {}, "not made with a trusted key"),
        ("ed25519", 'namespaces="git"', {}, "not made with a trusted key"),
        ("ed25519", "", {"role": "owner"}, "a person or role that differs"),
        ("ed25519", "", {"approver": "bala"}, "a person or role that differs"),
        ("ed25519", 'valid-before="20261121Z"', {}, "is not valid at this time"),
        ("ed25519", 'valid-after="20261122Z"', {}, "is not valid at this time"),
        # dated back to when the key still counted
        ("ed25519", 'valid-before="202611210930Z"', {"now": NOW}, "is not valid at this time"),
    ],
)
def test_each_reason_not_to_be_approved(
    key: str, options: str, changes: dict[str, Any], words: str, keys: dict[str, Path], tmp_path: Path
) -> None:
    trusted = load_trusted(signers(tmp_path, keys[key], options))
    with pytest.raises(NotApproved, match=words):
        check(approved(load_signer(keys["ed25519"]), **changes), trusted)


def test_ssh_keys_stand_in_the_yaml_file_too(keys: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "approvers.yaml"
    entry = f"{{name: asha, role: data protection officer, public_key: '{line_of(keys['p256'])}'}}"
    path.write_text(f"version: 1\napprovers: [{entry}]\n")
    assert check(approved(load_signer(keys["p256"])), load_trusted(path))
    path.write_text(f"version: 1\napprovers: [{entry}, {entry.replace('asha', 'bala')}]\n")
    with pytest.raises(ReviewError, match="two people"):
        load_trusted(path)


def test_one_key_written_in_two_ways_is_not_two_people(keys: dict[str, Path], tmp_path: Path) -> None:
    """Whoever has it could sign as both: with `--key` and with `--ssh-key`."""
    path = tmp_path / "approvers.yaml"
    for name in ("ed25519", "p256"):
        line = line_of(keys[name])
        pem = load_ssh_public_key(line.encode()).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        path.write_bytes(trusted_yaml([("asha", "dpo", pem.decode()), ("bala", "owner", line)]))
        with pytest.raises(ReviewError, match="two people"):
            load_trusted(path)


# --- allowed signers


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIuOuBgDCsm3iFq5a2nTnLFRJHzxWJyFQIQ+ZCEGAYjW"


def test_the_file_is_known_by_its_first_line() -> None:
    assert looks_like_signers(f"# x\n\nasha {KEY} dpo")
    assert looks_like_signers(f'asha namespaces="a b" {KEY} dpo')
    assert not looks_like_signers("version: 1\napprovers: []")
    assert not looks_like_signers("")


@pytest.mark.parametrize(
    "line",
    [
        f"asha,bala {KEY} dpo",
        f"*@example.com {KEY} dpo",
        f"asha cert-authority {KEY} dpo",
        f'asha valid-after="20260101" {KEY} dpo',
        f'asha valid-after="2026Z" {KEY} dpo',
        f"asha {KEY}",
        f"asha no-such-option {KEY} dpo",
        f'asha namespaces="x"junk {KEY} dpo',
        "asha dpo",
    ],
)
def test_lines_that_are_not_supported_are_refused(line: str) -> None:
    with pytest.raises(ReviewError, match=r".") as caught:
        parse_signers(f"# first\n{line}\n", "signers")
    assert "line 2" in str(caught.value)


# --- keys


def test_weak_and_open_keys_are_refused(keys: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ReviewError, match="too weak"):
        load_signer(keys["weak"])
    with pytest.raises(ReviewError, match="too weak"):
        parse_public(line_of(keys["weak"]), "k")
    opened = tmp_path / "open"
    opened.write_bytes(keys["ed25519"].read_bytes())
    opened.chmod(0o644)
    with pytest.raises(ReviewError, match="other users"):
        load_signer(opened)
    with pytest.raises(ReviewError, match="no SSH private key"):
        load_signer(tmp_path / "none")


@pytest.mark.parametrize(
    "line", ["", "ssh-ed25519", "ssh-ed25519 !!", "ssh-rsa " + KEY.split()[1], "sk-ssh-ed25519@openssh.com AAAA"]
)
def test_what_is_no_public_key_is_refused(line: str) -> None:
    with pytest.raises(ReviewError):
        parse_public(line, "k")


def test_exactly_one_key_is_named(tmp_path: Path) -> None:
    for pem, ssh in ((None, None), (tmp_path, tmp_path)):
        with pytest.raises(UsageError, match="exactly one signing key"):
            signing_key(pem, ssh)


def test_the_command_approves_with_an_ssh_key(
    keys: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from pii_tracer.cli.main import run

    (tmp_path / "e.yaml").write_text(
        "version: 1\nestate: t\nenvironment: production\ncatalogs: {}\nroots: [w]\nlineage: {}\n"
        "subjects: [{name: c, source: s, key: k}]\n"
    )
    (tmp_path / "policy.yaml").write_text("version: 1\nproduction_approvers: 1\n")
    path = tmp_path / "p.plan.json"
    from pii_tracer.config.estate_file import file_digest

    path.write_bytes(plan(estate_digest=file_digest(tmp_path / "e.yaml")).to_bytes())
    options = [str(path), "--estate", str(tmp_path / "e.yaml"), "--state", str(tmp_path / "state")]
    who = ["--approver", "asha", "--role", "data protection officer", "--reason", "r"]
    trusted = ["--trusted", str(signers(tmp_path, keys["ed25519"]))]
    assert run(["check", *options, *trusted]) == 4  # nobody has approved
    assert run(["approve", *options, *who, "--ssh-key", str(keys["ed25519"])]) == 0
    signature = tmp_path / "p.approval-asha.signed.sig"
    assert keygen_verifies(tmp_path / "allowed_signers", (tmp_path / "p.approval-asha.signed").read_bytes(), signature)
    assert run(["check", *options, *trusted]) == 0, capsys.readouterr().out
    assert run(["approve", *options, *who]) == 2
    path.write_bytes(path.read_bytes() + b"\n")
    assert run(["check", *options, *trusted]) == 5
