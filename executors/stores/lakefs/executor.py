"""The lakeFS executor: rewriting heads, lowering and restoring the retention rules, waiting for the collector.

The collector itself is a job of the operator's platform (Spark, the standalone one, or lakeFS's managed service:
https://docs.lakefs.io/howto/garbage-collection/gc.html), run by its owner or by the command that the plan names.
Nothing here removes an object; whether one is gone is looked at, through lakeFS and in the storage below.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from pydantic import AwareDatetime, ValidationError

from executors.context import ExecutionContext
from executors.formats.plain_files.row_removal import RowRemoval
from executors.stores.lakefs.branch_rewrite import RepositoryParameters, RewriteParameters, Rewriting
from pii_tracer.common.plurals import counted
from pii_tracer.config.lakefs import LakefsServer
from pii_tracer.lake.stores.lakefs.client import LakefsClient
from pii_tracer.lake.stores.lakefs.repository_discovery import (
    active_commits,
    commit_of,
    rules_body,
    rules_of,
)
from pii_tracer.lake.stores.lakefs.repository_state import LakefsRules
from pii_tracer.lake.stores.lakefs.underlying_storage import Storage, storage_of
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import EstateError, RunError
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import Check, Outcome, Progress

LOOK_AGAIN = timedelta(hours=6)


class RulesParameters(RepositoryParameters):
    """LAKEFS_SET_RULES, LAKEFS_RESTORE_RULES. before: None where there were none."""

    before: LakefsRules | None
    after: LakefsRules


class AwaitedObject(Frozen):
    """An object that must go, with one way to read it through lakeFS; None where no known commit names it."""

    address: str
    path: str | None
    ref: str | None


class AwaitParameters(RepositoryParameters):
    """LAKEFS_AWAIT_COLLECTION. holders: commits that name the objects; planned: as of when. until: when the collector
    may take them. command: runs the collector; empty where its owner does.
    """

    owner: str
    collect_days: int
    command: tuple[str, ...] = ()
    planned: AwareDatetime
    until: AwareDatetime
    give_up: AwareDatetime
    holders: tuple[str, ...]
    objects: tuple[AwaitedObject, ...]


_MODELS: dict[Action, type[RepositoryParameters]] = {
    Action.LAKEFS_REWRITE: RewriteParameters,
    Action.LAKEFS_SET_RULES: RulesParameters,
    Action.LAKEFS_RESTORE_RULES: RulesParameters,
    Action.LAKEFS_AWAIT_COLLECTION: AwaitParameters,
}


class LakefsExecutor:
    """Executor `lakefs`."""

    name = "lakefs"

    def __init__(self, ctx: ExecutionContext) -> None:
        self._ctx = ctx

    # --- protocol ---

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` for wrong parameters, another storage, or foreign changes on a branch."""
        work = self._work(step)
        found = str(work.client.repository(work.parameters.repository).get("storage_namespace", "")).rstrip("/")
        if found != work.parameters.storage:
            raise RunError(
                "the storage of the repository differs from the plan",
                where=work.parameters.repository,
                todo="make the plan again",
            )
        if isinstance(work.parameters, RewriteParameters):
            self._rewriting(work, copy).check()

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """Do the step. What is done already is seen in lakeFS itself and not done again."""
        work = self._work(step)
        act: dict[Action, Callable[[], Outcome]] = {
            Action.LAKEFS_REWRITE: lambda: self._rewriting(work, copy).run(),
            Action.LAKEFS_SET_RULES: work.set_rules,
            Action.LAKEFS_RESTORE_RULES: work.restore_rules,
            Action.LAKEFS_AWAIT_COLLECTION: lambda: work.collection(self._ctx.now(), self._begun(step)),
        }
        return act[step.action]()

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """Look at the repository, and at the storage below it."""
        work = self._work(step)
        if step.action is Action.LAKEFS_REWRITE:
            return self._rewriting(work, copy).verify()
        if step.action is Action.LAKEFS_AWAIT_COLLECTION:
            left = len(work.left())
            return Check.none_left(left, "object is", "objects are", "still there", {"left": left})
        return work.rules_hold(restored=step.action is Action.LAKEFS_RESTORE_RULES)

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """How far the step came. Reads only."""
        if step.action is Action.LAKEFS_REWRITE:
            return self._rewriting(self._work(step), copy).probe()
        return Progress.DONE if self.verify(step, copy).ok else Progress.NOT_STARTED

    # --- parts ---

    def _begun(self, step: Step) -> datetime | None:
        """When the steps before a step were over: from then on the lowered days are counted."""
        before = [at for at in (self._ctx.verified_at(b) for b in step.depends_on) if at is not None]
        return max(before, default=None)

    def _work(self, step: Step) -> _Work:
        try:
            parameters = _MODELS[step.action].model_validate(step.parameters)
        except (KeyError, ValidationError):
            raise RunError(
                "this executor does not support the step's parameters", where=step.id, todo="make the plan again"
            ) from None
        server = next((s for s in self._ctx.estate.lakefs if s.name == parameters.server), None)
        if server is None:
            raise RunError(
                "the estate file does not declare the lakeFS server any more",
                where=parameters.server,
                todo="declare the server again",
            )
        return _Work(self._ctx, server, parameters)

    def _rewriting(self, work: _Work, copy: Copy | None) -> Rewriting:
        parameters = work.parameters
        if not isinstance(parameters, RewriteParameters):
            raise RunError("the step does not rewrite branches", todo="make the plan again")
        match = copy.match if copy else None
        removal = RowRemoval.of(self._ctx, copy, match, parameters.format)
        return Rewriting(work.client, parameters, removal)


