"""Each check of an attestation by itself: exactly one thing is wrong, and exactly that is found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.model.canonical_json import canonical
from pii_tracer.model.plan import digest_of
from pii_tracer.proof import attestation_verifier, merkle_tree, untrusted_json
from pii_tracer.proof.attestation_verifier import Given, previous_of, verify_attestation
from pii_tracer.proof.evidence_leaves import lines_digest
from pii_tracer.proof.findings import Check
from pii_tracer.proof.requests_tree.request_leaves import said_of
from pii_tracer.review import approval, dsse
from pii_tracer.run.journal import Journal, Kind, parse
from tests.proof.test_attestation import APPROVER, KEY, made
from tests.run.fakes import Ticking
from tests.run.placed import put_journal

OTHER = "sha256:" + "0" * 64


@dataclass
class Proof:
    """An attestation that is opened, to be altered and signed again by its own attester, and its evidence."""

    statement: dict[str, Any]
    folder: Path

    @property
    def claims(self) -> dict[str, Any]:
        return self.statement["predicate"]

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        (self.folder / name).write_bytes(data)

    def leaves(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.read("leaves.jsonl").splitlines()]

    def plant(self, leaves: Iterable[dict[str, Any]]) -> None:
        """Other leaves, and the root that they give."""
        lines = [canonical(leaf) for leaf in leaves]
        self.write("leaves.jsonl", b"".join(line + b"\n" for line in lines))
        root = merkle_tree.root([merkle_tree.leaf_hash(line) for line in lines])
        self.claims["merkle"].update(leaves=len(lines), root=root.hex())

    def ask(self, leaves: Iterable[dict[str, Any]]) -> None:
        """Other requests, and the root that they give."""
        lines = [canonical(leaf) for leaf in leaves]
        self.write("requests.jsonl", b"".join(line + b"\n" for line in lines))
        self.claims["requests"] = said_of(lines)

    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.read("requests.jsonl").splitlines()]

    def approve(self, data: bytes) -> None:
        """Another approval, as the attestation says."""
        self.write("approvals/000.json", data)
        self.claims["approvals"] = [digest_of(data)]

    def write_journal(self, told: Iterable[tuple[Kind, dict[str, Any]]]) -> dict[int, str]:
        """Another journal, chained as one is, and its end; the hash of each record by its number."""
        journal = Journal.open(self.folder.parent / "other.jsonl", Ticking())
        hashes = {number: journal.append(kind, **facts).hash for number, (kind, facts) in enumerate(told)}
        self.write("journal.jsonl", journal.path.read_bytes())
        self.claims["journal"].update(head=journal.head, records=len(hashes))
        return hashes

    def findings(self, given: Given | None = None) -> list[tuple[Check, str]]:
        envelope = dsse.seal(canonical(self.statement), KEY)
        given = given or Given(approvers=[APPROVER.public_key()])
        found = verify_attestation(envelope, self.folder, [KEY.public_key()], given)
        return [(f.check, f.message) for f in found.findings]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Path]:
    folder = tmp_path_factory.mktemp("proof")
    return made(folder), folder / "evidence"


@pytest.fixture
def proof(original: tuple[bytes, Path], tmp_path: Path) -> Proof:
    envelope, evidence = original
    shutil.copytree(evidence, tmp_path / "evidence")
    return Proof(json.loads(dsse.unseal(envelope, [KEY.public_key()]).payload), tmp_path / "evidence")


def test_what_is_signed_again_unchanged_holds(proof: Proof) -> None:
    assert proof.findings() == []


def plan_of_other_bytes(proof: Proof) -> None:
    proof.write("plan.json", proof.read("plan.json") + b"\n")


def another_request(proof: Proof) -> None:
    proof.ask(leaf | {"law": "another law"} for leaf in proof.requests())


def step_not_attested(proof: Proof) -> None:
    del proof.claims["steps"][-1]


def journal_that_is_no_chain(proof: Proof) -> None:
    lines = proof.read("journal.jsonl").splitlines(keepends=True)
    proof.write("journal.jsonl", b"".join([lines[0], *lines[2:]]))


def journal_that_is_torn(proof: Proof) -> None:
    proof.write("journal.jsonl", proof.read("journal.jsonl") + b'{"seq"')


def journal_of_another_head(proof: Proof) -> None:
    proof.claims["journal"]["head"] = "0" * 64


def journal_of_another_length(proof: Proof) -> None:
    proof.claims["journal"]["records"] += 1


def journal_of_another_plan(proof: Proof) -> None:
    journal = Journal.open(put_journal(proof.folder.parent / "other.jsonl", proof.read("journal.jsonl")), Ticking())
    journal.append(Kind.RUN_STARTED, plan_digest=OTHER)
    proof.write("journal.jsonl", journal.path.read_bytes())
    proof.claims["journal"].update(head=journal.head, records=len(journal.records))


def record_of_no_verification(proof: Proof) -> None:
    """A record of the journal that does not say that the step was verified; leaves and claims agree on it."""
    records, _ = parse(proof.read("journal.jsonl"))
    step = proof.claims["steps"][0]
    intent = next(r.hash for r in records if r.kind is Kind.STEP_INTENT)
    proof.plant(leaf | {"record": intent} if leaf.get("record") == step["record"] else leaf for leaf in proof.leaves())
    step["record"] = intent


def record_of_another_step(proof: Proof) -> None:
    first, second = proof.claims["steps"][0], proof.claims["steps"][1]
    proof.plant(
        leaf | {"record": second["record"]} if leaf.get("record") == first["record"] else leaf
        for leaf in proof.leaves()
    )
    first.update(record=second["record"])


def other_facts(proof: Proof) -> None:
    proof.claims["steps"][0]["seen"] = {"rows": 5}


def other_result(proof: Proof) -> None:
    proof.claims["steps"][0]["result"] = {"snapshot": "7"}


def leaf_cut(proof: Proof) -> None:
    proof.write("leaves.jsonl", proof.read("leaves.jsonl").removesuffix(b"\n"))


def other_number_of_leaves(proof: Proof) -> None:
    proof.claims["merkle"]["leaves"] += 1


def other_root(proof: Proof) -> None:
    proof.claims["merkle"]["root"] = "0" * 64


def step_without_leaf(proof: Proof) -> None:
    proof.plant(leaf for leaf in proof.leaves() if leaf.get("step") != "c1/1")


def subject_without_leaf(proof: Proof) -> None:
    proof.statement["subject"][0]["digest"] = {"sha256": "0" * 64}


def copy_without_leaf(proof: Proof) -> None:
    proof.plant(leaf for leaf in proof.leaves() if leaf.get("kind") != "erased")
    plan = proof.claims["plan"]["digest"].removeprefix("sha256:")
    proof.statement["subject"] = [{"name": "plan", "digest": {"sha256": plan}}]


def request_cut(proof: Proof) -> None:
    proof.write("requests.jsonl", proof.read("requests.jsonl").removesuffix(b"\n"))


def other_number_of_requests(proof: Proof) -> None:
    proof.claims["requests"]["count"] += 1


def other_root_of_requests(proof: Proof) -> None:
    proof.claims["requests"]["root"] = "0" * 64


def request_with_more(proof: Proof) -> None:
    proof.ask(leaf | {"name": "x"} for leaf in proof.requests())


def request_without_salt(proof: Proof) -> None:
    proof.ask({name: text for name, text in leaf.items() if name != "salt"} for leaf in proof.requests())


def request_in_another_form(proof: Proof) -> None:
    line = json.dumps(proof.requests()[0]).encode()
    proof.write("requests.jsonl", line + b"\n")
    proof.claims["requests"] = said_of([line])


def request_twice(proof: Proof) -> None:
    proof.ask([*proof.requests(), proof.requests()[0] | {"salt": "f" * 32}])


def two_with_one_salt(proof: Proof) -> None:
    proof.ask([*proof.requests(), proof.requests()[0] | {"id": "REQ-2"}])


def other_scope(proof: Proof) -> None:
    proof.claims["scope"]["digest"] = OTHER


def scope_cut(proof: Proof) -> None:
    proof.write("scope.jsonl", proof.read("scope.jsonl").removesuffix(b"\n"))


def other_number_in_scope(proof: Proof) -> None:
    proof.claims["scope"]["files"] += 1


def empty_scope(proof: Proof) -> None:
    proof.write("scope.jsonl", b"\n")
    proof.claims["scope"].update(digest=lines_digest([b""]), files=1)


def no_approval(proof: Proof) -> None:
    (proof.folder / "approvals" / "000.json").unlink()
    proof.claims["approvals"] = []


def approval_of_other_bytes(proof: Proof) -> None:
    proof.write("approvals/000.json", proof.read("approvals/000.json") + b"\n")


def approval_that_is_none(proof: Proof) -> None:
    proof.approve(b"yes")


def approval_of_another_plan(proof: Proof) -> None:
    proof.approve(dsse.seal(_said(proof, [{"name": "p", "digest": {"sha256": "0" * 64}}], None), APPROVER))


def approval_of_another_kind(proof: Proof) -> None:
    proof.approve(dsse.seal(_said(proof, None, "https://pii-tracer.dev/other/v1"), APPROVER))


def approval_by_somebody_else(proof: Proof) -> None:
    proof.approve(dsse.seal(_said(proof, None, None), KEY))


def _said(proof: Proof, subject: list[dict[str, Any]] | None, kind: str | None) -> bytes:
    said = dict(dsse.unseal(proof.read("approvals/000.json"), ()).statement)
    assert said["predicateType"] == approval.PREDICATE_TYPE
    return canonical(said | ({"subject": subject} if subject else {}) | ({"predicateType": kind} if kind else {}))


def claims_without_form(proof: Proof) -> None:
    del proof.claims["journal"]["head"]


@pytest.mark.parametrize(
    ("alter", "check", "message"),
    [
        (plan_of_other_bytes, Check.PLAN, "the bytes of the plan differ from the attested ones"),
        (another_request, Check.PLAN, "the attestation concerns a different request than the plan"),
        (step_not_attested, Check.COVERAGE, "1 step of the plan is not attested"),
        (journal_that_is_torn, Check.JOURNAL, "the journal does not end at the attested position"),
        (journal_of_another_head, Check.JOURNAL, "the journal does not end at the attested position"),
        (journal_of_another_length, Check.JOURNAL, "the journal does not end at the attested position"),
        (journal_of_another_plan, Check.JOURNAL, "the journal belongs to a different plan"),
        (record_of_no_verification, Check.JOURNAL, "the journal does not show that step c1/1 was verified"),
        (record_of_another_step, Check.JOURNAL, "the journal does not show that step c1/1 was verified"),
        (other_facts, Check.JOURNAL, "the journal shows a different result of step c1/1"),
        (other_result, Check.JOURNAL, "the journal shows a different result of step c1/1"),
        (leaf_cut, Check.INCLUSION, "the last leaf is truncated"),
        (other_number_of_leaves, Check.INCLUSION, "the number of leaves differs"),
        (other_root, Check.INCLUSION, "the leaves do not match the root"),
        (step_without_leaf, Check.INCLUSION, "step c1/1 is in no leaf"),
        (subject_without_leaf, Check.INCLUSION, "subject s3://b/k?versionId=v1 is in no leaf"),
        (copy_without_leaf, Check.COVERAGE, "copy c1 of the plan is not attested as erased"),
        (request_cut, Check.INCLUSION, "the last request is truncated"),
        (other_number_of_requests, Check.INCLUSION, "the number of requests differs"),
        (other_root_of_requests, Check.INCLUSION, "the requests do not match the root"),
        (request_with_more, Check.INCLUSION, "a line is not a request"),
        (request_without_salt, Check.INCLUSION, "a line is not a request"),
        (request_in_another_form, Check.INCLUSION, "a line is not a request"),
        (request_twice, Check.INCLUSION, "two requests have the same id or the same salt"),
        (two_with_one_salt, Check.INCLUSION, "two requests have the same id or the same salt"),
        (other_scope, Check.SCOPE, "the scope differs from the scanned scope"),
        (scope_cut, Check.SCOPE, "the scope differs from the scanned scope"),
        (other_number_in_scope, Check.SCOPE, "the number of files in scope differs"),
        (empty_scope, Check.SCOPE, "the scope is empty: nothing was verified"),
        (no_approval, Check.APPROVAL, "nobody approved"),
        (approval_of_other_bytes, Check.APPROVAL, "approvals/000.json differs from the attested bytes"),
        (approval_that_is_none, Check.APPROVAL, "approvals/000.json is not an approval"),
        (approval_of_another_plan, Check.APPROVAL, "approvals/000.json approves a different plan"),
        (approval_of_another_kind, Check.APPROVAL, "approvals/000.json approves a different plan"),
        (approval_by_somebody_else, Check.APPROVAL, "approvals/000.json is not signed by a known approver"),
    ],
)
def test_one_thing_is_wrong(proof: Proof, alter: Callable[[Proof], None], check: Check, message: str) -> None:
    alter(proof)
    assert proof.findings() == [(check, message)]


def test_a_journal_that_is_no_chain(proof: Proof) -> None:
    journal_that_is_no_chain(proof)
    ((check, message),) = proof.findings()
    assert check is Check.JOURNAL
    assert message.startswith("the journal is broken")


def test_claims_that_lack_what_they_must_have(proof: Proof) -> None:
    claims_without_form(proof)
    assert proof.findings() == [(Check.FORM, "the attestation or its evidence does not have a valid form")]


def test_a_step_that_was_never_verified_is_neither_attested(proof: Proof) -> None:
    records, _ = parse(proof.read("journal.jsonl"))
    told = [r for r in records if not (r.kind is Kind.STEP_VERIFIED and r.facts["step"] == "c1/2")]
    hashes = proof.write_journal((r.kind, dict(r.facts)) for r in told)
    new = {old.hash: hashes[number] for number, old in enumerate(told)}
    steps = [step for step in proof.claims["steps"] if step["id"] != "c1/2"]
    proof.claims["steps"] = [step | {"record": new[step["record"]]} for step in steps]
    proof.plant(
        leaf | {"record": new[leaf["record"]]} if leaf.get("record") in new else leaf for leaf in proof.leaves()
    )
    assert proof.findings() == [
        (Check.COVERAGE, "1 step of the plan is not attested"),
        (Check.JOURNAL, "1 step of the plan was never verified"),
    ]


def test_a_scope_without_a_byte_is_no_proof(proof: Proof) -> None:
    proof.write("scope.jsonl", b"")
    proof.claims["scope"].update(digest=lines_digest([]), files=0)
    assert (Check.SCOPE, "the scope is empty: nothing was verified") in proof.findings()


def test_a_file_that_is_too_large_is_not_read(proof: Proof, monkeypatch: pytest.MonkeyPatch) -> None:
    large = len(proof.read("journal.jsonl")) - 1
    monkeypatch.setattr(
        attestation_verifier,
        "read_limited",
        lambda path: untrusted_json.read_limited(path, large if path.name == "journal.jsonl" else 2**20),
    )
    ((check, message),) = proof.findings()
    assert (check, message.startswith("journal.jsonl: the file is too large")) == (Check.OVERSIZED, True)


def test_without_approvers_keys_signatures_are_said_to_be_unchecked(proof: Proof) -> None:
    approval_by_somebody_else(proof)
    envelope = dsse.seal(canonical(proof.statement), KEY)
    report = verify_attestation(envelope, proof.folder, [KEY.public_key()])
    assert report.findings == ()
    assert any("signatures of approvals" in note for note in report.notes)


def test_an_attester_who_changed_keys_is_known_by_either(proof: Proof) -> None:
    envelope = dsse.seal(canonical(proof.statement), KEY)
    both = [APPROVER.public_key(), KEY.public_key()]
    assert verify_attestation(envelope, proof.folder, both).findings == ()


def test_what_an_attestation_says_of_itself_is_read_without_a_check(proof: Proof) -> None:
    envelope = dsse.seal(canonical(proof.statement), APPROVER)
    assert previous_of(envelope) is None
    proof.claims["log"]["previous"] = {"attestation": OTHER, "plan": "p1"}
    assert previous_of(dsse.seal(canonical(proof.statement), APPROVER)) == (OTHER, "p1")
    assert previous_of(b"no envelope") is None
