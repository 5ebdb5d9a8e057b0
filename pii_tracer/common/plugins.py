"""Adapters that installed packages register by entry points, this package's own among them.

https://packaging.python.org/en/latest/specifications/entry-points/
"""

from __future__ import annotations

import importlib.metadata
from functools import cache
from typing import Any, Protocol


class Refusal(Protocol):
    """A class of errors that say what happened and what to do (`pii_tracer.model.errors`)."""

    def __call__(self, what: str, /, *, todo: str) -> Exception:
        """The error."""


@cache
def registered(group: str) -> tuple[importlib.metadata.EntryPoint, ...]:
    """What is registered in a group. It is asked once: each question reads the metadata of every installed package."""
    return tuple(importlib.metadata.entry_points(group=group))


@cache
def names(group: str) -> tuple[str, ...]:
    """The names that are registered in a group, sorted. Nothing is imported."""
    return tuple(sorted({entry.name for entry in registered(group)}))


@cache
def load(group: str, name: str) -> Any:
    """What is registered under a name, imported; None where nothing is.

    Raises:
        ValueError: two installed packages register the name.
    """
    found = {entry.value: entry for entry in registered(group) if entry.name == name}
    if len(found) > 1:
        raise ValueError(f"{group}: `{name}` is registered by {' and '.join(sorted(found))}; uninstall one of them")
    return next(iter(found.values())).load() if found else None


def required(group: str, name: str, lacks: str, refusal: Refusal) -> Any:
    """What is registered under a name, imported.

    lacks: what no installed package does where nothing is, as it goes on behind `no installed package`.

    Raises:
        refusal: nothing is registered. It names what is.
        ValueError: two installed packages register the name.
    """
    made = load(group, name)
    if made is None:
        raise refusal(
            f"no installed package {lacks}",
            todo=f"install the package that brings it; known are {', '.join(names(group)) or 'none'}",
        )
    return made
