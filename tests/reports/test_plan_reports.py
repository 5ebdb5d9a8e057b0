"""The plan on a terminal, in Markdown and as HTML."""

from __future__ import annotations

import io
import re
from datetime import datetime, timezone
from html.parser import HTMLParser

import pytest
from rich.cells import cell_len
from rich.console import Console

from pii_tracer.model.errors import UsageError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.gap_remedies import REMEDIES
from pii_tracer.model.plan import (
    ErasurePlan,
    Gap,
    HeldColumn,
    Mask,
    PlannedHold,
)
from reports.escape import visible
from reports.plan.plan_html import render_plan_html
from reports.plan.plan_markdown import BUDGET, LEAST_BUDGET, render_plan_markdown
from reports.plan.plan_text import print_plan
from reports.plan.plan_view import PlanView, Verdict
from tests.reports.conftest import HOSTILE, poisoned
from tests.reports.example import example_gaps, example_plan

FILE = "acme.plan.json"
VERDICT = (
    "19 copies · 5 beyond · 109 steps · 52 irreversible · 0 gaps · done by 14 Nov, 37 days before the deadline · ₹1,840"
)


def _terminal(plan: ErasurePlan, width: int = 100, **options: bool) -> str:
    out = io.StringIO()
    print_plan(plan, Console(file=out, width=width, **options), plan_file=FILE)  # type: ignore[arg-type]
    return out.getvalue()


class Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


# --- the verdict


def test_the_verdict_has_the_numbers_in_order(plan: ErasurePlan) -> None:
    assert " · ".join(PlanView(plan).numbers) == VERDICT


@pytest.mark.parametrize(
    ("plan", "verdict"),
    [
        (example_plan(), Verdict.READY),
        (example_plan(late=True), Verdict.LATE),
        (example_plan(gaps=example_gaps()), Verdict.INCOMPLETE),
        (example_plan(gaps=example_gaps()[1:]), Verdict.READY),
        (example_plan().model_copy(update={"applyable": False}), Verdict.NOT_APPLYABLE),
        # the flag says complete, the gaps do not
        (
            example_plan(gaps=example_gaps()).model_copy(update={"complete": True, "applyable": True}),
            Verdict.INCOMPLETE,
        ),
    ],
)
def test_the_worst_state_is_the_verdict(plan: ErasurePlan, verdict: Verdict) -> None:
    assert PlanView(plan).verdict is verdict


def test_slack_never_promises_more_than_there_is() -> None:
    totals = example_plan().totals
    for days, words in (
        (22.9, "22 days before"),
        (1.0, "1 day before"),
        (0.99, "23 hours before"),
        (-0.1, "1 day after"),
    ):
        changed = example_plan().model_copy(update={"totals": totals.model_copy(update={"slack_days": days})})
        assert f"{words} the deadline" in PlanView(changed).numbers[5]


def test_a_plan_that_would_be_refused_offers_no_approval() -> None:
    for text in (
        _terminal(example_plan(gaps=example_gaps())),
        render_plan_markdown(example_plan(gaps=example_gaps()), plan_file=FILE),
        render_plan_html(example_plan(late=True), plan_file=FILE),
    ):
        assert "pii-tracer check" in text
        assert "pii-tracer approve" not in text
        assert "pii-tracer apply" not in text


def test_the_path_in_commands_is_quoted(plan: ErasurePlan) -> None:
    command, _ = PlanView(plan).commands("a b;rm -rf ~.plan.json")[1]
    assert command.startswith("pii-tracer approve 'a b;rm -rf ~.plan.json' --approver")


def test_the_commands_name_the_key_the_trusted_approvers_and_what_is_not_default(plan: ErasurePlan) -> None:
    options = ("--estate", "my estate.yaml")
    check, approve, apply = (command for command, _ in PlanView(plan).commands(FILE, options))
    assert approve.endswith("--key KEY.pem")
    assert apply.endswith("--trusted APPROVERS.yaml")
    assert all("--estate 'my estate.yaml'" in command for command in (check, approve, apply))
    for text in (
        render_plan_markdown(plan, plan_file=FILE, options=options),
        render_plan_html(plan, plan_file=FILE, options=options),
    ):
        assert "my estate.yaml" in text
    out = io.StringIO()
    print_plan(plan, Console(file=out, width=200), plan_file=FILE, options=options)
    assert "my estate.yaml" in out.getvalue()


