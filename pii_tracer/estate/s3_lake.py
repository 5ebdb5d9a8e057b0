"""Delta tables in S3 that steps can erase, and of every other place there why nothing is erased in it.

A table counts when the estate file declares it, all its files lie in its folder and nobody else's do, and nothing keeps
what is deleted there: no replica, no lock. The bucket's settings and the tables' logs are read; nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from pii_tracer.aws import error_code
from pii_tracer.config import Archive
from pii_tracer.errors import EstateError
from pii_tracer.estate.delta import state_of, unknown_version
from pii_tracer.estate.delta_log import DeltaSnapshot, read_log
from pii_tracer.estate.delta_s3 import origins, source_of
from pii_tracer.estate.delta_strays import strange_objects
from pii_tracer.estate.found import Found, gap
from pii_tracer.estate.registry import RemoteTable
from pii_tracer.estate.s3_beyond import NOT_THERE, touches
from pii_tracer.estate.s3_path import S3Path
from pii_tracer.estate.s3_versions import ClientFactory, S3Client
from pii_tracer.gap_kinds import GapKind
from pii_tracer.inventory import InventoryGap
from pii_tracer.locations import S3Location, s3_location
from pii_tracer.model import Format

ONLY_DELTA = "only Delta tables that the estate file declares are erased there"
_NAMED = 3
_STRANGE = (
    "file(s) in the table's folder are not named as the table's own, and no version in its log names them: they may be"
    " somebody's, or be left from before the log's history. No step removes them, but their old versions go with the"
    " table's: move what is somebody's out of it, delete what nobody needs, and plan again; waive this where they may"
    " stay"
)
_NO_RULES = ("ReplicationConfigurationNotFoundError", *NOT_THERE)


@dataclass(frozen=True)
class Lake:
    """By location. found: tables that can be erased. why: why nothing is erased at the other places."""

    found: Mapping[str, Found] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)


def lake_tables(
    declared: Sequence[RemoteTable], places: Collection[S3Location], archives: Sequence[Archive], clients: ClientFactory
) -> Lake:
    """The tables of a lake in S3.

    declared: tables that the estate file declares there. places: of everything that it or a catalog names in S3.
    """
    logs: dict[str, DeltaSnapshot[S3Path]] = {}
    found: dict[str, Found] = {}
    why = {str(place): ONLY_DELTA for place in places}
    buckets: dict[str, _Bucket] = {}
    for table in declared:
        location = str(table.location)
        if table.format is not Format.DELTA or location in logs:
            continue
        try:
            place = S3Path.of(table.location, clients)
            logs[location] = read_log(place)
            name = table.location.bucket
            if name not in buckets:
                buckets[name] = _Bucket.of(place.client, name)
            against = _crowded(table.location, places, archives) or buckets[name].keeps(table.location.prefix)
            against = against or _astray(logs[location], table.location)
            if against is None:
                found[location] = _found(table, place, logs[location])
        except EstateError as error:
            against = error.what
        except (ClientError, BotoCoreError) as error:
            against = f"S3 does not tell what keeps deleted objects there ({error_code(error)})"
        except OSError as error:
            against = f"S3 refuses to show it ({str(error).rpartition(': ')[2]})"
        why[location] = against or ""
    for location, clone in _cloned(logs).items():
        found.pop(location, None)
        why[location] = f"the shallow clone {clone} reads its files"
    return Lake(found, {location: reason for location, reason in why.items() if location not in found})


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
            return "versions in its bucket can only be deleted with the owner's MFA device"
        if any(touches(rule, prefix) for rule in self.rules):
            return "its bucket is replicated to another one, where no table is erased"
        return None


def _asked(ask: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    """A setting; empty where there is none, or where the store has no such thing."""
    try:
        return ask()
    except ClientError as error:
        if error_code(error) in _NO_RULES:
            return {}
        raise


def _crowded(location: S3Location, places: Collection[S3Location], archives: Sequence[Archive]) -> str | None:
    """Why its folder is not its own."""
    for other in sorted(places, key=str):
        if other != location and location.holds(other):
            return f"{other} lies inside its folder"
    for archive in archives:
        mine, theirs = location.prefix, archive.prefix
        if archive.bucket == location.bucket and (mine.startswith(theirs) or theirs.startswith(mine)):
            return f"its folder and the archive `{archive.name}` have objects in common"
    return None


def _astray(snapshot: DeltaSnapshot[S3Path], location: S3Location) -> str | None:
    """Why its files are not all its own: a shallow clone reads another's, and its log says so after that, too."""
    if any(file.external for file in snapshot.files):
        return "it reads files outside its folder"
    origin = source_of(snapshot)
    if origin is not None and origin != location:
        return f"it was cloned from {origin}, whose files its history may read"
    return None


def _cloned(logs: Mapping[str, DeltaSnapshot[S3Path]]) -> dict[str, str]:
    """Tables whose files another table reads, and which."""
    places = [s3_location(location) for location in logs]
    read = {clone: {str(place) for place in origins(snapshot, places)[0]} for clone, snapshot in sorted(logs.items())}
    return {location: clone for clone, tables in read.items() for location in tables - {clone}}


def _found(table: RemoteTable, place: S3Path, snapshot: DeltaSnapshot[S3Path]) -> Found:
    state = state_of(snapshot, str(place), table.location.dataset, table.name)
    there = {path: size for path, size, _ in place.walk()}
    gaps: list[InventoryGap] = unknown_version(state, snapshot)
    missing = sorted(str(f.path) for f in snapshot.files if str(f.path) not in there)
    if missing:
        reason = f"{len(missing)} data files that the log names do not exist: the table cannot be read"
        gaps.append(gap(state.dataset, GapKind.MISSING_FILES, reason, missing[0]))
    strange = strange_objects(str(place), there, snapshot)
    if strange:
        reason = f"{len(strange)} {_STRANGE}"
        gaps.append(gap(state.dataset, GapKind.STRANGE_FILES, reason, ", ".join(strange[:_NAMED])))
    return Found(state, tuple(gaps))
