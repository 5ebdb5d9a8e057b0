"""Where data lies: a path of this machine or a place in a bucket, whatever people and catalogs write."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from pydantic import Field

from pii_tracer.model.azure_location import azure_location, is_azure, is_driver_address
from pii_tracer.model.datasets import DatasetId, Frozen
from pii_tracer.model.errors import EstateError

_PATTERN = re.compile(r"[\\*?\[\]{}]")
"""What makes a path a pattern for Hadoop (`SparkHadoopUtil.isGlobPath`)."""
_S3 = re.compile(r"s3[an]?://", re.IGNORECASE)
_BUCKET = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$"
"""Older buckets, and those of other stores, have other names than new ones may have:
https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html"""

_FILE = re.compile(r"file:(?://(?:localhost)?)?(/(?!/).*)", re.IGNORECASE | re.DOTALL)

_HDFS = re.compile(r"hdfs://", re.IGNORECASE)
HDFS_PORT = ":8020"
"""The port that a NameNode has where none is written."""
_OBJECTS = re.compile(r"gs://[^/]+", re.IGNORECASE)
WEB_ADDRESS = r"^https?://[^@\s]+$"
"""The address of a server, without a user and password: these come from the environment."""
UNTOLD = "s3://…"
"""In place of a location that cannot be shown: an old form has credentials where the bucket should be."""


class S3Location(Frozen):
    """A place in a bucket: an object, or a folder without its last slash. An empty key is the whole bucket."""

    bucket: str = Field(pattern=_BUCKET)
    key: str

    def __str__(self) -> str:
        return object_uri(self.bucket, self.key)

    @property
    def prefix(self) -> str:
        """What the keys of everything in the folder begin with: `t` has nothing of `t2`."""
        return f"{self.key}/" if self.key else ""

    @property
    def parent(self) -> S3Location:
        """The folder that it lies in."""
        return S3Location(bucket=self.bucket, key=self.key.rpartition("/")[0])

    @property
    def way_up(self) -> tuple[S3Location, ...]:
        """It and every folder that it lies in, the innermost first, up to its bucket."""
        found = [self]
        while found[-1].key:
            found.append(found[-1].parent)
        return tuple(found)

    @property
    def dataset(self) -> DatasetId:
        """Its name in lineage (https://openlineage.io/docs/spec/naming)."""
        return DatasetId(namespace=f"s3://{self.bucket}", name=self.key.strip("/"))

    def holds(self, other: S3Location) -> bool:
        """Whether another place is this one or lies in it."""
        return self.bucket == other.bucket and f"{other.key}/".startswith(self.prefix)

    def holds_dataset(self, dataset: DatasetId) -> bool:
        """As `holds`, of what lineage names."""
        mine = self.dataset
        return dataset.namespace == mine.namespace and f"{dataset.name}/".startswith(mine.name and f"{mine.name}/")


class HdfsLocation(Frozen):
    """A place in HDFS. authority: the NameNode, in small letters, without the port where it is the usual one. path:
    from the root, without a slash at its end.
    """

    authority: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*(:[0-9]{1,5})?$")
    path: str = Field(pattern=r"^/")

    def __str__(self) -> str:
        return f"{self.name_node}{self.path}"

    @property
    def name_node(self) -> str:
        """As `hdfs://host:port`."""
        return f"hdfs://{self.authority}"

    @property
    def with_port(self) -> str:
        """As `hdfs://host:port/path`, for readers that know no usual port."""
        return f"{self.name_node}{'' if ':' in self.authority else HDFS_PORT}{self.path}"

    @property
    def prefix(self) -> str:
        """What the paths of everything in the folder begin with."""
        return f"{self.path.rstrip('/')}/"

    @property
    def root(self) -> HdfsLocation:
        """The folder in which everything at its NameNode lies."""
        return HdfsLocation(authority=self.authority, path="/")

    @property
    def dataset(self) -> DatasetId:
        """Its name in lineage (https://openlineage.io/docs/spec/naming)."""
        return DatasetId(namespace=self.name_node, name=self.path)

    @property
    def parent(self) -> HdfsLocation:
        """The folder that it lies in."""
        return HdfsLocation(authority=self.authority, path=self.path.rpartition("/")[0] or "/")

    def holds(self, other: HdfsLocation) -> bool:
        """Whether another place is this one or lies in it."""
        return self.authority == other.authority and f"{other.path}/".startswith(self.prefix)


class ObjectLocation(Frozen):
    """A place in an object store beside S3: a folder without its last slash. store: the bucket or container, as
    `gs://bucket` or `abfss://container@account.dfs.core.windows.net`. An empty key is the whole store.
    """

    store: str = Field(pattern=r"^[a-z]+://[^/]+$")
    key: str

    def __str__(self) -> str:
        return f"{self.store}/{self.key}" if self.key else self.store

    @property
    def prefix(self) -> str:
        """What the keys of everything in the folder begin with."""
        return f"{self.key}/" if self.key else ""

    @property
    def dataset(self) -> DatasetId:
        """Its name in lineage (https://openlineage.io/docs/spec/naming)."""
        return DatasetId(namespace=self.store, name=self.key)

    @property
    def parent(self) -> ObjectLocation:
        """The folder that it lies in."""
        return ObjectLocation(store=self.store, key=self.key.rpartition("/")[0])

    def holds(self, other: ObjectLocation) -> bool:
        """Whether another place is this one or lies in it."""
        return self.store == other.store and f"{other.key}/".startswith(self.prefix)


Location = Path | S3Location


class ObjectPrefix(NamedTuple):
    """A bucket, and what the keys of everything in a place begin with, letter by letter: a last slash counts."""

    bucket: str
    prefix: str


def is_s3(text: str) -> bool:
    """Whether a text is meant as a place in S3, in any of the schemes that engines write."""
    return _S3.match(text) is not None


def is_hdfs(text: str) -> bool:
    """Whether a text is meant as a place in HDFS."""
    return _HDFS.match(text) is not None


def is_remote(text: str) -> bool:
    """Whether a text is meant as a place in a store that is reached over the network."""
    return is_s3(text) or is_hdfs(text) or is_object_place(text)


def hdfs_location(text: str) -> HdfsLocation:
    """A text that `is_hdfs`. The path is taken as it is, letter by letter, as Hadoop's shell takes it.

    Raises:
        EstateError: it names no NameNode, or the path is none.
    """
    authority, _, path = text.partition("://")[2].partition("/")
    parts = [part for part in path.split("/") if part]
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*(:[0-9]{1,5})?", authority) is None or {".", ".."} & {*parts}:
        raise EstateError(
            "a place in HDFS without the name of its NameNode, or with `.` or `..` in its path",
            where="hdfs://…",
            todo="write hdfs://host:port/path",
        )
    return HdfsLocation(authority=authority.lower().removesuffix(HDFS_PORT), path="/" + "/".join(parts))


def is_object_place(text: str) -> bool:
    """Whether a text is meant as a place in an object store beside S3."""
    return _OBJECTS.match(text) is not None or is_azure(text)


def in_place(text: str) -> bool:
    """Whether it is a location in HDFS or in a store of `object_stores`."""
    return is_hdfs(text) or is_object_place(text)


def location_in_place(text: str) -> HdfsLocation | ObjectLocation:
    """A text that is `in_place`. Raises as `hdfs_location` and `object_location`."""
    return hdfs_location(text) if is_hdfs(text) else object_location(text)


def remote_place(text: str) -> str:
    """A text that `is_remote` in one spelling, without a slash at its end. Raises as `location_in_place`."""
    place = s3_location(text) if is_s3(text) else location_in_place(text)
    return str(place).rstrip("/")


def object_location(text: str) -> ObjectLocation:
    """A text that `is_object_place`. The key is taken as it is, letter by letter; spellings of Azure become one.

    Raises:
        EstateError: it names no bucket or container.
    """
    if is_azure(text):
        place = azure_location(text)
        return ObjectLocation(store=place.store, key=place.path)
    if not is_object_place(text):
        raise EstateError(
            "a place in an object store without the name of a bucket", where="gs://…", todo="write gs://bucket/prefix"
        )
    scheme, _, rest = text.partition("://")
    name, _, key = rest.partition("/")
    return ObjectLocation(store=f"{scheme.lower()}://{name}", key=key.rstrip("/"))


def object_prefix(text: str) -> ObjectPrefix | None:
    """What a copy's or an archive's location means: keys that begin so, folder or not; None outside of S3."""
    if not is_s3(text):
        return None
    bucket, _, prefix = text.partition("://")[2].partition("/")
    return ObjectPrefix(bucket, prefix)


def front_of(location: str) -> str:
    """What the names of all files of a place in a store begin with, as that store names them.

    Raises:
        EstateError: the location names no place in a store.
    """
    found = object_prefix(location)
    return found.prefix if found is not None else location_in_place(location).prefix


def object_uri(bucket: str, key: str) -> str:
    """An object, or a prefix of keys, as plans and proofs name it."""
    return f"s3://{bucket}/{key}"


def without_scheme(uri: str) -> str:
    """`bucket/key` of a URI that `object_uri` wrote; any other text as it is."""
    return uri.removeprefix("s3://")


def s3_location(text: str) -> S3Location:
    """A text that `is_s3`. The key is taken as it is
    (https://github.com/apache/iceberg/blob/main/aws/src/main/java/org/apache/iceberg/aws/s3/S3URI.java).

    Raises:
        EstateError: no name of a bucket.
    """
    bucket, _, key = text.partition("://")[2].partition("/")
    if re.match(_BUCKET, bucket) is None:
        raise EstateError("an S3 location without the name of a bucket", where=UNTOLD, todo="correct it")
    return S3Location(bucket=bucket, key=key.rstrip("/"))


def s3_place(dataset: DatasetId) -> S3Location | None:
    """Where a dataset of an inventory lies in S3; None of all others.

    Raises:
        EstateError: no name of a bucket.
    """
    return s3_location(f"{dataset.namespace}/{dataset.name}") if is_s3(dataset.namespace) else None


def engine_path(location: str) -> str:
    """A location as Spark reads it by its path: S3 through Hadoop's S3A, everything else as it is."""
    return f"s3a://{location.partition('://')[2]}" if is_s3(location) else location


def engines_read(text: str) -> bool:
    """Whether Spark reaches a place as metadata of a table spells it, letter by letter."""
    return not is_azure(text) or is_driver_address(text)


def read_path(location: str) -> str:
    """A location as Spark's readers of files take it: what Hadoop would take for a pattern is escaped.

    https://hadoop.apache.org/docs/stable/api/org/apache/hadoop/fs/FileSystem.html#globStatus-org.apache.hadoop.fs.Path-
    """
    return _PATTERN.sub(r"\\\g<0>", engine_path(location))


def location_of(text: str) -> Location:
    """A path, `file:` URI or S3 URI as what it means.

    Only `file:` URIs are percent-decoded (RFC 8089); a plain path is taken as it is.

    Raises:
        EstateError: another scheme, a `file:` URI of another host, or no name of a bucket.
    """
    if is_s3(text):
        return s3_location(text)
    if text.startswith("file:"):
        parts = urlsplit(text)
        if parts.netloc not in ("", "localhost"):
            raise EstateError("a file: URI names another host", where=text, todo="use a path of this machine")
        return Path(unquote(parts.path))
    if "://" in text:
        raise EstateError(
            f"`{text.split('://', 1)[0]}` locations are not read by discovery of tables",
            where=text,
            todo="declare a local path here, and buckets under `archives` or `object_stores`",
        )
    return Path(text)


def local_path(text: str) -> Path:
    """A path or `file:` URI as a path. Raises EstateError as `location_of`, and for places in S3."""
    place = location_of(text)
    if isinstance(place, S3Location):
        raise EstateError(
            "a place in `s3` is given where only a path of this machine can be",
            where=text,
            todo="in S3 there can be `roots`, declared tables and `archives`",
        )
    return place


def placed(text: str) -> Path:
    """A file of a table on this machine, as its metadata names it. Escapes in it are letters of the file's own name.

    Raises:
        EstateError: it lies elsewhere.
    """
    return Path(text.removeprefix("file:")) if re.match(r"(file:)?/(//)?[^/]", text) else local_path(text)


def names_place(name: str, table: str | None, *places: str) -> bool:
    """Whether people who write `name` mean a table or place: the one rule for plans, holds and sweeps.

    Tables without regard to case, as Spark names them; topics by name; places whole, or by their last parts.
    """
    if table is not None and table.lower() == name.lower():
        return True
    return any(_names_place(one.rstrip("/"), places) for one in without_file_scheme(name))


def _names_place(wanted: str, places: Sequence[str]) -> bool:
    if wanted in places:
        return True
    if "/" not in wanted:
        return False
    return any(p == wanted or p.endswith("/" + wanted.lstrip("./")) for p in (place.rstrip("/") for place in places))


def without_file_scheme(name: str) -> tuple[str, ...]:
    """What people name by a `file:` URI, as paths of this machine: with its escapes read, as standards have it, and
    letter by letter, as engines write it. Any other name as it is."""
    found = _FILE.fullmatch(name)
    return tuple(dict.fromkeys((unquote(found[1]), found[1]))) if found else (name,)


def below(folder: str, places: Sequence[str]) -> Sequence[str]:
    """Of places in order, those inside a folder."""
    first = folder.rstrip("/") + "/"
    return places[bisect_left(places, first) : bisect_left(places, first[:-1] + "0")]  # `0` comes after `/`
