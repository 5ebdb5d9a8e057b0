"""Places in Azure Blob Storage and Data Lake Storage Gen2, in every spelling that engines write.

Sources: https://learn.microsoft.com/azure/storage/blobs/data-lake-storage-introduction-abfs-uri (`abfss`),
https://hadoop.apache.org/docs/stable/hadoop-azure/index.html (`wasbs`),
https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from pydantic import Field

from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import EstateError

_ACCOUNT = r"[a-z0-9]{3,24}"
_CONTAINER = r"\$root|\$web|\$logs|[a-z0-9](?:-?[a-z0-9]){2,62}"
_SUFFIX = r"[a-z0-9]+(?:[.-][a-z0-9]+)+"
_HADOOP = re.compile(
    rf"(?:abfss?|wasbs?)://(?P<container>{_CONTAINER})@(?P<account>{_ACCOUNT})\.(?:dfs|blob)\.(?P<suffix>{_SUFFIX})"
    r"(?:/(?P<path>.*))?",
    re.IGNORECASE | re.DOTALL,
)
_WEB = re.compile(
    rf"https?://(?P<account>{_ACCOUNT})\.(?:dfs|blob)\.(?P<suffix>{_SUFFIX})/(?P<container>{_CONTAINER})"
    r"(?:/(?P<path>[^?#]*))?",
    re.IGNORECASE,
)
_AZURE = re.compile(rf"(?:abfss?|wasbs?)://|https?://{_ACCOUNT}\.(?:dfs|blob)\.", re.IGNORECASE)
_DRIVER = re.compile(rf"abfss?://(?:{_CONTAINER})@{_ACCOUNT}\.dfs\.{_SUFFIX}/.+", re.DOTALL)


class AzureLocation(Frozen):
    """A place in a container: a blob, or a folder without its last slash. An empty path is the whole container.

    suffix: of the cloud, `core.windows.net` in the public one.
    """

    account: str = Field(pattern=rf"^{_ACCOUNT}$")
    container: str = Field(pattern=rf"^(?:{_CONTAINER})$")
    suffix: str = Field(pattern=rf"^{_SUFFIX}$")
    path: str

    @property
    def store(self) -> str:
        """The container in its one spelling: its blob and its DFS endpoint show the same bytes."""
        return f"abfss://{self.container}@{self.account}.dfs.{self.suffix}"


def is_azure(text: str) -> bool:
    """Whether a text is meant as a place in Azure Storage."""
    return _AZURE.match(text) is not None


def is_driver_address(text: str) -> bool:
    """Whether Hadoop's ABFS driver reaches a place by this spelling (https://hadoop.apache.org/docs/r3.3.4/hadoop-azure/abfs.html).

    `wasbs` is another driver's, at another endpoint; names of containers and schemes in large letters are no driver's.
    """
    return _DRIVER.fullmatch(text) is not None


def azure_location(text: str) -> AzureLocation:
    """A text that `is_azure`. Paths are taken letter by letter; those of `https` addresses are percent-decoded.

    Raises:
        EstateError: it names no account or container, or has a signature.
    """
    web = text[:4].lower() == "http"
    found = (_WEB if web else _HADOOP).fullmatch(text)
    if found is None:
        raise EstateError(
            "an Azure Storage address must name the container and the account",
            where="abfss://…",  # an address may have a signature in it
            todo="write abfss://container@account.dfs.core.windows.net/path",
        )
    path = found["path"] or ""
    return AzureLocation(
        account=found["account"].lower(),
        container=found["container"].lower(),
        suffix=found["suffix"].lower(),
        path=(unquote(path) if web else path).rstrip("/"),
    )
