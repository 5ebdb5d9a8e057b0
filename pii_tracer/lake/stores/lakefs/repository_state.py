"""A lakeFS repository as discovery found it. Pure data; `lakefs.repository_discovery` fills it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pii_tracer.config.lakefs import LakefsRepository
from pii_tracer.model.datasets import DatasetId, Frozen

NAMESPACE = "lakefs://"
"""How the namespaces of datasets in lakeFS begin; the server's name in the estate file follows."""


def in_lakefs(place: str) -> bool:
    """Whether a location, or a dataset's namespace, is one of lakeFS."""
    return place.startswith(NAMESPACE)


class LakefsRules(Frozen):
    """Garbage collection rules: days of retention, by branch where one differs from the default."""

    default_days: int
    branches: dict[str, int] = {}

    def told(self) -> str:
        """For people and for comparison."""
        return ", ".join([f"default {self.default_days}", *(f"{b} {d}" for b, d in sorted(self.branches.items()))])


class LakefsCommit(Frozen):
    """A commit. parent: its main parent. tree: id of its content; commits of one content share it.

    plan: id of the plan that made it, None where none did.
    """

    id: str
    created: datetime
    parent: str | None
    tree: str
    plan: str | None = None


class LakefsBranch(Frozen):
    """A branch. head: id of its newest commit. staged: path -> address of what is uncommitted, None where deleted."""

    name: str
    head: str
    protected: bool
    staged: dict[str, str | None] = {}


class LakefsObject(Frozen):
    """An object of the underlying storage and one way to read it through lakeFS.

    address: the storage's own URI. ref: a commit or branch in which it stands under `path`. metadata: what its writer
    noted beside it.
    """

    address: str
    ref: str
    path: str
    size: int
    modified: datetime
    metadata: dict[str, str] = {}


class LakefsState(Frozen):
    """One repository.

    rules: None where there are none, so that nothing committed is ever collected. trees: id -> path -> address.
    dangling: whether commits that no branch leads to could be listed; why not, where not. stray: addresses in the
    storage that no known commit or branch names; None where the storage cannot be listed.
    """

    dataset: DatasetId
    server: str
    declared: LakefsRepository
    storage: str
    rules: LakefsRules | None
    branches: tuple[LakefsBranch, ...]
    tags: dict[str, str]
    commits: tuple[LakefsCommit, ...]
    trees: dict[str, dict[str, str]]
    objects: tuple[LakefsObject, ...]
    dangling: str | None = None
    stray: tuple[str, ...] | None = None

    @property
    def location(self) -> str:
        return f"{self.dataset.namespace}/{self.dataset.name}"

    def holding(self, addresses: frozenset[str]) -> frozenset[str]:
        """Ids of the commits that name one of some objects."""
        trees = {tree for tree, paths in self.trees.items() if addresses & set(paths.values())}
        return frozenset(c.id for c in self.commits if c.tree in trees)

    def tree_of(self, commit: str) -> Mapping[str, str]:
        """Path -> address of a commit."""
        return self.trees[next(c.tree for c in self.commits if c.id == commit)]

    def written(self, branch: LakefsBranch, plan_id: str) -> str:
        """The newest commit of a plan on a branch's main ancestry; the branch's head where it made none."""
        commits = {c.id: c for c in self.commits}
        current: str | None = branch.head
        while current is not None:
            if commits[current].plan == plan_id:
                return current
            current = commits[current].parent
        return branch.head

    def declares(self, path: str) -> bool:
        """Whether a path is one of those that hold rows of the table."""
        return path.startswith(self.declared.prefixes)

    def fingerprint(self) -> str:
        """What a plan relies on: storage, rules, and which branches and tags there are; not where branches stand."""
        rules = self.rules.told() if self.rules else "none"
        names = sorted(f"branch {b.name}" for b in self.branches)
        return "\n".join([f"storage {self.storage}", f"rules {rules}", *names, *_tags(self.tags)])


def _tags(tags: Mapping[str, str]) -> list[str]:
    return [f"tag {name} {tags[name]}" for name in sorted(tags)]
