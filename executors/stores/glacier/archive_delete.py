"""Archives deleted from a Glacier vault, and the inventory awaited that tells so.

Deleting is idempotent, and takes what was fetched before only when that expires, a day after its job
(https://docs.aws.amazon.com/amazonglacier/latest/dev/deleting-an-archive.html).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from executors.stores.glacier.vault_step_context import (
    AwaitParameters,
    DeleteParameters,
    VaultWork,
    as_run_error,
    refused,
)
from executors.stores.s3.step_base import server_time
from pii_tracer.common.plurals import counted
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.stores.glacier.vault_discovery import GONE, VaultInventory
from pii_tracer.model.errors import EstateError, RunError
from pii_tracer.run.executor_protocol import (
    Check,
    Outcome,
    PartlyDone,
    Progress,
)

LOOK_AGAIN = timedelta(hours=4)
"""Inventory jobs take three to five hours."""
GIVE_UP = timedelta(days=5)
"""An inventory made so long after a deletion that still lists the archive is an error; Glacier makes one a day."""


@dataclass(frozen=True)
class Deleting:
    """One VAULT_DELETE step."""

    work: VaultWork
    parameters: DeleteParameters

    def check(self) -> None:
        """Raise `RunError` when no archive's fate is known: none goes before its successor is there."""
        _, unknown = self._due()
        if len(unknown) == len(self.parameters.archives):
            raise RunError(
                "the journal has no results for the archives, so nothing is deleted",
                where=self.parameters.where,
                todo="restore the run's journal, then run `pii-tracer resume`",
            )

    def run(self) -> Outcome:
        """Delete every archive that was written again, or all where they go whole.

        Raises:
            PartlyDone: Glacier refused some, or nobody knows what became of some; those that are gone are in the facts.
        """
        client, known = self.work.client(self.parameters), self.work.deleted()
        due, unknown = self._due()
        gone: list[dict[str, str]] = []
        errors: dict[str, int] = {}
        for archive in due:
            if archive in known:
                continue
            try:
                at = server_time(client.delete(archive), self.work.ctx.now())
            except (ClientError, BotoCoreError) as error:
                if error_code(error) != GONE:
                    errors[error_code(error)] = errors.get(error_code(error), 0) + 1
                    continue
                at = self.work.ctx.now()
            gone.append({"archive": archive, "at": at.isoformat()})
        facts: dict[str, Any] = {
            "deleted_archives": gone,
            "spared": sorted({a.id for a in self.parameters.archives} - {*due, *unknown}),
        }
        if unknown:
            facts["held"] = unknown
        if errors:
            raise PartlyDone(
                f"Glacier rejected the deletion of {counted(sum(errors.values()), 'archive')}: "
                f"{', '.join(sorted(errors))}",
                facts | {"failed": errors},
                where=self.parameters.where,
                todo=(
                    "grant glacier:DeleteArchive; if a Vault Lock policy keeps an archive, wait until the policy "
                    "allows its deletion"
                ),
            )
        if unknown:
            raise PartlyDone(
                f"{counted(len(unknown), 'archive was', 'archives were')} not rewritten, and not deleted",
                facts,
                where=self.parameters.where,
                todo="finish the rewrite first: read the errors in the journal",
            )
        return Outcome(facts)

    def verify(self) -> Check:
        """Whether Glacier took every deletion; an inventory tells whether they are gone."""
        known = self.work.deleted()
        due, unknown = self._due()
        left = len(unknown) + sum(archive not in known for archive in due)
        return Check.none_left(left, "archive was", "archives were", "not deleted")

    def probe(self) -> Progress:
        """Deleting again harms nobody."""
        return Progress.DONE if self.verify().ok else Progress.PARTIAL

    def _due(self) -> tuple[list[str], list[str]]:
        """Archives that go, and those of which the journal does not say what became of them."""
        archives = [a.id for a in self.parameters.archives]
        if self.parameters.rewritten_by is None:
            return archives, []
        fates = self.work.rewritten(self.parameters.rewritten_by)
        due = [a for a in archives if a in fates and fates[a].new is not None]
        return due, [a for a in archives if a not in fates]


