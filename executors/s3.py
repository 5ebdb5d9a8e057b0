"""The S3 executor: restore archived objects, rewrite them without the person, await replicas, delete old versions."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import ValidationError

from executors.s3_delete import VersionDeleter
from executors.s3_match import Keys
from executors.s3_objects import (
    PLAN_TAG,
    AwaitParameters,
    DeleteParameters,
    PartlyDone,
    RestoreParameters,
    RewriteParameters,
    S3Context,
    VersionRef,
    head,
    keys_of,
    overwritten,
    read,
    request_id,
    write_like,
)
from executors.s3_rows import Kept, drop_rows
from pii_tracer.errors import RunError
from pii_tracer.estate.s3 import s3_clients
from pii_tracer.estate.s3_versions import (
    ClientFactory,
    Readability,
    error_code,
    readability,
    sha256_of_head,
)
from pii_tracer.model import Format, Match
from pii_tracer.plan import Action, Copy, Step
from pii_tracer.protocol import Check, Outcome, Progress

Parameters = RestoreParameters | RewriteParameters | AwaitParameters | DeleteParameters

_MODELS: dict[Action, type[Parameters]] = {
    Action.S3_RESTORE: RestoreParameters,
    Action.S3_REWRITE_ARCHIVE: RewriteParameters,
    Action.S3_AWAIT_REPLICA: AwaitParameters,
    Action.S3_DELETE_VERSIONS: DeleteParameters,
}

_REPLICA_LOOK_AGAIN = timedelta(minutes=1)


@dataclass(frozen=True)
class _Rewriting:
    """A rewrite step with the values its match compares with."""

    parameters: RewriteParameters
    match: Match
    keys: Keys
    strong: frozenset[str]


class S3Executor:
    """Executor `s3`. clients: made from the estate file unless given."""

    name = "s3"

    def __init__(self, ctx: S3Context, clients: ClientFactory | None = None) -> None:
        self._ctx = ctx
        self._clients = clients or s3_clients(ctx.estate)

    # --- protocol ---

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` for wrong parameters, an unreachable bucket, a missing match, or an unsupported format."""
        parameters = _parameters(step)
        try:
            self._clients(parameters.region).head_bucket(Bucket=parameters.bucket)
        except (ClientError, BotoCoreError) as error:
            raise RunError(
                f"the bucket cannot be reached: {error_code(error)}",
                where=f"s3://{parameters.bucket}",
                todo="check its name, its region and the run's permissions",
            ) from None
        if isinstance(parameters, RewriteParameters):
            self._rewriting(parameters, copy)

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """Do the step. What is done already is seen and not done again.

        Raises:
            PartlyDone: some objects failed; its facts say which, and what is done.
        """
        parameters = _parameters(step)
        if isinstance(parameters, RestoreParameters):
            return self._restore(parameters)
        if isinstance(parameters, RewriteParameters):
            return self._rewrite(self._rewriting(parameters, copy))
        if isinstance(parameters, AwaitParameters):
            return self._await_replica(parameters)
        return Outcome(VersionDeleter(self._ctx, self._clients, parameters, copy).delete())

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """Look at the objects themselves."""
        parameters = _parameters(step)
        if isinstance(parameters, RestoreParameters):
            states = self._states(parameters)
            waiting = sum(state in (Readability.ARCHIVED, Readability.RESTORING) for state in states.values())
            return Check(not waiting, (f"{waiting} version(s) cannot be read yet",) if waiting else ())
        if isinstance(parameters, RewriteParameters):
            return self._verify_rewrite(self._rewriting(parameters, copy))
        if isinstance(parameters, AwaitParameters):
            missing = self._not_replicated(parameters)
            return Check(not missing, (f"{len(missing)} rewritten object(s) have not arrived",) if missing else ())
        found = VersionDeleter(self._ctx, self._clients, parameters, copy).review()
        left = len(found.targets)
        findings = [f"{left} listed version(s) still exist"] if left else []
        findings += sorted({f"held back: {reason}" for reason in found.held.values()})
        return Check(not findings, tuple(findings), {"left": left, "spared": len(found.spared)})

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """How far the step came. Reads only."""
        parameters = _parameters(step)
        if isinstance(parameters, RestoreParameters):
            states = set(self._states(parameters).values()) - {None}
            if states <= {Readability.READABLE}:
                return Progress.DONE
            return Progress.NOT_STARTED if states == {Readability.ARCHIVED} else Progress.PARTIAL
        if isinstance(parameters, DeleteParameters):
            found = VersionDeleter(self._ctx, self._clients, parameters, copy).review()
            if not found.targets and not found.held:
                return Progress.DONE
            return Progress.PARTIAL if found.gone or found.replaced else Progress.NOT_STARTED
        if isinstance(parameters, AwaitParameters):
            return Progress.PARTIAL if self._not_replicated(parameters) else Progress.DONE
        if self.verify(step, copy).ok:
            return Progress.DONE
        client = self._clients(parameters.region)
        tagged = any(_written_by(head(client, parameters.bucket, item.key), parameters) for item in parameters.objects)
        return Progress.PARTIAL if tagged else Progress.NOT_STARTED

    # --- restore ---

    def _restore(self, parameters: RestoreParameters) -> Outcome:
        states = self._states(parameters)
        errors: dict[str, int] = {}
        requests: list[str] = []
        for item in parameters.versions:
            if states[item.key, item.version_id] is Readability.ARCHIVED:
                try:
                    requests.append(self._request_restore(parameters, item))
                except (ClientError, BotoCoreError) as error:
                    code = error_code(error)
                    if code != "RestoreAlreadyInProgress":
                        errors[code] = errors.get(code, 0) + 1
        after = list(self._states(parameters).values())
        ongoing = sum(state in (Readability.RESTORING, Readability.ARCHIVED) for state in after)
        facts: dict[str, Any] = {
            "requested": len(requests),
            "ongoing": ongoing,
            "readable": after.count(Readability.READABLE),
            "missing": after.count(None),
            "tier": parameters.tier,
            "days": parameters.days,
            "request_ids": requests,
        }
        if errors:
            facts["failed"] = errors
            raise PartlyDone(
                f"restores were refused: {', '.join(sorted(errors))}",
                facts,
                where=f"s3://{parameters.bucket}",
                todo="grant s3:RestoreObject, or wait where S3 asks to slow down, then `pii-tracer resume`",
            )
        if not ongoing:
            return Outcome(facts)
        # restores often end before the time the service promises, so the run looks again before that
        return Outcome(facts, waiting_until=self._ctx.now() + self._look_again())

    def _look_again(self) -> timedelta:
        """`windows.restore_check_minutes` of the estate file, at most the promised `restore_hours`."""
        windows = self._ctx.estate.windows
        promised = timedelta(hours=windows.restore_hours) or timedelta(seconds=5)
        return min(timedelta(minutes=windows.restore_check_minutes), promised)

    def _request_restore(self, parameters: RestoreParameters, item: VersionRef) -> str:
        request: dict[str, Any] = {"GlacierJobParameters": {"Tier": parameters.tier}}
        # the archive tiers of Intelligent-Tiering are restored for good and take no days
        if item.storage_class != "INTELLIGENT_TIERING":
            request["Days"] = parameters.days
        answer = self._clients(parameters.region).restore_object(
            Bucket=parameters.bucket, Key=item.key, VersionId=item.version_id, RestoreRequest=request
        )
        return request_id(answer)

    def _states(self, parameters: RestoreParameters) -> dict[tuple[str, str], Readability | None]:
        client = self._clients(parameters.region)
        now = self._ctx.now()
        states: dict[tuple[str, str], Readability | None] = {}
        for item in parameters.versions:
            found = head(client, parameters.bucket, item.key, item.version_id)
            states[item.key, item.version_id] = None if found is None else readability(found, now)
        return states

    # --- rewrite ---

    def _rewriting(self, parameters: RewriteParameters, copy: Copy | None) -> _Rewriting:
        match = parameters.match or (copy.match if copy else None)
        if match is None or not match.terms:
            raise RunError("the step does not say how the person's rows are found", todo="make the plan again")
        if parameters.format not in (Format.PARQUET, Format.CSV):
            raise RunError(
                f"rewriting {parameters.format} objects is not supported", todo="use Parquet or CSV, or waive it"
            )
        keys, strong = keys_of(self._ctx.keyring, match)
        if not all(keys.values()):
            raise RunError("a key set of the match is empty", todo="make the plan again")
        if any(value in item.key for value in strong for item in parameters.objects):
            raise RunError(
                "the name of an object holds the person, and a rewrite keeps names",
                where=f"s3://{parameters.bucket}/{parameters.prefix}",
                todo="copy it under another name, then make a new plan",
            )
        return _Rewriting(parameters, match, keys, strong)

    def _rewrite(self, work: _Rewriting) -> Outcome:
        done: list[dict[str, Any]] = []
        failed: list[dict[str, str]] = []
        for item in work.parameters.objects:
            try:
                done.append(self._rewrite_one(work, item))
            except RunError as error:
                failed.append({"key": item.key, "version_id": item.version_id, "reason": error.what})
        facts: dict[str, Any] = {
            "objects": done,
            "rewritten": sum(fact["state"] == "rewritten" for fact in done),
            "left_alone": sum(fact["state"] == "left_alone" for fact in done),
            "rows_dropped": sum((fact["rows_before"] or 0) - (fact["rows_after"] or 0) for fact in done),
        }
        if failed:
            facts["failed"] = failed
            reasons = ", ".join(sorted({item["reason"] for item in failed}))
            raise PartlyDone(
                f"{len(failed)} of {len(work.parameters.objects)} object(s) were not rewritten: {reasons}",
                facts,
                where=f"s3://{work.parameters.bucket}/{work.parameters.prefix}",
                todo="see the reasons in the journal, mend them, then `pii-tracer resume`",
            )
        return Outcome(facts)

    def _rewrite_one(self, work: _Rewriting, item: VersionRef) -> dict[str, Any]:
        client = self._clients(work.parameters.region)
        bucket = work.parameters.bucket
        current = head(client, bucket, item.key)
        if _written_by(current, work.parameters) and current is not None:
            return self._resumed(work, item, current)
        if current is None or not _is_planned(current, item):
            raise overwritten(bucket, item.key)
        kept, old = self._dropped(work, item)
        if old["ETag"] != current["ETag"]:
            raise overwritten(bucket, item.key)
        fact = _fact(item, "left_alone" if kept.data is None else "rewritten", kept)
        if kept.data is None:
            return fact
        return fact | write_like(client, bucket, item.key, kept.data, old, work.parameters.plan_id, work.strong)

    def _resumed(self, work: _Rewriting, item: VersionRef, current: Any) -> dict[str, Any]:
        """This plan wrote the object before a crash: S3 tells what, the old version tells how many rows."""
        fact: dict[str, Any] = {
            "version_id": current.get("VersionId", "null"),
            "sha256": sha256_of_head(current),
            "etag": current["ETag"].strip('"'),
            "bytes": current["ContentLength"],
            "resumed": True,
        }
        kept = None
        # an unversioned object was overwritten in place, and an old version can be gone or no longer restored:
        # then the rewritten object stands without the count of its rows
        if current.get("VersionId", "null") != item.version_id:
            with contextlib.suppress(RunError):
                kept, _ = self._dropped(work, item)
        return _fact(item, "rewritten", kept) | fact

    def _dropped(self, work: _Rewriting, item: VersionRef) -> tuple[Kept, Any]:
        client = self._clients(work.parameters.region)
        data, answer = read(client, work.parameters.bucket, item.key, item.version_id)
        return drop_rows(data, work.parameters.format, work.match, work.keys, work.strong), answer

    def _verify_rewrite(self, work: _Rewriting) -> Check:
        client = self._clients(work.parameters.region)
        bucket = work.parameters.bucket
        findings: set[str] = set()
        for item in work.parameters.objects:
            current = head(client, bucket, item.key)
            if _written_by(current, work.parameters):
                continue
            if current is None or not _is_planned(current, item):
                findings.add("an object was changed by somebody else")
                continue
            try:
                kept, _ = self._dropped(work, item)
            except RunError as error:
                findings.add(f"an object could not be read: {error.what}")
                continue
            if kept.data is not None:
                findings.add("an object still holds the person")
        return Check(not findings, tuple(sorted(findings)))

    # --- replicas ---

    def _await_replica(self, parameters: AwaitParameters) -> Outcome:
        deadline = time.monotonic() + parameters.poll_seconds
        missing = self._not_replicated(parameters)
        while missing and time.monotonic() < deadline:
            time.sleep(min(1.0, max(0.05, parameters.poll_seconds / 20)))
            missing = self._not_replicated(parameters)
        facts = {"keys": len(parameters.keys), "arrived": len(parameters.keys) - len(missing)}
        return Outcome(facts, waiting_until=self._ctx.now() + _REPLICA_LOOK_AGAIN if missing else None)

    def _not_replicated(self, parameters: AwaitParameters) -> list[str]:
        """Keys that the plan rewrote at the origin and whose current version here is not that content.

        Raises:
            RunError: S3 says that this replication failed or never happens.
        """
        missing = []
        for key in parameters.keys:
            origin = head(self._clients(parameters.origin_region), parameters.origin_bucket, key)
            if origin is None:
                raise overwritten(parameters.origin_bucket, key)
            tag = origin.get("Metadata", {}).get(PLAN_TAG)
            if tag is None or (parameters.plan_id is not None and tag != parameters.plan_id):
                continue
            if _same_content(origin, head(self._clients(parameters.region), parameters.bucket, key), tag):
                continue
            _raise_if_hopeless(origin, parameters, key)
            missing.append(key)
        return missing


