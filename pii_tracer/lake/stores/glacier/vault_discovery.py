"""Glacier vaults: what is in them, as their newest inventory tells.

Archives have no names, only ids, and nothing lists them but an inventory: a job of some hours whose answer describes
the vault as of `InventoryDate`, about a day ago (https://docs.aws.amazon.com/amazonglacier/latest/dev/vault-inventory.html).
The output of a job can be fetched for a day after it ended. Planning only reads: it starts no job.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from pii_tracer.config.glacier_vaults import Vault
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.lake.stores.base import PagesSeen
from pii_tracer.lake.stores.glacier.vault_state import VaultArchive, VaultState
from pii_tracer.lake.stores.s3.archive_manifest import of_others
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.timestamps import instant

GONE = "ResourceNotFoundException"
ASK = """aws glacier initiate-job --account-id {account} --region {region} --vault-name {vault} \
--job-parameters '{{"Type": "inventory-retrieval"}}'"""
_FUTURE = timedelta(minutes=15)
"""How far clocks may differ."""


@dataclass(frozen=True)
class VaultInventory:
    """One inventory. taken: as of when it describes the vault."""

    taken: datetime
    archives: tuple[VaultArchive, ...]


@dataclass(frozen=True)
class VaultJob:
    """One job as Glacier tells it. archive_id: of a retrieval. completed: when; None while it runs."""

    job_id: str
    inventory: bool
    archive_id: str | None
    status: str
    created: datetime
    completed: datetime | None


@dataclass(frozen=True)
class VaultClient:
    """The calls that are made of one vault. Refusals come as botocore raises them."""

    vault: str
    account_id: str
    client: Any

    def jobs(self) -> Iterator[VaultJob]:
        """All jobs that Glacier still knows.

        Raises:
            EstateError: an answer without jobs, or a page again.
        """
        marker: dict[str, str] = {}
        seen = PagesSeen()
        while True:
            answer = self.client.list_jobs(accountId=self.account_id, vaultName=self.vault, **marker)
            first = [job.get("JobId") for job in answer.get("JobList", ())[:1]]
            if "JobList" not in answer or (first and seen.again(*first)):
                raise self._odd()
            yield from map(self._job, answer["JobList"])
            if not answer.get("Marker"):
                return
            if not first:
                raise self._odd()
            marker = {"marker": answer["Marker"]}

    def _job(self, job: Mapping[str, Any]) -> VaultJob:
        done = job.get("CompletionDate")
        try:
            return VaultJob(
                job["JobId"],
                job["Action"] == "InventoryRetrieval",
                job.get("ArchiveId"),
                job["StatusCode"],
                instant(job["CreationDate"]),
                instant(done) if done else None,
            )
        except (KeyError, ValueError):
            raise self._odd() from None

    def _odd(self) -> EstateError:
        return EstateError(
            "the endpoint does not follow the interface of Glacier",
            where=f"vault {self.vault}",
            todo="correct the endpoint in the estate file",
        )

    def output(self, job_id: str) -> bytes:
        """What a job brought."""
        answer = self.client.get_job_output(accountId=self.account_id, vaultName=self.vault, jobId=job_id)
        with closing(answer["body"]) as body:
            data: bytes = body.read()
        return data

    def start(self, **parameters: str) -> dict[str, Any]:
        """Begin a job."""
        answer: dict[str, Any] = self.client.initiate_job(
            accountId=self.account_id, vaultName=self.vault, jobParameters=parameters
        )
        return answer

    def upload(self, data: bytes, description: str) -> dict[str, Any]:
        """Add an archive; botocore sends its tree hash, which Glacier checks."""
        answer: dict[str, Any] = self.client.upload_archive(
            accountId=self.account_id, vaultName=self.vault, archiveDescription=description, body=data
        )
        return answer

    def delete(self, archive_id: str) -> dict[str, Any]:
        """Delete an archive."""
        answer: dict[str, Any] = self.client.delete_archive(
            accountId=self.account_id, vaultName=self.vault, archiveId=archive_id
        )
        return answer

    def inventories(self, after: datetime | None = None) -> Iterator[VaultInventory]:
        """Inventories that can be fetched, newest job first. after: only such as describe the vault after that.

        Raises:
            EstateError: an output is no inventory.
        """
        done = [j for j in self.jobs() if j.inventory and j.status == "Succeeded" and j.completed is not None]
        for job in sorted(done, key=lambda j: (j.created, j.job_id), reverse=True):
            if after is not None and job.completed is not None and job.completed <= after:
                continue  # it cannot describe what came after it
            found = read_inventory(self.output(job.job_id), f"inventory job of {self.vault}")
            if after is None or found.taken > after:
                yield found


def vault_client(name: str, account_id: str, region: str, endpoint_url: str | None) -> VaultClient:
    """A client of one vault; credentials come from the environment, as boto3 finds them."""
    return VaultClient(name, account_id, _client(region, endpoint_url))


@lru_cache(maxsize=8)
def _client(region: str, endpoint_url: str | None) -> Any:
    import boto3

    return boto3.client("glacier", region_name=region, endpoint_url=endpoint_url)


def read_inventory(data: bytes, where: str) -> VaultInventory:
    """The JSON output of an inventory job.

    Raises:
        EstateError: something else.
    """
    try:
        told = json.loads(data)
        archives = tuple(
            VaultArchive(
                id=item["ArchiveId"],
                description=item.get("ArchiveDescription") or "",
                created=item["CreationDate"],
                size=item["Size"],
                tree_hash=item["SHA256TreeHash"],
            )
            for item in told["ArchiveList"]
        )
        return VaultInventory(instant(told["InventoryDate"]), archives)
    except (ValueError, KeyError, TypeError):
        raise EstateError(
            "the file is not a vault inventory in JSON",
            where=where,
            todo="fetch the output of an inventory-retrieval job",
        ) from None


def discover_vaults(
    vaults: Sequence[Vault], base: Path, now: datetime, clients: Callable[[Vault], VaultClient] | None = None
) -> tuple[tuple[VaultState, ...], tuple[InventoryGap, ...]]:
    """What the declared vaults hold by their newest inventory.

    Gap kinds: `vault_inventory` (none, too old, or unreadable: what is in the vault is unknown), `vault_manifest`.
    """
    states: list[VaultState] = []
    gaps: list[InventoryGap] = []
    for vault in vaults:
        client = (clients or client_of)(vault)
        try:
            others = of_others(base, vault.manifest, vault.of)
        except EstateError as error:
            gaps.append(_gap(vault, GapKind.VAULT_MANIFEST, error.what, str(error.where)))
            others = {}
        try:
            found = _newest(vault, base, client, now)
        except EstateError as error:
            gaps.append(_gap(vault, GapKind.VAULT_INVENTORY, error.what, error.todo or ""))
            continue
        archives = tuple(a.model_copy(update={"of_others": a.id in others}) for a in found.archives)
        states.append(
            VaultState(
                dataset=DatasetId(namespace=f"glacier://{vault.region}", name=vault.vault),
                declared=vault,
                taken=found.taken,
                archives=tuple(sorted(archives, key=lambda a: (a.created, a.id))),
                other_tables=tuple(sorted({t for a in archives for t in others.get(a.id, ())})),
            )
        )
    return tuple(sorted(states, key=lambda s: s.location)), tuple(gaps)


def client_of(vault: Vault) -> VaultClient:
    """The client of a declared vault."""
    return vault_client(vault.vault, vault.account_id, vault.region, vault.endpoint_url)


def _newest(vault: Vault, base: Path, client: VaultClient, now: datetime) -> VaultInventory:
    from botocore.exceptions import BotoCoreError, ClientError

    ask = ASK.format(account=vault.account_id, region=vault.region, vault=vault.vault)
    found: list[VaultInventory] = []
    try:
        found += client.inventories()
    except (ClientError, BotoCoreError) as error:
        if vault.inventory is None:
            what = f"the vault's jobs cannot be read: {error_code(error)}"
            raise EstateError(
                what, where=vault.location, todo="check the vault's name, its region and the rights"
            ) from None
    if vault.inventory is not None:
        try:
            found.append(read_inventory((base / vault.inventory).read_bytes(), vault.inventory))
        except OSError as error:
            what = f"the saved inventory cannot be read: {error.strerror or type(error).__name__}"
            raise EstateError(what, where=vault.inventory, todo=f"save one: {ask}") from None
    found = [i for i in found if i.taken <= now + _FUTURE]
    if not found:
        raise EstateError(
            "the vault has no current inventory, so its contents are unknown",
            where=vault.location,
            todo=f"{ask}. Plan again when the job has ended (after some hours), within a day",
        )
    newest = max(found, key=lambda i: i.taken)
    if now - newest.taken > timedelta(hours=vault.max_age_hours):
        raise EstateError(
            f"the newest inventory of the vault is from {newest.taken:%Y-%m-%d %H:%M} UTC, older than "
            f"{vault.max_age_hours:g} hours, so newer archives are unknown",
            where=vault.location,
            todo=f"{ask}. Plan again when the job has ended (after some hours), within a day",
        )
    return newest


def _gap(vault: Vault, kind: GapKind, reason: str, evidence: str) -> InventoryGap:
    dataset = DatasetId(namespace=f"glacier://{vault.region}", name=vault.vault)
    return InventoryGap(dataset=dataset, kind=kind, reason=reason, evidence=evidence)
