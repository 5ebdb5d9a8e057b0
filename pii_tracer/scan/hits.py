"""What a scan found, without a single value: key set, form, place, count."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from pydantic import Field

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.datasets import Frozen


class Form(StrEnum):
    """The shape in which a value was found.

    ENCODED: in another alphabet or code page (base32, base85, uuencode, yEnc, UTF-7, EBCDIC), or as a list of numbers.
    ESCAPED: with other escapes, doubled quotes, or other blanks, quotes or dashes than the value has. WRAPPED: over the
    end of a line.
    """

    TEXT = "text"
    NUMBER = "number"
    URL = "url-encoded"
    JSON = "json-escaped"
    HTML = "html-escaped"
    ESCAPED = "escaped"
    WRAPPED = "wrapped"
    UTF16 = "utf-16"
    UTF32 = "utf-32"
    ENCODED = "encoded"
    BASE64 = "base64"
    HEX = "hex"
    UUID = "uuid"
    MD5 = "md5"
    SHA1 = "sha1"
    SHA224 = "sha224"
    SHA256 = "sha256"
    SHA384 = "sha384"
    SHA512 = "sha512"
    PREFIX = "prefix"


ROWS = frozenset({"data", "text", "log block data", "log block hfile"})
"""Kinds of place (`Hit.where`) that are rows of people."""

STATE = "streaming state"
"""`where` of a hit in the state of a streaming query."""


_OF = "\x1f"
"""Between the name of a key set and the person whose part of it is searched for."""


def name_for(key_set: str, person: str) -> str:
    """What the part of a key set is called that holds the values of one person (keyed reference)."""
    return f"{key_set}{_OF}{person}"


def key_set_in(name: str) -> str:
    """The key set that a name is of, the whole one or a person's part of it."""
    return name.partition(_OF)[0]


def person_in(name: str) -> str | None:
    """The person whose part of a key set a name is of; None where it is of the whole."""
    return name.partition(_OF)[2] or None


_SHORT = "\x1e"
"""Behind the name of a key set: the part of it that holds short numbers."""


def name_for_short(key_set: str) -> str:
    """What the short numbers of a key set are called, where other values are in it, too."""
    return f"{key_set}{_SHORT}"


def without_short(name: str) -> str:
    """The key set, or a person's part of it, whose short numbers a name may be of."""
    return name.removesuffix(_SHORT)


class Described(Frozen):
    """The data file that a bound describes: its path as the metadata writes it (never one with a value in it), and its
    size in bytes.
    """

    path: str
    size: int


class Hit(Frozen):
    """One key set seen in one place of a file.

    where: kind of place (`data`, `statistics`, `key-value metadata`, `raw bytes`, `file path`, …).
    column: label as `MatchTerm.label` writes it (`payer.phone`, `payload.$.user_id`), None where no column is known.
    weak: the value is a short number, so the hit needs lineage to mean anything (see `KeySet.weak`).
    count: occurrences, not persons.
    of: for a cut bound, the file that it describes, where the metadata tells.
    """

    key_set: str
    form: Form
    where: str
    column: str | None = None
    weak: bool = False
    count: int = 1
    of: Described | None = None


def column_of(hit: Hit, columns: Iterable[str]) -> str | None:
    """The column of these that the hit stands in, itself or a member of it. No column known: no excuse."""
    return stands_in(hit.column, columns)


def stands_in(label: str | None, columns: Iterable[str]) -> str | None:
    """The column of these that a label names, or a member of; None where no column is known."""
    if label is None:
        return None
    return next((c for c in sorted(columns) if label == c or label.startswith((c + ".", c + "["))), None)


