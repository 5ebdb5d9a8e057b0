"""Tables in S3: every version of every object in their places, listed. Nothing is decoded here, and nothing written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, cached_property, partial

from botocore.exceptions import BotoCoreError, ClientError

from pii_tracer.common.plurals import counted
from pii_tracer.lake.aws_errors import error_code, remedy
from pii_tracer.lake.catalogs.registered_tables import RemoteTable
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.inventory import ObjectSet, ObjectVersion, RemotePlace
from pii_tracer.lake.packed_versions import Packed
from pii_tracer.lake.stores.s3.clients import kind_against
from pii_tracer.lake.stores.s3.locks_and_uploads import iter_uploads
from pii_tracer.lake.stores.s3.object_versions import ClientFactory, iter_object_versions, region_of
from pii_tracer.lake.stores.s3.table_places import joined
from pii_tracer.model.locations import S3Location

_TELL_EVERY = 10_000
_LARGEST_METADATA = 512 * 1024 * 1024


def list_places(
    tables: Sequence[RemoteTable], archives: Iterable[ObjectSet], clients: ClientFactory, say: Callable[[str], None]
) -> tuple[RemotePlace, ...]:
    """The places of some tables and roots with all that lies in them, sorted by location.

    archives: their objects are copies in their own right and are left out of roots. What refuses is told in the
    place (`unlisted`, `doubt`); the others are listed all the same. An object belongs to the innermost place.
    """
    found: dict[str, RemotePlace] = {}
    for table in tables:
        for place in _spread(table, clients):
            known = found.get(str(place.location))
            found[str(place.location)] = joined(known, place) if known else place
    places = [found[location] for location in sorted(found)]
    apart = [(o.bucket, o.prefix) for o in archives]
    inner: dict[S3Location, set[str]] = {place.location: set() for place in places}
    for place in places:
        for folder in place.location.way_up[1:]:
            if folder in inner:
                inner[folder].add(place.location.prefix)
    region = cache(partial(_region, clients))
    return tuple(_Listing(place, inner[place.location], apart, clients, region, say).place() for place in places)


def _region(clients: ClientFactory, bucket: str) -> str:
    return region_of(clients(None), bucket)


def _spread(table: RemoteTable, clients: ClientFactory) -> list[RemotePlace]:
    """The places of a table's files: its metadata may lead to more than its folder."""
    doubt = None
    folders: tuple[S3Location, ...] = (table.location,)
    if table.metadata is not None and table.format is not None and not kind_against(table.metadata.bucket):
        adapter = format_of(table.format)
        try:
            folders, doubt = adapter.folders_told_by(_metadata(table.metadata, clients), table.metadata)
        except (ClientError, BotoCoreError) as error:
            doubt = f"its metadata file cannot be read ({error_code(error)})"
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
            doubt = f"its metadata file cannot be read ({type(error).__name__})"
    names = (table.title,) if table.title else ()
    return [RemotePlace(location=f, tables=names, format=table.format, doubt=doubt) for f in folders]


def _metadata(file: S3Location, clients: ClientFactory) -> bytes:
    client = clients(region_of(clients(None), file.bucket))
    answer = client.get_object(Bucket=file.bucket, Key=file.key)
    with closing(answer["Body"]) as body:
        if answer["ContentLength"] > _LARGEST_METADATA:
            raise ValueError("a file of this size is not a metadata file")
        return bytes(body.read())


@dataclass(frozen=True)
class _Listing:
    """Lists one place. inner: what keys in other places inside begin with; apart: (bucket, prefix) of archives.
    region: of a bucket."""

    of: RemotePlace
    inner: Collection[str]
    apart: Sequence[tuple[str, str]]
    clients: ClientFactory
    region: Callable[[str], str]
    say: Callable[[str], None]

    def place(self) -> RemotePlace:
        here = self.of.location
        if kind := kind_against(here.bucket):
            return self.of.model_copy(update={"unlisted": kind})
        try:
            region = self.region(here.bucket)
            client = self.clients(region)
            versions = Packed(
                ObjectVersion,
                (
                    version
                    for version in self._counted(iter_object_versions(client, here.bucket, here.prefix))
                    if not self._is_anothers(version.key)
                ),
            )
        except (ClientError, BotoCoreError) as error:
            return self.of.model_copy(update={"unlisted": _refused("it", error, "s3:ListBucketVersions")})
        listed = self.of.model_copy(update={"region": region, "versions": versions})
        try:
            uploads = tuple(
                upload for upload in iter_uploads(client, here.bucket, here.prefix) if not self._is_anothers(upload.key)
            )
        except (ClientError, BotoCoreError) as error:
            rights = "s3:ListBucketMultipartUploads and s3:ListMultipartUploadParts"
            told = _refused("unfinished uploads", error, rights)
            return listed.model_copy(update={"doubt": "; ".join(filter(None, (self.of.doubt, told)))})
        return listed.model_copy(update={"uploads": uploads})

    def _is_anothers(self, key: str) -> bool:
        """Whether an object belongs to another place, or to an archive where nobody names this one."""
        if not self.of.tables and key.startswith(self._archives):
            return True
        ends = (end for end, sign in enumerate(key, 1) if sign == "/")
        return bool(self.inner) and any(key[:end] in self.inner for end in ends)

    @cached_property
    def _archives(self) -> tuple[str, ...]:
        return tuple(prefix for bucket, prefix in self.apart if bucket == self.of.location.bucket)

    def _counted(self, versions: Iterable[ObjectVersion]) -> Iterator[ObjectVersion]:
        for number, version in enumerate(versions, 1):
            yield version
            if number % _TELL_EVERY == 0:
                # a folder's name can be a person's key, and nobody knows the persons yet
                self.say(f"{', '.join(self.of.tables) or 'a place in S3'}: {counted(number, 'version')}")


def _refused(what: str, error: Exception, rights: str) -> str:
    code = error_code(error)
    return f"{what} cannot be listed ({code}){remedy(code, rights)}"
