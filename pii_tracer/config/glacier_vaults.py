"""The estate file's `vaults`: vaults of Amazon S3 Glacier, the service older than S3's storage classes."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field, model_validator

from pii_tracer.config.formats import InstalledFormat
from pii_tracer.model.datasets import PLAIN, Frozen
from pii_tracer.model.locations import WEB_ADDRESS


class Vault(Frozen):
    """A vault whose archives are snapshots of the table `of`.

    vault: its name in Glacier; account_id: `-` for the credentials' own. inventory: output of an inventory job, saved
    to a file, for when Glacier keeps none any more. max_age_hours: an older inventory does not count at planning.
    manifest: a JSON file of archive id -> tables in it; an archive that is not in it can hold anybody.
    delete_whole: why archives are deleted with everybody in them instead of being rewritten; an override of the plan.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    of: str = Field(min_length=1)
    vault: str = Field(pattern=r"^[A-Za-z0-9._-]{1,255}$")
    region: str = Field(pattern=r"^[a-z0-9-]+$")
    account_id: str = Field(default="-", pattern=r"^(-|[0-9]{12})$")
    endpoint_url: str | None = Field(default=None, pattern=WEB_ADDRESS)
    format: InstalledFormat
    inventory: str | None = None
    max_age_hours: float = Field(default=72, gt=0)
    manifest: str | None = None
    delete_whole: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _possible(self) -> Vault:
        if self.delete_whole is None and self.format not in PLAIN:
            known = ", ".join(sorted(PLAIN))
            raise ValueError(f"archives of {self.format} cannot be rewritten: only {known}, or `delete_whole`")
        return self

    @property
    def location(self) -> str:
        """How plans and reports call the vault."""
        return f"glacier://{self.region}/{self.vault}"


def wrong_vaults(vaults: Iterable[Vault]) -> str | None:
    """What is wrong between vaults, or None."""
    vaults = list(vaults)
    if len({v.name for v in vaults}) != len(vaults):
        return "two vaults have one name"
    if len({(v.location, v.account_id) for v in vaults}) != len(vaults):
        return "a vault is declared twice"
    return None
