"""A run as one HTML file: what was there, what was done, what is left, and how one can know."""

from __future__ import annotations

from pii_tracer.model.plan import ErasurePlan
from reports import timeline, wording
from reports.html_templates import render_html
from reports.lineage.layered_drawing import NODE_WIDTH
from reports.lineage.plan_lineage_picture import picture
from reports.plan.plan_view import PlanView
from reports.run.closing_table import (
    MARKS,
    closing_line,
    run_headline,
    told_of_others,
    tree,
)
from reports.run.run_views import CopyRun, RunView


def render_run_html(run: RunView, plan: ErasurePlan | None = None) -> str:
    """A self-contained page (inline style and SVG, no script, no request).

    plan: what was run; with it the page shows the picture of where the person went.
    """

    def name(copy: CopyRun) -> str:
        return wording.place_name(copy.table, copy.dataset.name, copy.location)

    rows = tree(run)
    headline, tone = run_headline(run)
    return render_html(
        "run.html.j2",
        run=run,
        headline=headline,
        tone=tone,
        closing=closing_line(run),
        others=told_of_others(run),
        picture=picture(PlanView(plan)) if plan else None,
        node_width=NODE_WIDTH,
        carries=wording.CARRIES,
        meanings=wording.CARRIES_MEANING,
        rows=[(depth, copy, name(copy), MARKS[copy.state]) for depth, copy in rows],
        names={copy.id: name(copy) for copy in run.copies},
        kinds=wording.KINDS,
        strategies=wording.STRATEGIES,
        ran=timeline.ran(run, [(depth, copy.id, name(copy)) for depth, copy in rows]),
        axis=timeline,
    )
