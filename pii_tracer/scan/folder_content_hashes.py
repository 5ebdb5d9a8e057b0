"""Size and SHA-256 of each file of a folder, to compare the folder before and after a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pii_tracer.model.errors import ScanError
from pii_tracer.scan.folder_scan import file_digest, walk_files


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
        try:
            digest, size = file_digest(path)
        except OSError as error:
            raise ScanError(
                f"a file cannot be read: {error.strerror or type(error).__name__}",
                where=str(path),
                todo="grant the permission to read the file",
            ) from None
        result.append(Fingerprint(name, size, digest))
    return tuple(result)
