"""What keeps an object in lakeFS alive: branches and commits, until when, and the change that lets it go."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from pii_tracer.app.settings import Settings
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.errors import UsageError

if TYPE_CHECKING:
    from pii_tracer.lake.stores.lakefs.repository_state import LakefsState


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


def known_repository(settings: Settings, repository: str) -> LakefsState:
    """A lakeFS repository of the estate as it is now: by its name, or SERVER/NAME.

    Raises:
        UsageError: the estate file names none of this name, or several.
    """
    from pii_tracer.lake.stores.lakefs.repository_discovery import repository_state

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
