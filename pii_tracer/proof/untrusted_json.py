"""Files from somebody else: read up to a limit, as JSON without duplicate keys, or refused."""

from __future__ import annotations

import errno
import stat
from pathlib import Path
from typing import Any

from pii_tracer.model.canonical_json import canonical
from pii_tracer.model.errors import PiiTracerError, ProofError
from pii_tracer.review.dsse import strict_json

MAX_BYTES = 2**30
"""No file of a proof is larger: two million leaves fit."""
MAX_LINE_BYTES = 2**20
MAX_SMALL_BYTES = 2**24
"""Of a file that is one small object: an object proof, a time stamp, a key list."""


def read_limited(path: Path, limit: int = MAX_BYTES) -> bytes:
    """A file's bytes.

    Raises:
        OSError: it cannot be read, or is no file (a pipe would never end).
        ProofError: it is larger than `limit`; nothing was read.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a file", str(path))
    size = found.st_size
    if size > limit:
        raise ProofError(
            f"the file is too large for its kind ({size} bytes)", where=str(path), todo="get the right file"
        )
    with path.open("rb") as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise ProofError("the file was changed while it was read", where=str(path), todo="get the right file")
    return data


def json_object(data: bytes) -> dict[str, Any]:
    """A JSON object without duplicate keys, NaN or endless nesting.

    Raises:
        ValueError: otherwise.
    """
    try:
        found = strict_json(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def canonical_object(line: bytes) -> dict[str, Any] | None:
    """The object of a line in canonical JSON; None where the line is anything else."""
    if len(line) > MAX_LINE_BYTES:
        return None
    try:
        found = json_object(line)
        return found if canonical(found) == line else None
    except (ValueError, RecursionError, PiiTracerError):
        return None


def split_lines(data: bytes) -> list[bytes]:
    """Lines without their newlines. A last line that lacks its newline is a line too; `whole` tells."""
    return data.split(b"\n")[:-1] if data.endswith(b"\n") else data.split(b"\n")


def whole(data: bytes) -> bool:
    """Whether the last line ends with its newline."""
    return data.endswith(b"\n")
