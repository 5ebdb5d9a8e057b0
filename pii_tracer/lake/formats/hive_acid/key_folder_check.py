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
        return (
            "the estate file names a HiveServer2, but its client is not installed: run `pip install "
            "'pii-tracer[hiveserver2]'`"
        )
    try:
        place = hdfs_location(scratch)
        return _unsafe(client_at(estate, place), place.path)
    except Absent:
        return (
            "the scratch folder for keys is missing: create it, with access only for the run's user and Hive's user "
            "(`hdfs dfs -mkdir`, `-chmod 770`)"
        )
    except StoreError as error:
        return f"the scratch folder for keys: {error.code}. {error.todo}"
    except EstateError as error:
        return f"the scratch folder for keys: {error.what}. {error.todo}"


def _unsafe(client: WebHdfs, path: str) -> str | None:
    if client.status(path).kind != "DIRECTORY":
        return "the path of the scratch folder for keys is not a folder: set a different path"
    rights = client.rights(path)
    if not rights.permission.endswith("0"):
        return (
            "all users can read the scratch folder for keys: remove the rights of other users (`hdfs dfs -chmod o-rwx`)"
        )
    if rights.listed:
        return (
            "the scratch folder for keys has an access list or attributes that may let other users read it: remove "
            "them (`hdfs dfs -setfacl -b`, `-setfattr -x`)"
        )
    if any(_keeps_snapshots(client, folder) for folder in _above(path)):
        return (
            "a snapshot could retain the keys, because snapshots are allowed for the scratch folder or a folder "
            "above it: set a different folder"
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
