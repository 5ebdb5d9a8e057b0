"""What planning says while it works goes to terminals and logs, and shows no value of a person."""

from __future__ import annotations

from pii_tracer.app.planning.value_masking import MOST_MASKED_EARLY, early_progress, masked_progress
from pii_tracer.config.estate_file import Request
from pii_tracer.config.subjects import SubjectRef
from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.value_forms import build_patterns
from tests.review.plans import NOW


def test_a_place_that_is_named_by_a_person_is_told_without_the_value() -> None:
    told: list[str] = []
    keys = KeySet(name="user.mail", origin="mail", weak=False, values=(("s", "asha.rao@clinic.example"),))
    say = masked_progress(told.append, build_patterns([keys]))
    say("looking for the persons in /lake/exports/asha.rao@clinic.example")
    say("looking for the persons in lake.users")
    assert told == ["looking for the persons in /lake/exports/[user.mail]", "looking for the persons in lake.users"]


def asked(key: str | dict[str, str]) -> Request:
    return Request(id="req-1", law="gdpr", subject=SubjectRef(type="user", key=key), received=NOW)


def test_before_the_keys_are_resolved_those_that_were_asked_for_are_masked() -> None:
    told: list[str] = []
    say = early_progress(told.append, [asked("770000000001"), asked({"tenant": "acme.example", "id": "551020999123"})])
    say("the archive logs/770000000001 of acme.example: 5 versions")
    say("the archive u551020999123")
    assert told == ["the archive logs/[user] of [user]: 5 versions", "the archive u[user]"]


def test_for_many_persons_no_name_is_told_before_the_keys_are_resolved() -> None:
    told: list[str] = []
    say = early_progress(told.append, [asked(f"{77 * 10**10 + n}") for n in range(MOST_MASKED_EARLY + 1)])
    say("the archive logs/770000000001")
    say("harvesting lineage")
    assert told == [f"reading what exists, and its lineage: part {n}" for n in (1, 2)]


def test_without_a_request_there_is_nothing_to_mask() -> None:
    told: list[str] = []
    early_progress(told.append, [])("reading")
    assert told == ["reading"]
