"""How HDFS and object stores are reached, as a first estate file says it."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pii_tracer.model.errors import EstateError, UsageError
from pii_tracer.model.locations import hdfs_location, is_hdfs

WEB_PORT = 9870
"""Of a NameNode's web server, where nobody changed it."""


@dataclass(frozen=True)
class Reach:
    """What somebody said of how stores are reached.

    webhdfs: addresses of WebHDFS, each as `ADDRESS`, or as `NAMENODE=ADDRESS` where there are several NameNodes.
    hdfs_user: whom HDFS takes the requests for; with a realm (`NAME@REALM`) the principal of Kerberos. hdfs_ca: a file
    with the certificates of who signs those of the servers. endpoint: the address of the object stores' API.
    """

    webhdfs: tuple[str, ...] = ()
    hdfs_user: str | None = None
    hdfs_ca: str | None = None
    endpoint: str | None = None


def name_nodes_of(
    names: Collection[str], reach: Reach, environ: Mapping[str, str] = os.environ
) -> dict[str, dict[str, Any]]:
    """The estate file's `hdfs` for some NameNodes, each by its name (`hdfs://host:port`).

    Raises:
        UsageError: an address is given and not which of several NameNodes has it.
    """
    if not names:
        return {}
    given = _given(names, reach)
    user = {"kerberos": reach.hdfs_user} if "@" in (reach.hdfs_user or "") else {"user": _user(reach, environ)}
    ca = {"ca": reach.hdfs_ca} if reach.hdfs_ca else {}
    made = {}
    for name in sorted(names):
        found = given.get(name) or _in_files(name, environ.get("HADOOP_CONF_DIR", "")) or [usual_address(name)]
        made[name] = {"namenode": name, "webhdfs": found[0] if len(found) == 1 else found, **user, **ca}
    return made


def refuse_unknown(names: Collection[str], reach: Reach) -> None:
    """Look whether each address belongs to a NameNode that is known, when all are.

    Raises:
        UsageError: it does not.
    """
    told = [text.rpartition("=")[0] for text in reach.webhdfs]
    if unknown := sorted({_name_node(name) for name in told if name} - set(names)):
        known = f"known are {', '.join(sorted(names))}" if names else "no place in HDFS was found"
        raise UsageError(
            f"`--webhdfs` names {', '.join(unknown)}, which is not a NameNode of these places: {known}",
            where="--webhdfs",
            todo="correct the name, or leave the address out",
        )


def refuse_unused(stores: Collection[str], reach: Reach) -> None:
    """Look whether `--endpoint` has a store that it is for.

    Raises:
        UsageError: it has none.
    """
    if reach.endpoint and not stores:
        raise UsageError(
            "`--endpoint` is the address of gs:// and abfss:// stores, and no place is in one",
            where="--endpoint",
            todo="leave it out; for another address of S3 and Glue set AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_S3 or"
            " AWS_ENDPOINT_URL_GLUE",
        )


def usual_address(name_node: str) -> str:
    """Where a NameNode's WebHDFS is if nothing is set otherwise."""
    return f"http://{hdfs_location(f'{name_node}/').authority.partition(':')[0]}:{WEB_PORT}"


def object_store(store: str, prefixes: Collection[str], reach: Reach) -> dict[str, Any]:
    """The estate file's entry under `object_stores` of a bucket or container."""
    endpoint = {"endpoint": reach.endpoint} if reach.endpoint else {}
    # Google's own API has no plain http: an emulator has, and takes no credentials
    anonymous = {"anonymous": True} if store.startswith("gs:") and str(reach.endpoint).startswith("http:") else {}
    return {"store": store, **endpoint, **anonymous, "places": [{"prefix": prefix} for prefix in prefixes]}


def _given(names: Collection[str], reach: Reach) -> dict[str, list[str]]:
    """Addresses of WebHDFS by NameNode, as far as they are given."""
    found: dict[str, list[str]] = {}
    for text in reach.webhdfs:
        name, told, address = text.rpartition("=")
        if not told and len(names) > 1:
            raise UsageError(
                f"there are several NameNodes ({', '.join(sorted(names))}), and `--webhdfs` does not name one of them",
                where="--webhdfs",
                todo=f"write `--webhdfs {min(names)}={address}` for each NameNode",
            )
        found.setdefault(_name_node(name) if name else min(names), []).append(address)
    return found


def _name_node(name: str) -> str:
    """As estate files write it; somebody may leave its scheme out."""
    try:
        return hdfs_location(f"{name if is_hdfs(name) else f'hdfs://{name}'}/").name_node
    except EstateError:
        raise UsageError(
            "`--webhdfs` names no NameNode", where="--webhdfs", todo="write `hdfs://HOST:PORT=http://HOST:PORT`"
        ) from None


def _user(reach: Reach, environ: Mapping[str, str]) -> str:
    """As Hadoop's own clients choose it."""
    return reach.hdfs_user or environ.get("HADOOP_USER_NAME") or getpass.getuser()


def _in_files(name_node: str, folder: str) -> list[str]:
    """The addresses that the cluster's hdfs-site.xml gives the NameNodes of a nameservice, or the NameNode."""
    file = Path(folder) / "hdfs-site.xml"
    if not folder or not file.is_file():
        return []
    text = file.read_text(encoding="utf-8", errors="replace")

    def told(setting: str) -> str:
        found = re.search(rf"<name>\s*{re.escape(setting)}\s*</name>\s*<value>\s*([^<]*?)\s*</value>", text)
        return found[1] if found else ""

    service = hdfs_location(f"{name_node}/").authority
    ids = told(f"dfs.ha.namenodes.{service}")
    scheme = "https" if told("dfs.http.policy") == "HTTPS_ONLY" else "http"
    addresses = [told(f"dfs.namenode.{scheme}-address.{service}.{one.strip()}") for one in ids.split(",") if one]
    return [f"{scheme}://{address}" for address in addresses] if all(addresses) else []
