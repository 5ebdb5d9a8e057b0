"""The plan as one HTML file: verdict, lineage picture, timeline, every copy and step."""

from __future__ import annotations

from collections.abc import Sequence

from pii_tracer.model.plan import ErasurePlan
from reports import timeline, wording
from reports.html_templates import render_html
from reports.lineage.layered_drawing import NODE_WIDTH
from reports.lineage.plan_lineage_picture import Edges, picture
from reports.plan.plan_view import PlanView


def render_plan_html(plan: ErasurePlan, *, plan_file: str, options: Sequence[str] = (), edges: Edges = ()) -> str:
    """A self-contained page (inline style and SVG, no script, no request).

    plan_file, options: as the user would type them, for the commands. edges: (source, target) dataset names
    from the lineage graph; without them the picture follows the paths recorded in the copies.
    """
    view = PlanView(plan)
    return render_html(
        "plan.html.j2",
        view=view,
        plan=plan,
        picture=picture(view, edges),
        node_width=NODE_WIDTH,
        carries=wording.CARRIES,
        meanings=wording.CARRIES_MEANING,
        planned=timeline.planned(view),
        schedules=timeline.schedules(view),
        axis=timeline,
        commands=view.commands(plan_file, options),
        critical=frozenset(plan.totals.critical_path),
        short_name=wording.short_name,
    )