def _raise_if_hopeless(origin: Any, parameters: AwaitParameters, key: str) -> None:
    """https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-status.html"""
    reasons = {
        "FAILED": "S3 failed to replicate the rewritten object",
        "REPLICA": "the origin is a replica itself, and S3 does not replicate replicas again",
        "COMPLETED": "S3 says the rewritten object was replicated, and the replica is another object",
        None: "no replication rule applies to the rewritten object",
    }
    status = origin.get("ReplicationStatus")
    if status in reasons:
        raise RunError(
            reasons[status],
            where=f"s3://{parameters.origin_bucket}/{key} to s3://{parameters.bucket}",
            todo="mend the rule or replicate the object with S3 Batch Replication, then `pii-tracer resume`",
        )


def _same_content(origin: Any, here: Any, tag: str) -> bool:
    if here is None or here.get("Metadata", {}).get(PLAN_TAG) != tag:
        return False
    if here["ContentLength"] != origin["ContentLength"]:
        return False
    sums = sha256_of_head(origin), sha256_of_head(here)
    if all(sums):
        return sums[0] == sums[1]
    return bool(here["ETag"] == origin["ETag"])


def _written_by(current: Any, parameters: RewriteParameters) -> bool:
    return current is not None and current.get("Metadata", {}).get(PLAN_TAG) == parameters.plan_id


def _is_planned(current: Any, item: VersionRef) -> bool:
    """The current version is the one the plan saw; an unversioned `null` is told by its ETag."""
    same = current.get("VersionId", "null") == item.version_id
    return same and (item.etag is None or current["ETag"].strip('"') == item.etag.strip('"'))


def _fact(item: VersionRef, state: str, kept: Kept | None) -> dict[str, Any]:
    return {
        "key": item.key,
        "old_version_id": item.version_id,
        "state": state,
        "rows_before": kept.rows_before if kept else None,
        "rows_after": kept.rows_after if kept else None,
        "missing_columns": list(kept.missing) if kept else [],
    }


def _parameters(step: Step) -> Parameters:
    model = _MODELS.get(step.action)
    if model is None:
        raise RunError(f"the S3 executor has no action `{step.action}`", where=step.id, todo="make the plan again")
    try:
        return model.model_validate(step.parameters)
    except ValidationError as error:
        wrong = ", ".join(".".join(str(part) for part in item["loc"]) for item in error.errors(include_input=False))
        raise RunError(f"the step's parameters are wrong: {wrong}", where=step.id, todo="make the plan again") from None
