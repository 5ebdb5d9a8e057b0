"""Each policy rule denies one plan and passes another; each report says the same and cannot be broken by a name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from sarif_pydantic import Sarif

from pii_tracer.cli.check_command import as_json, rendered
from pii_tracer.config.estate_file import Policy
from pii_tracer.model.errors import ExitCode
from pii_tracer.model.plan import ErasurePlan, Gap, Override, PlannedColumn, PlannedHold, Precondition
from pii_tracer.model.waivers import Waiver
from pii_tracer.review.json_line_numbers import lines_of
from pii_tracer.review.plan_file import parse_plan
from pii_tracer.review.policy_check_report import CheckReport, report_of
from pii_tracer.review.policy_rules import RULES, Finding, Level, Signer, evaluate
from tests.review.plans import DEADLINE, NOW, copy, plan, step

WAIVED = Waiver(who="Asha Rao", why="w", until=NOW + timedelta(days=1))
FAR = NOW + timedelta(days=31)


def gap(gap_id: str = "g1", waiver: Waiver | None = WAIVED, kind: str = "unreadable") -> Gap:
    return Gap(id=gap_id, dataset=None, kind=kind, reason="r", evidence="e", waiver=waiver)


def totals(**changes: Any) -> Any:
    return plan().totals.model_copy(update=changes)


def writer(stopped: str) -> Precondition:
    return Precondition(kind="writers_stopped", target="job", expected=stopped)


def held(until: Any) -> PlannedHold:
    return PlannedHold(
        id="H1", kind="legal_hold", basis="b", citation="c", from_=NOW, until=until, approver="a", copies=("c1",)
    )


def rules(**fields: Any) -> Policy:
    return Policy(version=1, **fields)


BOTH = (Signer("asha", "dpo"), Signer("bala", "owner"))
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "applyable": ({"plan": plan(applyable=False)}, {}),
    "min-slack": (
        {
            "plan": plan(totals=totals(finish=DEADLINE - timedelta(days=1.968), slack_days=2.0)),
            "policy": rules(min_slack_days=2),
        },
        {},
    ),
    "max-cost": (
        {"plan": plan(totals=totals(cost=10.01)), "policy": rules(max_cost=10)},
        {"plan": plan(totals=totals(cost=10.0)), "policy": rules(max_cost=10)},
    ),
    "max-persons": (
        {"plan": plan(requests=plan().requests * 2), "policy": rules(max_persons=1)},
        {"plan": plan(), "policy": rules(max_persons=1)},
    ),
    "gaps": ({"plan": plan(gaps=[gap(waiver=None)])}, {"plan": plan(gaps=[gap()])}),
    "waivers-per-person": (
        {
            # two spellings of one name
            "plan": plan(gaps=[gap("a"), gap("b", WAIVED.model_copy(update={"who": "asha  RAO"}))]),
            "policy": rules(max_waivers_per_person=1),
        },
        {
            "plan": plan(gaps=[gap("a"), gap("b", WAIVED.model_copy(update={"who": "Bala"}))]),
            "policy": rules(max_waivers_per_person=1),
        },
    ),
    "unwaivable-gaps": (
        {"plan": plan(gaps=[gap(kind="not_scanned")]), "policy": rules(unwaivable=("not_scanned",))},
        {"plan": plan(gaps=[gap(kind="unreadable")]), "policy": rules(unwaivable=("not_scanned",))},
    ),
    "immediate-retention": (
        {"plan": plan(retention="immediate")},
        {"plan": plan(retention="immediate"), "policy": rules(allow_immediate_retention=True)},
    ),
    "exemptions": ({"plan": plan(holds=(held(NOW),))}, {"plan": plan(holds=(held(FAR),))}),
    "writers-stopped": (
        {"plan": plan([step("c1/1", preconditions=(writer("false"),))])},
        {"plan": plan([step("c1/1", preconditions=(writer("true"),))])},
    ),
    "irreversible-unclassified": (
        {"plan": plan(), "policy": rules(require_classification=True)},
        {
            "plan": plan(copies=[copy("c1", columns=(PlannedColumn(name="pan", category="national_id"),))]),
            "policy": rules(require_classification=True),
        },
    ),
    "digests": (
        {"digests": {"estate_digest": "sha256:00"}},
        {"digests": {"estate_digest": plan().estate_digest}},
    ),
    "production-approvers": ({"approvers": BOTH[:1]}, {"approvers": BOTH}),
    "separation-of-duties": ({"plan": plan(planned_by="")}, {"plan": plan(planned_by="chitra")}),
}


def found(given: dict[str, Any], level: Level = Level.DENY) -> list[Finding]:
    a_plan, policy = given.get("plan", plan()), given.get("policy", rules())
    more = {k: v for k, v in given.items() if k not in ("plan", "policy")}
    result = evaluate(a_plan, policy, **{"production": True, "now": NOW, **more})
    return [f for f in result if f.level is level]


def test_every_rule_that_can_deny_is_tried() -> None:
    # `overrides` only warns
    assert {rule.id for rule in RULES} == {*CASES, "overrides"}


@pytest.mark.parametrize("rule", sorted(CASES))
def test_the_rule_denies_one_plan_and_passes_another(rule: str) -> None:
    denied, passed = CASES[rule]
    assert {f.rule for f in found(denied)} == {rule}
    assert found(passed) == []


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"plan": plan(totals=totals(finish=FAR, slack_days=-1.0))}, "min-slack"),
        ({"plan": plan(gaps=[gap(waiver=WAIVED.model_copy(update={"until": NOW}))])}, "gaps"),
        ({"policy": rules(required_roles=("dpo",)), "approvers": (BOTH[1], Signer("c", "x"))}, "production-approvers"),
        ({"policy": rules(production_approvers=1), "approvers": (Signer("Chitra", "x"),)}, "separation-of-duties"),
        ({"plan": plan(gaps=[gap(kind="left_out")])}, "gaps"),  # waived by hand
        ({"digests": {"subjects_digest": "sha256:00"}}, "digests"),
    ],
)
def test_other_ways_to_be_denied(given: dict[str, Any], rule: str) -> None:
    assert [f.rule for f in found(given)] == [rule]


def test_warnings_do_not_deny() -> None:
    given = {
        "plan": plan(overrides=[Override(kind="k", reason="r")], gaps=[gap()]),
        "policy": rules(production_approvers=1),
        "digests": {"policy_digest": "sha256:00"},
    }
    assert found({"plan": plan(gaps=[gap(waiver=None, kind="left_out")])}) == []
    assert found(given) == []
    assert {f.rule for f in found(given, Level.WARN)} == {"overrides", "gaps", "digests", "separation-of-duties"}


# --- lines


def test_a_finding_stands_on_the_line_of_what_it_is_about() -> None:
    made = plan(gaps=[gap("first"), gap("second", None)], retention="immediate", totals=totals(cost=7.5))
    raw = made.to_bytes()
    lines = raw.decode().splitlines()
    where = lines_of(raw, [("gaps", 1), ("totals", "cost"), ("retention",), (), ("steps", 1, "id"), ("none", 3)])
    assert lines[where["totals", "cost"] - 1].strip() == '"cost": 7.5,'
    assert lines[where["retention",] - 1].strip() == '"retention": "immediate",'
    # the object of the second gap begins there, and its id stands inside it
    inside = lines[where["gaps", 1] - 1 :]
    assert inside[0].strip() == "{"
    assert next(line for line in inside if '"id"' in line).strip() == '"id": "second",'
    assert '"c1/2"' in lines[where["steps", 1, "id"] - 1]
    assert where[()] == where["none", 3] == 1


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=20,
    ),
    st.sampled_from([None, 0, 2]),
)
def test_lines_are_right_in_any_json(value: Any, indent: int | None) -> None:
    """Every leaf is replaced by a marker of its own, so that a search for the marker tells the line."""
    marks: dict[tuple[str | int, ...], str] = {}

    def marked(part: Any, here: tuple[str | int, ...]) -> Any:
        if isinstance(part, dict):
            return {key: marked(item, (*here, key)) for key, item in part.items()}
        if isinstance(part, list):
            return [marked(item, (*here, n)) for n, item in enumerate(part)]
        marks[here] = f"@@{len(marks)}@@"
        return marks[here]

    text = json.dumps(marked(value, ()), indent=indent)
    lines = lines_of(text.encode(), marks)
    for place, mark in marks.items():
        assert lines[place] == text[: text.index(f'"{mark}"')].count("\n") + 1


# --- reports

HOSTILE = "x\n::error::pwned\r]](http://evil) {0} <failure/> \x1b[31m \u202e % , : ##[add-path]/tmp"


def report(a_plan: ErasurePlan, findings: Sequence[Finding] | None = None) -> CheckReport:
    loaded = parse_plan(a_plan.to_bytes(), "p.plan.json")
    if findings is None:
        findings = evaluate(a_plan, rules(), production=False, now=NOW)
    return report_of(loaded, findings, plan_file="plans/a b,c.plan.json", policy_file="policy.yaml")


BAD = plan(gaps=[gap(HOSTILE, None), gap("g2")], retention="immediate", overrides=[Override(kind="k", reason=HOSTILE)])


@pytest.mark.parametrize(
    ("a_plan", "code"),
    [
        (plan(), ExitCode.DONE),
        (plan(gaps=[gap()]), ExitCode.DONE),
        (plan(retention="immediate"), ExitCode.POLICY_DENIED),
        (BAD, ExitCode.INCOMPLETE),
    ],
)
def test_exit_codes(a_plan: ErasurePlan, code: ExitCode) -> None:
    assert report(a_plan).exit_code is code
    assert as_json(report(a_plan))["exit_code"] == int(code)


def test_sarif_points_to_lines_of_the_plan_and_quotes_names() -> None:
    log = json.loads(rendered(report(BAD), "sarif"))
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    run = log["runs"][0]
    known = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert known == [rule.id for rule in RULES]
    lines = BAD.to_bytes().decode().splitlines()
    assert len(run["results"]) == 4
    for result in run["results"]:
        assert known[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning")
        (place,) = result["locations"]
        physical = place["physicalLocation"]
        assert physical["artifactLocation"] == {"uri": "plans/a%20b%2Cc.plan.json", "index": 0}
        assert 1 <= physical["region"]["startLine"] <= len(lines)
        text = result["message"]["text"]
        assert not set(text) & {"\n", "\r", "\x1b", "\u202e"}
        assert "](" not in text.replace("\\]", "")
    assert run["artifacts"][0]["hashes"]["sha-256"] == report(BAD).digest.removeprefix("sha256:")
    prints = [r["partialFingerprints"]["finding/v1"] for r in run["results"]]
    assert len(set(prints)) == len(prints)


def strange(part: BaseModel, where: str = "log") -> Iterator[str]:
    """Properties that SARIF 2.1.0 does not have where they stand."""
    yield from (f"{where}: {name}" for name in part.model_extra or {})
    for name in type(part).model_fields:
        value = getattr(part, name)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, BaseModel):
                yield from strange(one, f"{where}.{name}")


def test_sarif_is_what_others_read_as_sarif() -> None:
    said = rendered(report(BAD), "sarif")
    log = Sarif.model_validate_json(said)
    assert list(strange(log)) == ["log.runs: columnKind"]  # SARIF 2.1.0, section 3.14.27; the models lack it
    assert json.loads(log.model_dump_json(by_alias=True, exclude_unset=True)) == json.loads(said)


def test_junit_has_one_case_a_rule() -> None:
    root = Xml.fromstring(rendered(report(BAD), "junit"))
    (suite,) = root
    assert [case.get("name") for case in suite] == [rule.id for rule in RULES]
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == ["gaps", "immediate-retention"]
    assert suite.get("failures") == root.get("failures") == "2"
    warned = [case for case in suite if case.find("system-out") is not None]
    assert [case.get("name") for case in warned] == ["gaps", "overrides"]
    assert "\\x1b" in (warned[1].findtext("system-out") or "")


def test_annotations_are_one_command_a_finding_whatever_the_names() -> None:
    text = rendered(report(BAD), "github")
    lines = text.splitlines()
    assert text.count("\n") == len(lines) == 4
    assert [line.split(" ")[0] for line in lines] == ["::error", "::error", "::warning", "::warning"]
    for line in lines:
        head, _, message = line[2:].partition("::")
        assert "file=plans/a b%2Cc.plan.json,line=" in head
        assert not set(message) & {"\r", "\x1b", "\u202e"}
    assert any("%25" in line for line in lines)


def test_text_and_json_say_the_same() -> None:
    told = as_json(report(BAD))
    assert [f["rule"] for f in told["findings"]] == ["gaps", "gaps", "immediate-retention", "overrides"]
    assert told["denied"]
    text = rendered(report(BAD), "text")
    assert text.splitlines()[-1] == "4 findings against policy.yaml"
    assert len(text.splitlines()) == 5


def test_the_command_writes_reports_and_exits_as_promised(tmp_path: Path) -> None:
    from pii_tracer.cli.main import run

    (tmp_path / "e.yaml").write_text(
        "version: 1\nestate: t\nenvironment: local\ncatalogs: {}\nroots: [w]\nlineage: {}\n"
        "subjects: [{name: c, source: s, key: k}]\n"
    )
    (tmp_path / "policy.yaml").write_text("version: 1\n")
    options = ["--estate", str(tmp_path / "e.yaml"), "--state", str(tmp_path / "state")]
    path = tmp_path / "p.plan.json"
    for a_plan, code in ((plan(gaps=[gap(waiver=None)]), 3), (plan(retention="immediate"), 4)):
        path.write_bytes(a_plan.to_bytes())
        for fmt in ("text", "json", "sarif", "junit", "github"):
            out = tmp_path / f"out.{fmt}"
            assert run(["check", str(path), *options, "--format", fmt, "--out", str(out)]) == code
            assert out.read_text().endswith("\n")


@pytest.mark.parametrize(
    "text",
    [
        "g1: {who: asha, why: w, until: 2026-12-31}",
        "g1: {who: asha, why: w, until: '2026-12-31T00:00:00'}",
        "g1: {who: '', why: w, until: 2026-12-31T00:00:00Z}",
        "g1: {who: asha, why: '', until: 2026-12-31T00:00:00Z}",
        "g1: asha",
        "- g1",
    ],
)
def test_a_waiver_names_its_person_reason_and_end(text: str, tmp_path: Path) -> None:
    from pii_tracer.app.planning.plan_files import read_waivers
    from pii_tracer.model.errors import ConfigError

    path = tmp_path / "waivers.yaml"
    path.write_text("g1: {who: asha, why: w, until: 2026-12-31T00:00:00Z}")
    assert read_waivers(path)["g1"].who == "asha"
    path.write_text(text)
    with pytest.raises(ConfigError, match="waivers file"):
        read_waivers(path)
