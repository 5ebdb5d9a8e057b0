"""The storage below a lakeFS repository, seen past lakeFS: what lies there, old versions of S3 included.

lakeFS names objects by address, `local://…` or `s3://…` (`physical_address` of its API). A bucket with versions keeps
what garbage collection deletes as noncurrent versions, so every version of an address counts as being there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pii_tracer.config.estate_file import Estate
from pii_tracer.config.lakefs import LakefsServer
from pii_tracer.model.errors import EstateError

if TYPE_CHECKING:
    from pii_tracer.lake.stores.s3.object_versions import S3Client

OWN = "_lakefs/"
"""What lakeFS keeps for itself below the namespace: ranges of paths and addresses, lists of a collection."""


@dataclass(frozen=True)
class Stored:
    """An object in the storage. version: None where there are no versions."""

    address: str
    version: str | None = None


class Storage(Protocol):
    """What lies below one namespace. Every method raises `EstateError` when the storage refuses."""

    def stored(self) -> Iterator[Stored]:
        """Everything below the namespace, every version of it, lakeFS's own metadata too."""

    def versions(self, address: str) -> int:
        """How many versions of one object there are; 0: it is gone."""

    def read(self, item: Stored) -> bytes:
        """The bytes."""

    def uploads(self) -> int:
        """How many unfinished uploads there are: bytes that nobody can read."""


def storage_of(namespace: str, server: LakefsServer, estate: Estate, base: Path) -> Storage | None:
    """The storage of a namespace, or None where this estate has no way to it."""
    if namespace.startswith("local://") and server.local_root is not None:
        return _Local(namespace.rstrip("/"), (base / server.local_root).resolve())
    if namespace.startswith("s3://") and estate.s3 is not None:
        return _Bucket(namespace.rstrip("/"), estate)
    return None


@dataclass(frozen=True)
class _Local:
    namespace: str
    root: Path

    def stored(self) -> Iterator[Stored]:
        from pii_tracer.model.errors import ScanError
        from pii_tracer.scan.folder_scan import walk_files

        folder = self._path(self.namespace)
        try:
            for name, path in walk_files(folder):
                if path.is_symlink():
                    raise self._failed("the storage contains a link")
                yield Stored(f"{self.namespace}/{name}")
        except ScanError as error:
            raise self._failed(error.what) from None

    def versions(self, address: str) -> int:
        if not self._path(self.namespace).is_dir():  # a root that is not mounted must not look like an empty one
            raise self._failed("the folder of the namespace does not exist")
        return int(self._path(address).exists())

    def read(self, item: Stored) -> bytes:
        try:
            return self._path(item.address).read_bytes()
        except OSError as error:
            raise self._failed(error.strerror or type(error).__name__) from None

    def uploads(self) -> int:
        return 0  # files of a folder

    def _path(self, address: str) -> Path:
        path = (self.root / address.removeprefix("local://")).resolve()
        if not path.is_relative_to(self.root):
            raise self._failed("an address is outside of the server's folder")
        return path

    def _failed(self, why: str) -> EstateError:
        return EstateError(
            f"the storage below lakeFS cannot be read: {why}",
            where=self.namespace,
            todo="set `local_root` to the server's `blockstore.local.path`",
        )


@dataclass(frozen=True)
class _Bucket:
    namespace: str
    estate: Estate

    def stored(self) -> Iterator[Stored]:
        for key, version in self._listed(self.namespace + "/"):
            yield Stored(f"s3://{self._split(self.namespace)[0]}/{key}", version)

    def versions(self, address: str) -> int:
        wanted = self._split(address)[1]
        return sum(key == wanted for key, _ in self._listed(address))

    def read(self, item: Stored) -> bytes:
        from botocore.exceptions import BotoCoreError, ClientError

        bucket, key = self._split(item.address)
        which = {"VersionId": item.version} if item.version not in (None, "null") else {}
        try:
            data: bytes = self._client().get_object(Bucket=bucket, Key=key, **which)["Body"].read()
        except (BotoCoreError, ClientError) as error:
            raise self._failed(error) from None
        return data

    def uploads(self) -> int:
        from botocore.exceptions import BotoCoreError, ClientError

        from pii_tracer.lake.stores.s3.listing import upload_items

        try:
            return sum(1 for _ in upload_items(self._client(), *self._split(self.namespace + "/")))
        except (BotoCoreError, ClientError) as error:
            raise self._failed(error) from None

    def _listed(self, place: str) -> Iterator[tuple[str, str]]:
        from botocore.exceptions import BotoCoreError, ClientError

        from pii_tracer.lake.stores.s3.object_versions import iter_object_versions

        try:
            for found in iter_object_versions(self._client(), *self._split(place)):
                if not found.delete_marker:
                    yield found.key, found.version_id
        except (BotoCoreError, ClientError) as error:
            raise self._failed(error) from None

    def _client(self) -> S3Client:
        from pii_tracer.lake.stores.s3.archive_versions import s3_clients

        return s3_clients(self.estate)(None)

    def _split(self, address: str) -> tuple[str, str]:
        bucket, _, key = address.removeprefix("s3://").partition("/")
        return bucket, key

    def _failed(self, error: Exception) -> EstateError:
        from pii_tracer.lake.aws_errors import error_code

        return EstateError(
            f"the bucket below lakeFS cannot be read: {error_code(error)}",
            where=self.namespace,
            todo="grant this run the rights to list and read the bucket's versions",
        )
