"""A place in S3 with the client that reads it, and of `pathlib.Path` what readers of tables' metadata ask of one.

Errors are `OSError`s with S3's code and never its message, so that readers treat both kinds of places alike.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from botocore.exceptions import BotoCoreError, ClientError

from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.stores.s3.object_versions import (
    GONE,
    ClientFactory,
    S3Client,
    region_of,
)
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import S3Location, location_of

LARGEST = 1024 * 1024 * 1024
"""A commit or a part of a checkpoint of more bytes is not taken into memory."""

PART = 256 * 1024
"""Bytes that are fetched at once of a file of which little is needed: a footer of Parquet, as a rule."""


class S3Path:
    """An object, or what begins with its name and a slash. Two are equal when they name the same place."""

    __slots__ = ("client", "location")

    def __init__(self, location: S3Location, client: S3Client) -> None:
        self.location, self.client = location, client

    @classmethod
    def of(cls, location: S3Location, clients: ClientFactory) -> S3Path:
        """A place with a client of its bucket's region.

        Raises:
            OSError: the bucket is missing or refuses.
        """
        return cls(location, _asked(lambda: clients(region_of(clients(None), location.bucket)), location))

    def __str__(self) -> str:
        return str(self.location)

    def __repr__(self) -> str:
        return f"S3Path({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, S3Path) and self.location == other.location

    def __hash__(self) -> int:
        return hash(str(self.location))

    def __lt__(self, other: S3Path) -> bool:
        return str(self) < str(other)

    def __truediv__(self, name: str) -> S3Path:
        """The key that follows: nothing is resolved, since `..` and `//` are names like others in S3."""
        return self._at(f"{self.location.prefix}{name}")

    def _at(self, key: str) -> S3Path:
        return S3Path(S3Location(bucket=self.location.bucket, key=key), self.client)

    @property
    def name(self) -> str:
        return self.location.key.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix

    @property
    def suffixes(self) -> list[str]:
        return PurePosixPath(self.name).suffixes

    def resolve(self) -> S3Path:
        """Itself: S3 has no links."""
        return self

    def is_relative_to(self, other: S3Path) -> bool:
        """Whether it is the other place, or lies in it."""
        return other.location.holds(self.location)

    def placed(self, text: str) -> S3Path:
        """Another place as a table's metadata writes it, in whatever S3 scheme, read by the same client.

        Raises:
            EstateError: no place in S3.
        """
        place = location_of(text)
        if not isinstance(place, S3Location):
            raise EstateError(
                "a table in S3 references a file outside S3",
                where=str(self),
                todo="correct the table's metadata, then run the command again",
            )
        return S3Path(place, self.client)

    def iterdir(self) -> Iterator[S3Path]:
        """Objects directly in it, not folders, in S3's order.

        Raises:
            FileNotFoundError: there is neither an object nor a folder in it.
            OSError: S3 refuses.
        """
        prefix, empty = self.location.prefix, True
        for page in self._pages(Delimiter="/"):
            empty &= not (page.get("Contents") or page.get("CommonPrefixes"))
            yield from (self._at(item["Key"]) for item in page.get("Contents", ()) if item["Key"] != prefix)
        if empty:
            raise FileNotFoundError(str(self))

    def open(self, mode: str) -> BinaryIO:
        """Its bytes, of one version, whole in memory. mode: `rb`.

        Raises:
            FileNotFoundError: no such object.
            OSError: S3 refuses, or it is larger than `LARGEST`.
        """
        if mode != "rb":
            raise ValueError("only read as bytes")
        answer = _asked(
            lambda: self.client.get_object(Bucket=self.location.bucket, Key=self.location.key), self.location
        )
        if answer["ContentLength"] > LARGEST:
            answer["Body"].close()
            raise OSError(f"{self}: too large to be metadata")
        return io.BytesIO(_asked(answer["Body"].read, self.location))

    def read_text(self, encoding: str) -> str:
        """Its bytes as text. Raises as `open`."""
        return self.open("rb").read().decode(encoding)

    def seekable(self) -> BinaryIO:
        """Its bytes, of one version, fetched as they are read: for files of which little is needed.

        Raises:
            FileNotFoundError: no such object.
            OSError: S3 refuses, now or while it is read.
        """
        bucket, key = self.location.bucket, self.location.key
        head = _asked(lambda: self.client.head_object(Bucket=bucket, Key=key), self.location)
        which = {"Bucket": bucket, "Key": key, "IfMatch": head["ETag"]}

        def part(first: int, last: int) -> bytes:
            asked = which | {"Range": f"bytes={first}-{last}"}
            return bytes(_asked(lambda: self.client.get_object(**asked)["Body"].read(), self.location))

        return io.BufferedReader(Ranges(part, head["ContentLength"]), PART)

    def is_file(self) -> bool:
        """Whether there is an object of this name. Raises `OSError` when S3 refuses."""
        return self.modified() is not None

    def is_dir(self) -> bool:
        """Whether anything lies in it. Raises `OSError` when S3 refuses."""
        which = {"Bucket": self.location.bucket, "Prefix": self.location.prefix, "MaxKeys": 1}
        return bool(_asked(lambda: self.client.list_objects_v2(**which), self.location).get("Contents"))

    def exists(self) -> bool:
        """Whether there is an object, or anything in it. Raises `OSError` when S3 refuses."""
        return self.is_file() or self.is_dir()

    def modified(self) -> int | None:
        """When it was written, in milliseconds since 1970 (S3 tells whole seconds); None where there is no object.

        Raises:
            OSError: S3 refuses.
        """
        try:
            head = _asked(
                lambda: self.client.head_object(Bucket=self.location.bucket, Key=self.location.key), self.location
            )
        except FileNotFoundError:
            return None
        return int(head["LastModified"].timestamp() * 1000)

    def keeps_versions(self) -> bool:
        """Whether what is deleted here may stay as a noncurrent version: the bucket keeps them, or did.

        https://docs.aws.amazon.com/AmazonS3/latest/userguide/DeletingObjectsfromVersioningSuspendedBuckets.html

        Raises:
            OSError: S3 refuses.
        """
        bucket = self.location.bucket
        return "Status" in _asked(lambda: self.client.get_bucket_versioning(Bucket=bucket), self.location)

    def walk(self) -> Iterator[tuple[str, int, int]]:
        """Every object in it at any depth: `s3://bucket/key`, bytes, milliseconds since 1970.

        Raises:
            OSError: S3 refuses.
        """
        for page in self._pages():
            for item in page.get("Contents", ()):
                when = int(item["LastModified"].timestamp() * 1000)
                yield f"s3://{self.location.bucket}/{item['Key']}", item["Size"], when

    def _pages(self, **more: Any) -> Iterator[Any]:
        """Answers of ListObjectsV2 about what lies in it. Raises `OSError` when S3 refuses."""
        listing = self.client.get_paginator("list_objects_v2")
        pages = iter(listing.paginate(Bucket=self.location.bucket, Prefix=self.location.prefix, **more))
        while (page := _asked(lambda: next(pages, None), self.location)) is not None:
            yield page
            # boto3 takes a page that says so for the last one
            if page.get("IsTruncated") and not page.get("NextContinuationToken"):
                raise OSError(f"{self.location}: the listing ends early")


class Ranges(io.RawIOBase):
    """A file of which parts are fetched. part: gives the bytes from one offset to another, this one included."""

    def __init__(self, part: Callable[[int, int], bytes], size: int) -> None:
        super().__init__()
        self._part, self._size, self._at = part, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence] + offset
        return self._at

    def readall(self) -> bytes:
        """What is left, at once: Python would ask for a few kilobytes each time."""
        data = bytearray(max(0, self._size - self._at))
        self.readinto(data)
        return bytes(data)

    def readinto(self, buffer: Any) -> int:
        """At most as much as there is room for."""
        wanted = min(len(buffer), self._size - self._at)
        if wanted <= 0:
            return 0
        data = self._part(self._at, self._at + wanted - 1)
        if len(data) != wanted:
            raise OSError("a store returned a wrong number of bytes")
        buffer[:wanted] = data
        self._at += wanted
        return wanted


_REFUSED = frozenset({"403", "AccessDenied"})


def _asked(ask: Any, where: S3Location) -> Any:
    """An answer of S3, its refusals as `OSError`s."""
    try:
        return ask()
    except (ClientError, BotoCoreError) as error:
        code = error_code(error)
        kind = FileNotFoundError if code in GONE else PermissionError if code in _REFUSED else OSError
        raise kind(f"{where}: {code}") from None
