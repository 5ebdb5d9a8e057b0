"""Nothing overlaps in the drawings."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from pii_tracer.lake.formats.delta.vocabulary import DELTA_VACUUM
from pii_tracer.model.plan import ErasurePlan
from reports import timeline
from reports.lineage.layered_drawing import NODE_WIDTH, shorten
from reports.lineage.plan_lineage_picture import copy_edges, picture
from reports.plan.plan_view import PlanView
from reports.timeline import LABEL, RIGHT, WIDTH, Lane, Span, Tone
from tests.reports.example import NOW, SEEDS, example_edges, example_plan

NAMES = [seed.table for seed in SEEDS if seed.origin is None]


def _apart(plan: ErasurePlan, edges: tuple[tuple[str, str], ...]) -> None:
    drawn = picture(PlanView(plan), edges)
    for index, a in enumerate(drawn.nodes):
        assert a.x >= 0
        assert a.x + NODE_WIDTH <= drawn.width
        assert a.y >= 0
        assert a.y + a.height <= drawn.height
        for b in drawn.nodes[index + 1 :]:
            assert a.x + NODE_WIDTH <= b.x or b.x + NODE_WIDTH <= a.x or a.y + a.height < b.y or b.y + b.height < a.y


def test_nodes_of_the_example_do_not_overlap() -> None:
    _apart(example_plan(), example_edges())


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=60))
def test_nodes_never_overlap_whatever_the_edges_cycles_included(edges: list[tuple[str, str]]) -> None:
    _apart(example_plan(), tuple(edges))


def test_the_source_is_left_and_clones_are_right() -> None:
    drawn = picture(PlanView(example_plan()), example_edges())
    x = {node.tip.split(" ")[1]: node.x for node in drawn.nodes}
    assert x["lake.prod.users"] == min(x.values())
    assert x["dl.dev.sessions_anita"] == x["s3://acme-archive/payments/2024"] == max(x.values())
    assert x["lake.prod.users"] < x["lake.prod.payments"] < x["lake.silver.payments_clean"] < x["lake.gold.risk_scores"]


def test_without_edges_the_recorded_paths_are_drawn() -> None:
    view = PlanView(example_plan())
    by_name = {row.name: row.copy.id for row in view.rows if row.depth == 0}
    edges = copy_edges(view)
    assert (by_name["lake.prod.users"], by_name["lake.prod.payments"]) in edges
    assert (by_name["lake.prod.payments"], by_name["lake.silver.payments_clean"]) in edges


def test_hops_with_columns_and_arrows_are_understood_and_strangers_passed_over() -> None:
    plan = example_plan()
    last = plan.copies[10].model_copy(
        update={"lineage": ("lake.prod.users.user_id → lake.tmp.no.x", "lake.tmp.no.x -> lake.prod.payments.user_id")}
    )
    copies = (*(copy.model_copy(update={"lineage": ()}) for copy in plan.copies[:10]), last)
    edges = copy_edges(PlanView(plan.model_copy(update={"copies": copies})))
    assert edges == ((plan.copies[0].id, plan.copies[1].id), (plan.copies[1].id, last.id))


@given(st.text(min_size=1), st.integers(min_value=3, max_value=40))
def test_shortened_names_fit(name: str, letters: int) -> None:
    assert len(shorten(name, letters)) <= letters
    assert len(name) > letters or shorten(name, letters) == name


@given(
    st.lists(st.tuples(st.floats(0, 1e7), st.floats(0, 1e6)), min_size=1, max_size=20),
    st.floats(-1e6, 1e8),
    st.booleans(),
)
def test_bars_and_ticks_stay_inside(spans: list[tuple[float, float]], deadline: float, always: bool) -> None:
    def span(start: float, length: float) -> Span:
        begin = NOW + timedelta(seconds=start)
        return Span(begin, begin + timedelta(seconds=length), Tone.WORK, "")

    lanes = [Lane("x", 0, (span(*item),), NOW + timedelta(seconds=deadline)) for item in spans]
    drawn = timeline.draw(lanes, NOW + timedelta(seconds=deadline), always_deadline=always)
    assert drawn is not None
    for lane in drawn.lanes:
        for bar in lane.bars:
            assert bar.x >= LABEL
            assert bar.x + bar.width <= WIDTH - RIGHT + 0.2
        if lane.slack:
            assert lane.slack[0] + lane.slack[1] <= WIDTH - RIGHT + 0.2
    marks = [*drawn.ticks, *([drawn.deadline] if drawn.deadline else [])]
    places = sorted(mark.x for mark in drawn.ticks)
    assert all(LABEL - 0.1 <= mark.x <= WIDTH - RIGHT + 0.2 for mark in marks)
    assert all(b - a > 60 for a, b in pairwise(places))


def test_waiting_before_and_within_a_step_is_told_from_working() -> None:
    plan = example_plan()
    vacuum = next(step for step in plan.steps if step.action is DELTA_VACUUM)
    later = timedelta(days=7)
    moved = vacuum.model_copy(
        update={
            "earliest_start": vacuum.earliest_start + later,
            "earliest_finish": vacuum.earliest_finish + later,
            "estimate": vacuum.estimate.model_copy(update={"wait": int(later.total_seconds())}),
        }
    )
    steps = tuple(moved if step.id == moved.id else step for step in plan.steps)
    drawn = timeline.planned(PlanView(plan.model_copy(update={"steps": steps})))
    assert drawn is not None
    by_tip = {bar.tip: bar for lane in drawn.lanes for bar in lane.bars if bar.tone is Tone.WAIT}
    assert set(by_tip) == {"waits 7 days", "waits 2 days"}
    assert by_tip["waits 7 days"].width > by_tip["waits 2 days"].width * 3
    working = [bar for lane in drawn.lanes for bar in lane.bars if bar.tone is not Tone.WAIT]
    assert max(bar.width for bar in working) < by_tip["waits 2 days"].width / 10
    irreversible = [bar for lane in drawn.lanes for bar in lane.bars if bar.tone is Tone.IRREVERSIBLE]
    assert len(irreversible) == sum(step.irreversible for step in steps if step.copy_)


def test_a_far_deadline_is_told_in_words_and_not_lost() -> None:
    start = Span(NOW, NOW + timedelta(minutes=10), Tone.WORK, "")
    drawn = timeline.draw([Lane("x", 0, (start,))], NOW + timedelta(days=30))
    assert drawn is not None
    assert drawn.deadline is None
    assert drawn.later == "deadline 7 Dec 2026, 29 days 23 h after the last step →"


def test_an_irreversible_step_is_never_hidden_behind_a_harmless_one() -> None:
    irreversible = Span(NOW, NOW + timedelta(seconds=1), Tone.IRREVERSIBLE, "")
    after = Span(NOW + timedelta(seconds=1), NOW + timedelta(seconds=2), Tone.WORK, "")
    far = Span(NOW + timedelta(days=9), NOW + timedelta(days=9, seconds=1), Tone.WORK, "")
    drawn = timeline.draw([Lane("x", 0, (irreversible, after, far))], None)
    assert drawn is not None
    assert drawn.lanes[0].bars[-1].tone is Tone.IRREVERSIBLE


def test_nothing_with_a_time_is_no_drawing() -> None:
    assert timeline.draw([Lane("x", 0, ())], NOW) is None
