"""What a scan found, without a single value: key set, form, place, count."""

from __future__ import annotations

from pii_tracer.enums import StrEnum
from pii_tracer.model import Frozen


class Form(StrEnum):
    """The shape in which a value was found."""

    TEXT = "text"
    NUMBER = "number"
    URL = "url-encoded"
    JSON = "json-escaped"
    UTF16 = "utf-16"
    BASE64 = "base64"
    HEX = "hex"
    MD5 = "md5"
    SHA1 = "sha1"
    SHA256 = "sha256"
    PREFIX = "prefix"


class Hit(Frozen):
    """One key set seen in one place of a file.

    where: kind of place (`data`, `statistics`, `key-value metadata`, `raw bytes`, `file path`, …).
    column: label as `MatchTerm.label` writes it (`payer.phone`, `payload.$.user_id`), None where no column is known.
    weak: the key set is weak, so the hit needs lineage to mean anything.
    count: occurrences, not persons.
    """

    key_set: str
    form: Form
    where: str
    column: str | None = None
    weak: bool = False
    count: int = 1


class FileScan(Frozen):
    """One file (or object), decoded and searched.

    path: relative to the scanned root, with any value in it masked by the name of its key set.
    sha256: hex, of the bytes that were searched; empty when they could not be read.
    decoded_as: formats from the outside in, e.g. `gzip > csv`.
    unread: why the file, or a part of it, could not be searched. A file with a reason here is never clean.
    """

    path: str
    size: int
    sha256: str
    decoded_as: str
    hits: tuple[Hit, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def strong(self) -> tuple[Hit, ...]:
        """Hits that are the person for certain."""
        return tuple(hit for hit in self.hits if not hit.weak)

    @property
    def weak(self) -> tuple[Hit, ...]:
        """Hits of short numbers, which can mean something else."""
        return tuple(hit for hit in self.hits if hit.weak)


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