@dataclass(frozen=True)
class Awaiting:
    """One VAULT_AWAIT_INVENTORY step."""

    work: VaultWork
    parameters: AwaitParameters

    def check(self) -> None:
        """Nothing can stand against looking."""

    def run(self) -> Outcome:
        """Look at inventories that were made after the deletions; have one made where there is none.

        Raises:
            RunError: an archive that was uploaded is missing, or a deleted one is listed for days.
        """
        found = self._newest()
        if found is None:
            return Outcome({"asked": self._ask()}, waiting_until=self.work.ctx.now() + LOOK_AGAIN)
        left, lost = self._left(found), self._lost(found)
        facts: dict[str, Any] = {
            "inventory": found.taken.isoformat(),
            "listed": len(found.archives),
            "left": len(left),
            "unknown": len(self._unknown(found)),
        }
        if lost:
            raise PartlyDone(
                f"the vault does not contain {counted(len(lost), 'archive')} that this run uploaded or kept",
                facts,
                where=self.parameters.where,
                todo="find out who deleted these archives: they contained rows of other people",
            )
        if left and found.taken > self._changed() + GIVE_UP:
            raise PartlyDone(
                f"{counted(len(left), 'deleted archive is', 'deleted archives are')} still listed days after the "
                "deletion",
                facts,
                where=self.parameters.where,
                todo="contact AWS support, with the ids in the plan",
            )
        if left:
            return Outcome(facts | {"asked": self._ask()}, waiting_until=self.work.ctx.now() + LOOK_AGAIN)
        fetched = self._fetched()
        if fetched:
            return Outcome(facts | {"fetched": fetched}, waiting_until=self.work.ctx.now() + LOOK_AGAIN)
        return Outcome(facts)

    def verify(self) -> Check:
        """A newer inventory lists none of the deleted archives and all others, and none can be read any more."""
        found = self._newest()
        if found is None:
            return Check(False, ("no inventory was made after the deletions",))
        counts = {
            "still listed after their deletion": len(self._left(found)),
            "missing from the vault": len(self._lost(found)),
            "fetched before their deletion, and still readable": self._fetched(),
        }
        findings = tuple(f"{counted(count, 'archive')} {what}" for what, count in counts.items() if count)
        return Check(not findings, findings, {"inventory": found.taken.isoformat()})

    def probe(self) -> Progress:
        """Waiting changes nothing; it is over or not."""
        return Progress.DONE if self.verify().ok else Progress.PARTIAL

    def _changed(self) -> datetime:
        """When the vault was last changed by this run."""
        times = self.work.deleted(self.parameters.deleted_by).values()
        return max(times, default=self.work.ctx.verified_at(self.parameters.deleted_by) or self.work.ctx.now())

    def _newest(self) -> VaultInventory | None:
        client = self.work.client(self.parameters)
        try:
            return max(client.inventories(self._changed()), key=lambda i: i.taken, default=None)
        except EstateError as error:
            raise as_run_error(error) from None
        except (ClientError, BotoCoreError) as error:
            raise refused("glacier:GetJobOutput", error, self.parameters.where) from None

    def _ask(self) -> bool:
        """Have an inventory made, unless one is under way or came lately: they do not change within hours."""
        client, now = self.work.client(self.parameters), self.work.ctx.now()
        try:
            jobs = [j for j in client.jobs() if j.inventory and j.status != "Failed"]
            if any(j.completed is None or j.created > now - LOOK_AGAIN for j in jobs):
                return False
            client.start(Type="inventory-retrieval", Format="JSON")
        except EstateError as error:
            raise as_run_error(error) from None
        except (ClientError, BotoCoreError) as error:
            if error_code(error) == GONE:  # a young vault that has no inventory yet: its first one takes up to a day
                return False
            raise refused("glacier:InitiateJob", error, self.parameters.where) from None
        return True

    def _left(self, found: VaultInventory) -> set[str]:
        return {a.id for a in found.archives} & self.work.deleted(self.parameters.deleted_by).keys()

    def _kept(self) -> set[str]:
        """Archives that must be there: successors, and those that were left alone."""
        if self.parameters.rewritten_by is None:
            return set()
        fates = self.work.rewritten(self.parameters.rewritten_by)
        return {fate.new or old for old, fate in fates.items()}

    def _lost(self, found: VaultInventory) -> set[str]:
        return self._kept() - {a.id for a in found.archives}

    def _unknown(self, found: VaultInventory) -> set[str]:
        planned = {a.id for a in self.parameters.archives} | set(self.parameters.others) | self._kept()
        return {a.id for a in found.archives} - planned

    def _fetched(self) -> int:
        """Retrievals of deleted archives whose output Glacier still hands out."""
        deleted = self.work.deleted(self.parameters.deleted_by)
        try:
            return sum(job.archive_id in deleted for job in self.work.client(self.parameters).jobs())
        except EstateError as error:
            raise as_run_error(error) from None
        except (ClientError, BotoCoreError) as error:
            raise refused("glacier:ListJobs", error, self.parameters.where) from None
