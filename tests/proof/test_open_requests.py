"""A run that left something of one person alone: the others are attested, and nobody can pass her off as erased."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pii_tracer.app.execution.attesting import attest_run
from pii_tracer.app.execution.plan_run import Ran
from pii_tracer.app.proof.attestation_checks import proof_of_request
from pii_tracer.cli.main import run as command
from pii_tracer.model.canonical_json import canonical
from pii_tracer.model.errors import ProofError, UsageError
from pii_tracer.proof.attestation import basis_of
from pii_tracer.proof.attestation_verifier import verify_attestation
from pii_tracer.proof.evidence_leaves import bodies_in
from pii_tracer.proof.findings import Check
from pii_tracer.proof.open_requests import LEFT_OF, OpenRequest, left_in
from pii_tracer.proof.requests_tree.request_leaves import REQUESTS, RequestLeaf, read_leaves, said_of
from pii_tracer.review import dsse
from pii_tracer.review.trusted_keys import load_private
from pii_tracer.run.journal import parse
from pii_tracer.verify.verdicts import ByteVerdict, CopyVerdict, Residue, RunVerdict
from tests.proof.attested import requests_of
from tests.proof.test_attestation import nonces, proven
from tests.proof.test_requests import CLEAN, SCOPE, ran, several

ASKED = ("REQ-1", "REQ-2", "REQ-3")
HERS = "subj_REQ-2"
STILL = (OpenRequest(request="REQ-2", subject=HERS, place="c1"),)
FOUND = Residue(copy_id="c1", file="late.parquet", where="data: mail", form="text")
LEFT = RunVerdict(
    copies=(
        CopyVerdict(
            copy_id="c1",
            bytes=ByteVerdict(copy_id="c1", root="/", files=SCOPE, residue=(FOUND,)),
            left_of=(HERS,),
        ),
    )
)


def salt(request: str) -> str:
    return sha256(request.encode()).hexdigest()[:32]


@pytest.fixture
def done(tmp_path: Path) -> Ran:
    made = ran(tmp_path, several(*ASKED))
    assert attest_run(made, LEFT, (), STILL) == made.folder.attestation
    return made


def predicate(envelope: Path) -> dict[str, Any]:
    return cast(dict[str, Any], dsse.unseal(envelope.read_bytes(), ()).statement["predicate"])


def test_the_others_are_attested_and_she_is_not(done: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    folder = done.folder
    assert requests_of(folder.attestation) == ("REQ-1", "REQ-3")
    said = predicate(folder.attestation)
    assert said["open"] == {"requests": 1}
    assert "of the run, still open" in said["statement"]
    key = str(folder.state / "keys" / "attest.pem.pub")
    assert command(["attest", "verify", str(folder.attestation), "--key", key]) == 0
    prove = ["attest", "prove", "plan-1", "--state", str(folder.state), "--request"]
    for name in ("REQ-1", "REQ-3"):
        assert command([*prove, name]) == 0
        assert b"REQ-2" not in folder.proof_of(name).read_bytes()
        assert command(["attest", "verify", str(folder.proof_of(name)), "--key", key, "--request", name]) == 0
    assert command([*prove, "REQ-2"]) == 2
    assert not folder.proof_of("REQ-2").exists()
    assert "the run answered no request `REQ-2`" in capsys.readouterr().err


def test_residue_that_is_nobodys_keeps_all_from_being_attested(tmp_path: Path) -> None:
    made = ran(tmp_path, several(*ASKED))
    other = FOUND.model_copy(update={"copy_id": "(new) w/found"})
    elsewhere = (ByteVerdict(copy_id=other.copy_id, root="/", files=(), residue=(other,)),)
    everybody = tuple(OpenRequest(request=r, subject=f"subj_{r}", place="c1") for r in ASKED)
    assert attest_run(made, LEFT, elsewhere, STILL) is None
    assert attest_run(made, LEFT, (), ()) is None
    assert attest_run(made, LEFT, (), everybody) is None
    assert not made.folder.attestation.exists()


def test_she_is_attested_once_nothing_is_left_of_her_and_never_before(done: Ran) -> None:
    attest_run(done, LEFT, (), STILL)
    folder = done.folder
    before = folder.attestation.read_bytes()
    attest_run(done, LEFT, (), STILL)
    assert folder.attestation.read_bytes() == before
    attest_run(done, CLEAN, ())
    assert requests_of(folder.attestation) == ASKED
    assert "open" not in predicate(folder.attestation)
    hers = proof_of_request(folder, "REQ-2")
    attest_run(done, LEFT, (), STILL)  # and again, should somebody bring her back
    assert requests_of(folder.attestation) == ("REQ-1", "REQ-3")
    public = load_private(folder.state / "keys" / "attest.pem").public_key()
    old = verify_attestation(hers.envelope, folder.evidence, [public], of=hers)
    assert Check.INCLUSION in {f.check for f in old.findings}
    with pytest.raises(UsageError, match="answered no request"):
        proof_of_request(folder, "REQ-2")


def test_a_proof_of_before_she_came_back_no_longer_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = ran(tmp_path, several(*ASKED))
    attest_run(made, CLEAN, ())
    file, state = tmp_path / "hers.json", made.folder.state
    file.write_bytes(proof_of_request(made.folder, "REQ-2").to_bytes())
    words = ["attest", "verify", str(file), "--key", str(state / "keys" / "attest.pem.pub"), "--request", "REQ-2"]
    log = ["--log", str(state / "attestations.jsonl")]
    assert command([*words, *log]) == 0
    attest_run(made, LEFT, (), STILL)
    capsys.readouterr()
    assert command([*words, *log]) == 1
    assert "consistency: the run was attested again later" in capsys.readouterr().out
    assert command(words) == 0
    assert "not checked: later attestations" in capsys.readouterr().out
    file.write_bytes(proof_of_request(made.folder, "REQ-1").to_bytes())
    assert command([*words[:-1], "REQ-1", *log]) == 0


def test_an_attester_refuses_whom_the_journal_calls_left(tmp_path: Path) -> None:
    told = proven(tmp_path, several(*ASKED), notes={LEFT_OF: [HERS]})
    assert left_in(parse(told.journal)[0]) == {HERS}
    with pytest.raises(ProofError, match="data is left of a person"):
        basis_of(told, nonce=nonces(), salt=salt)
    answered = read_leaves(basis_of(replace(told, still=STILL), nonce=nonces(), salt=salt).evidence[REQUESTS])
    assert [leaf.id for leaf in answered] == ["REQ-1", "REQ-3"]


Forge = Callable[[dict[str, Any], Path], None]


def resealed(done: Ran, envelope: Path, forge: Forge) -> set[Check]:
    return {check for check, _ in found_in(done, envelope, forge)}


def found_in(done: Ran, envelope: Path, forge: Forge) -> list[tuple[Check, str]]:
    """What a check finds when whoever has the attester's key changed the attestation and its evidence."""
    private = load_private(done.folder.state / "keys" / "attest.pem")
    statement = json.loads(dsse.unseal(envelope.read_bytes(), ()).payload)
    forge(statement["predicate"], done.folder.evidence)
    found = verify_attestation(dsse.seal(canonical(statement), private), done.folder.evidence, [private.public_key()])
    return [(finding.check, finding.message) for finding in found.findings]


