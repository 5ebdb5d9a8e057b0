"""One object proved alone: it holds with the envelope only, and nothing else passes for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_tracer.model.canonical_json import canonical
from pii_tracer.model.errors import ProofError
from pii_tracer.proof import merkle_tree
from pii_tracer.proof.findings import Check
from pii_tracer.proof.inclusion_proof import prove, verify_object
from tests.proof.attested import attest
from tests.proof.test_attestation import APPROVER, KEY, made, nonces, proven


def _whole(folder: Path) -> tuple[bytes, bytes]:
    return made(folder), (folder / "evidence" / "leaves.jsonl").read_bytes()


def _found(proof: bytes, envelope: bytes, key: Ed25519PrivateKey = KEY) -> list[Check]:
    return [f.check for f in verify_object(proof, envelope, [key.public_key()])]


def test_each_leaf_is_proved_alone_and_has_its_nonce(tmp_path: Path) -> None:
    envelope, leaves = _whole(tmp_path)
    for index in range(len(leaves.splitlines())):
        proof = prove(envelope, leaves, index=index)
        assert proof.leaf["nonce"]
        assert _found(proof.to_bytes(), envelope) == []


def test_pymerkle_agrees(tmp_path: Path) -> None:
    pymerkle = pytest.importorskip("pymerkle")
    envelope, leaves = _whole(tmp_path)
    tree = pymerkle.InmemoryTree(algorithm="sha256")
    for line in leaves.splitlines():
        tree.append_entry(line)
    proof = prove(envelope, leaves, uri="s3://b/k?versionId=v1")
    theirs = tree.prove_inclusion(proof.index + 1, proof.tree_size)
    assert list(proof.path) == theirs.serialize()["path"][1:]
    pymerkle.verify_inclusion(merkle_tree.leaf_hash(canonical(proof.leaf)), tree.get_root(), theirs)


def test_a_thing_is_named_by_its_uri_its_step_or_its_number(tmp_path: Path) -> None:
    envelope, leaves = _whole(tmp_path)
    assert prove(envelope, leaves, uri="s3://b/k?versionId=v1").leaf["version_id"] == "v1"
    assert prove(envelope, leaves, uri="/lake/c1/old.parquet").leaf["uri"] == "/lake/c1/old.parquet"
    assert prove(envelope, leaves, step="c1/2").leaf["step"] == "c1/2"
    for wanted in ({"uri": "s3://b/other"}, {"step": "c9/1"}, {"index": 99}, {"index": -1}):
        with pytest.raises(ProofError, match="no leaf"):
            prove(envelope, leaves, **wanted)  # type: ignore[arg-type]
    with pytest.raises(ProofError, match="does not belong to this attestation"):
        prove(envelope, leaves + leaves, index=0)


def test_other_keys_and_other_attestations(tmp_path: Path) -> None:
    envelope, leaves = _whole(tmp_path)
    proof = prove(envelope, leaves, index=0).to_bytes()
    assert _found(proof, envelope, APPROVER) == [Check.FOREIGN_KEY]
    (tmp_path / "2").mkdir()
    again = attest(proven(tmp_path / "2"), KEY, nonce=nonces()).envelope
    if again == envelope:
        again = again + b"\n"
    assert _found(proof, again) == [Check.INCLUSION]


@pytest.mark.parametrize(
    "wrong",
    [b"", b"{}", b"[]", b"[" * 100_000, b'{"format_version": 1, "format_version": 1}', b'{"index": NaN}', b"\xff"],
)
def test_what_is_no_proof_is_refused(tmp_path: Path, wrong: bytes) -> None:
    envelope, _ = _whole(tmp_path)
    assert _found(wrong, envelope) == [Check.FORM]
    assert [f.check for f in verify_object(wrong, wrong, [KEY.public_key()])] == [Check.FORM]


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_other_claim_is_found(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    envelope, leaves = _whole(tmp_path_factory.mktemp("run"))
    index = data.draw(st.integers(0, len(leaves.splitlines()) - 1))
    raw = json.loads(prove(envelope, leaves, index=index).to_bytes())
    field = data.draw(st.sampled_from(["index", "tree_size", "nonce", "path", "order", "uri"]))
    if field in ("index", "tree_size"):
        raw[field] = data.draw(st.integers(0, 10).filter(lambda n: n != raw[field]))
    elif field == "path":
        raw["path"] = raw["path"][:-1]
    elif field == "order":
        raw["path"] = [*raw["path"][1:], "00" * 32]
    else:
        raw["leaf"][field] = "another"
    assert _found(json.dumps(raw).encode(), envelope) in ([Check.INCLUSION], [Check.FORM])
