"""What the scan at planning saw, in the planner's terms. Filled by the command line from `pii_tracer.scan`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.stores.object_places.version_types import StoredVersion
from pii_tracer.model.datasets import ShortNumbers
from pii_tracer.scan.hits import ROWS

PATH = "file path"
"""`Hit.where` of a value in a file's name, or in that of a folder above it."""


@dataclass(frozen=True)
class Place:
    """Where in one file a value of a key set stands among the rows.

    file: as the scan names it, with any value masked. column: label as `Hit.column`; None where none is known. of_path:
    it stands in the file's name, not in its rows. weak: it is a short number.
    """

    file: str
    key_set: str
    column: str | None
    of_path: bool = False
    weak: bool = False


@dataclass(frozen=True)
class FileHashes:
    """SHA-256 (hex) of files of a place: holding a value of the persons that cannot be mistaken, and not read, or only
    in part. A plan has only marks of them (`pii_tracer.model.waivers.MarkKey`).
    """

    holding: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()


NO_HASHES = FileHashes()


@dataclass(frozen=True)
class Seen:
    """One file of a location that holds a value of the persons, wherever in it.

    file: as the scan names it, relative to the location, any value in it masked. places: kinds of place
    (`Hit.where`) in which one stands.
    """

    file: str
    places: frozenset[str]

    @property
    def in_rows(self) -> bool:
        """Whether a value stands among the file's rows, so that it is written again or goes with them."""
        return not self.places.isdisjoint(ROWS)


@dataclass(frozen=True)
class OthersRows:
    """Rows that are not the persons' and hold a value of theirs in a column.

    column: label as `Hit.column`. more: there may be more rows than were counted. offers: the part of the estate file
    that can say what the column is, by what stands in it; None where its values tell neither. persons: references of
    those whose values were met. dropped: the table has the column no more, and files of others keep it. key: the plan
    finds rows by the column, and the value is written there as no match compares it.
    """

    column: str
    rows: int
    more: bool = False
    offers: Literal["other_keys", "not_keys"] | None = None
    persons: frozenset[str] = frozenset()
    dropped: bool = False
    key: bool = False


@dataclass(frozen=True)
class Padded:
    """Rows in which a key column has a value of a key set with blanks behind it. column: as `MatchTerm.column`.

    alone: no row has one without blanks.
    """

    key_set: str
    column: str
    rows: int
    alone: bool


@dataclass(frozen=True)
class Contradicted:
    """Rows that a match finds and that may be somebody else's, by what stands in a column of them.

    column: as `MatchTerm.label`. by: the only identifier or the key that finds these rows.
    """

    column: str
    by: str
    rows: int


@dataclass(frozen=True)
class Digits:
    """Where in a location a short number of a key set was seen.

    column: label as `Hit.column`; None where none is known. where: as `Hit.where`.
    """

    key_set: str
    column: str | None
    where: str

    @property
    def place(self) -> str:
        """What people are told: the column, or the kind of place."""
        return self.column or self.where


class Why(StrEnum):
    """Why a short number that no lineage explains is taken for the persons' key."""

    NAME = "named as the key is"
    VALUES = "its values are keys of the source"
    UNREAD = "no readable values there to compare them with"


@dataclass(frozen=True)
class KeyDigits:
    """A short number that is taken for the persons' key. place: as `Digits.place`."""

    key_set: str
    place: str
    why: Why


@dataclass(frozen=True)
class TellingText:
    """A kind of place in a table's own description that goes on holding the persons.

    certain: a value that cannot be mistaken stands there. digits: short numbers that do, by key set and column; None
    where no column is known. texts: SHA-256 of the single texts or bounds with a value, as `FileHashes`.
    """

    place: str
    certain: bool
    digits: frozenset[tuple[str, str | None]] = frozenset()
    texts: frozenset[str] = frozenset()


@dataclass(frozen=True)
class CatalogEvidence:
    """What a catalog itself keeps of one table or namespace. title: as it may be shown. places: kinds of text in which
    the persons stand; unread: those that could not be read, with the reason. remedy: how an owner takes a value out.
    texts: SHA-256 of the single texts or bounds with a value, as `FileHashes`.
    """

    title: str
    places: tuple[str, ...]
    unread: tuple[str, ...]
    remedy: str
    texts: frozenset[str] = frozenset()


