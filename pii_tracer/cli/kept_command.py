"""`kept`: which branches and commits of a lakeFS repository keep an object alive, until when, and what lets it go."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pii_tracer.app.settings import Settings, moment
from pii_tracer.cli.options import estate_option, format_option, state_option
from pii_tracer.model.errors import ExitCode, UsageError
from pii_tracer.run.journal import iso

if TYPE_CHECKING:
    from pii_tracer.lake.stores.lakefs.repository_state import LakefsState


@click.command()
@click.argument("repository")
@click.argument("path")
@estate_option
@state_option
@click.option("--by", help="also say what would let it go by this time  [default: at once]")
@click.option("--as-of", help="as of when  [default: now]")
@format_option("text", "json")
def kept(
    repository: str, path: str, estate_file: Path, state: Path, by: str | None, as_of: str | None, fmt: str
) -> int:
    """For everything that ever stood under PATH in REPOSITORY (its name, or SERVER/NAME). Changes nothing."""
    now = moment(as_of)
    found = _state(Settings(estate_file, state), repository)
    told = explain(found, path, now, moment(by) if by else now)
    if not told["objects"]:
        raise UsageError(
            "no commit that is known names anything under this path", where=found.location, todo="check the path"
        )
    click.echo(json.dumps(told, indent=2) if fmt == "json" else "\n".join(_lines(told)))
    return int(ExitCode.DONE)


def explain(state: LakefsState, path: str, now: datetime, deadline: datetime) -> dict[str, Any]:
    """Every object of a path with what keeps it, and the smallest change that lets it go by a deadline.

    Raises:
        PlanError: the deadline is over, or the commits contradict each other.
    """
    from planners.stores.lakefs.object_retention import change, keepers
    from planners.stores.lakefs.repositories import FOR_EVER, repository_of, rules_in_force

    repository, rules = repository_of(state), rules_in_force(state)
    objects = []
    for address in sorted({tree[path] for tree in state.trees.values() if path in tree}):
        holders = state.holding(frozenset({address}))
        keeping = keepers(repository, rules, holders, now)
        ends = [keeper.until for keeper in keeping]
        planned = change(repository, rules, holders, now, deadline)
        objects.append(
            {
                "address": address,
                "commits": len(holders),
                "free_from": None if None in ends or state.rules is None else iso(max(filter(None, ends), default=now)),
                "kept_by": [
                    {
                        "why": keeper.kind.value,
                        "branch": keeper.branch,
                        "commit": keeper.commit,
                        "until": iso(keeper.until) if keeper.until and state.rules else None,
                    }
                    for keeper in keeping
                ],
                "to_let_go": {
                    "by": iso(deadline),
                    "delete_on": list(planned.delete_on),
                    "default_days": None if planned.rules.default_days == FOR_EVER else planned.rules.default_days,
                    "days": {b: d for b, d in sorted(planned.rules.branches.items()) if d != FOR_EVER},
                    "free_from": iso(planned.collectable),
                    "commits_that_expire_earlier": len(planned.also_expire),
                },
            }
        )
    return {
        "repository": state.location,
        "path": path,
        "as_of": iso(now),
        "unknown": state.dangling,
        "objects": objects,
    }


def _state(settings: Settings, repository: str) -> LakefsState:
    from pii_tracer.lake.stores.lakefs.repositories import repository_state

    estate = settings.estate()
    known = {f"{s.name}/{r.name}": (s, r) for s in estate.lakefs for r in s.repositories}
    fits = [name for name in known if repository in (name, name.partition("/")[2])]
    if len(fits) != 1:
        what = "no repository" if not fits else "the name of several repositories"
        raise UsageError(
            f"`{repository}` is {what} of the estate file",
            todo=f"use one of: {', '.join(sorted(known)) or 'there is none'}",
        )
    return repository_state(estate, settings.base, *known[fits[0]])


def _lines(told: dict[str, Any]) -> list[str]:
    from reports.escape import visible

    lines = []
    for found in told["objects"]:
        free = found["free_from"]
        end = f"may be collected from {free}" if free else "stays as long as nothing is changed"
        lines.append(f"{visible(found['address'])}: named by {found['commits']} commit(s), {end}")
        for keeper in found["kept_by"]:
            where = visible(keeper["branch"]) if keeper["branch"] else "a commit that no branch leads to"
            until = keeper["until"] or ("it is changed there" if keeper["why"] == "head" else "there are rules")
            lines.append(f"  {keeper['why']:<9} {where}, commit {keeper['commit'][:12]}, until {until}")
        change = found["to_let_go"]
        days = ", ".join(f"{visible(branch)} {days}" for branch, days in change["days"].items())
        default = "as it is" if change["default_days"] is None else f"{change['default_days']}"
        deleted = ", ".join(visible(b) for b in change["delete_on"]) or "nowhere"
        lines.append(
            f"  to let it go by {change['by']}: delete on {deleted}; days: default {default}, {days or 'no other'}"
        )
        lines.append(f"    {change['commits_that_expire_earlier']} other commit(s) would expire earlier with it")
    if told["unknown"]:
        lines.append(f"commits that no branch leads to are not known: {told['unknown']}")
    return lines
