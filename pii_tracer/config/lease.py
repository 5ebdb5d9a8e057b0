"""The estate file's part about leases: where runners on several machines agree on who runs a plan."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Annotated

from pydantic import AfterValidator

from pii_tracer.model.azure_location import is_driver_address
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import hdfs_location, is_hdfs, is_s3, object_location

_PLACE = re.compile(
    r"(s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]|gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]|abfss://[^/]+|hdfs://[^/]+)"
    r"(/(?!\.{1,2}(/|$))[A-Za-z0-9!_.'()-]+)*"
)
"""Names that every store takes without quoting
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html)."""


def _place(text: str) -> str:
    if _PLACE.fullmatch(text) is None or (text.startswith("abfss:") and not is_driver_address(text)):
        raise ValueError(
            "write a lease as `s3://bucket/prefix`, `gs://bucket/prefix`, `hdfs://host:port/folder` or"
            " `abfss://container@account.dfs.core.windows.net/prefix`, of letters, digits and !_.'()-"
        )
    return text


LeasePlace = Annotated[str, AfterValidator(_place)]
"""A folder or prefix in a store. A store that a declared one of the estate file reaches."""


def wrong_lease(lease: str | None, *, s3: bool, name_nodes: Collection[str], stores: Collection[str]) -> str | None:
    """Why a lease cannot lie where it is declared; None where it can.

    s3: whether the estate file declares `s3`; name_nodes, stores: as `hdfs` and `object_stores` name them.
    """
    if lease is None:
        return None
    if is_s3(lease):
        return None if s3 else "a lease in S3 is declared and `s3` is missing"
    try:
        if is_hdfs(lease):
            where, declared, field = hdfs_location(lease).name_node, name_nodes, "hdfs"
        else:
            where, declared, field = object_location(lease).store, stores, "object_stores"
    except EstateError as error:
        return f"{error.what}: {error.todo}"
    return None if where in declared else f"the lease lies in {where}, which `{field}` does not declare"
