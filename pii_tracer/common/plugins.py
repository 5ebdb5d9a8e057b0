"""Adapters that installed packages register by entry points, this package's own among them.

https://packaging.python.org/en/latest/specifications/entry-points/
"""

from __future__ import annotations

import importlib.metadata
from functools import cache
from typing import Any


@cache
def names(group: str) -> tuple[str, ...]:
    """The names that are registered in a group, sorted. Nothing is imported."""
    return tuple(sorted({entry.name for entry in importlib.metadata.entry_points(group=group)}))


@cache
def load(group: str, name: str) -> Any:
    """What is registered under a name, imported; None where nothing is.

    Raises:
        ValueError: two installed packages register the name.
    """
    found = {entry.value: entry for entry in importlib.metadata.entry_points(group=group, name=name)}
    if len(found) > 1:
        raise ValueError(f"{group}: `{name}` is registered by {' and '.join(sorted(found))}; uninstall one of them")
    return next(iter(found.values())).load() if found else None
