"""How requests to Azure Storage are authorised: by a key, by a signature (SAS), or by a login with Entra ID.

The environment says which. A login is that of Azure's own library: environment, workload identity, managed identity,
or the command line `az`. The library renews its tokens, and sends none over plain HTTP.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from pii_tracer.model.azure_location import AzureLocation
from pii_tracer.model.errors import EstateError

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential

KEY, SIGNATURE = "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"
"""Variables of the environment, as Azure's own command line names them; `_ACCOUNT` behind one makes it an account's."""
_SETTINGS = (
    "AZURE_TOKEN_CREDENTIALS, AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_CLIENT_CERTIFICATE_PATH or AZURE_AUTHORITY_HOST"
)
SCOPE = "https://storage.azure.com/.default"
"""https://learn.microsoft.com/azure/storage/blobs/authorize-access-azure-active-directory"""


def secret_variable(place: AzureLocation) -> str | None:
    """The variable of the environment that has the credential of a place's account: a key, or a signature."""
    mine = place.account.upper()
    names = (f"{KEY}_{mine}", f"{SIGNATURE}_{mine}", KEY, SIGNATURE)
    return next((name for name in names if os.environ.get(name)), None)


def credential_of(place: AzureLocation, address: str) -> dict[str, str] | str | TokenCredential:
    """What authorises requests to an account. address: where they go.

    Raises:
        EstateError: the environment has no key and no signature, and a login cannot be used.
    """
    name = secret_variable(place)
    if name is not None:
        secret = os.environ[name]
        return {"account_name": place.account, "account_key": secret} if name.startswith(KEY) else secret.lstrip("?")
    if not address.startswith("https://"):
        mine = place.account.upper()
        raise EstateError(
            "the environment has no credential for a storage account, and a login over plain HTTP is not possible",
            where=place.store,
            todo=f"set {KEY}_{mine} or {SIGNATURE}_{mine}",
        )
    return entra_login()


def is_login(credential: object) -> bool:
    """Whether a client's credential is a login with Entra ID."""
    return hasattr(credential, "get_token")


@cache
def entra_login() -> TokenCredential:
    """The login of this process. Who cannot log in learns it from the first request.

    Raises:
        EstateError: the extra `azure` is not installed, or the environment says something that no login can be.
    """
    try:
        from azure.identity import DefaultAzureCredential
    except ImportError:
        raise EstateError(
            "the package for logins with Entra ID is not installed", todo="run `pip install 'pii-tracer[azure]'`"
        ) from None
    try:
        return DefaultAzureCredential(
            exclude_shared_token_cache_credential=True,
            exclude_visual_studio_code_credential=True,
            exclude_developer_cli_credential=True,
            exclude_powershell_credential=True,
            exclude_broker_credential=True,
        )
    except (ValueError, OSError) as error:  # without the library's message, which may contain a setting
        raise EstateError(
            f"the settings of the login with Entra ID are wrong ({type(error).__name__})", todo=f"correct {_SETTINGS}"
        ) from None
