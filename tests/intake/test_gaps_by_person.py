"""A gap that comes from one person keeps nobody else from being planned: she is carried over with the reason."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from pii_tracer.app.intake.due_requests_plan import DuePlan, plan_due
from pii_tracer.app.settings import Settings
from pii_tracer.intake.requests import RequestState
from pii_tracer.model.errors import PlanError
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.review.plan_file import load_plan
from tests.cli.small import declared
from tests.intake.places import ago, opened, took
from tests.waivers import write_waivers

KEYS = [5517700101 + n for n in range(6)]
MAILS = [f"person{n}@shop.example" for n in range(6)]
SUBJECT = """\
  - name: user
    source: app.users
    key: user_id
    identifiers: [{column: mail, category: email}]
"""
JOBS = "CREATE OR REPLACE TABLE app.visits AS SELECT user_id, city AS note FROM app.users;\n"


def lake(base: Path, mails: Sequence[str] = MAILS, notes: Sequence[str] | None = None) -> Settings:
    """Six users, and a table made of them. notes: what its rows say beside the key."""
    (base / "pii-tracer.yaml").write_text(declared("w", {"app.users": "delta", "app.visits": "delta"}) + SUBJECT)
    (base / "policy.yaml").write_text("version: 1\n")
    (base / "jobs.sql").write_text(JOBS)
    write_deltalake(base / "w" / "users", pa.table({"user_id": KEYS, "mail": mails, "city": ["Pune"] * len(KEYS)}))
    write_deltalake(base / "w" / "visits", pa.table({"user_id": KEYS, "note": notes or ["-"] * len(KEYS)}))
    return Settings(base / "pii-tracer.yaml", base / "state")


def asked(settings: Settings, *numbers: int) -> None:
    """Requests R-0, R-1… of these users, the first one due first."""
    rows = "".join(f"R-{n},{KEYS[n]},{ago(9 - place)}\n" for place, n in enumerate(numbers))
    took(settings, f"id,key,received\n{rows}", given={"subject": "user", "law": "GDPR"})


def states(settings: Settings) -> dict[str, str]:
    return {one.id: one.state.value for one in opened(settings).requests()}


def planned(settings: Settings, **options: object) -> tuple[DuePlan, ErasurePlan]:
    found = plan_due(settings, **options)  # type: ignore[arg-type]
    assert found.written is not None
    return found, found.written.plan


def goes_on_without_the_first(settings: Settings, kind: str) -> None:
    """The others are planned; the first one is carried over, and alone shows the gap."""
    found, plan = planned(settings)
    assert (found.marked, plan.complete, [one.id for one in plan.requests]) == (True, True, ["R-1", "R-2"])
    assert states(settings) == {"R-0": "carried_over", "R-1": "planned", "R-2": "planned"}
    [(name, why)] = found.apart.items()
    assert (name, kind in why, opened(settings).find("R-0").reason) == ("R-0", True, why)
    assert plan_due(settings).written is None
    assert len(list((settings.state / "plans").glob("*.sealed"))) == 1  # nothing is left of the plan for all
    alone, shown = planned(settings, carried_over=True)
    assert (alone.marked, [one.id for one in shown.requests]) == (False, ["R-0"])
    assert kind in {str(gap.kind) for gap in shown.gaps}
    assert states(settings)["R-0"] == RequestState.CARRIED_OVER


def test_a_value_that_somebody_else_has_too(tmp_path: Path) -> None:
    settings = lake(tmp_path, [MAILS[5], *MAILS[1:]])
    asked(settings, 0, 1, 2)
    goes_on_without_the_first(settings, "shared_identifier")


def test_a_value_in_a_row_of_somebody_else(tmp_path: Path) -> None:
    settings = lake(tmp_path, notes=["-", "-", "-", f"sent by {MAILS[0].upper()}", "-", "-"])
    asked(settings, 0, 1, 2)
    goes_on_without_the_first(settings, "others_rows")


def test_a_key_of_several_persons(tmp_path: Path) -> None:
    settings = lake(tmp_path)
    more = pa.table({"user_id": [KEYS[0]], "mail": ["someone@else.example"], "city": ["Goa"]})
    write_deltalake(tmp_path / "w" / "users", more, mode="append")
    asked(settings, 0, 1, 2)
    goes_on_without_the_first(settings, "key_of_several")


@pytest.mark.parametrize("value", [MAILS[0], str(KEYS[0])])
def test_a_copy_that_no_lineage_explains(tmp_path: Path, value: str) -> None:
    settings = lake(tmp_path)
    (tmp_path / "w" / "found").mkdir()
    pq.write_table(pa.table({"x": [value, "nobody"]}), tmp_path / "w" / "found" / "a.parquet")
    asked(settings, 0, 1, 2)
    goes_on_without_the_first(settings, "unexpected_copy")


def test_a_file_of_no_table_that_names_one_person(tmp_path: Path) -> None:
    settings = lake(tmp_path)
    (tmp_path / "w" / "note.txt").write_text(f"call {MAILS[0]}")
    asked(settings, 0, 1, 2)
    goes_on_without_the_first(settings, "unexpected_copy")


def test_a_gap_of_nobody_keeps_everybody_waiting(tmp_path: Path) -> None:
    """Who has a gap of her own is not carried over in vain: the others could not be planned without her either."""
    settings = lake(tmp_path, [MAILS[5], *MAILS[1:]])
    estate = settings.estate_file.read_text()
    settings.estate_file.write_text(estate.replace("roots: [w]", "roots: [w, gone]"))
    asked(settings, 0, 1, 2)
    found, plan = planned(settings)
    assert (found.marked, found.apart, len(plan.requests)) == (False, {}, 3)
    assert set(states(settings).values()) == {"received"}


def test_who_alone_has_a_gap_blocks_no_later_batch(tmp_path: Path) -> None:
    """One person a plan: she would be the first one of every plan, and nobody behind her would ever be erased."""
    settings = lake(tmp_path, [MAILS[5], *MAILS[1:]])
    (tmp_path / "policy.yaml").write_text("version: 1\nmax_persons: 1\n")
    asked(settings, 0, 1)
    found, plan = planned(settings)
    assert (found.marked, list(found.apart)) == (False, ["R-0"])
    assert {str(gap.kind) for gap in plan.gaps} == {"shared_identifier"}
    found, plan = planned(settings)
    assert (found.marked, [one.id for one in plan.requests]) == (True, ["R-1"])


def test_a_waived_gap_carries_nobody_over(tmp_path: Path) -> None:
    settings = lake(tmp_path, [MAILS[5], *MAILS[1:]])
    asked(settings, 0)
    _, plan = planned(settings)
    file = write_waivers(tmp_path / "waivers.yaml", [gap.model_dump() for gap in plan.gaps])
    found, _ = planned(settings, carried_over=True, waivers=file)
    assert (found.marked, found.apart, states(settings)) == (True, {}, {"R-0": "planned"})


def test_two_who_share_a_value_are_planned_together_and_carried_over_one_after_the_other(tmp_path: Path) -> None:
    """Once the one is left out, the value is somebody else's for the other."""
    settings = lake(tmp_path, [MAILS[1], MAILS[1], *MAILS[2:]], ["-"] * 5 + [f"for {KEYS[0]}"])
    asked(settings, 0, 1, 2)
    found, plan = planned(settings)
    assert (found.marked, list(found.apart), [one.id for one in plan.requests]) == (True, ["R-0", "R-1"], ["R-2"])


