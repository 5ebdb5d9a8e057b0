"""What planning says while it works goes to terminals and logs, and shows no value of a person."""

from __future__ import annotations

from pii_tracer.app.planning.value_masking import masked_progress
from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.value_forms import build_patterns


def test_a_place_that_is_named_by_a_person_is_told_without_the_value() -> None:
    told: list[str] = []
    keys = KeySet(name="user.mail", origin="mail", weak=False, values=(("s", "asha.rao@clinic.example"),))
    say = masked_progress(told.append, build_patterns([keys]))
    say("looking for the persons in /lake/exports/asha.rao@clinic.example")
    say("looking for the persons in lake.users")
    assert told == ["looking for the persons in /lake/exports/[user.mail]", "looking for the persons in lake.users"]
