"""How engines reach a nameservice: a name that stands for several NameNodes, which no name server knows.

The settings are those of https://hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-hdfs/HDFSHighAvailabilityWithQJM.html.
They come from `hdfs[].rpc`, from `spark.conf`, or from Hadoop's own files, which Spark and the reader of Delta tables
find by HADOOP_CONF_DIR.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from pii_tracer.config.estate_file import Estate
from pii_tracer.config.hdfs import NameNode
from pii_tracer.model.locations import HdfsLocation

_PROVIDER = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
_IN_SPARK = "spark.hadoop."
_FILES = ("hdfs-site.xml", "core-site.xml")


def spark_settings(estate: Estate) -> dict[str, str]:
    """Of a session; nothing where `rpc` is not declared. A list of nameservices would hide those of Hadoop's files."""
    return {f"{_IN_SPARK}{name}": value for name, value in _declared(estate).items()}


def reader_settings(estate: Estate) -> dict[str, str]:
    """Of the reader of Delta tables: those of `rpc`, and those that `spark.conf` has for Spark."""
    of_spark = estate.spark.conf.items()
    given = {name.removeprefix(_IN_SPARK): value for name, value in of_spark if name.startswith(f"{_IN_SPARK}dfs.")}
    return _declared(estate) | given


def reader_address(estate: Estate, place: HdfsLocation) -> str:
    """A place for that reader, which knows no usual port: with the port, where it is at a host."""
    return str(place) if _nameservice(estate, place) else place.with_port


def unknown_to_engines(estate: Estate, place: HdfsLocation, environ: Mapping[str, str] = os.environ) -> str:
    """Why engines do not find the NameNodes of a place; empty where they do, or where it is at a host."""
    if _nameservice(estate, place) is None:
        return ""
    setting = f"dfs.ha.namenodes.{place.authority}"
    if setting in reader_settings(estate) or _in_files(setting, environ.get("HADOOP_CONF_DIR", "")):
        return ""
    return (
        f"Spark does not know the nameservice {place.authority}: add `rpc` to it under `hdfs`, or set HADOOP_CONF_DIR "
        "to the folder of the cluster's hdfs-site.xml"
    )


def _nameservice(estate: Estate, place: HdfsLocation) -> NameNode | None:
    return next((one for one in estate.hdfs if one.is_nameservice and one.root.holds(place)), None)


def _declared(estate: Estate) -> dict[str, str]:
    found: dict[str, str] = {}
    services = {one.root.authority: one.rpc for one in estate.hdfs if one.rpc}
    for service, addresses in services.items():
        ids = {f"nn{number}": address for number, address in enumerate(addresses, 1)}
        found[f"dfs.ha.namenodes.{service}"] = ",".join(ids)
        found |= {f"dfs.namenode.rpc-address.{service}.{one}": address for one, address in ids.items()}
        found[f"dfs.client.failover.proxy.provider.{service}"] = _PROVIDER
    return {"dfs.nameservices": ",".join(services), **found} if services else {}


def _in_files(setting: str, folder: str) -> bool:
    """Whether Hadoop's files have a setting."""
    wanted = re.compile(rf"<name>\s*{re.escape(setting)}\s*</name>")
    files = (Path(folder) / name for name in _FILES if folder)
    return any(wanted.search(file.read_text(encoding="utf-8", errors="replace")) for file in files if file.is_file())
