"""Why what is deleted in a folder in S3 would not be gone, or is not one table's alone. Only settings are read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from botocore.exceptions import ClientError

from pii_tracer.config.estate_file import Archive
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.formats.registry import table_formats
from pii_tracer.lake.stores.catalog_facts_of_table import NO_PLAIN_ROWS
from pii_tracer.lake.stores.s3.bucket_settings import NOT_THERE, touches
from pii_tracer.lake.stores.s3.clients import kind_against
from pii_tracer.lake.stores.s3.object_versions import ClientFactory, S3Client
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import S3Location

_DATA = "data"
"""The folder beside a table's metadata: https://iceberg.apache.org/docs/latest/configuration/#write-properties."""
_NO_RULES = ("ReplicationConfigurationNotFoundError", *NOT_THERE)


@dataclass(frozen=True)
class Folders:
    """The folders of an estate in S3. places: of everything that it or a catalog names there. opaque: as of
    `Registry.opaque_s3`."""

    places: Collection[S3Location]
    opaque: Mapping[S3Location, str]
    archives: Sequence[Archive]
    clients: ClientFactory
    _roots: dict[str, S3Path] = field(default_factory=dict, init=False)
    _buckets: dict[str, _Bucket] = field(default_factory=dict, init=False)
    _signs: dict[S3Location, str] = field(default_factory=dict, init=False)

    @cached_property
    def _inner(self) -> dict[S3Location, S3Location]:
        """By folder, the first place in it."""
        found: dict[S3Location, S3Location] = {}
        places = frozenset(self.places)
        for place in sorted({*places, *self.opaque}, key=str):
            for folder in place.way_up[1:]:
                # engines pass over folders such as `_symlink_format_manifest`
                passed = place not in places and place.prefix.removeprefix(folder.prefix).startswith(("_", "."))
                if not passed:
                    found.setdefault(folder, place)
        return found

    def path(self, location: S3Location) -> S3Path:
        """A place, its bucket asked once for its region. Raises `OSError`: the bucket is missing or refuses.
        EstateError: it is of another kind.
        """
        name = location.bucket
        if kind := kind_against(name):
            raise EstateError(kind)
        if name not in self._roots:
            self._roots[name] = S3Path.of(location, self.clients)
        return S3Path(location, self._roots[name].client)

    def against(self, place: S3Path) -> str | None:
        """Why no table is erased there, if so: its folder is not its own, or its bucket keeps what is deleted.

        Raises:
            botocore.exceptions.ClientError: a setting of the bucket may not be read.
        """
        location, name = place.location, place.location.bucket
        if name not in self._buckets:
            self._buckets[name] = _Bucket.of(place.client, name)
        return self._crowded(location) or self._buckets[name].keeps(location.prefix)

    def without_rows(self, location: S3Location) -> str | None:
        """Why the files of a bare folder may not be its rows, if so: a table that is not read has files in common."""
        around = (at for at in reversed(location.way_up) if at in self.opaque)
        return next((NO_PLAIN_ROWS.format(self.opaque[at]) for at in around), None)

    def unnamed_around(self, place: S3Path) -> str | None:
        """The table around a folder that nobody names, if there is one: its metadata may name the folder's files.

        Raises:
            OSError: S3 refuses to show a folder around it.
        """
        for folder in place.location.way_up[1:]:
            if folder not in self._signs:
                self._signs[folder] = _sign(self.path(folder))
            if sign := self._signs[folder]:
                return (
                    f"its folder is inside a table ({folder} contains `{sign}`), and no catalog or declaration names "
                    "that table"
                )
        return None

    def _crowded(self, location: S3Location) -> str | None:
        """Why its folder is not its own."""
        if location.key and not {"", ".", ".."}.isdisjoint(location.key.split("/")):
            return "a part of its name is empty, `.` or `..`, which Spark's file system folds into another place's name"
        if other := self._inner.get(location):
            return f"{other} is inside its folder"
        for archive in self.archives:
            mine, theirs = location.prefix, archive.prefix
            if archive.bucket == location.bucket and (mine.startswith(theirs) or theirs.startswith(mine)):
                return f"its folder and the archive `{archive.name}` share objects"
        return None

    def data_of_unnamed(self, place: S3Path) -> str | None:
        """The table that nobody names and in whose data folder a place is, by the usual names, if there is one.

        Raises: as `unnamed_around`.
        """
        for folder in place.location.way_up:
            if folder.key.rpartition("/")[2] == _DATA and (sign := _sign(self.path(folder.parent))):
                return (
                    f"it is in the data folder of a table that no catalog or declaration names ({folder.parent} "
                    f"contains `{sign}`)"
                )
        return None


@dataclass(frozen=True)
class _Bucket:
    """What a bucket's settings say of deleted objects. rules: of replication, disabled ones too."""

    rules: tuple[Mapping[str, Any], ...]
    locks: bool
    mfa: bool

    @classmethod
    def of(cls, client: S3Client, bucket: str) -> _Bucket:
        """Raises `ClientError` where a setting may not be read."""
        versioning = client.get_bucket_versioning(Bucket=bucket)
        lock = _asked(lambda: client.get_object_lock_configuration(Bucket=bucket))
        replication = _asked(lambda: client.get_bucket_replication(Bucket=bucket))
        return cls(
            rules=tuple(replication.get("ReplicationConfiguration", {}).get("Rules", ())),
            locks=lock.get("ObjectLockConfiguration", {}).get("ObjectLockEnabled") == "Enabled",
            mfa=versioning.get("MFADelete") == "Enabled",
        )

    def keeps(self, prefix: str) -> str | None:
        """Why what is deleted under a prefix is not gone, if so. What a disabled rule once copied is still there."""
        if self.locks:
            return "its bucket can lock objects (Object Lock)"
        if self.mfa:
            return "only the owner's MFA device can delete versions in its bucket"
        if any(touches(rule, prefix) for rule in self.rules):
            return "its bucket is replicated to a different bucket, where no step erases tables"
        return None


def _asked(ask: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    """A setting; empty where there is none, or where the store has no such thing."""
    try:
        return ask()
    except ClientError as error:
        if error_code(error) in _NO_RULES:
            return {}
        raise


def _sign(folder: S3Path) -> str:
    """The folder of a table's metadata in a folder; empty without one."""
    for kind in table_formats():
        for name in sorted(kind.metadata_folders):
            inside = folder / name
            if inside.is_dir() and kind.is_signed(file.name for file in inside.iterdir()):
                return name
    return ""
