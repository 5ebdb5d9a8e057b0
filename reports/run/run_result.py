"""The final object of a run, for people or for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def show_result(run: Path, result: Mapping[str, Any], fmt: str) -> None:
    """The final object on stdout, for people or for machines. run: the folder of the run, in its state folder."""
    if fmt == "json":
        print(json.dumps(dict(result), sort_keys=True))
        return
    from rich.console import Console

    from reports.run.closing_table import print_closing
    from reports.run.next_steps import next_steps
    from reports.run.run_views import RunView

    view = RunView.model_validate_json((run / "view.json").read_bytes())
    console = Console(highlight=False)
    print_closing(view, console)
    for failed in result["failed"]:
        console.print(f"failed: {failed['step']}: {failed['reason']}", markup=False)
        if failed["next"]:
            console.print(f"    next: {failed['next']}", markup=False)
    for item in result["drift"]:
        console.print(f"drift: {item['copy']}: {item['kind']}", markup=False)
        console.print(f"    expected: {item['expected']}\n    found:    {item['found']}", markup=False)
    for item in next_steps(result, str(run.parents[1])):
        console.print(f"next: {item}", markup=False)