@dataclass(frozen=True)
class JobEvidence:
    """A job whose recorded statements name the persons. job: as it may be shown; empty for names in the lineage, which
    name them. places: where they are recorded. texts: SHA-256 of these statements or names, as `FileHashes`.
    """

    job: str
    places: tuple[str, ...]
    texts: frozenset[str]


@dataclass(frozen=True)
class Evidence:
    """One location, every file of it decoded.

    strong: names of key sets whose unmistakable values were found. weak: columns (or `text`) in which only a short
    number was found; digits: the same, by key set and column. unread: files that could not be decoded, with the reason.
    padded: what stands in key columns with blanks behind it, as CHAR has it, where the rows were read. contradicted:
    rows that the match finds and that speak of somebody else. strange_keys: columns that the estate file declares as
    the key, and in which most values are no key of the source; keyless: those with no number, where each key is one.
    places: where among the rows of files values stand, of short numbers those in known columns. seen: every file with a
    value that cannot be mistaken. numbers: where among the rows of files short numbers stand, in known columns or not.
    Both of a store with versions are of live ones. compared: the rows of every file were compared with keys of several
    columns. short: how many short numbers stand where.
    """

    files: int
    files_with_person: int
    bytes: int
    strong: frozenset[str] = frozenset()
    weak: frozenset[str] = frozenset()
    unread: tuple[str, ...] = ()
    rows: int | None = None
    places: frozenset[Place] = frozenset()
    digits: frozenset[Digits] = frozenset()
    padded: frozenset[Padded] = frozenset()
    contradicted: frozenset[Contradicted] = frozenset()
    strange_keys: frozenset[str] = frozenset()
    keyless: frozenset[str] = frozenset()
    seen: frozenset[Seen] = frozenset()
    numbers: frozenset[Place] = frozenset()
    compared: bool = False
    hashes: FileHashes = NO_HASHES
    short: tuple[ShortNumbers, ...] = ()

    @property
    def found(self) -> bool:
        """True when anything of the person was seen for certain."""
        return bool(self.strong)


@dataclass(frozen=True)
class BesideEvidence:
    """Current objects of one archive, by what stands beside their bytes (metadata, headers, tags).

    telling: how many hold an unmistakable value of the persons there. unread: how many could not be read, or not all
    of it; why: the most frequent reason.
    """

    telling: int = 0
    unread: int = 0
    why: str | None = None


@dataclass(frozen=True)
class TopicEvidence:
    """What reading a whole topic showed.

    records: all of them; of_person: those that are a person's by the declared fields. bytes: of those. strong: names
    of key sets found. elsewhere: places that hold the person in records that no declared field shows to be theirs.
    unread: kinds of trouble with records, and how many records have each. newest: latest timestamp in the topic;
    rolled_after: latest timestamp up to the person's last record, over all partitions with one. Milliseconds.
    until: one past the person's last record, by partition that has one; beside: how many others' records these
    partitions have. behind: consumer groups that `prefix` declares and that have not read up to `until`.
    """

    records: int
    of_person: int
    bytes: int
    strong: frozenset[str] = frozenset()
    elsewhere: frozenset[str] = frozenset()
    unread: tuple[str, ...] = ()
    newest: int | None = None
    rolled_after: int | None = None
    until: Mapping[int, int] = field(default_factory=dict)
    beside: int = 0
    behind: tuple[str, ...] = ()


@dataclass(frozen=True)
class LakefsEvidence:
    """What reading every object of a lakeFS repository showed.

    objects: those that could be read. bytes: of those with the person. persons: addresses that hold them and that some
    commit, or what is staged, names; strays: addresses that lie in the storage and nobody names. named: paths, branches
    and tags whose names hold a value, and metadata of objects that does. messages: commits that tell a value in their
    message or metadata. unread: objects that could not be searched, with the reason.
    """

    objects: int
    bytes: int
    persons: frozenset[str] = frozenset()
    strays: frozenset[str] = frozenset()
    named: int = 0
    messages: int = 0
    unread: tuple[str, ...] = ()


