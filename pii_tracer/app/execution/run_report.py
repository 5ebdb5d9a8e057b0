"""The report of a run, written again from what the run left."""

from __future__ import annotations

from pathlib import Path

from pii_tracer.app.execution.run_folder import choose_run
from pii_tracer.model.errors import UsageError


def write_report(state: Path, run: str | None = None, out: Path | None = None) -> Path:
    """Write the report of a run (a plan id; without one, of the newest) and return its path.

    Raises:
        UsageError: there is no such run, or it has not come to an end.
    """
    from pii_tracer.common.atomic_files import write_atomic
    from reports.run.run_html import render_run_html
    from reports.run.run_views import RunView

    folder = choose_run(state, run, unfinished=False)
    view_file = folder.path / "view.json"
    if not view_file.exists():
        raise UsageError("the run has not ended", where=str(folder.path), todo="`pii-tracer resume`")
    view = RunView.model_validate_json(view_file.read_bytes())
    path = out or folder.report
    write_atomic(path, render_run_html(view, folder.approved().plan).encode())
    return path
