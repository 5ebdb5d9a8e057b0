"""The planner's reckoning against the stand-in's collector, on random histories: two people's readings of one design."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from planners.stores.lakefs.object_retention import (
    Commit,
    Repository,
    Rules,
    active,
    change,
)
from tests.lakefs.standin import Lakefs, Repo

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)
NAMES = ["main", "dev", "old"]


@st.composite
def histories(draw: st.DrawFn) -> Repo:
    """Commits with one parent or two, some of them heads; an object a commit, and some that come along."""
    repo = Repo("shop")
    for n in range(draw(st.integers(1, 10))):
        parents = draw(st.lists(st.sampled_from(sorted(repo.commits)), unique=True, max_size=2)) if repo.commits else []
        tree = dict(repo.commits[parents[0]]["tree"]) if parents and draw(st.booleans()) else {}
        tree[f"p{n}"] = {"path": f"p{n}", "physical_address": f"local://shop/data/{n}", "mtime": 0}
        created = NOW - timedelta(days=draw(st.integers(0, 40)))
        repo.commits[f"c{n:02d}"] = {"parents": parents, "tree": tree, "created": created}
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True)):
        repo.heads[name], repo.staging[name] = draw(st.sampled_from(sorted(repo.commits))), {}
    return repo


rules_of = st.builds(Rules, st.integers(0, 40), st.dictionaries(st.sampled_from(NAMES), st.integers(0, 40)))


def put_in_force(repo: Repo, rules: Rules) -> None:
    days = [{"branch_id": name, "retention_days": rules.branches[name]} for name in sorted(rules.branches)]
    repo.rules = {"default_retention_days": rules.default_days, "branches": days}


def planned_for(repo: Repo) -> Repository:
    commits = {n: Commit(n, c["created"], next(iter(c["parents"]), None)) for n, c in repo.commits.items()}
    return Repository(commits, repo.heads)


@given(histories(), rules_of)
@settings(max_examples=200, deadline=None)
def test_both_keep_the_same_commits(repo: Repo, rules: Rules) -> None:
    put_in_force(repo, rules)
    assert Lakefs(Path(), NOW).active(repo) == active(planned_for(repo), rules, NOW)


@given(histories(), rules_of, st.integers(0, 30), st.data())
@settings(max_examples=200, deadline=None)
def test_what_was_planned_is_collected_in_time(repo: Repo, rules: Rules, days: int, data: st.DataObject) -> None:
    """Heads written anew, the rules as planned: on the day the collector keeps no commit with the object."""
    address = data.draw(
        st.sampled_from([e["physical_address"] for c in repo.commits.values() for e in c["tree"].values()])
    )
    holders = {n for n, c in repo.commits.items() if address in {e["physical_address"] for e in c["tree"].values()}}
    planned = change(planned_for(repo), rules, holders, NOW, NOW + timedelta(days=days))
    for branch in planned.delete_on:
        head = repo.heads[branch]
        tree = {p: e for p, e in repo.commits[head]["tree"].items() if e["physical_address"] != address}
        repo.commits[f"without on {branch}"] = {"parents": [head], "tree": tree, "created": NOW}
        repo.heads[branch] = f"without on {branch}"
    put_in_force(repo, planned.rules)
    assert planned.collectable <= NOW + timedelta(days=days)
    server = Lakefs(Path(), planned.collectable)
    assert not server.active(repo) & holders
    # every head still shows what it did, but for the object
    assert set(repo.heads.values()) <= server.active(repo)
