"""Plan files, approvals, policy and drift: what is approved is exactly what was read, and nothing else passes."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from pii_tracer.config.estate_file import Policy
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import Inventory, ObjectSet, ObjectVersion, Ref, RefKind, TableState
from pii_tracer.model.canonical_json import canonical
from pii_tracer.model.datasets import (
    Carries,
    Column,
    DatasetId,
    Format,
    KnownPartitions,
)
from pii_tracer.model.errors import NotApproved, PolicyDenied, ReviewError
from pii_tracer.model.hive_text.layout import TEXT_TABLE
from pii_tracer.model.legal_holds import Hold
from pii_tracer.model.plan import LAPSES, Examined, Gap, Override, PlannedHold, Precondition, digest_of
from pii_tracer.model.waivers import Waiver
from pii_tracer.review import approval, dsse
from pii_tracer.review.drift import MISSING, compare
from pii_tracer.review.plan_file import LoadedPlan, load_plan, parse_plan
from pii_tracer.review.policy_rules import Level, enforce, evaluate, person
from pii_tracer.review.trusted_keys import Approver, generate, load_private, load_trusted, public_pem, trusted_yaml
from tests.review.plans import DEADLINE, DIGEST, NOW, plan, snapshot, step

KEY, OTHER = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (1, 2))
ASHA = Approver(name="asha", role="dpo", public_key=public_pem(KEY.public_key()).decode())
BALA = Approver(name="bala", role="owner", public_key=public_pem(OTHER.public_key()).decode())
LOADED = parse_plan(plan().to_bytes(), "p.plan.json")


def approved(loaded: LoadedPlan = LOADED, key: Ed25519PrivateKey | None = KEY, **changes: Any) -> bytes:
    fields = {
        "approver": "asha",
        "role": "dpo",
        "reason": "REQ-1",
        "expires": NOW + timedelta(hours=24),
        "policy": Policy(version=1),
        "policy_digest": DIGEST,
        "production": key is not None,
        "now": NOW,
        "nonce": "0" * 32,
    }
    return approval.approve(loaded, key, **{**fields, **changes})  # type: ignore[arg-type]


def check(envelopes: list[bytes], **changes: Any) -> tuple[approval.Approval, ...]:
    fields = {
        "policy": Policy(version=1, production_approvers=1),
        "policy_digest": DIGEST,
        "production": True,
        "planner": "chitra",
        "now": NOW + timedelta(hours=1),
        "consumed": None,
        "run": "run-1",
        "trusted": [ASHA, BALA],
        "loaded": LOADED,
    }
    return approval.verify_approvals(envelopes=envelopes, **{**fields, **changes})


def test_a_plan_file_is_read_as_the_bytes_it_is(tmp_path: Path) -> None:
    path = tmp_path / "p.plan.json"
    path.write_bytes(plan().to_bytes() + b"\n")
    loaded = load_plan(path)
    assert loaded.raw == path.read_bytes()
    assert loaded.digest != LOADED.digest
    assert loaded.plan == plan()


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"{", "not JSON"),
        (b"\xff{}", "not JSON"),
        (b'{"format_version": 1, "format_version": 1}', "appears twice"),
        (b'{"format_version": NaN}', "NaN"),
        (b'{"format_version": 1}', "version 1 is not known"),
        (b'{"format_version": true}', "not known"),
        (b"[]", "not known"),
        (b'{"format_version": 2}', "wrong at"),
        (plan().to_bytes().replace(b'"estate": "test"', b'"estate": "test", "extra": 1'), "wrong at extra"),
    ],
)
def test_what_is_no_plan_file_is_refused(raw: bytes, words: str) -> None:
    with pytest.raises(ReviewError, match=words):
        parse_plan(raw, "p.plan.json")


def test_missing_and_too_large_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ReviewError, match="cannot be read"):
        load_plan(tmp_path / "none")
    (tmp_path / "p").write_bytes(LOADED.raw)
    with pytest.raises(ReviewError, match="larger"):
        load_plan(tmp_path / "p", max_bytes=10)


def test_an_approval_holds_and_says_who() -> None:
    (one,) = check([approved()])
    assert (one.predicate.approver, one.signed) == ("asha", True)


def by_hand(**changes: Any) -> bytes:
    """An approval that `approve` would not sign, by another program with the approver's own key."""
    statement = json.loads(dsse.unseal(approved(), []).payload)
    statement["predicate"].update(changes)
    return dsse.seal(canonical(statement), KEY)


