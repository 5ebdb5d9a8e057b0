"""Verification by bytes: every file of a copy is decoded and searched, whatever the executors said."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO, Protocol

from pii_tracer.plan import Copy
from pii_tracer.scan.forms import Patterns
from pii_tracer.scan.hits import FileScan, Hit
from pii_tracer.scan.tree import scan_bytes, scan_tree
from pii_tracer.verify.verdict import ByteVerdict, Residue, SameDigits, ScannedFile

_HUDI_KEYS = {
    "_hoodie_record_key": "hoodie.table.recordkey.fields",
    "_hoodie_partition_path": "hoodie.table.partition.fields",
}


class ObjectVersionBytes(Protocol):
    """One version of one object, as far as its bytes can be had (`pii_tracer.estate.s3_versions.VersionBytes`)."""

    @property
    def key(self) -> str:
        """Object key."""

    @property
    def version_id(self) -> str:
        """Version id."""

    @property
    def evidence(self) -> str:
        """`bytes`, `known`, `marker` or `unreadable`."""

    @property
    def reason(self) -> str | None:
        """Why it is unreadable."""

    @property
    def sha256(self) -> str | None:
        """Hex digest of a known version."""

    @property
    def size(self) -> int:
        """Size in bytes."""

    def open(self) -> BinaryIO:
        """The bytes."""


def verify_bytes(
    copy: Copy, patterns: Patterns, root: Path, on_file: Callable[[FileScan], None] | None = None
) -> ByteVerdict:
    """Search every file under `root`, the folder that holds everything of the copy.

    Weak numbers in columns that lineage proves to mean something else (`copy.other_keys`) are reported apart.

    Raises:
        ScanError: the folder is missing or cannot be listed.
    """
    scanned = scan_tree(root, patterns, on_file)
    return judge(copy, str(root), scanned.files, _other_columns(copy, root))


def verify_objects(copy: Copy, patterns: Patterns, versions: Iterable[ObjectVersionBytes]) -> ByteVerdict:
    """Search every version of every object of a copy. What cannot be read is unverified, never clean.

    A version that is archived but known by S3's own SHA-256 to be bytes this run wrote counts as searched: those bytes
    were searched before they were written.

    Raises:
        EstateError: reading a version was refused.
    """
    files: list[FileScan] = []
    for version in versions:
        name = f"{patterns.mask(version.key)}?versionId={version.version_id}"
        if version.evidence == "marker":
            result = scan_bytes(version.key, b"", patterns).model_copy(update={"decoded_as": "delete marker"})
        elif version.evidence == "bytes":
            with version.open() as stream:
                result = scan_bytes(version.key, stream.read(), patterns)
        elif version.evidence == "known" and version.sha256:
            known = scan_bytes(version.key, b"", patterns)
            result = known.model_copy(
                update={"sha256": version.sha256, "size": version.size, "decoded_as": "known by its SHA-256"}
            )
        else:
            reason = version.reason or "its bytes cannot be read"
            result = FileScan(path=name, size=version.size, sha256="", decoded_as="", unread=(reason,))
        files.append(result.model_copy(update={"path": name}))
    return judge(copy, copy.location, tuple(files), frozenset(copy.other_keys))


def judge(copy: Copy, root: str, files: tuple[FileScan, ...], others: frozenset[str]) -> ByteVerdict:
    """Sort hits into residue and same digits. others: columns in which a weak number means something else."""
    residue: dict[tuple[str, str, str], Residue] = {}
    digits: dict[str, list[tuple[str, int]]] = {}
    for file in files:
        for hit in file.hits:
            if hit.weak and (column := _means_other(hit, others)):
                digits.setdefault(column, []).append((file.path, hit.count))
                continue
            where = f"{hit.where}: {hit.column}" if hit.column else hit.where
            residue[(file.path, where, hit.form)] = Residue(
                copy_id=copy.id, file=file.path, where=where, form=hit.form.value
            )
    return ByteVerdict(
        copy_id=copy.id,
        root=root,
        files=tuple(
            ScannedFile(path=f.path, size=f.size, sha256=f.sha256, decoded_as=f.decoded_as) for f in files if f.sha256
        ),
        residue=tuple(residue[key] for key in sorted(residue)),
        unverified=tuple(f"{file.path}: {reason}" for file in files for reason in file.unread),
        same_digits=tuple(
            SameDigits(copy_id=copy.id, column=c, files=len({p for p, _ in seen}), count=sum(n for _, n in seen))
            for c, seen in sorted(digits.items())
        ),
    )


def _means_other(hit: Hit, others: frozenset[str]) -> str | None:
    """The column of `others` that the hit stands in, itself or a member of it. No column known: no excuse."""
    if hit.column is None:
        return None
    return next((c for c in sorted(others) if hit.column == c or hit.column.startswith((c + ".", c + "["))), None)


def _other_columns(copy: Copy, root: Path) -> frozenset[str]:
    """`copy.other_keys`, and Hudi's own key columns where all they are made of is among them."""
    others = set(copy.other_keys)
    properties = _hudi_properties(root)
    for column, key in _HUDI_KEYS.items():
        fields = [name.strip() for name in properties.get(key, "").split(",") if name.strip()]
        if fields and all(name in copy.other_keys for name in fields):
            others.add(column)
    return frozenset(others)


def _hudi_properties(root: Path) -> dict[str, str]:
    try:
        text = (root / ".hoodie" / "hoodie.properties").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, value in pairs}
