"""Declared lakeFS repositories: branches, tags, commits, rules, every object that any of them names.

Commits that no branch leads to ("dangling") are in no log. lakeFS names the active ones when a garbage collection
begins (`gc/prepare_commits`, which changes no data); what it does not name lies in the storage as a stray object, where
that can be listed. Datasets are `lakefs://` and the server's name in the estate file, then the repository.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pii_tracer.config.estate_file import Estate
from pii_tracer.config.lakefs import LakefsRepository, LakefsServer
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.lake.stores.lakefs.client import PLAN_MARK, LakefsClient, LakefsError
from pii_tracer.lake.stores.lakefs.repository_state import (
    NAMESPACE,
    LakefsBranch,
    LakefsCommit,
    LakefsObject,
    LakefsRules,
    LakefsState,
)
from pii_tracer.lake.stores.lakefs.underlying_storage import (
    OWN,
    Storage,
    Stored,
    storage_of,
)
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind


def repository_dataset(server: LakefsServer, repository: LakefsRepository) -> DatasetId:
    """How a repository is called in plans."""
    return DatasetId(namespace=NAMESPACE + server.name, name=repository.name)


def discover_lakefs(estate: Estate, base: Path) -> tuple[tuple[LakefsState, ...], tuple[InventoryGap, ...]]:
    """Every declared repository. What cannot be read wholly is a gap of kind `lakefs_repository`, never a part."""
    states: list[LakefsState] = []
    gaps: list[InventoryGap] = []
    for server in estate.lakefs:
        for repository in server.repositories:
            try:
                states.append(repository_state(estate, base, server, repository))
            except EstateError as error:
                gaps.append(
                    InventoryGap(
                        dataset=repository_dataset(server, repository),
                        kind=GapKind.LAKEFS_REPOSITORY,
                        reason="the lakeFS repository cannot be read, so its contents are unknown",
                        evidence=error.what,
                    )
                )
    return tuple(sorted(states, key=lambda s: s.location)), tuple(gaps)


def declared_repository(estate: Estate, dataset: DatasetId) -> tuple[LakefsServer, LakefsRepository]:
    """The declaration of a dataset.

    Raises:
        EstateError: the estate file does not declare it any more.
    """
    for server in estate.lakefs:
        for repository in server.repositories:
            if repository_dataset(server, repository) == dataset:
                return server, repository
    raise EstateError(
        "the estate file does not declare the repository any more", where=str(dataset), todo="declare the server again"
    )


def repository_state(estate: Estate, base: Path, server: LakefsServer, repository: LakefsRepository) -> LakefsState:
    """One repository as it is now.

    Raises:
        EstateError: refused, no answer, or an answer that is not what lakeFS's API describes.
    """
    client, name = LakefsClient(server), repository.name
    try:
        namespace = str(client.repository(name)["storage_namespace"]).rstrip("/")
        storage = storage_of(namespace, server, estate, base)
        walk = _Walk(client, name)
        patterns = [str(rule["pattern"]) for rule in client.protection(name)]
        heads = {str(b["id"]): str(b["commit_id"]) for b in client.branches(name)}
        tags = {str(t["id"]): str(t["commit_id"]) for t in client.tags(name)}
        walk.commits_of([*heads.values(), *tags.values()])
        dangling = _dangling(client, name, storage, walk)
        walk.content()
        branches = tuple(
            LakefsBranch(
                name=branch,
                head=head,
                protected=any(fnmatchcase(branch, pattern) for pattern in patterns),
                staged=walk.staged(branch),
            )
            for branch, head in sorted(heads.items())
        )
        return LakefsState(
            dataset=repository_dataset(server, repository),
            server=server.name,
            declared=repository,
            storage=namespace,
            rules=rules_of(client.rules(name)),
            branches=branches,
            tags=tags,
            commits=tuple(walk.commits[c] for c in sorted(walk.commits)),
            trees=walk.trees,
            objects=tuple(walk.objects[a] for a in sorted(walk.objects)),
            dangling=dangling,
            stray=_stray(storage, namespace, walk.objects),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise EstateError(
            f"an answer does not follow the lakeFS API: {type(error).__name__}",
            where=f"{server.name}/{name}",
            todo="check the server's version",
        ) from None


def rules_of(answer: Mapping[str, Any] | None) -> LakefsRules | None:
    """Rules as the API gives them."""
    if answer is None:
        return None
    days = {str(rule["branch_id"]): int(rule["retention_days"]) for rule in answer.get("branches", ())}
    return LakefsRules(default_days=int(answer["default_retention_days"]), branches=days)


def rules_body(rules: LakefsRules) -> dict[str, Any]:
    """Rules as the API takes them."""
    days = [{"branch_id": branch, "retention_days": rules.branches[branch]} for branch in sorted(rules.branches)]
    return {"default_retention_days": rules.default_days, "branches": days}


def commit_of(answer: Mapping[str, Any]) -> LakefsCommit:
    """A commit as the API gives it. Commits of version 0 have their main parent last, later ones first."""
    parents = [str(parent) for parent in answer["parents"]]
    old = answer.get("version") == 0
    return LakefsCommit(
        id=str(answer["id"]),
        created=datetime.fromtimestamp(int(answer["creation_date"]), timezone.utc),
        parent=(parents[-1] if old else parents[0]) if parents else None,
        tree=str(answer["meta_range_id"]),
        plan=(answer.get("metadata") or {}).get(PLAN_MARK),
    )


def active_commits(client: LakefsClient, repository: str, storage: Storage | None) -> frozenset[str]:
    """Ids of the commits that a garbage collection would keep now, as the server itself works them out.

    Raises:
        EstateError: refused (404: there are no rules), or its list cannot be read from here.
    """
    prepared = client.prepare(repository)
    url, location = prepared.get("gc_commits_presigned_url"), prepared.get("gc_commits_location")
    if isinstance(url, str) and url:
        text = client.presigned(url)
    elif storage is not None and isinstance(location, str) and location:
        text = storage.read(Stored(location))
    else:
        raise EstateError(
            "the list of active commits is in a storage that this machine cannot read",
            where=repository,
            todo="declare `local_root`, or the estate's `s3`",
        )
    rows = csv.DictReader(io.StringIO(text.decode("utf-8", "replace")))
    if "commit_id" not in (rows.fieldnames or ()):
        raise EstateError(
            "the list of active commits does not have the form of lakeFS",
            where=repository,
            todo="start the preparation of a garbage collection again",
        )
    # servers of old list expired commits, too
    return frozenset(row["commit_id"] for row in rows if row.get("expired", "false") != "true")


def _dangling(client: LakefsClient, name: str, storage: Storage | None, walk: _Walk) -> str | None:
    """Add commits that no branch or tag leads to; why they could not be listed, where they could not."""
    try:
        active = active_commits(client, name, storage)
    except LakefsError as error:
        if error.status in (403, 404):
            missing = error.status == 404
            return "the repository has no rules" if missing else "the key's user has no right to prepare a collection"
        raise
    except EstateError as error:
        return error.what
    walk.commits_of(sorted(active))
    return None


def _stray(storage: Storage | None, namespace: str, known: Iterable[str]) -> tuple[str, ...] | None:
    if storage is None:
        return None
    own = f"{namespace}/{OWN}"
    found = {item.address for item in storage.stored() if not item.address.startswith(own)}
    return tuple(sorted(found - set(known)))


class _Walk:
    """Collects commits, their contents, and the objects that they name."""

    def __init__(self, client: LakefsClient, repository: str) -> None:
        self._client, self._repository = client, repository
        self.commits: dict[str, LakefsCommit] = {}
        self.trees: dict[str, dict[str, str]] = {}
        self.objects: dict[str, LakefsObject] = {}

    def commits_of(self, refs: Iterable[str]) -> None:
        """Some commits with everything they come from. One that is known has been walked from to the end."""
        for ref in refs:
            if ref not in self.commits:
                found = [commit_of(answer) for answer in self._client.log(self._repository, ref)]
                self.commits |= {commit.id: commit for commit in found}

    def content(self) -> None:
        """What each commit names; commits of one content are asked for once."""
        for commit in self.commits.values():
            if commit.tree not in self.trees:
                self.trees[commit.tree] = dict(self._paths(commit.id))

    def staged(self, branch: str) -> dict[str, str | None]:
        """What is uncommitted on a branch."""
        found: dict[str, str | None] = {}
        for change in self._client.staged(self._repository, branch):
            stats = self._client.stat(self._repository, branch, change["path"])
            found[change["path"]] = None if stats is None else self._known(branch, stats).address
        return found

    def _paths(self, commit: str) -> Iterator[tuple[str, str]]:
        for stats in self._client.objects(self._repository, commit):
            yield stats["path"], self._known(commit, stats).address

    def _known(self, ref: str, stats: Mapping[str, Any]) -> LakefsObject:
        address = str(stats["physical_address"])
        made = LakefsObject(
            address=address,
            ref=ref,
            path=str(stats["path"]),
            size=int(stats.get("size_bytes", 0)),
            modified=datetime.fromtimestamp(int(stats["mtime"]), timezone.utc),
            metadata={str(k): str(v) for k, v in (stats.get("metadata") or {}).items()},
        )
        return self.objects.setdefault(address, made)