@pytest.mark.parametrize("consumed", [None, "run-1"])
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"expires": (NOW + timedelta(hours=1000)).isoformat()}, "1000 hours, and the policy allows 72"),
        ({"expires": (NOW + timedelta(hours=72, seconds=1)).isoformat()}, "the policy allows 72 hours at most"),
        ({"approved_at": (NOW + timedelta(hours=25)).isoformat()}, "expired already"),
        ({"approver": "as\u200bha"}, "cannot be seen"),
    ],
)
def test_what_approve_would_not_sign_apply_and_resume_do_not_take(
    changes: dict[str, Any], words: str, consumed: str | None
) -> None:
    trusted = [ASHA.model_copy(update={"name": changes.get("approver", "asha")})]
    with pytest.raises(NotApproved, match=words):
        check([by_hand(**changes)], trusted=trusted, consumed=consumed)
    assert check([by_hand()], consumed=consumed)


def test_the_signer_is_asked_the_same() -> None:
    with pytest.raises(ReviewError, match="1000 hours, and the policy allows 72"):
        approved(expires=NOW + timedelta(hours=1000))
    with pytest.raises(ReviewError, match="not signed"):
        approved(key=None, production=True)


def test_the_envelope_verifies_with_securesystemslib() -> None:
    def keys(name: str) -> list[SSlibKey]:
        key = (KEY if name == "right" else OTHER).public_key()
        public = SSlibKey.from_crypto(key)
        return [SSlibKey(dsse.keyid(KEY.public_key()), public.keytype, public.scheme, public.keyval)]

    envelope = Envelope.from_dict(json.loads(approved()))
    assert envelope.verify(keys("right"), 1)
    with pytest.raises(VerificationError):
        envelope.verify(keys("wrong"), 1)


@pytest.mark.parametrize(
    ("envelopes", "changes", "words"),
    [
        ([], {}, "there is no approval"),
        ([b"{}"], {}, "not an approval"),
        ([approved()], {"now": NOW + timedelta(hours=24)}, "expired"),
        (
            [approved()],
            {"policy": Policy(version=1, max_approval_hours=1, production_approvers=1)},
            "the policy allows 1 h",
        ),
        ([approved()], {"now": NOW - timedelta(hours=1)}, "future"),
        ([approved()], {"consumed": "run-0"}, "consumed by the run run-0"),
        ([approved()], {"loaded": parse_plan(LOADED.raw + b"\n", "p.plan.json")}, "a different version"),
        ([approved()], {"trusted": [BALA]}, "not made with a trusted key"),
        ([approved()], {"policy_digest": "sha256:00"}, "the policy was changed"),
        ([approved(approver="bala", role="owner")], {}, "differs from its signer"),
        ([approved(role="owner")], {}, "a person or role that differs"),
        ([approved()], {"planner": "asha"}, "person who made the plan is its only approver"),
        ([approved()], {"planner": " Asha "}, "person who made the plan is its only approver"),
        (
            [approved()],
            {"policy": Policy(version=1, production_approvers=1, required_roles=("owner",))},
            "role `owner`",
        ),
        ([approved()], {"policy": Policy(version=1)}, "1 of 2"),
        ([approved(), approved(nonce="1" * 32)], {"policy": Policy(version=1)}, "1 of 2"),
        ([approved(key=None)], {}, "not signed"),
        ([dsse.seal(dsse.statement("x", [], {}), KEY)], {}, "the file was changed, or is not an approval"),
    ],
)
def test_each_reason_not_to_be_approved(envelopes: list[bytes], changes: dict[str, Any], words: str) -> None:
    with pytest.raises(NotApproved, match=words):
        check(envelopes, **changes)


