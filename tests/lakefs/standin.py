"""A stand-in for a lakeFS server: repositories in memory, objects in a folder, its garbage collection over both.

`standin_api` answers over HTTP as lakeFS's published API describes. It refuses what lakeFS refuses: a wrong key pair,
unknown names, writing to a protected branch, a commit without changes, an upload over an object that changed, a commit
that a hook stops. Its clock is the test's. What the collector keeps is written down here word for word from lakeFS's
design, and shares nothing with the planner.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

GRACE = timedelta(hours=24)
"""Objects younger than this are never collected."""

Entry = dict[str, Any]


class Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Repo:
    """One repository. A branch is its head and what is staged on it (None: deleted)."""

    name: str
    commits: dict[str, dict[str, Any]] = field(default_factory=dict)
    heads: dict[str, str] = field(default_factory=dict)
    staging: dict[str, dict[str, Entry | None]] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    rules: dict[str, Any] | None = None
    protected: list[str] = field(default_factory=list)

    def tree(self, ref: str) -> dict[str, Entry]:
        """What a commit, a tag or a branch (with what is staged) shows."""
        if ref in self.heads:
            shown = {**self.commits[self.heads[ref]]["tree"], **self.staging[ref]}
            return {path: entry for path, entry in shown.items() if entry is not None}
        return dict(self.commits[self.commit_of(ref)]["tree"])

    def commit_of(self, ref: str) -> str:
        found = self.heads.get(ref) or self.tags.get(ref) or ref
        if found not in self.commits:
            raise Refused(404, "no such reference")
        return found

    def protects(self, branch: str) -> bool:
        return any(fnmatchcase(branch, pattern) for pattern in self.protected)


@dataclass
class Call:
    """One request, as a test may want to see it."""

    method: str
    path: str
    query: dict[str, str]
    status: int = 0


class Lakefs:
    """The server's state. faults: asked with (method, path) before each call; a number is answered as refusal, `cut`
    sends half an answer, `odd` sends no JSON."""

    def __init__(self, root: Path, now: datetime) -> None:
        self.root, self.now = root, now
        self.repos: dict[str, Repo] = {}
        self.calls: list[Call] = []
        self.violations: list[str] = []
        self.faults: Callable[[str, str], int | str | None] = lambda method, path: None
        self.hook: Callable[[str], bool] = lambda branch: True
        self.page = 3  # small, so that every listing takes several pages
        self.presign = False
        self.url = ""

    # --- what people do with it ---

    def repository(self, name: str) -> Repo:
        repo = self.repos[name] = Repo(name)
        first = self._add(repo, [], {}, "Repository created")
        repo.heads["main"], repo.staging["main"] = first, {}
        (self.root / name / "data").mkdir(parents=True)
        return repo

    def put(self, repo: Repo, branch: str, path: str, data: bytes, **more: Any) -> Entry:
        """Stage an object."""
        key = uuid.uuid4().hex
        (self.root / repo.name / "data" / key).write_bytes(data)
        entry = {
            "path": path,
            "path_type": "object",
            "physical_address": f"local://{repo.name}/data/{key}",
            "checksum": hashlib.md5(data, usedforsecurity=False).hexdigest(),
            "size_bytes": len(data),
            "mtime": int(self.now.timestamp()),
            "content_type": "application/octet-stream",
            "metadata": {},
            **more,
        }
        repo.staging[branch][path] = entry
        return entry

    def delete(self, repo: Repo, branch: str, path: str) -> None:
        repo.staging[branch][path] = None

    def commit(self, repo: Repo, branch: str, message: str = "work", **metadata: str) -> str:
        if not repo.staging[branch]:
            raise Refused(400, "commit: no changes")
        made = self._add(repo, [repo.heads[branch]], repo.tree(branch), message, metadata)
        repo.heads[branch], repo.staging[branch] = made, {}
        return made

    def branch(self, repo: Repo, name: str, source: str) -> None:
        repo.heads[name], repo.staging[name] = repo.commit_of(source), {}

    def merge(self, repo: Repo, source: str, into: str) -> str:
        """The other side wins; enough for histories with two parents."""
        tree = {**repo.tree(into), **repo.tree(source)}
        made = self._add(repo, [repo.heads[into], repo.commit_of(source)], tree, "merge")
        repo.heads[into] = made
        return made

    def drop_branch(self, repo: Repo, name: str) -> None:
        del repo.heads[name], repo.staging[name]

    def _add(
        self,
        repo: Repo,
        parents: list[str],
        tree: dict[str, Entry],
        message: str,
        metadata: dict[str, str] | None = None,
    ) -> str:
        shown = json.dumps([parents, tree, message, self.now.isoformat(), len(repo.commits)], sort_keys=True)
        made = hashlib.sha256(shown.encode()).hexdigest()
        repo.commits[made] = {
            "parents": parents,
            "tree": tree,
            "message": message,
            "metadata": metadata or {},
            "created": self.now,
            "meta_range_id": hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest(),
        }
        return made

    # --- garbage collection ---

    def active(self, repo: Repo) -> set[str]:
        """Every commit that was the head of a branch at some moment of the branch's period; dangling ones with a head
        that is thought to be made on them at their own time, under the default. Without rules: all."""
        if repo.rules is None:
            return set(repo.commits)
        default, own = repo.rules["default_retention_days"], repo.rules["branches"]
        days = {rule["branch_id"]: rule["retention_days"] for rule in own}
        lines = [(head, None, days.get(name, default)) for name, head in repo.heads.items()]
        main_parents = {commit["parents"][0] for commit in repo.commits.values() if commit["parents"]}
        for name, commit in repo.commits.items():
            if name not in main_parents and name not in repo.heads.values():
                lines.append((name, commit["created"], default))
        found = set()
        for name, ended, period in lines:
            current: str | None = name
            while current is not None:
                if ended is None or ended > self.now - timedelta(days=period):
                    found.add(current)
                commit = repo.commits[current]
                ended, current = commit["created"], next(iter(commit["parents"]), None)
        return found

    def collect(self, repo: Repo) -> set[str]:
        """The sweep: objects that no active commit and no staging names, and that are old enough. Returns addresses."""
        keep = {e["physical_address"] for c in self.active(repo) for e in repo.commits[c]["tree"].values()}
        keep |= {e["physical_address"] for staged in repo.staging.values() for e in staged.values() if e}
        made = {e["physical_address"]: e["mtime"] for c in repo.commits.values() for e in c["tree"].values()}
        gone = set()
        for path in (self.root / repo.name / "data").iterdir():
            address = f"local://{repo.name}/data/{path.name}"
            young = made.get(address, 0) > (self.now - GRACE).timestamp()
            if address not in keep and not young:
                path.unlink()
                gone.add(address)
        return gone

    def bytes_of(self, entry: Entry) -> bytes:
        path = self.root / entry["physical_address"].removeprefix("local://")
        if not path.exists():
            raise Refused(410, "no data")
        return path.read_bytes()

    def everything(self, repo: Repo) -> dict[str, bytes]:
        """All that lies in the storage, by address."""
        folder = self.root / repo.name / "data"
        return {f"local://{repo.name}/data/{p.name}": p.read_bytes() for p in folder.iterdir()}