def asked(said: dict[str, Any], evidence: Path, *ids: str) -> None:
    """The attestation is about these, with leaves, root and count to match."""
    leaves = [RequestLeaf(id=i, subject=f"subj_{i}", law="dpdp", salt=salt(i)).line() for i in ids]
    (evidence / REQUESTS).write_bytes(b"".join(line + b"\n" for line in leaves))
    said["requests"] = said_of(leaves)


def hers(said: dict[str, Any], evidence: Path) -> None:
    """An attestation of others made hers."""
    asked(said, evidence, "REQ-2")


def among_the_erased(said: dict[str, Any], evidence: Path) -> None:
    asked(said, evidence, *ASKED)
    said.pop("open")


def in_place_of_another(said: dict[str, Any], evidence: Path) -> None:
    """The number is right, and she is one of them."""
    asked(said, evidence, "REQ-1", "REQ-2")


def without_another(said: dict[str, Any], evidence: Path) -> None:
    asked(said, evidence, "REQ-1")


def not_told(said: dict[str, Any], evidence: Path) -> None:
    said.pop("open")


def named(said: dict[str, Any], evidence: Path) -> None:
    """She is named in what everybody else gets."""
    said["open"] = {"requests": 1, "ids": ["REQ-2"]}


def without_the_leaf(said: dict[str, Any], evidence: Path) -> None:
    """All of it: her leaf is gone, and everything is computed and signed again."""
    among_the_erased(said, evidence)
    bodies = [body for body in bodies_in((evidence / "leaves.jsonl").read_bytes()) if body["kind"] != "open"]
    data = b"".join(canonical(body) + b"\n" for body in bodies)
    (evidence / "leaves.jsonl").write_bytes(data)
    said["merkle"] = {"root": said_of(data.splitlines())["root"], "leaves": len(bodies)}


@pytest.mark.parametrize(
    ("forge", "messages"),
    [
        (hers, ["lists a request that is still open"]),
        (among_the_erased, ["not have the same number of open requests", "lists a request that is still open"]),
        (in_place_of_another, ["lists a request that is still open"]),
        (without_another, ["does not list all answered requests"]),
        (not_told, ["not have the same number of open requests"]),
        (named, ["not have the same number of open requests"]),
    ],
    ids=lambda item: item.__name__ if callable(item) else None,
)
def test_whatever_moves_her_to_the_erased_is_found(done: Ran, forge: Forge, messages: list[str]) -> None:
    assert found_in(done, done.folder.attestation, lambda said, evidence: None) == []
    found = found_in(done, done.folder.attestation, forge)
    assert {check for check, _ in found} == {Check.OPEN}
    assert [any(message.endswith(end) for _, message in found) for end in messages] == [True] * len(found)


def test_even_without_her_leaf_the_journal_tells(tmp_path: Path) -> None:
    made = ran(tmp_path, several(*ASKED), notes={LEFT_OF: [HERS]})
    attest_run(made, LEFT, (), STILL)
    private = load_private(made.folder.state / "keys" / "attest.pem")
    honest = made.folder.attestation.read_bytes()
    assert verify_attestation(honest, made.folder.evidence, [private.public_key()]).findings == ()
    assert resealed(made, made.folder.attestation, without_the_leaf) == {Check.OPEN}
    # and whoever holds another's attestation of the run sees that the leaves are not hers
    found = verify_attestation(honest, made.folder.evidence, [private.public_key()]).findings
    assert Check.INCLUSION in {finding.check for finding in found}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(about=st.sets(st.sampled_from(ASKED), min_size=1), count=st.integers(0, 3))
def test_only_the_true_split_of_the_requests_holds(done: Ran, about: set[str], count: int) -> None:
    """Model: about all others and never about her; and one open request, which is hers."""

    def forge(told: dict[str, Any], evidence: Path) -> None:
        asked(told, evidence, *sorted(about))
        told["open"] = {"requests": count}

    holds = about == {"REQ-1", "REQ-3"} and count == 1
    assert (resealed(done, done.folder.attestation, forge) == set()) == holds