def test_a_value_in_a_name_of_the_estate(tmp_path: Path) -> None:
    """Such a plan is not written at all: it would show the value to everybody."""
    settings = lake(tmp_path)
    (tmp_path / "w" / f"mails-{MAILS[0]}").mkdir()
    table = pa.table({"x": ["nobody"]})
    pq.write_table(table, tmp_path / "w" / f"mails-{MAILS[0]}" / "a.parquet")
    asked(settings, 0, 1)
    found, plan = planned(settings)
    assert ([one.id for one in plan.requests], list(found.apart)) == (["R-1"], ["R-0"])
    assert MAILS[0] not in opened(settings).find("R-0").reason
    with pytest.raises(PlanError, match="a name in the estate holds a value"):
        plan_due(settings, carried_over=True)


def test_no_file_says_whose_a_gap_is(tmp_path: Path) -> None:
    settings = lake(tmp_path, notes=["-", "-", "-", f"sent by {MAILS[0]}", "-", "-"])
    asked(settings, 0)
    found, plan = planned(settings)
    assert found.written is not None
    data = found.written.path.read_bytes()
    assert data.count(b"subj_") == 1  # of the request itself
    assert load_plan(found.written.path).plan == plan
    assert str(KEYS[0]) not in json.dumps(dict(found.apart)) + opened(settings).find("R-0").reason
