"""What an account and a container are set to do about deleted bytes, and what no listing of blobs shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pii_tracer.lake.stores.azure.client import azure_errors, code_of
from pii_tracer.lake.stores.azure.listed_blobs import moment
from pii_tracer.lake.stores.base import StoreError
from pii_tracer.lake.stores.object_places.version_types import StoredVersion, StoreSettings, VersionState

if TYPE_CHECKING:
    from azure.storage.blob import BlobServiceClient, ContainerClient
    from azure.storage.filedatalake import FileSystemClient

_DAY = 86_400
_KIND = "the account's kind cannot be read"
_FLAT = ("HierarchicalNamespaceNotEnabled", "EndpointUnsupportedAccountFeatures")
"""What the DFS service answers in an account without a hierarchical namespace."""
_POLICY = "a retention policy of the container (`az storage container immutability-policy show` says how long)"
_HOLD = "a legal hold on the container"


def settings_of(service: BlobServiceClient, where: str) -> StoreSettings:
    """Get Blob Service Properties. A blob that is written over without versions is kept under a new id.

    Raises:
        StoreError: refused: a key, or a signature for the account's service, is needed.
    """
    with azure_errors("the account's soft delete settings cannot be read", where):
        policy = service.get_service_properties()["delete_retention_policy"]
    return StoreSettings(soft_delete_seconds=int(policy.days or 0) * _DAY if policy.enabled else 0, keeps_ids=False)


def has_access_lists(files: FileSystemClient | None, where: str) -> bool:
    """Whether the account has a hierarchical namespace, for a login with Entra ID: only such an account has access
    lists. The page of Get Account Information names keys and signatures alone. Hadoop's driver asks in this way, too.

    Raises:
        StoreError: refused, or the address of the DFS service is not known.
    """
    from azure.core.exceptions import HttpResponseError

    if files is None:
        raise StoreError(_KIND, "NoAddress", where=where, todo="set `dfs_endpoint` in the estate file")
    with azure_errors(_KIND, where):
        try:
            files.get_directory_client("/").get_access_control()
        except HttpResponseError as error:
            if code_of(error) not in _FLAT:
                raise
            return False
    return True


def container_holds(container: ContainerClient, where: str) -> tuple[str, ...]:
    """Holds on a whole container, in words for people. Where versions have policies of their own, the listing has them.

    Raises:
        StoreError: refused.
    """
    with azure_errors("the container's holds cannot be read", where):
        found = container.get_container_properties()
    policy = found.has_immutability_policy and not found.immutable_storage_with_versioning_enabled
    return (*([_POLICY] if policy else ()), *([_HOLD] if found.has_legal_hold else ()))


def deleted_containers(service: BlobServiceClient, name: str, prefix: str, where: str) -> Iterator[StoredVersion]:
    """Containers of the same name that were deleted and can be restored. No listing shows what is in them, and
    the library does not hand on until when.

    Raises:
        StoreError: refused: a key, or a signature for the account's service, is needed.
    """
    with azure_errors("the account's deleted containers cannot be listed", where):
        for item in service.list_containers(name_starts_with=name, include_deleted=True):
            if item.name == name and item.deleted:
                yield StoredVersion(
                    key=prefix,
                    version_id=f"container={item.version}",
                    state=VersionState.SOFT_DELETED,
                    size=0,
                    hides=True,
                    mark=str(item.etag or ""),
                    modified=moment(item.last_modified),
                )