class RemoteKind(StrEnum):
    """What a file of a table is for, by its place."""

    DATA = "data files"
    METADATA = "metadata"
    LOG = "logs"


@dataclass(frozen=True)
class RemoteEvidence:
    """What reading every version of every object of a place in S3 showed.

    objects, versions: all with bytes that were listed. holding: versions with an unmistakable value of the persons, by
    kind; holders: how many objects they are of; noncurrent: how many of them no plain listing shows. places: columns,
    or kinds of place, in which such a value stands. named: objects whose names hold one, also where only a delete
    marker is left. digits: as places, of short numbers; in_digits: versions with nothing but such. short: whether a
    short number was looked for at all. unread: what could not be searched, with the reason; beyond: data files that
    metadata names outside of every place. undeclared: of a table there that needs a name, what to write.
    """

    objects: int
    versions: int
    holding: Mapping[RemoteKind, int]
    holders: int = 0
    noncurrent: int = 0
    places: tuple[str, ...] = ()
    named: int = 0
    digits: tuple[str, ...] = ()
    in_digits: int = 0
    short: bool = False
    unread: tuple[str, ...] = ()
    unread_versions: int = 0
    beyond: int = 0
    hashes: FileHashes = NO_HASHES
    undeclared: str | None = None

    @property
    def found(self) -> bool:
        """Whether anything of the persons was seen for certain."""
        return bool(self.holders or self.named)


@dataclass(frozen=True)
class PlaceEvidence:
    """What reading all of a place in HDFS, or in an object store, showed. Counted are files, or versions of objects.

    holders: those with an unmistakable value of the persons; places: columns, or kinds of place, in which it stands.
    in_digits: those with nothing but digits of a short number. unread: what could not be searched, with the reason.
    strong: key sets of such values. telling: those whose names hold one. bytes: of those with a value. unseen: a
    table's rows can be the persons' by a key of several columns, which no bytes show.

    state, evidence: of a table, or of a bare folder whose files steps can write again; stuck: why they cannot.
    """

    files: int
    holders: int = 0
    places: tuple[str, ...] = ()
    in_digits: int = 0
    unread: tuple[str, ...] = ()
    strong: frozenset[str] = frozenset()
    telling: int = 0
    bytes: int = 0
    unseen: bool = False
    state: TableState | None = None
    evidence: Evidence | None = None
    stuck: str | None = None
    hashes: FileHashes = NO_HASHES


@dataclass(frozen=True)
class HdfsRead:
    """A file in HDFS as it was read. checksum: HDFS's own. holds: a value of the persons was seen in it."""

    path: str
    size: int
    modified: int
    file_id: int
    checksum: str
    holds: bool


@dataclass(frozen=True)
class HdfsEvidence(PlaceEvidence):
    """short: whether a short number was looked for at all. beyond: files that metadata names outside of every place.

    named: paths that metadata in here names. touched: files with any value, and all data files of a folder, each as it
    was read. crowded: which quota has no room for the files that would be written.
    """

    crowded: str | None = None
    short: bool = False
    beyond: int = 0
    named: frozenset[str] = frozenset()
    touched: tuple[HdfsRead, ...] = ()


@dataclass(frozen=True)
class StoredRead:
    """A live or noncurrent version as it was read. sha256: of its bytes. holds: a value of the persons was seen in it.

    data: it is a data file of the folder, so that its rows are looked at whatever its bytes show.
    """

    version: StoredVersion
    sha256: str
    holds: bool
    data: bool = False


@dataclass(frozen=True)
class StoredEvidence(PlaceEvidence):
    """in_digits: live versions alone; old_in_digits: noncurrent ones. beside: versions whose metadata holds a value.

    read: every version that was read. held: what keeps the store from changing a version with a value, in words; lost:
    what of a live one a rewrite could not keep.
    """

    old_in_digits: int = 0
    beside: int = 0
    read: tuple[StoredRead, ...] = ()
    held: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