class FileScan(Frozen):
    """One file (or object), decoded and searched.

    path: relative to the scanned root, with any value in it masked by the name of its key set.
    sha256: hex, of the bytes that were searched; empty when they could not be read.
    blake3: hex, of a local file's bytes, by which a later search knows them again; empty of an object of a store.
    decoded_as: formats from the outside in, e.g. `gzip > csv`.
    left: cells that are nothing but a key, in columns that hold another system's numbers by the owner's word. No hits.
    unread: why the file, or a part of it, could not be searched. A file with a reason here is never clean.
    of_bytes: of an object whose store tells one version of it from another: what its bytes alone show, without its name
    and what stands beside them. Never written down with the rest.
    """

    path: str
    size: int
    sha256: str
    blake3: str = ""
    decoded_as: str
    hits: tuple[Hit, ...] = ()
    left: tuple[Hit, ...] = ()
    unread: tuple[str, ...] = ()
    of_bytes: FileScan | None = Field(default=None, exclude=True, repr=False)

    @property
    def strong(self) -> tuple[Hit, ...]:
        """Hits that are the person for certain."""
        return tuple(hit for hit in self.hits if not hit.weak)

    @property
    def weak(self) -> tuple[Hit, ...]:
        """Hits of short numbers, which can mean something else."""
        return tuple(hit for hit in self.hits if hit.weak)


def short_numbers(files: Iterable[FileScan]) -> dict[tuple[str, str], int]:
    """How many short numbers stand where, by key set and place (`ShortNumbers`).

    In a column only its rows count: what formats write beside them changes when a file is written again.
    """
    found: dict[tuple[str, str], int] = {}
    for hit in (hit for file in files for hit in file.weak):
        at = key_set_in(hit.key_set), hit.column or hit.where
        found[at] = found.get(at, 0) + (hit.count if hit.column is None or hit.where in ROWS else 0)
    return found


class Reading(Frozen):
    """How files came to be searched.

    now: so many were decoded. before: so many were not, since an earlier search saw the same bytes. by_store: so many
    of those were not even read: their store says that they are the same. again: so many known ones were read again as a
    sample, and compared with what is known of them. oldest: when the first bytes were read that were not read or not
    decoded now. shaped: so many of `now` were decoded but for column chunks in whose shape none of the values fits.
    chunks: column chunks that were decoded where shapes are kept. left: so many were not. drawn: of these, so many were
    decoded and compared all the same, as a sample. in_parts: so many of `shaped` and `before` are objects of which some
    pages were not even read when they were searched for these values: their store says that they are the same.
    unfetched: so many of `left` have such pages. refetched: so many of `drawn` are of these.
    """

    now: int = 0
    before: int = 0
    by_store: int = 0
    again: int = 0
    oldest: datetime | None = None
    shaped: int = 0
    chunks: int = 0
    left: int = 0
    drawn: int = 0
    in_parts: int = 0
    unfetched: int = 0
    refetched: int = 0

    def and_(self, other: Reading) -> Reading:
        """Both together."""
        times = [time for time in (self.oldest, other.oldest) if time is not None]
        return Reading(
            now=self.now + other.now,
            before=self.before + other.before,
            by_store=self.by_store + other.by_store,
            again=self.again + other.again,
            oldest=min(times, default=None),
            shaped=self.shaped + other.shaped,
            chunks=self.chunks + other.chunks,
            left=self.left + other.left,
            drawn=self.drawn + other.drawn,
            in_parts=self.in_parts + other.in_parts,
            unfetched=self.unfetched + other.unfetched,
            refetched=self.refetched + other.refetched,
        )

    @property
    def is_whole(self) -> bool:
        """Whether everything was decoded."""
        return not (self.before or self.left)


class TreeScan(Frozen):
    """Every file under one folder, sorted by path."""

    root: str
    files: tuple[FileScan, ...]

    @property
    def bytes(self) -> int:
        """Total size of the files searched."""
        return sum(file.size for file in self.files)

    @property
    def with_person(self) -> tuple[FileScan, ...]:
        """Files with at least one strong hit."""
        return tuple(file for file in self.files if file.strong)

    @property
    def strong(self) -> frozenset[str]:
        """Names of the key sets seen for certain."""
        return frozenset(hit.key_set for file in self.files for hit in file.strong)

    @property
    def weak(self) -> frozenset[str]:
        """Columns (or `text`) in which only a short number was seen."""
        return frozenset(hit.column or "text" for file in self.files for hit in file.weak)

    @property
    def unread(self) -> tuple[str, ...]:
        """`path: reason` for everything that could not be searched."""
        return tuple(f"{file.path}: {reason}" for file in self.files for reason in file.unread)