class _Work:
    """One step with its server."""

    def __init__(self, ctx: ExecutionContext, server: LakefsServer, parameters: RepositoryParameters) -> None:
        self.client, self.parameters = LakefsClient(server), parameters
        self.storage: Storage | None = storage_of(parameters.storage, server, ctx.estate, ctx.base)

    # --- rules ---

    def set_rules(self) -> Outcome:
        """Lower the rules, where they are still those that the dates were worked out for."""
        planned, now = self._planned(), self._rules()
        if now != planned.after:
            if now != planned.before:
                raise RunError(
                    "somebody changed the retention rules after the plan was made",
                    where=planned.repository,
                    todo="make a new plan",
                )
            self.client.set_rules(planned.repository, rules_body(planned.after))
        return Outcome({"rules": planned.after.told(), "before": planned.before.told() if planned.before else None})

    def restore_rules(self) -> Outcome:
        """Put the rules back as they were. What somebody else set meanwhile is left alone."""
        planned, now = self._planned(), self._rules()
        if now == planned.after:
            if planned.before is None:
                self.client.delete_rules(planned.repository)
            else:
                self.client.set_rules(planned.repository, rules_body(planned.before))
        return Outcome({"left_alone": now not in (planned.before, planned.after)})

    def rules_hold(self, *, restored: bool) -> Check:
        """Whether the step's rules are in force; for a restored one, that the lowered ones are not."""
        planned, now = self._planned(), self._rules()
        ok = now != planned.after if restored else now == planned.after
        finding = "the lowered rules are still in force" if restored else "the rules are not in force"
        return Check(ok, () if ok else (finding,), {"rules": now.told() if now else None})

    def _planned(self) -> RulesParameters:
        if not isinstance(self.parameters, RulesParameters):
            raise RunError("the step does not change rules", todo="make the plan again")
        return self.parameters

    def _rules(self) -> LakefsRules | None:
        return rules_of(self.client.rules(self.parameters.repository))

    # --- the collection ---

    def left(self) -> list[str]:
        """Addresses that are still there: to be read through lakeFS, or in the storage in any version."""
        return [item.address for item in self._awaited().objects if self._there(item)]

    def collection(self, now: datetime, begun: datetime | None) -> Outcome:
        """Wait until the objects are gone; say what keeps them. A plan that is applied later ends later.

        Raises:
            RunError: they are still there when the plan gives up.
        """
        awaited, left = self._awaited(), self.left()
        facts: dict[str, Any] = {"left": len(left), "files_removed": len(awaited.objects) - len(left)}
        if not left:
            return Outcome(facts)
        late = max(begun - awaited.planned, timedelta()) if begun else timedelta()
        until, give_up = awaited.until + late, awaited.give_up + late
        kept = self._kept()
        if awaited.command and kept == [] and now >= until:
            _collect(awaited)
            left = self.left()
            facts |= {"left": len(left), "files_removed": len(awaited.objects) - len(left), "collected": True}
            if not left:
                return Outcome(facts)
        facts |= {"waits_for": awaited.owner, "kept_by": kept if kept is None else kept[:10]}
        if now < give_up:
            return Outcome(facts, waiting_until=max(until, min(now + LOOK_AGAIN, give_up)))
        if kept:
            what = (
                f"{counted(len(kept), 'active commit references', 'active commits reference')} the objects: "
                f"{', '.join(c[:12] for c in kept[:3])}"
            )
            todo = "make a new plan, because a branch or tag was created from an old commit, or the rules changed"
        else:
            why = "the reason is unknown" if kept is None else "no active commit references them"
            what = f"{counted(len(left), 'object is', 'objects are')} still in the storage, and {why}"
            todo = (
                f"{awaited.owner}: run lakeFS's garbage collection, and remove noncurrent versions from a versioned "
                "bucket; then run `pii-tracer resume`"
            )
        raise RunError(what, where=awaited.repository, todo=todo)

    def _awaited(self) -> AwaitParameters:
        if not isinstance(self.parameters, AwaitParameters):
            raise RunError("the step does not wait", todo="make the plan again")
        return self.parameters

    def _there(self, item: AwaitedObject) -> bool:
        if self.storage is not None and self.storage.versions(item.address):
            return True
        if item.path is None or item.ref is None:
            if self.storage is None:
                raise RunError(
                    "an object exists only in a storage that this run cannot access",
                    todo="set `local_root` or `s3` in the estate file, then plan again",
                )
            return False
        return self.client.there(self.parameters.repository, item.ref, item.path)

    def _kept(self) -> list[str] | None:
        """Active commits that name one of the objects, as the server works it out; None where it does not tell."""
        awaited = self._awaited()
        try:
            active = active_commits(self.client, awaited.repository, self.storage)
        except EstateError:
            return None
        wanted = {item.address for item in awaited.objects}
        found = sorted(active & set(awaited.holders))
        for commit in sorted(active - set(awaited.holders)):
            # what is older than the plan and no holder never named them
            log = self.client.log(awaited.repository, commit)
            if commit_of(next(iter(log))).created >= awaited.planned and self._names(commit, wanted):
                found.append(commit)
        return found

    def _names(self, commit: str, wanted: set[str]) -> bool:
        objects = self.client.objects(self.parameters.repository, commit)
        return any(str(found["physical_address"]) in wanted for found in objects)


def _collect(awaited: AwaitParameters) -> None:
    """Run the declared command, without a shell; what it prints may name paths and goes nowhere.

    Raises:
        RunError: it cannot be started, fails, or takes longer than its owner has.
    """
    seconds = max(awaited.collect_days, 1) * 86_400
    try:
        done = subprocess.run(
            awaited.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise RunError(
            f"the garbage collector's command was interrupted: {type(error).__name__}",
            where=awaited.repository,
            todo=f"ask {awaited.owner} to check the command; then run `pii-tracer resume`",
        ) from None
    if done.returncode:
        raise RunError(
            f"the garbage collector's command failed with exit code {done.returncode}",
            where=awaited.repository,
            todo=f"ask {awaited.owner} to check its log; then run `pii-tracer resume`",
        )
