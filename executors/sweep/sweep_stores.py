"""Where swept tables lie, local or in S3: what their logs name, what exists, and how the engine writes its paths."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from executors.engine.local_files import as_local
from executors.engine.s3a_settings import SCHEME
from pii_tracer.lake.stores.s3.object_versions import ClientFactory
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.errors import RunError
from pii_tracer.model.locations import S3Location, s3_location

_AT_ONCE = 16


class Store(Protocol):
    """One table's files. Names are as listings have them: absolute paths, or `s3://bucket/key`."""

    front: str
    """What stands in the engine's paths in place of `cut`."""
    cut: str
    local: bool

    @property
    def folder(self) -> Path | S3Path:
        """The table's."""

    @property
    def keeps_versions(self) -> bool:
        """Whether what is removed stays as an old version."""

    def named(self, paths: Iterable[str]) -> set[str]:
        """Paths of the engine as listings have them."""

    def modified(self, paths: Collection[str]) -> dict[str, int]:
        """When each was written, in milliseconds since 1970; without those that do not exist."""

    def missing(self, needed: Collection[str], removed: Collection[str]) -> set[str]:
        """Files that are needed and not there, after some were removed."""


class LocalStore:
    """A folder of this machine."""

    front, cut, local = "file:", "", True
    keeps_versions = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def named(self, paths: Iterable[str]) -> set[str]:
        return {as_local(path) for path in paths}

    def modified(self, paths: Collection[str]) -> dict[str, int]:
        found = {}
        for path in paths:
            try:
                found[path] = Path(path).stat().st_mtime_ns // 1_000_000
            except FileNotFoundError:
                continue
        return found

    def missing(self, needed: Collection[str], removed: Collection[str]) -> set[str]:
        return {path for path in needed if not Path(path).exists()}


class S3Store:
    """A folder in S3. Refusals are RunErrors, with S3's code."""

    front, cut, local = SCHEME, "s3://", False

    def __init__(self, location: S3Location, clients: ClientFactory) -> None:
        try:
            self.folder = S3Path.of(location, clients)
            self.keeps_versions = self.folder.keeps_versions()
        except OSError as error:
            raise _refused(error) from None

    def named(self, paths: Iterable[str]) -> set[str]:
        return {str(s3_location(path)) for path in paths}

    def modified(self, paths: Collection[str]) -> dict[str, int]:
        """One HeadObject each: as many as are removed, not as many as there are."""
        try:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                found = list(pool.map(lambda path: self.folder.placed(path).modified(), paths))
        except OSError as error:
            raise _refused(error) from None
        return {path: when for path, when in zip(paths, found, strict=True) if when is not None}

    def missing(self, needed: Collection[str], removed: Collection[str]) -> set[str]:
        """Of what was removed alone: to ask for each file would cost as much as there are."""
        return set(needed).intersection(removed)


def store_of(location: Path | S3Location, clients: ClientFactory) -> Store:
    """The store of a table. clients: of S3, asked only for tables there.

    Raises:
        RunError: S3 refuses.
    """
    return S3Store(location, clients) if isinstance(location, S3Location) else LocalStore(location)


def _refused(error: OSError) -> RunError:
    return RunError(
        f"S3 refuses: {str(error).rpartition(': ')[2]}",
        todo="check the bucket and the account's permissions, then sweep again",
    )
