"""lakeFS: which branches and commits keep an object alive, until when, and what to change so that it goes in time.

lakeFS's garbage collection removes an object when no active commit reaches it. From each branch's head it goes down
the main ancestry (first parents): the head is active, and so is every commit that was the head at some time of the
branch's retention period, which is every commit whose child on that way was made within it. A commit that is nobody's
main parent and no head is dangling; it is treated as if a head had been made on it when it was made itself, under the
repository's default. Design: https://docs.lakefs.io/howto/garbage-collection/gc.html and lakeFS issue 1932; tags keep
nothing. Pure: no I/O, no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from pii_tracer.common.plurals import counted
from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.errors import PlanError


@dataclass(frozen=True)
class Commit:
    """A commit. parent: its main parent (the first one), None for the first commit of a repository."""

    id: str
    created: datetime
    parent: str | None = None


@dataclass(frozen=True)
class Repository:
    """commits: by id, all of them. branches: name -> commit id of its head."""

    commits: Mapping[str, Commit]
    branches: Mapping[str, str]

    def __post_init__(self) -> None:
        named = {*self.branches.values(), *(c.parent for c in self.commits.values() if c.parent is not None)}
        missing = named - self.commits.keys()
        if missing:
            raise PlanError(
                f"the repository references {counted(len(missing), 'commit')} missing from its commit list",
                todo="read the repository again, because nobody knows which objects an unknown commit references",
            )


@dataclass(frozen=True)
class Rules:
    """Garbage collection rules: days of retention, by branch where one differs from the default."""

    default_days: int
    branches: Mapping[str, int]

    def days(self, branch: str | None) -> int:
        """Of a branch; None: a dangling commit."""
        return self.default_days if branch is None else self.branches.get(branch, self.default_days)


class Keeps(StrEnum):
    """Why a commit is active."""

    HEAD = "head"
    HISTORY = "history"
    DANGLING = "dangling"


@dataclass(frozen=True)
class Keeper:
    """One reason why an object is still there.

    commit: the active commit that holds it. branch: None for a dangling line of commits. since: when it stopped being
    a head. until: when its retention ends; both None for a head, which keeps what it holds until it is changed.
    """

    kind: Keeps
    commit: str
    branch: str | None
    since: datetime | None
    until: datetime | None


def _starts(repository: Repository) -> Iterator[tuple[str | None, str]]:
    """(branch, its head), and (None, commit) for every dangling commit."""
    yield from sorted(repository.branches.items())
    parents = {commit.parent for commit in repository.commits.values()}
    for commit_id in sorted(repository.commits.keys() - parents - set(repository.branches.values())):
        yield None, commit_id


def _line(repository: Repository, branch: str | None, start: str) -> Iterator[tuple[Commit, datetime | None]]:
    """Each commit of a main ancestry with the time when the next one took its place; None: it is the head.

    A dangling commit had a head made on it, in thought, when it was made itself.
    """
    replaced = None if branch is not None else repository.commits[start].created
    current: str | None = start
    seen: set[str] = set()
    while current is not None:
        if current in seen:
            raise PlanError("the commits of the repository form a cycle", todo="read the repository again")
        seen.add(current)
        commit = repository.commits[current]
        yield commit, replaced
        replaced, current = commit.created, commit.parent


def keepers(repository: Repository, rules: Rules, holders: Iterable[str], now: datetime) -> tuple[Keeper, ...]:
    """Everything that keeps an object alive now, the longest first. holders: ids of the commits that contain it.

    Raises:
        PlanError: a holder is no commit of the repository, or its commits go in a circle.
    """
    wanted = set(holders)
    if wanted - repository.commits.keys():
        raise PlanError(
            "a commit that references the object is not in the repository", todo="read the repository again"
        )
    found: list[Keeper] = []
    for branch, start in _starts(repository):
        period = timedelta(days=rules.days(branch))
        for commit, replaced in _line(repository, branch, start):
            if commit.id not in wanted:
                continue
            if replaced is None:
                found.append(Keeper(Keeps.HEAD, commit.id, branch, None, None))
            elif replaced + period > now:
                kind = Keeps.HISTORY if branch is not None else Keeps.DANGLING
                found.append(Keeper(kind, commit.id, branch, replaced, replaced + period))
    far = datetime.max.replace(tzinfo=now.tzinfo)
    return tuple(sorted(found, key=lambda k: (-(k.until or far).timestamp(), k.branch or "", k.commit)))


def active(repository: Repository, rules: Rules, now: datetime) -> frozenset[str]:
    """Ids of the active commits: what any of them reaches stays."""
    return frozenset(k.commit for k in keepers(repository, rules, repository.commits, now))


@dataclass(frozen=True)
class Change:
    """What to do so that an object can be collected by a deadline.

    delete_on: branches whose head holds it: delete it there and commit, first of all. rules: to be set; branches that
    do not hold the object keep the days they have. collectable: when garbage collection removes it then.
    also_expire: other commits that the new rules expire earlier than the old ones would; reviewers decide on them.
    """

    delete_on: tuple[str, ...]
    rules: Rules
    collectable: datetime
    also_expire: frozenset[str]


def change(repository: Repository, rules: Rules, holders: Iterable[str], now: datetime, deadline: datetime) -> Change:
    """The smallest change that lets an object go by the deadline.

    Raises:
        PlanError: the deadline is over, or as `keepers`.
    """
    if deadline < now:
        raise PlanError(
            "the deadline has passed", todo="set a retention of 0 days, so that the object is removed at once"
        )
    wanted = set(holders)
    kept = keepers(repository, rules, wanted, now)
    heads = tuple(sorted({k.branch for k in kept if k.kind is Keeps.HEAD and k.branch is not None}))
    allowed: dict[str | None, int] = {}
    ends = [now]
    for keeper in kept:
        # the commit that deletes it takes the head's place now
        since = keeper.since or now
        days = min(rules.days(keeper.branch), (deadline - since).days)
        allowed[keeper.branch] = min(allowed.get(keeper.branch, days), days)
    new = _rules(repository, rules, allowed)
    for keeper in kept:
        ends.append((keeper.since or now) + timedelta(days=new.days(keeper.branch)))
    lost = active(repository, rules, now) - active(repository, new, now) - wanted
    return Change(heads, new, max(ends), lost)


def _rules(repository: Repository, rules: Rules, allowed: Mapping[str | None, int]) -> Rules:
    """The rules with the days that are allowed now; no other branch gets other days than it had."""
    default = min(rules.default_days, allowed.get(None, rules.default_days))
    branches = dict(rules.branches)
    for branch in repository.branches:
        days = allowed.get(branch, rules.days(branch))
        if branch in branches or days != default:
            branches[branch] = days
    return Rules(default, branches)


@dataclass(frozen=True)
class LettingGo:
    """What a plan does about one repository, as it was `seen`. before: the rules in force, None where there are none.

    rewrites: branch -> path -> address of what holds the person at its head. addresses: everything to be collected,
    with one (path, commit) under which lakeFS shows it; None where no commit that is known does. collectable: when the
    collector may take the last of it. expires: commits that the new rules have ended by the time when it has run, and
    the old ones would not; lost: objects without the person that only they name.
    """

    seen: datetime
    before: Rules | None
    change: Change
    holders: frozenset[str]
    rewrites: Mapping[str, Mapping[str, str]]
    addresses: Mapping[str, tuple[str, str] | None]
    collectable: datetime
    expires: frozenset[str]
    lost: frozenset[str]
