"""The estate file's `hdfs`: NameNodes, and how each is reached over WebHDFS (docs/hdfs.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator
from typing_extensions import Self

from pii_tracer.common.kerberos import PRINCIPAL
from pii_tracer.config.lineage import SameDataset
from pii_tracer.model.datasets import Frozen, Said
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import HDFS_PORT, HdfsLocation, hdfs_location, is_hdfs


class Deletable(Frozen):
    """A snapshot, or a folder of a job, that may be deleted with everybody in it. path: `/lake/.snapshot/s1` or
    `/lake/out/_temporary`. owner: who agreed; reason: why nobody needs it. Reviewers see both.
    """

    path: str = Field(pattern=r"^/[^\x00]+$")
    owner: Said
    reason: Said


_NAME_NODE = r"(?i)^hdfs://[a-z0-9][a-z0-9._-]*(:[0-9]{1,5})?$"
_RPC = r"^[A-Za-z0-9][A-Za-z0-9._-]*:[0-9]{1,5}$"


class NameNode(Frozen):
    """A NameNode, or a nameservice with several of which one is active (high availability). Either it takes the user's
    name on trust, or Kerberos says who the user is.

    namenode: as places in it are written, `hdfs://host:port` or `hdfs://nameservice`. webhdfs: its address,
    `http://host:port` or `https://host:port`, or those of all NameNodes of the nameservice. rpc: where engines reach
    these, `host:port`. also: other names of the same HDFS, as older entries of a metastore write them. block_pool: the
    id that every NameNode of the nameservice must have. user: whom HDFS takes the requests for; only a superuser sees
    everybody's trash and every snapshot. kerberos: in its place, the principal (`user@REALM`) whose ticket is shown.
    ca: a file on this machine with the certificates (PEM) of who may sign those of the servers; the system's store
    where not given. deletable: what its owners agreed to lose.
    """

    namenode: str = Field(pattern=_NAME_NODE)
    webhdfs: tuple[str, ...] = Field(min_length=1)
    rpc: tuple[Annotated[str, Field(pattern=_RPC)], ...] = ()
    also: tuple[Annotated[str, Field(pattern=_NAME_NODE)], ...] = ()
    block_pool: str = Field(default="", pattern=r"^(BP-[0-9A-Za-z.:-]+)?$")
    user: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9._-]*$")
    kerberos: str | None = Field(default=None, pattern=PRINCIPAL)
    ca: str | None = Field(default=None, pattern=r"^/[^\x00]+$")
    deletable: tuple[Deletable, ...] = ()

    @field_validator("webhdfs", mode="before")
    @classmethod
    def _listed(cls, given: Any) -> Any:
        return (given,) if isinstance(given, str) else given

    @field_validator("webhdfs")
    @classmethod
    def _addresses(cls, addresses: tuple[str, ...]) -> tuple[str, ...]:
        found = tuple(map(cls._plain, addresses))
        if len(set(found)) != len(found):
            raise ValueError("an address appears twice; remove one")
        if len({address.partition(":")[0] for address in found}) > 1:
            raise ValueError("write `https://` for all NameNodes of a nameservice, or for none")
        return found

    @classmethod
    def _plain(cls, address: str) -> str:
        scheme, _, rest = address.rstrip("/").partition("://")
        if scheme not in ("http", "https") or not rest or set(rest) & set("/?#@ "):
            raise ValueError("write `http://host:port` or `https://host:port` of the NameNode")
        return f"{scheme}://{rest}"

    @model_validator(mode="after")
    def _known(self) -> Self:
        if (self.user is None) == (self.kerberos is None):
            raise ValueError("write either `user: NAME`, or `kerberos: NAME@REALM` where the NameNode uses Kerberos")
        if self.ca and not self.webhdfs[0].startswith("https:"):
            raise ValueError("`ca` applies only to `webhdfs: https://…`; write that, or remove `ca`")
        return self

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.is_nameservice and ":" in self.root.authority:
            raise ValueError("a nameservice has no port: write `namenode: hdfs://nameservice`")
        if self.rpc and len(self.rpc) != len(self.webhdfs):
            raise ValueError("name as many addresses under `rpc` as under `webhdfs`: one for each NameNode")
        return self

    @property
    def root(self) -> HdfsLocation:
        return hdfs_location(f"{self.namenode}/")

    @property
    def is_nameservice(self) -> bool:
        """Whether its name is that of several NameNodes and not of a host."""
        return len(self.webhdfs) > 1 or bool(self.rpc)

    @property
    def other_roots(self) -> tuple[HdfsLocation, ...]:
        """Of its other names (`also`)."""
        return tuple(hdfs_location(f"{name}/") for name in self.also)


def as_declared(name_nodes: Iterable[NameNode], place: HdfsLocation) -> HdfsLocation:
    """A place under the name that `hdfs` gives its NameNode; as it is, where no NameNode has another name (`also`)."""
    for name_node in name_nodes:
        if any(root.holds(place) for root in name_node.other_roots):
            return HdfsLocation(authority=name_node.root.authority, path=place.path)
    return place


def same_hdfs(name_nodes: Iterable[NameNode]) -> tuple[SameDataset, ...]:
    """The other names of each HDFS (`also`), as lineage writes them: with the usual port, or without."""
    return tuple(
        SameDataset.model_validate({"from": f"{root.name_node}{port}", "to": name_node.root.name_node})
        for name_node in name_nodes
        for root in name_node.other_roots
        for port in ("", *(() if ":" in root.authority else (HDFS_PORT,)))
    )


def wrong_hdfs(name_nodes: tuple[NameNode, ...], places: Iterable[str]) -> str | None:
    """Why NameNodes cannot be declared so; None where they can. places: roots and tables of the estate file."""
    known = {name_node.root for name_node in name_nodes}
    names = [root for name_node in name_nodes for root in (name_node.root, *name_node.other_roots)]
    if len(set(names)) != len(names):
        return "a NameNode is declared twice under `hdfs`"
    services = [bool(name_node.rpc) for name_node in name_nodes if name_node.is_nameservice]
    if any(services) and not all(services):
        return "`rpc` is declared for one nameservice under `hdfs` and not for another: declare it for all, or for none"
    for place in filter(is_hdfs, places):
        try:
            location = hdfs_location(place)
        except EstateError as error:
            return f"{error.what}: {error.todo}"
        if as_declared(name_nodes, location) != location:
            return f"a root or table lies in {location.name_node}: write the name that `hdfs[].namenode` gives it"
        if not any(root.holds(location) for root in known):
            return f"a root or table lies in {location.name_node}, which `hdfs` does not declare"
    return None
