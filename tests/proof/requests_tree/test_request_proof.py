"""The proof of one request: it holds with the attester's key alone, and nothing else passes for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_tracer.app.proof.attestation_checks import attest_verify
from pii_tracer.cli.main import run as command
from pii_tracer.model.canonical_json import canonical
from pii_tracer.model.errors import ProofError
from pii_tracer.proof import merkle_tree
from pii_tracer.proof.attestation_issuing import publish
from pii_tracer.proof.attestation_log import AttestationLog
from pii_tracer.proof.findings import Check
from pii_tracer.proof.requests_tree.request_leaves import (
    REQUESTS,
    RequestLeaf,
    leaves_under,
    read_leaves,
    said_of,
    salts_in,
)
from pii_tracer.proof.requests_tree.request_proof import proof_in, prove_request
from pii_tracer.review import dsse
from pii_tracer.review.trusted_keys import public_pem
from tests.proof.attested import attest
from tests.proof.aws import RSA_KEY, START, TrailWriter, keys_json
from tests.proof.test_attestation import APPROVER, KEY, nonces, proven
from tests.proof.test_requests import several

ASKED = tuple(f"REQ-{n}" for n in range(1, 6))
"""An odd number: the last leaf has no partner on two levels."""


@dataclass(frozen=True)
class Signed:
    """A run that was signed by its attester, and what is in its files."""

    folder: Path

    @property
    def envelope(self) -> bytes:
        return (self.folder / "attestation.json").read_bytes()

    @property
    def leaves(self) -> bytes:
        return (self.folder / "evidence" / REQUESTS).read_bytes()

    def proof(self, request: str = "REQ-5") -> dict[str, Any]:
        """The proof of a request, as its file has it."""
        made = prove_request(self.envelope, None, self.leaves, request)
        assert made is not None
        return json.loads(made.to_bytes())  # type: ignore[no-any-return]

    def found(self, proof: object, *requests: str, evidence: bool = False, key: str = "key.pub") -> list[Check]:
        file = self.folder / "given.json"
        file.write_bytes(proof if isinstance(proof, bytes) else json.dumps(proof).encode())
        folder = self.folder / "evidence" if evidence else None
        report = attest_verify(file, [self.folder / key], evidence=folder, requests=requests)
        return [finding.check for finding in report.findings]

    def resigned(self, **requests: Any) -> bytes:
        """The attestation with other words about the requests, signed again by its attester."""
        statement = json.loads(dsse.unseal(self.envelope, ()).payload)
        statement["predicate"]["requests"].update(requests)
        return dsse.seal(canonical(statement), KEY)


def signed(folder: Path, *asked: str) -> Signed:
    folder.mkdir(parents=True)
    said = proven(folder, several(*asked))
    publish(
        lambda history: attest(said, KEY, nonce=nonces(), history=history),
        folder / "attestation.json",
        folder / "evidence",
        AttestationLog(folder / "attestations.jsonl"),
        "plan-1",
    )
    (folder / "key.pub").write_bytes(public_pem(KEY.public_key()))
    (folder / "other.pub").write_bytes(public_pem(APPROVER.public_key()))
    return Signed(folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    return signed(tmp_path_factory.mktemp("run") / "a", *ASKED)


@pytest.fixture(scope="module")
def another(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    """Another run by the same attester, which answers a request of the same name."""
    return signed(tmp_path_factory.mktemp("run") / "b", "REQ-7", "REQ-5")


def test_each_request_is_proved_and_no_file_names_another(made: Signed) -> None:
    for request in ASKED:
        proof = made.proof(request)
        assert made.found(proof, request) == []
        assert made.found(proof, request, evidence=True) == []
        assert [other for other in ASKED if other in json.dumps(proof)] == [request]
        payload = dsse.unseal(proof["attestation"].encode(), ()).payload
        assert not any(word in payload for word in (b"REQ-", b"subj_"))
    assert made.found(made.proof("REQ-1"), "REQ-2") == [Check.REQUEST]
    assert made.found(made.proof("REQ-1"), "REQ-2", "REQ-1") == [Check.REQUEST]
    assert made.found(made.proof("REQ-1"), key="other.pub") == [Check.FOREIGN_KEY]


def test_pymerkle_agrees(made: Signed) -> None:
    pymerkle = pytest.importorskip("pymerkle")
    tree = pymerkle.InmemoryTree(algorithm="sha256")
    for line in made.leaves.splitlines():
        tree.append_entry(line)
    proof = made.proof()
    theirs = tree.prove_inclusion(proof["index"] + 1, len(ASKED))
    assert proof["path"] == theirs.serialize()["path"][1:]
    pymerkle.verify_inclusion(merkle_tree.leaf_hash(canonical(proof["request"])), tree.get_root(), theirs)


Forge = Callable[[dict[str, Any], Signed, Signed], object]


def of_another_request(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    """Her own name in place of that of somebody who was erased."""
    proof["request"] |= {"id": "REQ-9", "subject": "subj_REQ-9"}


def under_the_statement_of_another_run(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    """Both runs have a request of this name, and both are signed by the same key."""
    proof["attestation"] = another.envelope.decode()


def leaf_and_path_of_another_run(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    proof.update({name: another.proof()[name] for name in ("request", "index", "path")})


def path_of_another(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    proof.update({name: made.proof("REQ-2")[name] for name in ("index", "path")})


def path_cut(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    proof["path"] = made.proof("REQ-1")["path"][:-1]
    proof |= {"request": made.proof("REQ-1")["request"], "index": 0}


def path_longer(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    proof["path"].append("00" * 32)


def leaf_for_a_node(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    """A node taken for a leaf: the path of its level alone leads to the root."""
    first = made.proof("REQ-1")
    proof |= {"index": 0, "path": first["path"][1:]}


def last_leaf_as_its_own_partner(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    """Trees that pair an odd leaf with itself give one root to two lists."""
    leaf = merkle_tree.leaf_hash(canonical(proof["request"]))
    proof |= {"path": [leaf.hex(), *proof["path"]]}


def index_beyond_the_last(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    proof["index"] += 1


def without_its_salt(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    proof["request"].pop("salt")


def short_salt(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    proof["request"]["salt"] = ""


def other_salt(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    proof["request"]["salt"] = "f" * 32


def more_in_the_leaf(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    proof["request"]["erased"] = True


def more_in_the_proof(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    proof["tree_size"] = 5


def index_below_zero(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    proof["index"] = -1


def hash_of_another_length(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    proof["path"][0] = proof["path"][0][:-2]


def stamp_that_is_none(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    proof["stamp"] = "no base64!"


def attestation_that_is_none(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    proof["attestation"] = "{}"


def attestation_in_surrogates(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    proof["attestation"] = "\ud800"


def fewer_counted(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    """Nobody but the attester can do that."""
    proof["attestation"] = made.resigned(count=4).decode()


def more_counted(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    proof["attestation"] = made.resigned(count=9).decode()


def none_counted(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    proof["attestation"] = made.resigned(count=0).decode()


def count_without_form(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    proof["attestation"] = made.resigned(count=None).decode()


def truncated_tree(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    """Her leaf is left out, and the others are signed again."""
    proof["attestation"] = made.resigned(**said_of(made.leaves.splitlines()[:4])).decode()


def edited_statement(proof: dict[str, Any], made: Signed, another: Signed) -> None:
    envelope = json.loads(proof["attestation"])
    envelope["payload"] = json.loads(made.resigned(count=6))["payload"]
    proof["attestation"] = json.dumps(envelope)


@pytest.mark.parametrize(
    ("forge", "check"),
    [
        (of_another_request, Check.INCLUSION),
        (under_the_statement_of_another_run, Check.INCLUSION),
        (leaf_and_path_of_another_run, Check.INCLUSION),
        (path_of_another, Check.INCLUSION),
        (path_cut, Check.INCLUSION),
        (path_longer, Check.INCLUSION),
        (leaf_for_a_node, Check.INCLUSION),
        (last_leaf_as_its_own_partner, Check.INCLUSION),
        (index_beyond_the_last, Check.INCLUSION),
        (other_salt, Check.INCLUSION),
        (fewer_counted, Check.INCLUSION),
        (more_counted, Check.INCLUSION),
        (none_counted, Check.INCLUSION),
        (truncated_tree, Check.INCLUSION),
        (edited_statement, Check.SIGNATURE),
        (without_its_salt, Check.FORM),
        (short_salt, Check.FORM),
        (more_in_the_leaf, Check.FORM),
        (more_in_the_proof, Check.FORM),
        (index_below_zero, Check.FORM),
        (hash_of_another_length, Check.FORM),
        (stamp_that_is_none, Check.FORM),
        (attestation_that_is_none, Check.FORM),
        (attestation_in_surrogates, Check.FORM),
        (count_without_form, Check.FORM),
    ],
    ids=lambda item: item.__name__ if callable(item) else None,
)
def test_what_is_forged_is_found(made: Signed, another: Signed, forge: Forge, check: Check) -> None:
    proof = made.proof()
    assert made.found(proof) == []
    forge(proof, made, another)
    assert made.found(proof) == [check]


def test_what_does_not_hold_is_about_nobody(made: Signed, capsys: pytest.CaptureFixture[str]) -> None:
    proof = made.proof()
    proof["request"] |= {"id": "REQ-9", "subject": "subj_REQ-9"}
    (made.folder / "given.json").write_text(json.dumps(proof))
    words = ["attest", "verify", str(made.folder / "given.json"), "--key", str(made.folder / "key.pub")]
    assert command(words) == 1
    assert "REQ-9" not in capsys.readouterr().out
    assert command([*words, "--request", "REQ-9"]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("about 1 request that nothing here names\n")
    assert "✘ request: the attestation is not about REQ-9\n" in shown


def test_no_node_of_the_tree_passes_for_a_leaf(made: Signed) -> None:
    """A leaf is hashed behind a 0 and a node behind a 1, so the two hashes below a node are no leaf of this hash."""
    left, right = (merkle_tree.leaf_hash(line) for line in made.leaves.splitlines()[:2])
    assert merkle_tree.leaf_hash(left + right) != merkle_tree.node_hash(left, right)
    with pytest.raises(ValueError, match="a line is not a request"):
        read_leaves(left.hex().encode() + right.hex().encode() + b"\n")


def test_the_last_leaf_twice_gives_another_root_at_every_size(made: Signed) -> None:
    lines = made.leaves.splitlines()
    for size in range(1, len(lines) + 1):
        assert said_of(lines[:size])["root"] != said_of([*lines[:size], lines[size - 1]])["root"]


def test_a_hash_beside_hers_cannot_be_guessed_without_its_salt(made: Signed) -> None:
    """Whoever knows all of another request but its salt tries each way to write it, and her own salt too."""
    proof = made.proof("REQ-1")
    body = {"id": "REQ-2", "subject": "subj_REQ-2", "law": "dpdp"}
    tries = [body, body | {"salt": ""}, body | {"salt": "0" * 32}, body | {"salt": proof["request"]["salt"]}]
    assert not {merkle_tree.leaf_hash(canonical(one)).hex() for one in tries} & set(proof["path"])
    known = body | {"salt": salts_in(made.leaves)["REQ-2"]}
    assert merkle_tree.leaf_hash(canonical(known)).hex() == proof["path"][0]
    assert len(set(salts_in(made.leaves).values())) == len(ASKED)


def test_requests_that_are_not_the_attestations_prove_nothing(made: Signed, another: Signed) -> None:
    lines = made.leaves.splitlines(keepends=True)
    for leaves in (
        another.leaves,
        b"".join(lines[:4]),
        b"".join([*lines, lines[-1]]),
        b"".join([lines[1], lines[0], *lines[2:]]),
        made.leaves[:-1],
        made.leaves + b"\n",
        b"",
    ):
        with pytest.raises(ProofError, match="does not belong to this attestation"):
            prove_request(made.envelope, None, leaves, "REQ-5")
    with pytest.raises(ProofError, match="does not belong to this attestation"):
        prove_request(b"{}", None, made.leaves, "REQ-5")
    assert prove_request(made.envelope, None, made.leaves, "REQ-9") is None


def test_two_leaves_of_one_request_are_refused(made: Signed) -> None:
    """One says another law, and who signs could show either."""
    first = read_leaves(made.leaves)[0]
    again = RequestLeaf(id=first.id, subject=first.subject, law="gdpr", salt="e" * 32)
    lines = [first.line(), again.line()]
    with pytest.raises(ValueError, match="the same id or the same salt"):
        leaves_under(said_of(lines), b"".join(line + b"\n" for line in lines))


def test_evidence_that_was_changed_is_found_with_the_proof_too(tmp_path: Path) -> None:
    run = signed(tmp_path / "a", *ASKED)
    proof = run.proof()
    (run.folder / "evidence" / "plan.json").write_bytes(b"{}")
    assert run.found(proof, "REQ-5") == []
    assert run.found(proof, "REQ-5", evidence=True) == [Check.PLAN]
    (run.folder / "evidence" / REQUESTS).unlink()
    assert run.found(proof, "REQ-5", evidence=True) == [Check.MISSING, Check.PLAN]


def test_a_trail_needs_the_evidence(made: Signed, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    TrailWriter(tmp_path / "trail").hour(START)
    (tmp_path / "keys.json").write_bytes(keys_json(RSA_KEY))
    (tmp_path / "proof.json").write_text(json.dumps(made.proof()))
    words = ["attest", "verify", str(tmp_path / "proof.json"), "--key", str(made.folder / "key.pub")]
    words += ["--trail", str(tmp_path / "trail"), "--trail-keys", str(tmp_path / "keys.json")]
    assert command(words) == 2
    assert "--evidence" in capsys.readouterr().err
    command([*words, "--evidence", str(made.folder / "evidence")])
    assert "unmatched_deletion" in capsys.readouterr().out


@pytest.mark.parametrize("wrong", [b"", b"[]", b"{}", b"[" * 100_000, b'{"attestation": 1, "attestation": 2}', b"\xff"])
def test_what_is_neither_proof_nor_attestation_is_refused(made: Signed, wrong: bytes) -> None:
    assert proof_in(wrong) is None
    assert made.found(wrong) == [Check.FORM]


def test_whole_attestations_are_no_proofs_of_one(made: Signed) -> None:
    assert proof_in(made.envelope) is None
    assert proof_in(json.dumps(made.proof()).encode()) is not None


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_changed_byte_of_a_proof_is_found_or_changes_nothing(made: Signed, data: st.DataObject) -> None:
    whole = json.dumps(made.proof()).encode()
    place = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda b: b != whole[place]))
    changed = whole[:place] + bytes([byte]) + whole[place + 1 :]
    if not made.found(changed, "REQ-5"):
        before, after = proof_in(whole), proof_in(changed)
        assert before is not None
        assert after is not None
        assert (after.request, after.index) == (before.request, before.index)
        assert [bytes.fromhex(node) for node in after.path] == [bytes.fromhex(node) for node in before.path]
        # white space of the envelope around: the signed bytes are the same
        assert dsse.unseal(after.envelope, ()).payload == dsse.unseal(before.envelope, ()).payload