def test_every_copy_is_in_the_tree_even_with_a_broken_origin(plan: ErasurePlan) -> None:
    copies = list(plan.copies)
    copies[0] = copies[0].model_copy(update={"origin": copies[1].id})
    copies[1] = copies[1].model_copy(update={"origin": copies[0].id})
    copies[2] = copies[2].model_copy(update={"origin": "no-such-copy"})
    rows = PlanView(plan.model_copy(update={"copies": tuple(copies)})).rows
    assert sorted(row.copy.id for row in rows) == sorted(copy.id for copy in copies)


# --- terminal


@pytest.mark.parametrize("width", [60, 80, 100, 140, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    text = _terminal(example_plan(gaps=example_gaps()), width)
    assert max(cell_len(line) for line in text.splitlines()) <= width


@pytest.mark.parametrize("width", [80, 100, 140])
def test_every_copy_strategy_and_hazard_is_shown_at_every_width(plan: ErasurePlan, width: int) -> None:
    words = re.sub(r"\s+", " ", _terminal(plan, width))
    for row in PlanView(plan).rows:
        assert row.name in words
        assert row.strategy in words
        assert all(hazard in words for hazard in row.hazards)


def test_verdict_overrides_gaps_and_irreversible_come_before_the_copies() -> None:
    text = _terminal(example_plan(gaps=example_gaps()))
    places = [
        text.index(words)
        for words in ("19 copies", "Protections set aside", "Gaps that block", "Cannot be undone", "Copies\n", "Next")
        if words != "Copies\n"
    ]
    assert places == sorted(places)


def test_each_kind_of_open_gap_says_once_what_closes_it() -> None:
    """And the next command is to plan again; a waived gap says nothing of the kind."""
    first, other, waived = (Gap(id=f"g{n}", dataset=None, kind=kind, reason="r", evidence="e") for n, kind in _KINDS)
    waived = waived.model_copy(update={"waiver": next(gap.waiver for gap in example_gaps() if gap.waiver)})
    plan = example_plan(gaps=(first, other, waived)).model_copy(update={"complete": False})
    page = Page(render_plan_html(plan, plan_file=FILE))
    for text in (_terminal(plan, 200), render_plan_markdown(plan, plan_file=FILE), " ".join(page.words)):
        assert text.lower().count("to close it: ") == 1
        assert "Load the lineage of the job that wrote it" in text
        assert REMEDIES[GapKind.MFA_DELETE] not in text
        assert f"pii-tracer plan REQUESTS --planner NAME --out {FILE}" in text
        assert text.index("pii-tracer plan REQUESTS") < text.index(f"pii-tracer check {FILE}")


_KINDS = ((1, GapKind.UNEXPECTED_COPY), (2, GapKind.UNEXPECTED_COPY), (3, GapKind.MFA_DELETE))


def test_without_colour_there_is_no_escape_sequence(plan: ErasurePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" in _terminal(plan, force_terminal=True, no_color=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", _terminal(plan, force_terminal=True))
    assert "\x1b" not in _terminal(plan)


def test_hostile_names_on_a_terminal(hostile: str, hostile_plan: ErasurePlan) -> None:
    text = _terminal(hostile_plan, 200)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u200b-\u200f\u202a-\u202e]", text)
    assert max(cell_len(line) for line in text.splitlines()) <= 200
    assert visible(hostile)[:20] in text


# --- Markdown


def test_markdown_of_the_example_fits_and_has_it_all(plan: ErasurePlan, edges: tuple[tuple[str, str], ...]) -> None:
    text = render_plan_markdown(plan, plan_file=FILE, edges=edges)
    assert len(text.encode()) <= BUDGET
    assert VERDICT in text
    assert text.count("<details>") == text.count("</details>") == len(plan.copies) + 2
    assert "flowchart LR" in text
    assert "left out" not in text
    assert text.rstrip().endswith("```")
    assert "pii-tracer apply acme.plan.json" in text


def _huge(plan: ErasurePlan, times: int) -> ErasurePlan:
    copies = tuple(
        copy.model_copy(update={"id": f"{copy.id}-{n}", "reason": "r" * 400})
        for n in range(times)
        for copy in plan.copies
    )
    steps = tuple(
        step.model_copy(update={"id": f"{step.id}-{n}", "copy_": f"{step.copy_}-{n}"})
        for n in range(times)
        for step in plan.steps
        if step.copy_
    )
    gaps = tuple(
        gap.model_copy(update={"id": f"{gap.id}-{n}", "reason": "why " * 300})
        for n in range(300)
        for gap in example_gaps()
    )
    return plan.model_copy(update={"copies": copies, "steps": steps, "gaps": gaps, "complete": False})


@pytest.mark.parametrize("budget", [LEAST_BUDGET, BUDGET])
def test_requests_that_have_no_room_are_counted(plan: ErasurePlan, budget: int) -> None:
    one = plan.requests[0]
    many = plan.model_copy(
        update={"requests": tuple(one.model_copy(update={"id": f"R-{number}"}) for number in range(3_000))}
    )
    text = render_plan_markdown(many, plan_file="p.plan.json", budget=budget)
    shown = text.count("- request <code>R-")
    (more,) = re.findall(r"and ([\d,]+) more", text[: text.index("###")] if "###" in text else text)[:1]
    assert 0 < shown == 3_000 - int(more.replace(",", ""))


@pytest.mark.parametrize("budget", [LEAST_BUDGET, 30_000, BUDGET])
def test_too_much_is_cut_from_the_middle_never_from_the_verdict(plan: ErasurePlan, budget: int) -> None:
    huge = _huge(plan, 30)
    text = render_plan_markdown(huge, plan_file=FILE, budget=budget)
    assert len(text.encode()) <= budget
    assert text.startswith("## ❌ Incomplete")
    assert " · ".join(PlanView(huge).numbers) in text
    assert "Cannot be undone" in text
    assert re.search(r"… and [\d,]+ more", text)
    assert "do not fit here" in text
    assert text.count("<details>") == text.count("</details>")
    assert "pii-tracer check acme.plan.json" in text


@pytest.mark.parametrize(("count", "budget"), [(1, LEAST_BUDGET), (60, LEAST_BUDGET), (200, BUDGET)])
def test_no_gap_that_blocks_is_cut(plan: ErasurePlan, count: int, budget: int) -> None:
    """Reasons may be; ids, kinds and places are not."""
    gap = next(gap for gap in example_gaps() if gap.waiver is None)
    gaps = tuple(gap.model_copy(update={"id": f"G{n}", "reason": "why " * 100}) for n in range(count))
    text = render_plan_markdown(
        plan.model_copy(update={"gaps": gaps, "complete": False}), plan_file=FILE, budget=budget
    )
    blocking = text.partition("### Gaps that block this plan")[2].partition("###")[0]
    assert [n for n in range(count) if f"- **G{n}** " not in blocking] == []
    assert len(text.encode()) <= budget
    assert ("pii-tracer show" in blocking) == (count > 1)


def test_gaps_that_no_comment_can_name_are_all_counted(plan: ErasurePlan) -> None:
    gap = next(gap for gap in example_gaps() if gap.waiver is None)
    gaps = tuple(gap.model_copy(update={"id": f"G{n}"}) for n in range(5_000))
    text = render_plan_markdown(plan.model_copy(update={"gaps": gaps, "complete": False}), plan_file=FILE)
    assert f"- **5,000** × {gap.kind}".replace("_", "\\_") in text.replace("&#95;", "\\_")
    assert "5,000 gaps in all" in text


def test_the_worst_names_stay_within_the_budget(plan: ErasurePlan) -> None:
    worst = poisoned(_huge(plan, 5), "@" * 5_000)
    for budget in (LEAST_BUDGET, BUDGET):
        assert len(render_plan_markdown(worst, plan_file=FILE, budget=budget).encode()) <= budget


def test_two_thousand_copies_with_hostile_names_fit_into_a_comment(plan: ErasurePlan) -> None:
    """Also with everything that can stand above the copies: gaps, waivers, holds, left out, many requests."""
    hostile = " ".join(HOSTILE)[:2_000]
    many = poisoned(_huge(plan, 84), hostile)
    assert len(many.copies) >= 2_000
    kept = _kept_and_left(many, hostile).holds[0]
    ids = tuple(copy.id for copy in many.copies)
    holds = tuple(kept.model_copy(update={"id": f"H{n}", "copies": ids}) for n in range(200))
    left = [gap.model_copy(update={"id": f"{gap.id}-left", "kind": "left_out"}) for gap in many.gaps]
    requests = tuple(many.requests[0].model_copy(update={"id": f"R{n}-{hostile}"}) for n in range(300))
    whole = many.model_copy(update={"holds": holds, "gaps": (*many.gaps, *left), "requests": requests})
    for each in (many, whole):
        text = render_plan_markdown(each, plan_file=FILE)
        assert len(text.encode()) <= BUDGET
        assert text.startswith("## ❌ Incomplete")
        assert " · ".join(PlanView(each).numbers) in text
        assert text.rstrip().endswith("```")
        assert "pii-tracer check acme.plan.json" in text
        assert text.count("<details>") == text.count("</details>")
        assert re.search(r"… and [\d,]+ more", text)


def test_a_budget_without_room_for_the_verdict_is_refused(plan: ErasurePlan) -> None:
    with pytest.raises(UsageError):
        render_plan_markdown(plan, plan_file=FILE, budget=LEAST_BUDGET - 1)
    with pytest.raises(UsageError):
        render_plan_markdown(plan, plan_file="x" * 20_000)


def test_hostile_names_in_markdown(hostile: str, hostile_plan: ErasurePlan) -> None:
    text = render_plan_markdown(hostile_plan, plan_file=FILE)
    outside_code = re.sub(r"(?s)```.*?```", "", text)
    tags = set(re.findall(r"<(?!!-- -->)[^>]*>", outside_code))
    assert tags <= {"<details>", "</details>", "<summary>", "</summary>", "<code>", "</code>", "<br>"}
    assert "](" not in outside_code
    assert "`" not in re.sub(r"`pii-tracer show`", "", outside_code)
    assert not re.search(r"(?<![&\w])[@][\w]", outside_code)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u200b-\u200f\u202a-\u202e]", text)
    for line in outside_code.splitlines():
        if line.startswith("| ") and "Copy |" not in line:
            assert line.count("|") in (6, 10)  # columns of the two tables: no name adds one
    for line in re.findall(r"(?m)^  n\d+\[.*$", text):
        assert re.fullmatch(r'  n\d+\["[^"\[\]`|{}()\\]*"\]', line)


