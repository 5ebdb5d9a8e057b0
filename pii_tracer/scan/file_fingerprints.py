"""Size and SHA-256 of files, to recognise copies of them elsewhere."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pii_tracer.model.errors import ScanError
from pii_tracer.scan.folder_scan import walk_files

_BLOCK = 1024 * 1024


@dataclass(frozen=True)
class Fingerprint:
    """A file's relative path, size in bytes, and SHA-256 in hex."""

    path: str
    size: int
    sha256: str


def fingerprint(root: Path) -> tuple[Fingerprint, ...]:
    """Fingerprints of all regular files under a folder, hidden ones included, sorted by path.

    Raises:
        ScanError: the folder or a file in it cannot be read.
    """
    result = []
    for name, path in walk_files(root):
        if path.is_symlink() or not path.is_file():
            continue
        digest, size = hashlib.sha256(), 0
        try:
            with path.open("rb") as stream:
                while block := stream.read(_BLOCK):
                    digest.update(block)
                    size += len(block)
        except OSError as error:
            raise ScanError(
                f"a file cannot be read: {error.strerror}", where=str(path), todo="check its permissions"
            ) from None
        result.append(Fingerprint(name, size, digest.hexdigest()))
    return tuple(result)
