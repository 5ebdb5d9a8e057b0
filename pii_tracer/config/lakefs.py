"""The estate file's `lakefs`: servers, and the repositories on them that carry rows of a table (docs/lakefs.md)."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field, field_validator, model_validator

from pii_tracer.config.formats import InstalledFormat
from pii_tracer.model.datasets import Format, Frozen, Said

_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]{0,127}$"


class LakefsRepository(Frozen):
    """A repository whose objects under `prefixes` hold rows of the table `of`.

    prefixes: paths begin with one of them; everything else in the repository is looked at, and never rewritten.
    owner: who runs the garbage collection, for people; collect_days: how long they take once it may remove something.
    collect: the words of a command that runs it, where the run itself shall; `{repository}` in them is the name.
    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{2,62}$")
    of: str
    format: InstalledFormat
    prefixes: tuple[str, ...] = ("",)
    owner: Said
    collect_days: int = Field(default=2, ge=0)
    collect: tuple[str, ...] = ()

    @field_validator("format")
    @classmethod
    def _rewritable(cls, value: Format) -> Format:
        if value not in (Format.PARQUET, Format.CSV):
            raise ValueError(
                "the format of objects in lakeFS must be parquet or csv, because other formats cannot be rewritten"
            )
        return value

    @field_validator("prefixes")
    @classmethod
    def _some(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError('name at least one prefix; "" means the whole repository')
        return value


class LakefsServer(Frozen):
    """A lakeFS server. The key pair comes from two environment variables, whose names alone stand here.

    local_root: the folder that the server calls `blockstore.local.path`, where objects of `local://` namespaces lie;
    those of `s3://` are reached as the estate's `s3` says.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    endpoint: str = Field(pattern=r"^https?://[^@\s?#]+$")
    access_key_env: str = Field(default="LAKECTL_CREDENTIALS_ACCESS_KEY_ID", pattern=_VARIABLE)
    secret_key_env: str = Field(default="LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY", pattern=_VARIABLE)
    local_root: str | None = None
    repositories: tuple[LakefsRepository, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _distinct(self) -> LakefsServer:
        if len({r.name for r in self.repositories}) != len(self.repositories):
            raise ValueError(
                "a repository is declared twice; declare it once, with all prefixes, because it has one set of rules"
            )
        return self


def wrong_lakefs(servers: Iterable[LakefsServer]) -> str | None:
    """What is wrong between servers, or None."""
    servers = list(servers)
    if len({s.name for s in servers}) != len(servers):
        return "two lakeFS servers have one name"
    if len({s.endpoint.rstrip("/") for s in servers}) != len(servers):
        return "two lakeFS servers have one endpoint"
    return None