def test_sixty_nodes_are_the_most_that_are_drawn(plan: ErasurePlan) -> None:
    counting = [copy for copy in plan.copies if copy.origin is None]
    many = tuple(counting[n % 19].model_copy(update={"id": f"c{n}", "lineage": ()}) for n in range(61))
    for count, drawn in ((60, True), (61, False)):
        text = render_plan_markdown(plan.model_copy(update={"copies": many[:count], "steps": ()}), plan_file=FILE)
        assert ("```mermaid" in text) is drawn


# --- HTML


def test_html_needs_nothing_from_anywhere(plan: ErasurePlan, edges: tuple[tuple[str, str], ...]) -> None:
    text = render_plan_html(plan, plan_file=FILE, edges=edges)
    page = Page(text)
    assert not page.tags & {"script", "link", "img", "iframe", "object", "embed", "base", "a", "form"}
    assert not {name for name, _ in page.attributes} & {"src", "href", "srcset", "action", "xlink:href"}
    assert not {name for name, _ in page.attributes if name.startswith("on")}
    assert not re.search(r"https?:|url\(|@import|//[a-z]+\.", text.replace("s3://", ""))
    assert "default-src 'none'" in text


def test_html_tells_every_copy_and_step(plan: ErasurePlan) -> None:
    words = " ".join(Page(render_plan_html(plan, plan_file=FILE)).words)
    for row in PlanView(plan).rows:
        assert row.name in words
    assert all(step.id in words for step in plan.steps)
    assert all(item.reason in words for item in plan.examined)