def test_two_people_suffice_and_unsigned_counts_only_locally() -> None:
    two = [approved(), approved(key=OTHER, approver="bala", role="owner")]
    assert len(check(two, policy=Policy(version=1), planner="asha")) == 2
    (one,) = check([approved(key=None)], production=False)
    assert not one.signed


def test_the_run_that_consumed_an_approval_resumes_even_after_it_expired() -> None:
    late, one = NOW + timedelta(days=40), approved()
    assert check([one], consumed="run-1", now=late, begun={digest_of(one)})
    for begun in ((), {digest_of(approved(nonce="another nonce of them"))}):
        with pytest.raises(NotApproved, match="expired") as refused:
            check([one], consumed="run-1", now=late, begun=begun)
        assert "plan again" in str(refused.value.todo), "a crash before the first record: nothing else helps then"


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_no_changed_byte_of_an_approval_passes(data: st.DataObject) -> None:
    whole = bytearray(approved())
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] = data.draw(st.integers(0, 255).filter(lambda b: b != whole[place]))
    try:
        (one,) = check([bytes(whole)])
    except NotApproved:
        return
    # white space between JSON tokens is no part of what is signed
    assert json.loads(whole) == json.loads(approved())
    assert one.signed


def test_another_writing_of_the_same_base64_is_another_approval() -> None:
    whole = approved()
    for name in (b'"payload": "', b'"payload":"', b'"sig": "', b'"sig":"'):
        start = whole.find(name)
        end = whole.find(b'"', start + len(name))
        pads = whole[:end].count(b"=", max(start, 0)) if start >= 0 else 0
        if not pads:
            continue
        place = end - pads - 1
        other = whole[:place] + bytes([whole[place] + 1]) + whole[place + 1 :]
        with pytest.raises(NotApproved):
            check([other])
        return
    raise AssertionError("nothing in the approval is padded")


def test_consumption_is_once_and_for_one_run(tmp_path: Path) -> None:
    assert approval.consumed_by(tmp_path, LOADED.digest) is None
    approval.consume(tmp_path, LOADED.digest, "run-1")
    approval.consume(tmp_path, LOADED.digest, "run-1")
    with pytest.raises(NotApproved, match="run-1"):
        approval.consume(tmp_path, LOADED.digest, "run-2")
    assert approval.consumed_by(tmp_path, LOADED.digest) == "run-1"
    assert len(list(tmp_path.iterdir())) == 1


