"""Clients of Azure Blob Storage, and what the service refuses as errors of ours.

A write that got no answer may have been done: it is sent once, and again only where the service says that it was too
busy to do it. Reads are tried three times. Of what the service says, only its code is ever shown.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from pii_tracer.lake.stores.azure.login import KEY, SIGNATURE, credential_of
from pii_tracer.lake.stores.base import StoreError
from pii_tracer.model.azure_location import AzureLocation
from pii_tracer.model.errors import EstateError

if TYPE_CHECKING:
    from azure.storage.blob import BlobServiceClient
    from azure.storage.filedatalake import FileSystemClient

A = TypeVar("A")

ONCE: dict[str, Any] = {"retry_total": 0}
"""Options of a request that the library sends once."""
_BUSY = frozenset({"ServerBusy", "TooManyRequests"})
_WAITS = (1.0, 2.0, 4.0)
"""Seconds between tries, where the service was too busy to do anything."""
_SINGLE_WRITE = 4 << 30
"""Bytes of the largest blob that is written in one request, and so on one condition; the service takes 5,000 MiB."""
_CODE = re.compile(r"[A-Za-z]{1,80}")
_RIGHT = (
    "use a key, or a signature with the rights rwdxltfi (read, write, delete, versions, list, tags, immutability)."
    " Or log in with Entra ID, with the roles Storage Blob Data Owner and Reader on the account"
)
_LOG_IN = (
    f"set {KEY} or {SIGNATURE}, or log in with Entra ID (`az login`, a managed identity, or AZURE_CLIENT_ID,"
    " AZURE_TENANT_ID and AZURE_CLIENT_SECRET)"
)
_TODO = {
    "AuthenticationFailed": f"set {KEY} or {SIGNATURE} to a valid credential",
    "NoAuthenticationInformation": _LOG_IN,
    "ClientAuthenticationError": _LOG_IN,
    "CredentialUnavailableError": _LOG_IN,
    "InvalidAuthenticationInfo": "log in with Entra ID again, then run the command again",
    "AuthorizationFailure": _RIGHT,
    "AuthorizationPermissionMismatch": _RIGHT,
    "ContainerNotFound": "correct the name of the container",
    "BlobArchived": "rehydrate the blob (`az storage blob set-tier --tier Hot`), wait up to 15 hours, then plan again",
    "BlobBeingRehydrated": "wait until the blob is rehydrated, up to 15 hours, then plan again",
    "LeaseIdMissing": "end the lease, or the job that has it",
    "SnapshotsPresent": "delete the snapshots first",
    "BlobImmutableDueToPolicy": "wait until its immutability policy ends",
    "BlobImmutableDueToLegalHold": "ask the person who set the legal hold to remove it",
    "ServerBusy": "run the command again when the account is less busy",
}
"""What to do by the service's code (https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes)."""
_REACH = "check the account, the credential in the environment, and the network"


def service_of(place: AzureLocation, endpoint: str | None, *, anonymous: bool) -> BlobServiceClient:
    """A client of the blob service of a place's account. endpoint: its address, where it is not the cloud's own.

    Raises:
        EstateError: the extra `azure` is not installed, or the environment has no credential.
    """
    try:
        from azure.storage.blob import BlobServiceClient
    except ImportError:
        raise _not_installed(place) from None
    address = endpoint or own_address(place)
    return BlobServiceClient(
        address, max_single_put_size=_SINGLE_WRITE, **_options(place, address, anonymous=anonymous)
    )


def files_of(
    place: AzureLocation, endpoint: str | None, dfs_endpoint: str | None, *, anonymous: bool
) -> FileSystemClient | None:
    """A client of the same container by the DFS service, which knows owners and access lists; None where the estate
    file does not say at which address.

    Raises:
        EstateError: as `service_of`.
    """
    host = (endpoint or own_address(place)).partition("://")[2]
    address = dfs_endpoint or (f"https://{host.replace('.blob.', '.dfs.', 1)}" if ".blob." in host else None)
    if address is None:
        return None
    try:
        from azure.storage.filedatalake import FileSystemClient
    except ImportError:
        raise _not_installed(place) from None
    return FileSystemClient(address, place.container, **_options(place, address, anonymous=anonymous))


def _options(place: AzureLocation, address: str, *, anonymous: bool) -> dict[str, Any]:
    """What the clients of both services have in common."""
    from azure.storage.blob import ExponentialRetry

    return {
        "credential": None if anonymous else credential_of(place, address),
        "retry_policy": ExponentialRetry(initial_backoff=0, increment_base=2, retry_total=2, random_jitter_range=0),
        "connection_timeout": 10,
        "read_timeout": 60,
    }


def _not_installed(place: AzureLocation) -> EstateError:
    return EstateError(
        "the package for Azure Storage is not installed",
        where=place.store,
        todo="run `pip install 'pii-tracer[azure]'`",
    )


def own_address(place: AzureLocation) -> str:
    """Where the blob service of a place's account answers, unless the estate file says otherwise."""
    return f"https://{place.account}.blob.{place.suffix}"


@contextmanager
def azure_errors(what: str, where: str, kinds: Mapping[str, type[StoreError]] | None = None) -> Iterator[None]:
    """Turn what the service refuses, or that it does not answer, into errors. kinds: by code, the kind of the error.

    Raises:
        StoreError: with the service's code.
    """
    from azure.core.exceptions import AzureError

    try:
        yield
    except (AzureError, ValueError) as error:  # the library raises ValueError for a key that is not Base64
        code = code_of(error)
        raise (kinds or {}).get(code, StoreError)(what, code, where=where, todo=_TODO.get(code, _REACH)) from None


def patiently(ask: Callable[[], A], pause: Callable[[float], None] = time.sleep) -> A:
    """The answer to a request that is asked again as long as the service says that it is too busy to do it."""
    from azure.core.exceptions import HttpResponseError

    for wait in _WAITS:
        try:
            return ask()
        except HttpResponseError as error:
            if code_of(error) not in _BUSY:
                raise
            pause(wait)
    return ask()


def code_of(error: Exception) -> str:
    """The service's own code, or the status of HTTP, or the kind of failure; never a message."""
    named = getattr(error, "error_code", None)
    code = getattr(named, "value", named)
    if isinstance(code, str) and _CODE.fullmatch(code):
        return code
    status = getattr(error, "status_code", None)
    return f"HTTP {status}" if status else type(error).__name__