def test_hostile_names_in_html(hostile: str, hostile_plan: ErasurePlan) -> None:
    clean = Page(render_plan_html(example_plan(gaps=example_gaps()), plan_file=FILE))
    text = render_plan_html(hostile_plan, plan_file=FILE)
    page = Page(text)
    assert page.tags <= clean.tags
    assert {name for name, _ in page.attributes} <= {name for name, _ in clean.attributes}
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u200b-\u200f\u202a-\u202e]", text)
    assert visible(hostile) in " ".join(page.words)


# --- all of them


def test_the_same_plan_gives_the_same_bytes(edges: tuple[tuple[str, str], ...]) -> None:
    def all_of(plan: ErasurePlan) -> tuple[str, str, str]:
        return (
            _terminal(plan),
            render_plan_markdown(plan, plan_file=FILE, edges=edges),
            render_plan_html(plan, plan_file=FILE, edges=edges),
        )

    again = ErasurePlan.model_validate_json(example_plan().to_bytes())
    assert all_of(example_plan()) == all_of(again)


def test_an_empty_plan_can_be_shown(plan: ErasurePlan) -> None:
    empty = plan.model_copy(
        update={"copies": (), "steps": (), "examined": (), "schedules": (), "overrides": (), "requests": ()}
    )
    assert "Copies" in _terminal(empty)
    assert "### Copies" in render_plan_markdown(empty, plan_file=FILE)
    assert "Copies" in render_plan_html(empty, plan_file=FILE)


def test_the_hostile_names_are_hostile() -> None:
    assert any("<script" in name for name in HOSTILE)
    assert len(set(HOSTILE)) == len(HOSTILE)


# --- what stays: by a hold, or by choice


