"""Iceberg's metadata files as JSON, plain or gzipped."""

from __future__ import annotations

import gzip
import json
from typing import Any

METADATA_ENDS = (".metadata.json", ".metadata.json.gz")
"""How the names of metadata files end: Java once put the codec last."""


def metadata_json(data: bytes) -> Any:
    """What a metadata file says. Raises as `unzipped`, and ValueError."""
    return json.loads(unzipped(data))


def unzipped(data: bytes) -> bytes:
    """A metadata file's JSON; its bytes tell whether it is compressed, not its name.

    https://iceberg.apache.org/spec/#naming-for-gzip-compressed-metadata-json-files

    Raises:
        OSError, EOFError: damaged.
    """
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
