"""What the steps on a Glacier vault share: their parameters, and what earlier answers of a run say of its archives.

Glacier can be asked about an archive only through an inventory that is a day late. So the journal is the memory: what
was written again, as what, and what was deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from executors.context import ExecutionContext
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.stores.glacier.vault_discovery import VaultClient, vault_client
from pii_tracer.model.datasets import Format, Frozen, Match
from pii_tracer.model.errors import EstateError, RunError
from pii_tracer.model.plan import Copy


class ArchiveRef(Frozen):
    """An archive as the plan names it. tree_hash: keyed (`MarkKey.of_content`)."""

    id: str
    description: str
    created: str
    size: int
    tree_hash: str


class VaultParameters(Frozen):
    """What every step says: where, and which archives."""

    vault: str
    account_id: str
    region: str
    endpoint_url: str | None = None
    archives: tuple[ArchiveRef, ...]

    @property
    def where(self) -> str:
        return f"glacier://{self.region}/{self.vault}"


class RetrieveParameters(VaultParameters):
    """VAULT_RETRIEVE: have the archives fetched."""

    tier: Literal["Standard", "Bulk"] = "Standard"


class RewriteParameters(RetrieveParameters):
    """VAULT_REWRITE: upload each archive again without the person. other_keys: as `Copy.other_keys`."""

    format: Format
    match: Match
    other_keys: tuple[str, ...] = ()


class DeleteParameters(VaultParameters):
    """VAULT_DELETE. rewritten_by: the step whose facts say which archives have a successor; None: all of them go."""

    rewritten_by: str | None = None


class AwaitParameters(DeleteParameters):
    """VAULT_AWAIT_INVENTORY. others: archives that were there and hold other tables only."""

    deleted_by: str
    others: tuple[str, ...] = Field(default=())


@dataclass(frozen=True)
class Rewritten:
    """What became of an archive. new: its successor, None where it does not hold the person and stays."""

    new: str | None
    tree_hash: str


@dataclass(frozen=True)
class VaultWork:
    """One step at work, on a copy."""

    ctx: ExecutionContext
    step_id: str
    copy: Copy | None

    def client(self, parameters: VaultParameters) -> VaultClient:
        return vault_client(parameters.vault, parameters.account_id, parameters.region, parameters.endpoint_url)

    def facts(self, step_id: str | None = None) -> Iterator[Mapping[str, Any]]:
        """What a step (or this one) answered so far."""
        yield from self.ctx.told(step_id or self.step_id)

    def rewritten(self, step_id: str | None = None) -> dict[str, Rewritten]:
        """Old archive id -> what became of it, by the answers of the step that rewrites."""
        return {
            item["archive"]: Rewritten(item.get("new_archive"), item["tree_hash"])
            for facts in self.facts(step_id)
            for item in facts.get("rewritten_archives", ())
        }

    def deleted(self, step_id: str | None = None) -> dict[str, datetime]:
        """Archive id -> when Glacier took its deletion, by Glacier's clock."""
        return {
            item["archive"]: datetime.fromisoformat(item["at"])
            for facts in self.facts(step_id)
            for item in facts.get("deleted_archives", ())
        }


def refused(operation: str, error: Exception, where: str) -> RunError:
    """A call that failed, told by its code alone."""
    code = error_code(error)
    todo = {
        "AccessDeniedException": f"grant the run's role {operation} (a Vault Lock policy cannot be removed)",
        "PolicyEnforcedException": "raise the account's data retrieval policy, or wait for the next hour",
    }.get(code, "run `pii-tracer resume` when Glacier answers again")
    return RunError(f"{operation} failed: {code}", where=where, todo=todo)


def as_run_error(error: EstateError) -> RunError:
    """An inventory that cannot be read stops a step."""
    return RunError(error.what, where=error.where or "the vault", todo=error.todo or "check the vault's jobs")