def _kept_and_left(plan: ErasurePlan, name: str = "PMLA 2002") -> ErasurePlan:
    ids = [copy.id for copy in plan.copies if copy.origin is None]
    hold = PlannedHold(
        id="H1",
        kind="retention_duty",
        basis=name,
        citation="s. 12",
        from_=plan.created_at,
        until=datetime(2031, 3, 31, tzinfo=timezone.utc),
        approver=name,
        copies=(ids[0],),
    )
    gap = Gap(id="gap-x", dataset=plan.copies[3].dataset, kind="left_out", reason="left out", evidence="e")
    totals = plan.totals.model_copy(update={"exempt": 1, "recheck_on": hold.until, "gaps": 1})
    return plan.model_copy(update={"holds": (hold,), "gaps": (gap,), "complete": False, "totals": totals})


def test_what_is_kept_or_left_out_is_said_in_every_report(plan: ErasurePlan) -> None:
    stays = _kept_and_left(plan)
    assert PlanView(stays).verdict is Verdict.PARTIAL
    assert {"1 left out", "1 kept by a hold", "0 gaps"} < set(PlanView(stays).numbers)
    for text in (
        _terminal(stays, 140),
        render_plan_markdown(stays, plan_file=FILE),
        render_plan_html(stays, plan_file=FILE),
    ):
        assert "Not a complete erasure" in text
        assert "PMLA 2002, s. 12, until 31 Mar 2031" in text
        assert "plan again on 31 Mar 2031" in text
        assert "Left out, not erased" in text
        assert stays.copies[3].dataset.name in text
        assert "pii-tracer apply" in text


def test_where_columns_are_held_every_report_says_which_and_what_becomes_of_the_rest(plan: ErasurePlan) -> None:
    stays = _kept_and_left(plan)
    (kept,) = stays.holds[0].copies
    mask = Mask(
        columns=("email", "<b>note"),
        held=(
            HeldColumn(name="amount", holds=("H1",), until=None),
            HeldColumn(name="paid_at", holds=("H2",), until=None),
        ),
        found_by=("uid",),
    )
    copies = tuple(c.model_copy(update={"mask": mask}) if c.id == kept else c for c in stays.copies)
    stays = stays.model_copy(update={"copies": copies})
    assert PlanView(stays).kept[0].names[0].endswith("(only amount)")
    for text in (
        " ".join(_terminal(stays, 140).split()),
        render_plan_markdown(stays, plan_file=FILE),
        render_plan_html(stays, plan_file=FILE),
    ):
        plain = text.replace("\\_", "_").replace("\\", "")
        assert "(only amount)" in plain
        assert "uid is also kept, because no held column shows whose row it is" in plain
        assert "NULL in the persons" in plain
    assert "<b>note" not in render_plan_html(stays, plan_file=FILE)
    assert "<b>note" not in render_plan_markdown(stays, plan_file=FILE)


def test_other_gaps_outrank_what_is_left_out(plan: ErasurePlan) -> None:
    stays = _kept_and_left(plan)
    both = stays.model_copy(update={"gaps": (*stays.gaps, *example_gaps()[:1])})
    assert PlanView(both).verdict is Verdict.INCOMPLETE
    assert PlanView(stays.model_copy(update={"applyable": False})).verdict is Verdict.NOT_APPLYABLE


def test_hostile_names_of_holds(plan: ErasurePlan, hostile: str) -> None:
    stays = _kept_and_left(plan, hostile)
    text = render_plan_markdown(stays, plan_file=FILE)
    assert "](" not in re.sub(r"(?s)```.*?```", "", text)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u200b-\u200f\u202a-\u202e]", text + _terminal(stays, 140))
    assert (
        Page(render_plan_html(stays, plan_file=FILE)).tags
        <= Page(render_plan_html(_kept_and_left(plan), plan_file=FILE)).tags
    )


def test_a_place_where_the_persons_were_found_is_not_called_no_copy() -> None:
    """A bare folder in S3 is listed with its objects, too, as searched with it: both were told of one place."""
    made = example_plan()
    there, *others = made.examined
    gap = Gap(id="gap-u", dataset=there.dataset, kind=GapKind.UNEXPECTED_COPY, reason="found", evidence="e")
    found = made.model_copy(update={"gaps": (gap,)})
    pages = (_terminal(found, 300), render_plan_markdown(found, plan_file="p"), render_plan_html(found, plan_file="p"))
    assert [there.reason[:40] in " ".join(page.split()) for page in pages] == [False, False, False]
    assert all(other.reason in " ".join(_terminal(found, 300).split()) for other in others)
