"""Which search this is: the same code and decoders find the same in the same bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.metadata import entry_points, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Traversable

_DECODERS = ("pyarrow", "ahocorasick_rs", "numpy", "cramjam", "zstandard", "fastavro")
_ADDED = ("pii_tracer.file_kinds", "pii_tracer.table_traces")


@cache
def scanner_version() -> str:
    """The sources of pii-tracer, the versions of what it decodes with, and of the packages that add decoders."""
    digest = hashlib.sha256()
    for source in _sources(resources.files("pii_tracer")):
        digest.update(source.read_bytes())
    added = (point.dist for group in _ADDED for point in entry_points(group=group))
    packages = sorted({f"{dist.name}={dist.version}" for dist in added if dist is not None})
    return " ".join((digest.hexdigest(), *(version(name) for name in _DECODERS), *packages))


def _sources(folder: Traversable) -> Iterator[Traversable]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _sources(entry)
        elif entry.name.endswith(".py"):
            yield entry
