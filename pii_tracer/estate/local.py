"""Locations as catalogs, logs and people write them, as paths of this machine."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from pii_tracer.errors import EstateError


def local_path(text: str) -> Path:
    """A path or `file:` URI as a path. Only URIs are percent-decoded (RFC 8089); a plain path is taken as it is.

    Raises:
        EstateError: another scheme (`s3://…`), or a `file:` URI of another host.
    """
    if text.startswith("file:"):
        parts = urlsplit(text)
        if parts.netloc not in ("", "localhost"):
            raise EstateError("a file: URI names another host", where=text, todo="use a path of this machine")
        return Path(unquote(parts.path))
    if "://" in text:
        raise EstateError(
            f"`{text.split('://', 1)[0]}` locations are not read by discovery of tables",
            where=text,
            todo="declare a local path here, and buckets under `archives`",
        )
    return Path(text)
