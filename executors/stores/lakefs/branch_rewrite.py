"""Rewrite the objects at the heads of lakeFS branches without the person, and commit; nobody else's change goes along.

A branch has one staging area for everybody. So a branch with foreign uncommitted changes is refused before anything is
written, every upload is conditional on the object that was read (`If-Match`), and what is staged is looked at once more
before the commit: where it is more than ours, ours is taken back. lakeFS has no conditional commit, so that a change
staged in that last moment could still come along.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from executors.formats.plain_files.row_removal import Kept, RowRemoval
from pii_tracer.common.plurals import counted
from pii_tracer.lake.stores.lakefs.client import PLAN_MARK, LakefsClient, LakefsError
from pii_tracer.model.datasets import Format, Frozen
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import Check, Outcome, Progress

MESSAGE = "Erase data subjects"


class PlannedObject(Frozen):
    """An object at a branch's head as the plan saw it."""

    path: str
    address: str


class PlannedBranch(Frozen):
    """A branch and what is to be rewritten on it."""

    branch: str
    objects: tuple[PlannedObject, ...]


class RepositoryParameters(Frozen):
    """What every step says: where, and for which plan."""

    server: str
    repository: str
    storage: str
    plan_id: str


class RewriteParameters(RepositoryParameters):
    """LAKEFS_REWRITE."""

    format: Format
    branches: tuple[PlannedBranch, ...]


@dataclass(frozen=True)
class Rewriting:
    """One LAKEFS_REWRITE step."""

    client: LakefsClient
    parameters: RewriteParameters
    removal: RowRemoval

    @property
    def _repository(self) -> str:
        return self.parameters.repository

    @property
    def _mark(self) -> dict[str, str]:
        return {PLAN_MARK: self.parameters.plan_id}

    def check(self) -> None:
        """Raise `RunError` where somebody else has uncommitted changes on a branch."""
        for planned in self.parameters.branches:
            self._foreign(planned)

    def run(self) -> Outcome:
        """Branch by branch; one that is done is seen by this plan's mark on its objects."""
        facts: dict[str, Any] = {"branches": [], "rows_dropped": 0, "files_rewritten": 0}
        for planned in self.parameters.branches:
            done = self._branch(planned)
            facts["branches"].append(done)
            facts["rows_dropped"] += done.get("rows_dropped", 0)
            facts["files_rewritten"] += done.get("objects", 0)
        return Outcome(facts)

    def verify(self) -> Check:
        """No head names an object of the plan under any path, and every path is still there."""
        findings = []
        for planned in self.parameters.branches:
            there = self._head(planned.branch)
            left = {item.address for item in planned.objects} & {str(o["physical_address"]) for o in there.values()}
            lost = [item.path for item in planned.objects if item.path not in there]
            if left:
                findings.append(
                    f"the head of {planned.branch} still references "
                    f"{counted(len(left), 'object that contains', 'objects that contain')} the person"
                )
            if lost:
                findings.append(f"{counted(len(lost), 'path is', 'paths are')} gone from {planned.branch}")
        return Check(not findings, tuple(findings))

    def probe(self) -> Progress:
        """Whether this plan wrote any of the objects."""
        if self.verify().ok:
            return Progress.DONE
        stats = (
            self.client.stat(self._repository, planned.branch, item.path)
            for planned in self.parameters.branches
            for item in planned.objects
        )
        return Progress.PARTIAL if any(found and self._ours(found) for found in stats) else Progress.NOT_STARTED

    # --- one branch ---

    def _branch(self, planned: PlannedBranch) -> dict[str, Any]:
        staged = self._foreign(planned)
        for path in staged:  # a run that was killed left them; written anew, so that each row is counted
            self.client.reset(self._repository, planned.branch, path)
        head = self.client.head(self._repository, planned.branch)
        todo, dropped = [], 0
        for item in planned.objects:
            stats = self.client.stat(self._repository, head, item.path)
            if stats is not None and self._ours(stats):
                continue  # committed before a crash
            if stats is None or stats.get("physical_address") != item.address:
                raise self._changed(planned.branch)
            todo.append((item, stats))
        if not todo:
            return {"branch": planned.branch, "commit": head, "resumed": True}
        try:
            for item, stats in todo:
                kept = self._written(planned.branch, head, item, stats)
                dropped += kept.rows_before - kept.rows_after
            self._only_ours(planned)
            made = self.client.commit(self._repository, planned.branch, MESSAGE, self._mark)
        except (LakefsError, RunError):
            self._take_back(planned)
            raise
        return {
            "branch": planned.branch,
            "before": head,
            "commit": str(made.get("id", "")),
            "objects": len(todo),
            "rows_dropped": dropped,
        }

    def _written(self, branch: str, head: str, item: PlannedObject, stats: dict[str, Any]) -> Kept:
        data = self.client.read(self._repository, head, item.path)
        if data is None:
            raise RunError(
                "the garbage collector removed an object at the head of a branch",
                where=branch,
                todo="restore the object in the repository's storage, or plan again",
            )
        told = [item.path, *map(str, (stats.get("metadata") or {}).values())]
        if any(value in text for value in self.removal.strong for text in told):
            raise RunError(
                "the name or the metadata of an object contains the person, and a rewrite keeps both",
                where=branch,
                todo="copy the object to a name without the value, delete the old object, then make a new plan",
            )
        kept = self.removal.kept(data)
        if kept.data is None:
            raise RunError(
                "an object contains the person, but the match finds no row of the person in it",
                where=branch,
                todo="erase the person in the object by hand; the tool did not change it",
            )
        self.client.upload(self._repository, branch, item.path, kept.data, stats, self._mark)
        return kept

    def _ours(self, stats: dict[str, Any]) -> bool:
        return (stats.get("metadata") or {}).get(PLAN_MARK) == self.parameters.plan_id

    def _staged(self, branch: str) -> set[str]:
        return {str(change["path"]) for change in self.client.staged(self._repository, branch)}

    def _foreign(self, planned: PlannedBranch) -> set[str]:
        """What this plan has staged; refused where there is more."""
        staged = self._staged(planned.branch)
        for path in staged:
            stats = self.client.stat(self._repository, planned.branch, path)
            if stats is None or not self._ours(stats):
                raise RunError(
                    "the branch has uncommitted changes of other users, which the erasure would commit",
                    where=f"{self._repository}, branch {planned.branch}",
                    todo="commit or reset these changes, then run `pii-tracer resume`",
                )
        return staged

    def _only_ours(self, planned: PlannedBranch) -> None:
        staged = self._foreign(planned)
        if staged - {item.path for item in planned.objects}:
            raise self._changed(planned.branch)

    def _take_back(self, planned: PlannedBranch) -> None:
        """What is staged and ours, as far as the server still answers; a resumed run does it again."""
        try:
            for path in self._staged(planned.branch):
                stats = self.client.stat(self._repository, planned.branch, path)
                if stats is not None and self._ours(stats):
                    self.client.reset(self._repository, planned.branch, path)
        except LakefsError:
            return

    def _head(self, branch: str) -> dict[str, dict[str, Any]]:
        head = self.client.head(self._repository, branch)
        return {str(found["path"]): found for found in self.client.objects(self._repository, head)}

    def _changed(self, branch: str) -> RunError:
        return RunError(
            "somebody changed an object after the plan was made; the step did not write it",
            where=f"{self._repository}, branch {branch}",
            todo="stop the writer and make a new plan",
        )
