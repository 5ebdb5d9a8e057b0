"""The plan for the sample's first request: the 19 copies and beyond, as the golden file has them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from pii_tracer.app.planning.plan_creation import Planned, make_plan
from pii_tracer.app.settings import Settings
from pii_tracer.cli.main import run
from pii_tracer.config.estate_file import load_request
from pii_tracer.model.errors import ExitCode
from planners.schedule.step_dates import Retention
from tests.app.estate_draft.corrections import corrected
from tests.app.estate_draft.same_plans import compared, differences
from tests.sample_lineage.conftest import AS_OF, Built
from tests.sample_lineage.golden import GOLDEN, stable

pytestmark = pytest.mark.spark


def make(built: Built, state: Path, request: str = "REQ-2026-0117.yaml", estate: Path | None = None) -> Planned:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "standin")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "standin")
        return make_plan(
            Settings(estate or built.base / "pii-tracer.yaml", state),
            [load_request(built.base / "requests" / request)],
            AS_OF,
            Retention.IMMEDIATE,
            "test",
            "planner",
            built.base / "policy.yaml",
            {},
            lambda _: None,
        )


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def planned(built: Built, state: Path) -> Planned:
    return make(built, state)


def test_erasing_the_source_is_step_one_of_nineteen(planned: Planned) -> None:
    kinds = Counter(c.kind.value for c in planned.plan.copies if c.origin is None)
    assert kinds == {"SOURCE": 1, "DERIVED": 14, "DEV_CLONE": 3, "ARCHIVE": 1}
    beyond = Counter(c.kind.value for c in planned.plan.copies if c.origin is not None)
    assert beyond == {"TABLE_HISTORY": 2, "OBJECT_VERSION": 1, "REPLICA": 1}
    assert [e.table for e in planned.plan.examined] == ["lake.prod.merchants", "prod.vendor_contacts"]
    assert planned.plan.complete


def test_it_is_the_golden_plan(planned: Planned) -> None:
    """`PII_TRACER_WRITE_GOLDEN=1 pytest tests/sample_lineage/test_plan.py` writes the file anew; review the difference."""
    found = stable(planned.plan)
    if os.environ.get("PII_TRACER_WRITE_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_bytes(found)
    assert found.decode() == GOLDEN.read_text(encoding="utf-8")


def test_the_same_inputs_give_the_same_bytes(built: Built, planned: Planned, state: Path) -> None:
    again = make(built, state)
    assert planned.plan.to_bytes() == again.plan.to_bytes()
    assert planned.sealed == again.sealed


def test_no_value_of_the_person_is_in_the_plan(built: Built, planned: Planned) -> None:
    text = planned.plan.to_bytes().decode()
    user = built.people.user(8841302)
    for value in (user.pan, user.phone, user.aadhaar_ref):
        assert value not in text
    assert '"8841302"' not in text


def test_the_default_policy_misses_the_deadline_and_says_why(planned: Planned) -> None:
    retain = next(s for s in planned.plan.schedules if s.retention == "retain")
    assert not retain.meets_deadline
    assert "cannot be met" in retain.notes[0]


def test_the_second_request_can_be_planned_too(built: Built, tmp_path: Path) -> None:
    plan = make(built, tmp_path, "REQ-2026-0124.yaml").plan
    assert plan.complete
    assert plan.requests[0].subject != make(built, tmp_path).plan.requests[0].subject


PRICES = "{archive_object: 2.0, restore_gb: 2.5, scanned_gb: 0.45, request_1000: 0.45, spark_hour: 60.0}"
CORRECTIONS = {
    "name: user": "name: customer",
    "# record_keys": "record_keys",
    "# writers": "writers",
    "# archives, backups": f"prices: {PRICES}\n# archives, backups",
    "derived_days: 14": "derived_days: 30",
}
"""What the company knows and its lakehouse does not show: what customers are called, that a payment is one customer's,
that the jobs are stopped, what things cost, and how long aggregates are kept. Somebody's copy has no name either: one line more."""


def test_a_drafted_estate_file_with_few_corrections_makes_the_same_plan(
    built: Built, planned: Planned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The draft is made as users make it, from two folders, a bucket, and the lineage; in another folder."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "standin")
    monkeypatch.setenv("AWS_ENDPOINT_URL", built.endpoint)
    places = [str(built.base / "warehouse"), str(built.base / "dev"), "s3://blr-fintech-lake"]
    words = [word for place in places for word in ("--discover", place)]
    words += [word for kind in ("events", "jobs") for word in ("--lineage", str(built.base / "lineage" / kind))]
    words += ["--region", "ap-south-1", "--name", "blr-fintech", "--state", str(tmp_path / "state")]
    assert run(["init", str(tmp_path), *words]) == ExitCode.DONE
    estate = tmp_path / "pii-tracer.yaml"
    draft = estate.read_text()
    user = built.people.user(8841302)
    for value in (str(user.user_id), user.pan, user.phone, user.aadhaar_ref):
        assert value not in draft + "".join(capsys.readouterr())
    copy = {"name": "dev.ml_features_copy", "format": "parquet", "location": str(built.base / "dev/ml_features_copy")}
    nameless = ", ".join(f"{key}: {value}" for key, value in copy.items())
    text, lines = corrected(draft, {**CORRECTIONS, f"      - {{{nameless}}}\n": ""})
    assert lines <= 10
    estate.write_text(text)
    drafted = make(built, tmp_path / "state", estate=estate).plan.model_dump(mode="json", by_alias=True)
    by_hand = planned.plan.model_dump(mode="json", by_alias=True)
    assert differences(compared(drafted), compared(by_hand)) == []
