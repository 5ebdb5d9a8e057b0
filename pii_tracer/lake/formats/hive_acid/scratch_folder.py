"""Why the folder in HDFS for the persons' keys cannot be used. Planning and the run ask the same."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.stores.base import Absent, StoreError
from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs, client_at
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import hdfs_location


def unusable(estate: Estate, scratch: str) -> str | None:
    """Why no keys can be put there for Hive, with what to do; None where they can. scratch: of a `hiveserver2`."""
    if importlib.util.find_spec("impala") is None:
        return "the estate names a HiveServer2 and its client is missing: pip install 'pii-tracer[hiveserver2]'"
    try:
        place = hdfs_location(scratch)
        return _unsafe(client_at(estate, place), place.path)
    except Absent:
        return (
            "the scratch folder for keys is missing: create it, for the run's user and Hive's alone (`hdfs dfs -mkdir`,"
            " `-chmod 770`)"
        )
    except StoreError as error:
        return f"the scratch folder for keys: {error.code}. {error.todo}"
    except EstateError as error:
        return f"the scratch folder for keys: {error.what}. {error.todo}"


def _unsafe(client: WebHdfs, path: str) -> str | None:
    if client.status(path).kind != "DIRECTORY":
        return "the scratch folder for keys is no folder: name another one"
    rights = client.rights(path)
    if not rights.permission.endswith("0"):
        return (
            "everybody may look into the scratch folder for keys: take the rights of all others from it (`hdfs dfs"
            " -chmod o-rwx`)"
        )
    if rights.listed:
        return (
            "the scratch folder for keys has an access list or attributes of its own, by which others may look into it:"
            " remove them (`hdfs dfs -setfacl -b`, `-setfattr -x`)"
        )
    if any(_keeps_snapshots(client, folder) for folder in _above(path)):
        return (
            "a snapshot can keep the keys, since snapshots are allowed of the scratch folder or of one above it: name a"
            " folder outside"
        )
    return None


def _keeps_snapshots(client: WebHdfs, folder: str) -> bool:
    """The root is always said to allow snapshots, so there only one that exists counts."""
    found = client.snapshots(folder)
    return bool(found) if folder == "/" else found is not None


def _above(path: str) -> Iterator[str]:
    """A folder and all that it lies in."""
    while path:
        yield path
        path = path.rpartition("/")[0]
    yield "/"
