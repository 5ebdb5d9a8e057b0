"""Which files an action of Delta's log means: paths are URI references, and deletion vectors have names of their own.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Add File and Remove File", "Deletion Vectors". What cannot
be told is an error: a live file that is taken for nobody's is swept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote
from uuid import UUID

from pii_tracer.model.errors import EstateError

LOG = "_delta_log"
FILE_ACTIONS = ("add", "remove", "cdc")
COMMIT = re.compile(r"(\d{20})\.json")
Action = Mapping[str, Any]
"""What stands under `add`, `remove` or `cdc`."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
"""RFC 2396, 3.1: `day=a:b` has none."""
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_UUID_LENGTH = 20
"""Characters of a UUID in Z85 (https://rfc.zeromq.org/spec/32/)."""


def decoded(written: str) -> tuple[str, bool]:
    """A path of the log without its escapes, and whether it is told in full; else it lies below the table's folder.

    `file:` URIs become plain paths; others keep their scheme. What a path looks like is seen before it is decoded.

    Raises:
        EstateError: a scheme that has no places, or a `file:` URI of another host.
        ValueError: escapes that are no UTF-8.
    """
    text = unquote(written, errors="strict")
    scheme = _SCHEME.match(written)
    if scheme is None:
        return text, written.startswith("/")
    rest = written[scheme.end() :]
    if scheme[1].lower() == "file":
        host, slash, path = rest.removeprefix("//").partition("/") if rest.startswith("//") else ("", "", rest)
        if host not in ("", "localhost"):
            raise EstateError(
                "the log references a file on a different host",
                todo="correct the path in the table's log, or copy the table with its files",
            )
        return unquote(slash + path, errors="strict"), True
    if not rest.startswith("//"):
        raise EstateError(
            "the log references a file with a scheme that has no place in the estate file",
            todo="correct the path in the table's log, or copy the table with its files",
        )
    return text, True


def vector_of(action: Action) -> Action | None:
    """The deletion vector of a file; None where it has none."""
    vector = action.get("deletionVector")
    return vector if vector and vector.get("storageType") else None


def logical_file(action: Action) -> tuple[str, str]:
    """What a file is known by: its path as it is written, and its vector's `uniqueId` ("Derived Fields")."""
    vector = vector_of(action)
    if vector is None:
        return action["path"], ""
    offset = vector.get("offset")
    return action["path"], f"{vector['storageType']}{vector['pathOrInlineDv']}{'' if offset is None else f'@{offset}'}"


def vector_path(action: Action) -> str | None:
    """Where the deletion vector of a file lies, written as the log writes paths; None where it has none, or inline.

    Raises:
        ValueError: a vector of a kind that the protocol does not know.
    """
    vector = vector_of(action)
    if vector is None or vector["storageType"] == "i":
        return None
    text = str(vector["pathOrInlineDv"])
    if vector["storageType"] == "p":
        return text
    if vector["storageType"] != "u":
        raise ValueError("a deletion vector of an unknown kind")
    prefix, name = text[:-_UUID_LENGTH], f"deletion_vector_{_uuid(text[-_UUID_LENGTH:])}.bin"
    return f"{quote(prefix)}/{name}" if prefix else name


def written_by(action: Action) -> list[str]:
    """The paths of all files that an action names. Raises ValueError as `vector_path`."""
    vector = vector_path(action)
    return [action["path"], vector] if vector else [action["path"]]


def _uuid(text: str) -> UUID:
    if len(text) != _UUID_LENGTH:
        raise ValueError("a deletion vector with an incomplete UUID")
    words = []
    for start in range(0, _UUID_LENGTH, 5):
        value = 0
        for character in text[start : start + 5]:
            value = value * 85 + _Z85.index(character)
        words.append(f"{value:08x}")
    return UUID(hex="".join(words))  # refuses a word of more than 32 bits
