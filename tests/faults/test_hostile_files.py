"""Files that somebody has meddled with: each reader refuses them with an error of its own, at once, and tells no value."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.app.execution.approvals import read_approval
from pii_tracer.app.planning.plan_files import read_waivers
from pii_tracer.config.estate_file import load_estate, load_policy, load_request
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG_EXPIRE_SNAPSHOTS
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import CopyKind, DatasetId, Strategy
from pii_tracer.model.errors import ConfigError, PiiTracerError, ReviewError
from pii_tracer.model.plan import Exemption, Gap, HeldColumn, Mask, PlannedHold
from pii_tracer.review.dsse import unseal
from pii_tracer.review.plan_file import load_plan, parse_plan
from pii_tracer.review.trusted_keys import load_trusted
from tests.review.plans import DEADLINE, NOW, copy, plan, snapshot, step

PERSON = "8841302"


def opened(path: Path) -> Any:
    """An approval as it is read."""
    return unseal(read_approval(path), [])


@dataclass(frozen=True)
class Kind:
    """A kind of file from outside."""

    load: Callable[[Path], Any]
    good: str


REQUEST = f"""
id: R-1
law: GDPR
received: 2026-11-01T09:00:00+01:00
subject: {{type: patient, key: "{PERSON}"}}
"""
ESTATE = """
version: 1
estate: e
environment: local
catalogs: {}
roots: []
lineage: {}
subjects: [{name: patient, source: t, key: number}]
"""
WAIVERS = "g-1: {who: Dr. Sen, why: known, until: 2026-12-31T00:00:00Z}\n"
YAML = {
    "estate": Kind(load_estate, ESTATE),
    "request": Kind(load_request, REQUEST),
    "policy": Kind(load_policy, "version: 1\n"),
    "waivers": Kind(read_waivers, WAIVERS),
}
JSON = {"plan": Kind(load_plan, plan().to_bytes().decode()), "approval": Kind(opened, "")}
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join('*' + chr(97 + n) for _ in range(10))}]\n" for n in range(12)
)


def everywhere() -> list[Any]:
    """Every reader of YAML that a person writes, the trusted approvers too."""
    trusted = Kind(load_trusted, "version: 1\napprovers: []\n")
    return [pytest.param(kind, id=name) for name, kind in {**YAML, "trusted": trusted}.items()]


def refused(kind: Kind, path: Path) -> str:
    with pytest.raises((ConfigError, ReviewError)) as caught:
        kind.load(path)
    assert PERSON not in str(caught.value)
    assert caught.value.where
    return str(caught.value)


@pytest.mark.parametrize("kind", everywhere())
@pytest.mark.parametrize(
    ("more", "words"),
    [
        (BOMB, "more than 1000000 values"),
        ("loop: &loop [*loop]\n", "contains itself"),
        ("deep: " + "[" * 5000 + "]" * 5000 + "\n", "nested too deeply"),
        (f"twice: {PERSON}\ntwice: 2\n", "appears twice"),
        ("? [a, b]\n: 1\n", "not text"),
        ("? {a: b}\n: 1\n", "not text"),
        ("bell: \a\n", "is not YAML"),
        ("day: 2026-13-45\n", "is not YAML"),
        (f"number: {'9' * 5000}\n", "is not YAML"),
        ("run: !!python/object/apply:os.system [exit]\n", "not YAML"),
        ("run: !include /etc/passwd\n", "not YAML"),
        ("---\nsecond: document\n", "not YAML"),
    ],
    ids=[
        "bomb",
        "loop",
        "deep",
        "twice",
        "list as key",
        "map as key",
        "bell",
        "no day",
        "long number",
        "tag",
        "include",
        "two",
    ],
)
def test_yaml_that_was_made_to_hurt(tmp_path: Path, kind: Kind, more: str, words: str) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(kind.good)
    kind.load(path)
    path.write_text(kind.good + more)
    assert words in refused(kind, path)


@pytest.mark.parametrize("kind", everywhere())
def test_what_is_no_file_or_too_much_of_one(tmp_path: Path, kind: Kind) -> None:
    big, pipe = tmp_path / "big.yaml", tmp_path / "pipe.yaml"
    with big.open("wb") as stream:
        stream.truncate(2**34)
    os.mkfifo(pipe)
    for path in (big, pipe, tmp_path, tmp_path / "none"):
        refused(kind, path)


@pytest.mark.parametrize("name", JSON)
def test_json_that_is_no_file_or_too_much_of_one(tmp_path: Path, name: str) -> None:
    big, pipe, deep = tmp_path / "big", tmp_path / "pipe", tmp_path / "deep"
    with big.open("wb") as stream:
        stream.truncate(2**34)
    os.mkfifo(pipe)
    deep.write_text('{"a":' * 100_000)
    for path in (big, pipe, deep, tmp_path, tmp_path / "none"):
        with pytest.raises(PiiTracerError):
            JSON[name].load(path)


def test_anchors_are_yaml_and_may_be_used(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text(ESTATE + "anonymisers: &names [a, b]\ndev_roots: *names\n")
    assert load_estate(path).dev_roots == ("a", "b")


@pytest.mark.parametrize("number", [".nan", ".inf", "-.inf"])
@pytest.mark.parametrize("key", ["min_slack_days", "max_cost"])
def test_a_policy_of_numbers_that_nothing_is_less_than(tmp_path: Path, key: str, number: str) -> None:
    """No slack is smaller than NaN, so that the rule would never refuse."""
    path = tmp_path / "policy.yaml"
    path.write_text(f"version: 1\n{key}: {number}\n")
    with pytest.raises(ConfigError, match=key):
        load_policy(path)


SEEN = (snapshot("/lake/c1"),)
MASK = Mask(columns=("note",), held=(HeldColumn(name="pan", holds=("h",), until=None),))
KEPT = Exemption(holds=("h",), until=None)
HOLD = PlannedHold(
    id="h", kind="law", basis="b", citation="c", from_=NOW, until=None, approver="counsel", copies=("c9",)
)
FALSE_TOTALS: list[dict[str, Any]] = [
    {"copies": 2},
    {"beyond": 1},
    {"exempt": 1},
    {"steps": 1},
    {"irreversible": 0},
    {"gaps": 1},
    {"waived": 1},
    {"cost": 1.0},
    {"finish": NOW + timedelta(days=2)},
    {"deadline": DEADLINE + timedelta(days=1)},
    {"slack_days": 500.0},
    {"critical_path": ("x",)},
]
OPEN = Gap(id="g", dataset=DatasetId(namespace="file", name="/b"), kind="unreadable", reason="r", evidence="e")


@pytest.mark.parametrize(
    "changes",
    [
        {"plan_id": "../../keys"},
        {"plan_id": ".hidden"},
        {"plan_id": "a\0b"},
        {"plan_id": ""},
        {"copies": (copy("../c1"),), "steps": ()},
        {"copies": (copy("/etc/c1"),), "steps": ()},
        {"copies": (copy("c" * 201),), "steps": ()},
        {"copies": (copy("c1"), copy("c1", location="/elsewhere"))},
        {"steps": (step("a"), step("a"))},
        {"steps": (step("a", "c9"),)},
        {"gaps": (OPEN,), "complete": True},
        {"complete": False},
        {"steps": ()},
        {"steps": (step("c1/1"), step("c1/2", after=["c1/1"], action=ICEBERG_EXPIRE_SNAPSHOTS))},
        {"steps": (step("c1/2", action=Action.VERIFY_COPY), step("c1/1", after=["c1/2"], preconditions=SEEN))},
        {"steps": (step("c1/1"), step("c1/2", after=["c1/1"], action=Action.VERIFY_COPY))},
        {"steps": (step("c1/1", preconditions=SEEN), step("c1/2", after=["c1/1", "x"], action=Action.VERIFY_COPY))},
        {"copies": (copy("c1", strategy=Strategy.EXEMPT),), "steps": ()},
        {"copies": (copy("c1", strategy=Strategy.EXEMPT, exemption=KEPT),), "steps": ()},
        {"copies": (copy("c1", strategy=Strategy.EXEMPT, exemption=KEPT),), "steps": (), "holds": (HOLD,)},
        {"copies": (copy("c1", strategy=Strategy.MASK_COLUMNS, mask=MASK),)},
        {"copies": (copy("c1", exemption=KEPT),), "holds": (HOLD,)},
        {"copies": (copy("c1", kind=CopyKind.BACKUP, strategy=Strategy.CONFIRM),)},
        {"copies": (copy("c1", strategy=Strategy.CONFIRM),)},
        {"copies": (copy("c1", strategy=Strategy.BLOCKED),), "steps": ()},
        {"gaps": (OPEN,), "complete": False, "applyable": True},
        *({"totals": plan().totals.model_copy(update=said)} for said in FALSE_TOTALS),
    ],
)
def test_a_plan_that_no_planner_has_written(changes: dict[str, Any]) -> None:
    """Edited by hand and signed by somebody who did not look: it still leads nowhere else and claims nothing more."""
    raw = plan().model_copy(update=changes).to_bytes()
    with pytest.raises(ReviewError, match="not made by a planner"):
        parse_plan(raw, "p.plan.json")


def test_what_holds_keep_and_what_a_person_confirms_needs_no_verification() -> None:
    kept = copy("c1", strategy=Strategy.EXEMPT, exemption=KEPT)
    tape = copy("c2", kind=CopyKind.BACKUP, strategy=Strategy.CONFIRM)
    asked = step("c2/1", "c2", action=Action.BACKUP_CONFIRM)
    hold = HOLD.model_copy(update={"copies": ("c1",)})
    a_plan = plan([asked], [kept, tape], holds=(hold,))
    assert parse_plan(a_plan.to_bytes(), "p.plan.json").plan == a_plan


def test_what_a_plan_says_of_names_is_data_and_nothing_else() -> None:
    """Names of tables and places may hold anything; they come back as they are, and the file stays one of JSON."""
    nasty = ["'; DROP TABLE t; --", "<script>alert(1)</script>", "$(rm -rf ~)", "`id`", "../../etc", "a\nb", "|x|"]
    for name in nasty:
        a_plan = plan(copies=[copy("c1", table=name, location=f"/lake/{name}")])
        loaded = parse_plan(a_plan.to_bytes(), "p.plan.json")
        assert loaded.plan.copies[0].table == name
        assert json.loads(loaded.raw)["copies"][0]["table"] == name
