"""lakeFS's retention: examples of its documentation, and random histories against a slow, obviously right model."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_tracer.model.errors import PlanError
from planners.stores.lakefs.object_retention import (
    Commit,
    Keeps,
    Repository,
    Rules,
    active,
    change,
    keepers,
)

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def repository(commits: dict[str, tuple[float, str | None]], **branches: str) -> Repository:
    made = {name: Commit(name, ago(days), parent) for name, (days, parent) in commits.items()}
    return Repository(made, branches)


LINE: dict[str, tuple[float, str | None]] = {"a": (30, None), "b": (20, "a"), "c": (10, "b"), "d": (1, "c")}


def test_a_commit_stays_while_it_was_the_head_within_the_period() -> None:
    line = repository(LINE, main="d")
    # b was the head until c came, 10 days ago
    assert active(line, Rules(7, {}), NOW) == {"d", "c"}
    assert active(line, Rules(7, {"main": 15}), NOW) == {"d", "c", "b"}
    assert active(line, Rules(0, {}), NOW) == {"d"}


def test_what_keeps_an_object_and_until_when() -> None:
    shared = repository(LINE | {"x": (9, "b"), "y": (2, "x")}, main="d", dev="y")
    found = keepers(shared, Rules(14, {"dev": 30}), {"a", "b"}, NOW)
    assert [(k.kind, k.commit, k.branch, k.until) for k in found] == [
        (Keeps.HISTORY, "b", "dev", ago(9) + timedelta(days=30)),
        (Keeps.HISTORY, "a", "dev", ago(20) + timedelta(days=30)),
        (Keeps.HISTORY, "b", "main", ago(10) + timedelta(days=14)),
    ]
    [head] = keepers(shared, Rules(0, {}), {"d"}, NOW)
    assert (head.kind, head.branch, head.until) == (Keeps.HEAD, "main", None)


def test_a_dangling_commit_follows_the_default_as_if_a_head_had_been_made_on_it() -> None:
    # the branch of x and y was deleted; y's line goes down to b
    left = repository(LINE | {"x": (9, "b"), "y": (5, "x")}, main="d")
    rules = Rules(7, {"main": 0})
    assert active(left, rules, NOW) == {"d", "y", "x"}
    assert {(k.kind, k.until) for k in keepers(left, rules, {"y"}, NOW)} == {
        (Keeps.DANGLING, ago(5) + timedelta(days=7)),
    }
    assert active(left, Rules(4, {"main": 30}), NOW) == {"d", "c", "b", "a"}


def test_what_to_change_for_a_deadline() -> None:
    shared = repository(LINE | {"x": (9, "b"), "y": (2, "x"), "z": (3, "a")}, main="d", dev="y", other="z")
    rules = Rules(30, {"dev": 60})
    planned = change(shared, rules, {"c", "d"}, NOW, NOW + timedelta(days=6))
    assert planned.delete_on == ("main",)
    assert planned.rules == Rules(30, {"dev": 60, "main": 6})
    assert planned.collectable == NOW + timedelta(days=6)
    # lowering the default would touch everybody; it is lowered only for a dangling line, and branches keep their days
    left = repository(LINE | {"x": (9, "b"), "y": (5, "x"), "w": (8, "a")}, main="d")
    planned = change(left, rules, {"y"}, NOW, NOW + timedelta(days=2))
    assert planned.rules == Rules(7, {"dev": 60, "main": 30})
    assert planned.also_expire == {"w"}
    assert change(left, Rules(3, {}), {"y"}, NOW, NOW + timedelta(days=2)).rules == Rules(3, {})


def test_what_is_not_known_is_never_taken_for_free() -> None:
    with pytest.raises(PlanError, match="missing from its commit list"):
        repository({"b": (1, "a")}, main="b")
    with pytest.raises(PlanError, match="not in the repository"):
        keepers(repository(LINE, main="d"), Rules(1, {}), {"e"}, NOW)
    with pytest.raises(PlanError, match="cycle"):
        active(repository({"a": (2, "b"), "b": (1, "a")}, main="a"), Rules(1, {}), NOW)


# --- random histories ---


@st.composite
def histories(draw: st.DrawFn) -> Repository:
    """Commits on earlier ones, some of them heads of branches; times may go backwards, as clocks do."""
    size = draw(st.integers(1, 12))
    commits = {}
    for n in range(size):
        parent = f"c{draw(st.integers(0, n - 1)):02d}" if n and draw(st.integers(0, 9)) else None
        commits[f"c{n:02d}"] = Commit(f"c{n:02d}", ago(draw(st.integers(0, 40))), parent)
    names = draw(st.lists(st.sampled_from(["main", "dev", "old"]), unique=True))
    return Repository(commits, {name: draw(st.sampled_from(sorted(commits))) for name in names})


rules_of = st.builds(
    Rules,
    st.integers(0, 40),
    st.dictionaries(st.sampled_from(["main", "dev", "old"]), st.integers(0, 40)),
)


def slow_active(repo: Repository, rules: Rules, now: datetime) -> set[str]:
    """Word for word: a commit is active when it is a head, or when on some line its child was made in the period.

    Dangling commits get a real child with their own time, on a branch of their own under the default rule.
    """
    commits, heads, days = dict(repo.commits), dict(repo.branches), {}
    for name in heads:
        days[name] = rules.branches.get(name, rules.default_days)
    for commit in repo.commits.values():
        is_parent = any(other.parent == commit.id for other in repo.commits.values())
        if not is_parent and commit.id not in repo.branches.values():
            made = Commit(f"head of {commit.id}", commit.created, commit.id)
            commits[made.id] = made
            heads[f"branch of {commit.id}"] = made.id
            days[f"branch of {commit.id}"] = rules.default_days
    found = set(heads.values())
    for name, head in heads.items():
        child = commits[head]
        while child.parent is not None:
            if child.created > now - timedelta(days=days[name]):
                found.add(child.parent)
            child = commits[child.parent]
    return {commit for commit in found if commit in repo.commits}


@given(histories(), rules_of)
@settings(deadline=None)
def test_active_commits_are_those_of_the_slow_model(repo: Repository, rules: Rules) -> None:
    assert active(repo, rules, NOW) == slow_active(repo, rules, NOW)


@given(histories(), rules_of, st.integers(0, 40), st.data())
@settings(deadline=None)
def test_an_object_goes_when_its_keepers_say(repo: Repository, rules: Rules, wait: int, data: st.DataObject) -> None:
    holders = data.draw(st.sets(st.sampled_from(sorted(repo.commits)), min_size=1))
    later = NOW + timedelta(days=wait)
    kept = [k for k in keepers(repo, rules, holders, NOW) if k.until is None or k.until > later]
    assert bool(kept) == bool(slow_active(repo, rules, later) & holders)


@given(histories(), rules_of, st.integers(0, 30), st.data())
@settings(deadline=None)
def test_after_the_change_the_object_is_gone_by_the_deadline(
    repo: Repository, rules: Rules, days: int, data: st.DataObject
) -> None:
    holders = data.draw(st.sets(st.sampled_from(sorted(repo.commits)), min_size=1))
    deadline = NOW + timedelta(days=days)
    planned = change(repo, rules, holders, NOW, deadline)
    commits, heads = dict(repo.commits), dict(repo.branches)
    for branch in planned.delete_on:
        made = Commit(f"delete on {branch}", NOW, heads[branch])
        commits[made.id], heads[branch] = made, made.id
    after = Repository(commits, heads)
    assert planned.collectable <= deadline
    assert not slow_active(after, planned.rules, planned.collectable) & holders
    # nobody else's branch gets other days
    touched = {k.branch for k in keepers(repo, rules, holders, NOW)}
    assert all(planned.rules.days(b) == rules.days(b) for b in repo.branches if b not in touched)
    assert planned.also_expire == slow_active(repo, rules, NOW) - slow_active(repo, planned.rules, NOW) - holders
