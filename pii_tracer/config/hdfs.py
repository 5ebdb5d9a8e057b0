"""The estate file's `hdfs`: NameNodes, and how each is reached over WebHDFS (docs/hdfs.md)."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field, field_validator, model_validator

from pii_tracer.common.kerberos import PRINCIPAL
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import HdfsLocation, hdfs_location, is_hdfs


class Deletable(Frozen):
    """A snapshot, or a folder of a job, that may be deleted with everybody in it. path: `/lake/.snapshot/s1` or
    `/lake/out/_temporary`. owner: who agreed; reason: why nobody needs it. Reviewers see both.
    """

    path: str = Field(pattern=r"^/[^\x00]+$")
    owner: str = Field(min_length=1)
    reason: str = Field(min_length=1)


class NameNode(Frozen):
    """A NameNode. Either it takes the user's name on trust, or Kerberos says who the user is.

    namenode: as places in it are written, `hdfs://host:port`. webhdfs: its address, `http://host:port` or
    `https://host:port`. user: whom HDFS takes the requests for; only a superuser sees everybody's trash and every
    snapshot. kerberos: in its place, the principal (`user@REALM`) whose ticket is shown. ca: a file on this machine
    with the certificates (PEM) of who may sign those of the servers; the system's store where not given. deletable:
    what its owners agreed to lose.
    """

    namenode: str = Field(pattern=r"(?i)^hdfs://[a-z0-9][a-z0-9._-]*(:[0-9]{1,5})?$")
    webhdfs: str
    user: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9._-]*$")
    kerberos: str | None = Field(default=None, pattern=PRINCIPAL)
    ca: str | None = Field(default=None, pattern=r"^/[^\x00]+$")
    deletable: tuple[Deletable, ...] = ()

    @field_validator("webhdfs")
    @classmethod
    def _plain(cls, address: str) -> str:
        scheme, _, rest = address.rstrip("/").partition("://")
        if scheme not in ("http", "https") or not rest or set(rest) & set("/?#@ "):
            raise ValueError("write `http://host:port` or `https://host:port` of the NameNode")
        return f"{scheme}://{rest}"

    @model_validator(mode="after")
    def _known(self) -> NameNode:
        if (self.user is None) == (self.kerberos is None):
            raise ValueError("write either `user: NAME`, or `kerberos: NAME@REALM` where the NameNode uses Kerberos")
        if self.ca and not self.webhdfs.startswith("https:"):
            raise ValueError("`ca` applies only to `webhdfs: https://…`; write that, or remove `ca`")
        return self

    @property
    def root(self) -> HdfsLocation:
        return hdfs_location(f"{self.namenode}/")


def wrong_hdfs(name_nodes: tuple[NameNode, ...], places: Iterable[str]) -> str | None:
    """Why NameNodes cannot be declared so; None where they can. places: roots and tables of the estate file."""
    known = {name_node.root for name_node in name_nodes}
    if len(known) != len(name_nodes):
        return "a NameNode is declared twice under `hdfs`"
    for place in filter(is_hdfs, places):
        try:
            location = hdfs_location(place)
        except EstateError as error:
            return f"{error.what}: {error.todo}"
        if not any(root.holds(location) for root in known):
            return f"a root or table lies in {location.name_node}, which `hdfs` does not declare"
    return None