def test_keys_are_private_and_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    public = generate(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_private(path).public_key() == public
    with pytest.raises(ReviewError, match="already"):
        generate(path)
    path.chmod(0o644)
    with pytest.raises(ReviewError, match="other users"):
        load_private(path)


def test_trusted_approvers_have_a_name_and_a_key_each(tmp_path: Path) -> None:
    path = tmp_path / "approvers.yaml"

    def write(*people: Approver) -> None:
        path.write_text(json.dumps({"version": 1, "approvers": [p.model_dump() for p in people]}))

    write(ASHA, BALA)
    assert load_trusted(path) == (ASHA, BALA)
    write(ASHA, ASHA.model_copy(update={"name": "twin"}))
    with pytest.raises(ReviewError, match="two people"):
        load_trusted(path)
    path.write_text("version: 1\napprovers: !!python/object/apply:os.getcwd []\n")
    with pytest.raises(ReviewError, match="cannot be read"):
        load_trusted(path)


@pytest.mark.parametrize("date", ["20270101", "2027", "'20270101'", "1.7e9", "2027-01-01"])
def test_a_date_of_the_trusted_approvers_that_is_none_is_refused(tmp_path: Path, date: str) -> None:
    file = tmp_path / "trusted.yaml"
    key = public_pem(KEY.public_key()).decode()
    person = f"{{name: a, role: dpo, public_key: {json.dumps(key)}, valid_from: %s}}"
    file.write_text(f"version: 1\napprovers: [{person % '2027-01-01T00:00:00Z'}]\n")
    assert load_trusted(file)[0].valid_from == datetime(2027, 1, 1, tzinfo=timezone.utc)
    file.write_text(f"version: 1\napprovers: [{person % date}]\n")
    with pytest.raises(ReviewError) as refused:
        load_trusted(file)
    assert "2027-01-01T00:00:00Z" in str(refused.value)


@pytest.mark.parametrize("until", [20270101, "20270101", 1.7e9])
def test_a_waiver_until_a_number_is_refused(until: object) -> None:
    with pytest.raises(ValidationError, match="not a date"):
        Waiver.model_validate({"who": "a", "why": "b", "until": until})


def gap(waiver: Waiver | None) -> Gap:
    return Gap(id="g1", dataset=None, kind="unreadable", reason="r", evidence="e", waiver=waiver)


def test_policy_rules() -> None:
    def rules(a_plan: Any, policy: Policy, level: Level = Level.DENY) -> list[str]:
        return [f.rule for f in evaluate(a_plan, policy, production=True, now=NOW) if f.level is level]

    easy = Policy(version=1)
    assert rules(plan(), easy) == []
    assert rules(plan(), Policy(version=1, min_slack_days=31)) == ["min-slack"]
    late = plan().totals.model_copy(update={"finish": NOW + timedelta(days=31), "slack_days": -1.0})
    assert rules(plan(totals=late), easy) == ["min-slack"]
    dear = plan().totals.model_copy(update={"cost": 10.0})
    assert rules(plan(totals=dear), Policy(version=1, max_cost=9.0)) == ["max-cost"]
    assert rules(plan(gaps=[gap(None)]), easy) == ["gaps"]
    assert rules(plan(gaps=[gap(Waiver(who="w", why="y", until=NOW))]), easy) == ["gaps"]
    waived = plan(gaps=[gap(Waiver(who="w", why="y", until=NOW + timedelta(days=1)))])
    assert (rules(waived, easy), rules(waived, easy, Level.WARN)) == ([], ["gaps"])
    immediate = plan(retention="immediate", overrides=[Override(kind="retention", reason="r")])
    assert rules(immediate, easy) == ["immediate-retention"]
    assert rules(immediate, Policy(version=1, allow_immediate_retention=True)) == []
    writing = Precondition(kind="writers_stopped", target="job", expected="false")
    assert rules(plan([step("a", preconditions=(writing,))]), easy) == ["writers-stopped"]
    assert rules(plan(), Policy(version=1, production_approvers=1), Level.WARN) == ["separation-of-duties"]
    with pytest.raises(PolicyDenied, match="min-slack"):
        enforce(evaluate(plan(), Policy(version=1, min_slack_days=31), production=True, now=NOW))


def test_a_deadline_that_is_missed_by_hours_is_told_with_the_hours() -> None:
    due = plan().totals.deadline
    totals = plan().totals.model_copy(update={"finish": due + timedelta(minutes=7), "slack_days": -0.0})
    (found,) = evaluate(plan(totals=totals), Policy(version=1), production=False, now=NOW)
    day = f"{due:%Y-%m-%d}"
    assert f"ends on {day} {due + timedelta(minutes=7):%H:%M:%S} UTC, after the legal deadline {day} " in found.message


def test_a_missed_deadline_is_let_through_only_by_a_policy_that_says_so() -> None:
    late = plan(totals=plan().totals.model_copy(update={"finish": NOW + timedelta(days=31), "slack_days": -1.0}))
    for days in (0, 2, -100_000):
        (found,) = evaluate(late, Policy(version=1, min_slack_days=days), production=False, now=NOW)
        assert (found.rule, found.level) == ("min-slack", Level.DENY)
        assert "allow_late" in found.message
        assert "`retention.derived_days`" in found.message
    (told,) = evaluate(late, Policy(version=1, min_slack_days=2, allow_late=True), production=False, now=NOW)
    assert (told.rule, told.level) == ("min-slack", Level.WARN)
    assert "set aside" in told.message
    (short,) = evaluate(plan(), Policy(version=1, min_slack_days=31, allow_late=True), production=False, now=NOW)
    assert short.level is Level.DENY


@pytest.mark.parametrize(("days", "told"), [(5, True), (10, True), (11, False)])
def test_what_ends_before_the_plan_does_is_told(days: int, told: bool) -> None:
    totals = plan().totals.model_copy(update={"finish": NOW + timedelta(days=10)})
    until = NOW + timedelta(days=days)
    hold = PlannedHold(
        id="H1", kind="legal_hold", basis="b", citation="c", from_=NOW, until=until, approver="a", copies=("c1",)
    )
    waived = gap(Waiver(who="w", why="y", until=until))
    found = evaluate(plan(totals=totals, gaps=[waived], holds=(hold,)), Policy(version=1), production=False, now=NOW)
    assert [(f.rule, f.level) for f in found if "before the plan does" in f.message] == (
        [("gaps", Level.WARN), ("exemptions", Level.WARN)] if told else []
    )


@pytest.mark.parametrize(
    ("from_", "until", "more", "denied"),
    [
        (31, None, {}, True),  # began after the last day that the plan reckoned with
        (29, None, {}, False),  # counted when the plan was made, and keeps nothing in it
        (41, None, {}, False),  # not yet
        (31, 39, {}, False),  # over by now
        (31, None, {"requests": ["REQ-OTHER"]}, False),
        (31, None, {"datasets": ["lake.looked_at"]}, False),
        (31, None, {"datasets": ["lake.c1_written_wrongly"]}, True),
    ],
)
def test_a_hold_that_began_since_the_day_of_the_plan_stops_it(
    from_: int, until: int | None, more: dict[str, Any], denied: bool
) -> None:
    seen = Examined(
        dataset=DatasetId(namespace="file", name="/lake/looked_at"),
        table="lake.looked_at",
        carries=Carries.NONE,
        reason="clean",
    )
    found = evaluate(
        plan(examined=(seen,)),
        Policy(version=1),
        production=False,
        now=NOW + timedelta(days=40),
        holds=(declared_hold(from_, until, **more),),
    )
    assert [f.message.split(",")[0] for f in found if f.rule == "exemptions"] == (
        ["the hold H1 is in force (b"] if denied else []
    )


@pytest.mark.parametrize("name", ["lake.Looked_at", "/lake/looked_at", "lake/looked_at"])
@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_hold_on_a_clean_table_with_partitions_elsewhere_stops_the_plan(elsewhere: bool, name: str) -> None:
    """Files of its partitions can be in any copy of the plan."""
    place = DatasetId(namespace="file", name="/lake/looked_at")
    seen = Examined(dataset=place, table="lake.looked_at", carries=Carries.NONE, reason="clean")
    apart = KnownPartitions(names=("lake.looked_at", "/lake/looked_at"), elsewhere=elsewhere, untold=())
    found = evaluate(
        plan(examined=(seen,), partitioned=(apart,)),
        Policy(version=1),
        production=False,
        now=NOW + timedelta(days=40),
        holds=(declared_hold(31, None, datasets=[name]),),
    )
    assert [f.level for f in found if f.rule == "exemptions"] == [Level.DENY] * elsewhere


def test_a_plan_of_before_partitions_were_recorded_cannot_tell_that_a_hold_keeps_nothing() -> None:
    place = DatasetId(namespace="file", name="/lake/looked_at")
    seen = Examined(dataset=place, table="lake.looked_at", carries=Carries.NONE, reason="clean")
    for partitioned, told in (((), []), (None, ["does not show"])):
        found = evaluate(
            plan(examined=(seen,), partitioned=partitioned),
            Policy(version=1),
            production=False,
            now=NOW + timedelta(days=40),
            holds=(declared_hold(31, None, datasets=["lake.looked_at"]),),
        )
        denied = [f.message for f in found if f.rule == "exemptions" and f.level is Level.DENY]
        assert [words for words in told if words in denied[0]] == told
        assert len(denied) == len(told)


def test_a_hold_that_a_plan_of_a_later_day_takes_for_over_stops_it_today() -> None:
    hold = declared_hold(-100, -1)
    today = NOW - timedelta(days=10)
    assert [f.rule for f in evaluate(plan(), Policy(version=1), production=False, now=today, holds=(hold,))] == [
        "exemptions"
    ]
    assert not evaluate(plan(), Policy(version=1), production=False, now=NOW, holds=(hold,))


def declared_hold(from_: int, until: int | None, **more: Any) -> Hold:
    """A hold from and until so many days after the plan."""
    return Hold.model_validate(
        {
            "id": "H1",
            "kind": "legal_hold",
            "datasets": ["lake.c1"],
            "basis": "b",
            "citation": "c",
            "from": (NOW + timedelta(days=from_)).isoformat(),
            "until": "indefinite" if until is None else (NOW + timedelta(days=until)).isoformat(),
            "approver": "a",
            **more,
        }
    )


def test_a_deadline_that_has_passed_since_is_told() -> None:
    late = DEADLINE + timedelta(hours=1)
    (told,) = evaluate(plan(), Policy(version=1), production=False, now=late)
    assert (told.rule, told.level) == ("min-slack", Level.WARN)
    assert "has passed" in told.message


@pytest.mark.parametrize("gone", [False, True])
def test_a_key_of_two_lines_that_is_left_to_the_lifecycle_is_no_drift(gone: bool) -> None:
    def version(key: str, name: str, **changes: Any) -> ObjectVersion:
        return ObjectVersion(key=key, version_id=name, latest=True, size=1, modified="2026-01-01T00:00:00Z", **changes)

    going, stays = version("p/a\nb", "v1"), version("p/z", "v2")
    there = [version("p/a\nb", "v3", delete_marker=True), stays] if gone else [going, stays]
    found = ObjectSet(
        dataset=DatasetId(namespace="s3://b", name="p"),
        bucket="b",
        prefix="p",
        region="r",
        of="t",
        format=Format.PARQUET,
        versioned=True,
        object_lock=False,
        expires_after_days=3,
        versions=there,
    )
    expected = "\n".join(sorted([going.line + LAPSES, stays.line]))
    planned = Precondition(kind="object_versions", target=found.location, expected=expected)
    inventory = Inventory(tables=(), objects=(found,))
    assert compare(plan([step("s1", preconditions=(planned,))]), inventory) == []


def test_drift_of_every_kind() -> None:
    table = TableState(
        dataset=DatasetId(namespace="file", name="/lake/c1"),
        table="lake.c1",
        location="/lake/c1",
        format=ICEBERG,
        snapshot="s1",
        columns=(Column(name="id", type="bigint"),),
        refs=(Ref(name="audit", kind=RefKind.BRANCH, at="7"),),
        properties={TEXT_TABLE: "{}"},
    )
    clone = table.model_copy(update={"location": "/dev/c1", "clone_of": "/lake/c1"})
    version = ObjectVersion(key="k", version_id="v", latest=True, size=1, modified="2026-01-01")
    objects = ObjectSet(
        dataset=table.dataset, bucket="b", prefix="p", region="r", of="c1", versioned=True, versions=(version,)
    ).model_copy(update={"copied_to": (("c", "p"),)})
    inventory = Inventory(tables=(table, clone), objects=(objects,))
    facts = [
        ("snapshot", "/lake/c1", "s1"),
        ("refs", "/lake/c1", "branch audit=7"),
        ("columns", "/lake/c1", "id bigint"),
        ("text", "/lake/c1", "{}"),
        ("clones", "/lake/c1", "/dev/c1"),
        ("object_versions", "s3://b/p", "k@v"),
        ("replication", "s3://b/p", "to c: p"),
        ("writers_stopped", "job", "true"),
    ]
    same = [Precondition(kind=k, target=t, expected=e) for k, t, e in facts]
    assert compare(plan([step("a", preconditions=tuple(same))]), inventory, {"job": True}) == []
    moved = [p.model_copy(update={"expected": "other"}) for p in same]
    found = compare(plan([step("a", preconditions=tuple(moved))]), inventory, {"job": True})
    assert [(i.kind, i.target, i.found) for i in found] == facts
    empty = compare(plan([step("a", preconditions=tuple(same))]), Inventory(tables=()))
    assert [i.found for i in empty if i.kind != "clones"] == [MISSING] * 7
    unknown = Precondition(kind="weather", target="/lake/c1", expected="fine", hard=False)
    (item,) = compare(plan([step("a", preconditions=(unknown, snapshot("/lake/c1")))]), inventory)
    assert (item.kind, item.hard) == ("weather", False)


def test_what_drift_means_is_said() -> None:
    from pii_tracer.app.review.plan_drift import drift_verdict
    from pii_tracer.review.drift import DriftItem

    hard, soft = (DriftItem("c1", "snapshot", "/lake/c1", "1", "2", hard) for hard in (True, False))
    assert drift_verdict([]) == "no drift"
    assert "the plan can be applied as it is" in drift_verdict([soft, soft])
    assert drift_verdict([hard, soft]) == "2 differences, 1 of which stops a run: make a new plan"


def test_the_drift_command_knows_the_writers_and_exits_by_what_stops_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from pii_tracer.cli.main import run
    from pii_tracer.config.estate_file import file_digest

    (tmp_path / "w").mkdir()
    estate = tmp_path / "e.yaml"
    path = tmp_path / "p.plan.json"
    writer = Precondition(kind="writers_stopped", target="nightly", expected="true")
    for stopped, code, words in (("true", 0, "no drift"), ("false", 6, "make a new plan")):
        estate.write_text(
            "version: 1\nestate: t\nenvironment: local\ncatalogs: {}\nroots: [w]\nlineage: {}\n"
            "subjects: [{name: c, source: s, key: k}]\n"
            f"writers: [{{job: nightly, stopped: {stopped}}}]\n"
        )
        made = plan([step("a", None, preconditions=(writer,)), *plan().steps])
        path.write_bytes(made.model_copy(update={"estate_digest": file_digest(estate)}).to_bytes())
        assert run(["drift", str(path), "--estate", str(estate), "--state", str(tmp_path / "s")]) == code
        assert words in capsys.readouterr().out
    soft = plan([step("a", None, preconditions=(writer.model_copy(update={"hard": False}),)), *plan().steps])
    path.write_bytes(soft.model_copy(update={"estate_digest": file_digest(estate)}).to_bytes())
    assert run(["drift", str(path), "--estate", str(estate), "--state", str(tmp_path / "s")]) == 0
    assert "applied as it is" in capsys.readouterr().out


@pytest.mark.parametrize(
    "other", ["JOS\u00c9", "jose\u0301", "Jos\u200b\u00e9", "\uff2aos\u00e9", " Jos\u00e9\n", "\u202eJos\u00e9"]
)
def test_one_name_in_two_spellings_of_unicode_is_one_person(other: str) -> None:
    assert person(other) == person("Jos\u00e9")
    assert person(other) != person("Josef")


@pytest.mark.parametrize("name", ["as\u200bha", "asha\n", "\u202easha"])
def test_a_name_with_characters_that_cannot_be_seen_is_not_signed(name: str) -> None:
    with pytest.raises(ReviewError, match="cannot be seen"):
        approved(approver=name)


def test_two_spellings_of_one_name_are_not_two_trusted_people(tmp_path: Path) -> None:
    pems = [public_pem(key.public_key()).decode() for key in (KEY, OTHER)]
    (tmp_path / "t.yaml").write_bytes(trusted_yaml([("Jos\u00e9", "dpo", pems[0]), ("jose\u0301", "dpo", pems[1])]))
    with pytest.raises(ReviewError, match="two people"):
        load_trusted(tmp_path / "t.yaml")
