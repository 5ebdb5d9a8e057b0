"""`recheck`: has an erased person come back, and has a hold lapsed? For a schedule, long after the run.

Whom it looks for is in the deletion log and on the suppression list, as keyed references: the keys that stand in a
source now, and whatever else finished plans matched rows by, are put through the same keyed functions. No value of an
erased person is kept anywhere for this.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pii_tracer.app.settings import Settings, moment
from pii_tracer.cli.options import estate_option, format_option, state_option

if TYPE_CHECKING:
    from pii_tracer.app.erased_persons.returned_persons import Recheck


@click.command()
@estate_option
@state_option
@click.option("--as-of", help="the time to look from, with a time zone  [default: now]")
@format_option("text", "json")
def recheck(estate_file: Path, state: Path, as_of: str | None, fmt: str) -> int:
    """Look whether erased persons are back in a source (exit 9), and which holds have lapsed (exit 7)."""
    from pii_tracer.app.erased_persons.returned_persons import recheck as look

    found = look(Settings(estate_file, state), moment(as_of))
    if fmt == "json":
        click.echo(json.dumps(_as_json(found), indent=2))
    else:
        _tell(found)
    return int(found.exit_code)


def _as_json(found: Recheck) -> dict[str, Any]:
    back, due, waiting, look = found.back, found.due, found.waiting, found.look_again_on
    return {
        "back": [{"subject": r.subject, "source": r.source, "erased_at": r.erased_at.isoformat()} for r in back],
        "due": [
            {"plan_id": d.plan_id, "requests": list(d.requests), "recheck_on": d.recheck_on.isoformat()} for d in due
        ],
        "next": next((d.recheck_on.isoformat() for d in waiting if d not in due), None),
        "look_again_on": look.isoformat() if look else None,
        "not_looked_at": list(found.not_looked_at),
    }


def _tell(found: Recheck) -> None:
    back, due, waiting = found.back, found.due, found.waiting
    look, unseen = found.look_again_on, found.not_looked_at
    for item in back:
        click.echo(f"back: {item.subject} is in {item.source} again, erased on {item.erased_at.date()}")
    for one in due:
        click.echo(
            f"due: plan {', '.join(one.requests)} again: a hold of {one.plan_id} lapsed on {one.recheck_on.date()}"
        )
    if unseen:
        click.echo(f"not looked at: {', '.join(unseen)}")
    if not back and not due:
        later = next((f"; the next hold lapses on {d.recheck_on.date()}" for d in waiting), "")
        again = f"; look again on {look.date()}" if look else ""
        where = " in what was looked at" if unseen else ""
        click.echo(f"nobody is back{where}, and no hold has lapsed{later}{again}")
