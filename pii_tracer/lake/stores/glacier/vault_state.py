"""A Glacier vault as its newest inventory shows it."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256

from pii_tracer.config.glacier_vaults import Vault
from pii_tracer.model.datasets import DatasetId, Frozen


class VaultArchive(Frozen):
    """One archive of a Glacier vault. tree_hash: SHA-256 tree hash of its bytes, as Glacier reckons it.

    of_others: the vault's manifest says that it holds other tables only.
    """

    id: str
    description: str
    created: str
    size: int
    tree_hash: str
    of_others: bool = False


class VaultState(Frozen):
    """A Glacier vault as its newest inventory tells.

    taken: as of when. other_tables: what the manifest gives the archives to that are of others, in lower case.
    """

    dataset: DatasetId
    declared: Vault
    taken: datetime
    archives: tuple[VaultArchive, ...]
    other_tables: tuple[str, ...] = ()

    @property
    def location(self) -> str:
        return self.declared.location

    def listing(self) -> str:
        """SHA-256 over all archives of the inventory, by id and tree hash."""
        told = "\n".join(sorted(f"{one.id} {one.tree_hash} {one.of_others}" for one in self.archives))
        return "sha256:" + sha256(told.encode()).hexdigest()
