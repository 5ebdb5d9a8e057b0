"""Two plans compared: every kind of difference is told, the ones to look at first, and no name breaks a report."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.model.datasets import Match, MatchTerm, Strategy
from pii_tracer.model.plan import ErasurePlan, Found, Gap, HeldColumn, Mask, Mention, Override, PlannedHold, Step
from pii_tracer.model.waivers import Waiver
from pii_tracer.review.plan_changes import (
    About,
    Change,
    Sign,
    changes,
)
from reports.plan.plan_changes import (
    BUDGET,
    NOTHING,
    render_changes_json,
    render_changes_markdown,
    render_changes_text,
)
from tests.review.plans import DEADLINE, NOW, copy, plan, snapshot, step

OLD = plan()
WAIVER = Waiver(who="Asha", why="small", until=NOW + timedelta(days=9))


def gap(waiver: Waiver | None = None, kind: str = "unreadable", **changes_: Any) -> Gap:
    return Gap(id="g1", dataset=None, kind=kind, reason="why", evidence="e", waiver=waiver, **changes_)


def totals(**fields: Any) -> Any:
    return OLD.totals.model_copy(update=fields)


def hold(until: Any) -> PlannedHold:
    return PlannedHold(
        id="H1",
        kind="legal_hold",
        basis="court",
        citation="12/26",
        from_=NOW,
        until=until,
        approver="a",
        copies=("c1",),
    )


LATER = NOW + timedelta(days=5)
ONE = [step("c1/1", irreversible=False)]
SEEN = [step("c1/1", preconditions=(snapshot("/lake/c1"),))]
SOFT = [step("c1/1", preconditions=(snapshot("/lake/c1", hard=False),))]
AGAIN = [step("c1/1", preconditions=(snapshot("/lake/c1", "s2"),))]


def act(after: tuple[str, ...] = ("c1/1",), **fields: Any) -> Step:
    return OLD.steps[1].model_copy(update={"depends_on": after, **fields})


def asked(**fields: Any) -> ErasurePlan:
    return plan(requests=(OLD.requests[0].model_copy(update=fields),))


MASK = Mask(columns=("email", "note"), held=(HeldColumn(name="amount", holds=("h",), until=None),))
CASES: list[tuple[ErasurePlan, ErasurePlan, str]] = [
    (OLD, plan(copies=[copy("c1"), copy("c2")]), "! + copy c2: delete by key: carries the key"),
    (plan(copies=[copy("c1"), copy("c2")]), OLD, "! - copy c2: no longer in the plan"),
    (
        plan(copies=[copy("c1"), copy("c2")]),
        plan(gaps=[gap(kind="left_out").model_copy(update={"dataset": copy("c2").dataset})]),
        "! - copy c2: left out of the plan: the person stays in there",
    ),
    (
        OLD,
        plan(OLD.steps, copies=[copy("c1", strategy=Strategy.EXEMPT, reason="kept: court")]),
        "! ~ copy c1: delete by key becomes exempt: kept: court",
    ),
    (
        plan(copies=[copy("c1", mask=MASK)]),
        plan(copies=[copy("c1", mask=MASK.model_copy(update={"columns": ("email",)}), reason="kept: amount")]),
        "! ~ copy c1: other columns are kept: kept: amount",
    ),
    (
        OLD,
        plan(copies=[copy("c1", mentions=(Mention(match=Match(terms=()), mask=MASK),), reason="payee becomes NULL")]),
        "! ~ copy c1: other columns become NULL in rows of others: payee becomes NULL",
    ),
    (OLD, plan(copies=[copy("c1", location="/else")]), "! ~ copy c1: /lake/c1 becomes /else"),
    (
        OLD,
        plan(copies=[copy("c1", found=Found(files_scanned=1, files_with_person=1, rows=1200, bytes=1))]),
        "  ~ copy c1: rows of the persons: unknown becomes 1,200",
    ),
    (OLD, plan(gaps=[gap()]), "! + gap g1: opened: why"),
    (OLD, plan(gaps=[gap(WAIVER)]), "! + gap g1: opened: why (waived by Asha: small)"),
    (plan(gaps=[gap()]), OLD, "  - gap g1: closed"),
    (plan(gaps=[gap()]), plan(gaps=[gap(WAIVER)]), "! ~ gap g1: waived by Asha until 2026-11-30: small"),
    (plan(gaps=[gap(WAIVER)]), plan(gaps=[gap()]), "  ~ gap g1: is no longer waived"),
    (OLD, plan(overrides=[Override(kind="k", reason="r")]), "! + override k: is set aside: r"),
    (plan(overrides=[Override(kind="k", reason="r")]), OLD, "  - override k: is no longer set aside: r"),
    (plan(ONE), plan([step("c1/1")]), "! ~ step c1/1: can no longer be undone"),
    (plan(SEEN), plan([step("c1/1")]), "! ~ step c1/1: snapshot is no longer compared before it"),
    (plan(SEEN), plan(SOFT), "! ~ step c1/1: snapshot no longer stops the run when it differs"),
    (plan(SEEN), plan(AGAIN), "  ~ step c1/1: snapshot is expected to be another"),
    (plan([step("c1/1")]), plan(SEEN), "  ~ step c1/1: snapshot is compared before it, too"),
    (OLD, plan([OLD.steps[0], act(after=())]), "! ~ step c1/2: no longer waits for c1/1"),
    (plan([OLD.steps[0], act(after=())]), OLD, "  ~ step c1/2: also waits for c1/1"),
    (OLD, plan([OLD.steps[0], act(executor="x")]), "! ~ step c1/2: verify copy by fake becomes verify copy by x"),
    (plan([step("k", None), *OLD.steps]), OLD, "! - step the run: iceberg delete rows (irreversible)"),
    (OLD, plan([OLD.steps[0], act(earliest_start=LATER)]), "  ~ date steps: 1 of them have other dates"),
    (
        plan([OLD.steps[0], act(earliest_start=LATER)]),
        OLD,
        "! ~ date steps: 1 of them have other dates, some begin earlier",
    ),
    (OLD, plan(planned_by="asha"), "! ~ input planner: chitra becomes asha"),
    (OLD, asked(law="gdpr"), "! ~ request REQ-1: dpdp, s. 12 becomes gdpr, s. 12"),
    (OLD, asked(received=LATER), "! ~ request REQ-1: received 2026-11-21 09:00 becomes 2026-11-26 09:00"),
    (plan([step("c1/1")]), plan(ONE), "  ~ step c1/1: can be undone now"),
    (
        plan(ONE),
        plan([*ONE, step("c1/2"), step("c1/3")]),
        "! + step c1: 2 × iceberg delete rows (irreversible)",
    ),
    (plan([*ONE, step("c1/2", irreversible=False)]), plan(ONE), "  - step c1: iceberg delete rows"),
    (plan([step("c1/1")]), plan([step("c1/1", parameters={"a": 1})]), "! ~ step c1/1: does its work with other parameters"),
    (OLD, plan(totals=totals(finish=LATER)), "! ~ date done by: 2026-11-21 becomes 2026-11-26, 5 days later"),
    (plan(totals=totals(finish=LATER)), OLD, "  ~ date done by: 2026-11-26 becomes 2026-11-21, 5 days earlier"),
    (
        OLD,
        plan(totals=totals(deadline=DEADLINE - timedelta(hours=5))),
        "! ~ date deadline: 2026-12-21 becomes 2026-12-21, 5 hours earlier",
    ),
    (OLD, plan(totals=totals(cost=1234.5)), "! ~ cost cost: 0.00 INR becomes 1,234.50 INR"),
    (plan(totals=totals(cost=1.0)), OLD, "  ~ cost cost: 1.00 INR becomes 0.00 INR"),
    (OLD, plan(retention="immediate"), "! ~ input retention: retain becomes immediate"),
    (OLD, plan(estate="other"), "! ~ input estate: test becomes other"),
    (OLD, plan(policy_digest="sha256:0"), "! ~ input policy file: is another one"),
    (OLD, plan(graph_digest="sha256:0"), "  ~ input lineage: is another one"),
    (OLD, plan(holds=(hold(LATER),)), "! + hold H1: keeps 1 of the copies until 2026-11-26: court, 12/26"),
    (plan(holds=(hold(LATER),)), OLD, "! - hold H1: keeps nothing any more"),
    (plan(holds=(hold(LATER),)), plan(holds=(hold(None),)), "! ~ hold H1: until 2026-11-26 becomes without an end date"),
    (OLD, plan(totals=totals(recheck_on=LATER)), "  ~ date recheck: plan again on 2026-11-26"),
    (
        OLD,
        plan(requests=(*OLD.requests, OLD.requests[0].model_copy(update={"id": "REQ-2"}))),
        "! + request REQ-2: its person is erased too",
    ),
    (
        OLD,
        # the same id for another person is two differences, not none
        plan(requests=(OLD.requests[0].model_copy(update={"subject": "hmac:0022"}),)),
        "! + request REQ-1: its person is erased too\n! - request REQ-1: its person is no longer erased",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "words"), CASES, ids=[words[:50] for _, _, words in CASES])
def test_each_kind_of_difference(old: ErasurePlan, new: ErasurePlan, words: str) -> None:
    told = render_changes_text(changes(old, new)).splitlines()
    other = {"! + gap g1: opened: why"} if "left out" in words else set()
    assert set(told) - other == set(words.splitlines())


def test_the_same_plan_has_not_changed_and_dates_of_making_do_not_matter() -> None:
    assert changes(OLD, OLD) == ()
    seconds_later = totals(finish=OLD.totals.finish + timedelta(seconds=59))
    again = plan(plan_id="plan-2", created_at=NOW + timedelta(days=1), tool_version="9", totals=seconds_later)
    assert render_changes_text(changes(OLD, again)) == NOTHING


def test_rows_found_otherwise_are_told() -> None:
    term = MatchTerm(column="uid", key_set="user.uid", type="bigint")
    one, other = (copy("c1", match=Match(terms=(t,))) for t in (term, term.model_copy(update={"column": "pan"})))
    assert [c.text for c in changes(plan(copies=[one]), plan(copies=[other]))] == [
        "the person's rows are found by other columns"
    ]


def test_what_must_be_looked_at_comes_first() -> None:
    found = changes(plan(totals=totals(cost=2.0)), plan(totals=totals(cost=1.0, finish=LATER), gaps=[gap()]))
    assert [c.look for c in found] == [True, True, False]


HOSTILE = "x](http://evil) <script> `a` | @team\n# \u202e"


def test_markdown_stays_in_its_budget_and_names_stay_names() -> None:
    many = [Change(Sign.ADDED, About.COPY, HOSTILE * 9, HOSTILE * 40, n < 10) for n in range(2_000)]
    text = render_changes_markdown(many, HOSTILE, "new")
    assert len(text.encode()) <= BUDGET
    assert "2,000 changes, 10 to look at" in text
    assert text.count("⚠️") == 10
    assert "more: `pii-tracer diff` lists them" in text
    assert "](" not in text
    assert "<script" not in text
    assert "\u202e" not in text
    assert all(line.startswith(("- ", "## ", "**")) for line in text.splitlines() if line)


def test_json_and_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from pii_tracer.cli.main import run

    (tmp_path / "a").write_bytes(OLD.to_bytes())
    (tmp_path / "b").write_bytes(plan(gaps=[gap()]).to_bytes())
    files = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert run(["diff", *files, "--format", "json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert one == {"sign": "added", "about": "gap", "subject": "g1", "text": "opened: why", "look": True}
    assert json.loads(render_changes_json(())) == []
    for fmt, words in (("text", "! + gap g1"), ("markdown", "## What changed")):
        assert run(["diff", *files, "--format", fmt]) == 0
        assert words in capsys.readouterr().out
