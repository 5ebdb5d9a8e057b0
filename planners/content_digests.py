"""Digests of contents among the parameters of steps. A plan has keyed ones: who reads it cannot check a guess of what
is in a short file. Steps compare what they find with `MarkKey.of_content`."""

from __future__ import annotations

from typing import Any

from pii_tracer.model.waivers import MarkKey

_DIGESTS = frozenset({"sha256", "checksum", "etag", "tree_hash"})
"""Parameters with digests that stores make of contents: S3's ETag of a small object is its MD5."""
_NAMES = ("key", "path", "id")
"""Parameters that say, beside a digest, of what it is."""


def keyed(parameters: dict[str, Any], marks: MarkKey) -> dict[str, Any]:
    """The parameters with keyed digests in place of plain ones.

    Raises:
        KeyError: nothing says of what a digest is.
    """
    return {name: _keyed(name, value, parameters, marks) for name, value in parameters.items()}


def _keyed(name: str, value: Any, beside: dict[str, Any], marks: MarkKey) -> Any:
    if isinstance(value, dict):
        return keyed(value, marks)
    if isinstance(value, (list, tuple)):
        return [_keyed("", item, {}, marks) for item in value]
    if name in _DIGESTS and value:
        whose = next((beside[known] for known in _NAMES if known in beside), None)
        if whose is None:
            raise KeyError(name)
        return marks.of_content(whose, value)
    return value
