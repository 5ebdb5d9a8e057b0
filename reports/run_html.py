"""A run as one HTML file: what was there, what was done, what is left, and how one can know."""

from __future__ import annotations

from reports import timeline, wording
from reports.closing import MARKS, closing_line, tree
from reports.rendering import render_html
from reports.views import CopyRun, RunState, RunView

HEADLINES = {
    RunState.COMPLETE: "Erased and verified",
    RunState.RESIDUE: "Residue found: the persons are still readable in the places below",
    RunState.PARTIAL: "Partial: some steps have not run or have failed; the run can be resumed",
    RunState.WAITING: "Waiting: the rest can only run later",
    RunState.BLOCKED: "Blocked: a hold, a lock or a drift keeps the rest from running",
}
_TONES = {RunState.COMPLETE: "good", RunState.RESIDUE: "bad"}


def run_headline(run: RunView) -> tuple[str, str]:
    """(sentence, tone). Lost bystander rows outrank every good word."""
    if run.bystander_rows_lost:
        return "Rows of other people were lost", "bad"
    if run.residue:
        return HEADLINES[RunState.RESIDUE], "bad"
    if run.state is RunState.COMPLETE and run.erased + run.exempt < len(run.counted):
        # the caller says complete, the copies do not: believe the copies
        return HEADLINES[RunState.PARTIAL], "warn"
    return HEADLINES[run.state], _TONES.get(run.state, "warn")


def render_run_html(run: RunView) -> str:
    """A self-contained page (inline style and SVG, no script, no request)."""

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
        rows=[(depth, copy, name(copy), MARKS[copy.state]) for depth, copy in rows],
        names={copy.id: name(copy) for copy in run.copies},
        kinds=wording.KINDS,
        strategies=wording.STRATEGIES,
        ran=timeline.ran(run, [(depth, copy.id, name(copy)) for depth, copy in rows]),
        axis=timeline,
    )
