"""Facts about a piece of work, for logs, traces and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Facts = Mapping[str, str | int | float]
"""By name: ids, kinds, counts. Never a person's value."""
NO_FACTS: Facts = {}


def counts_in(facts: Mapping[str, Any]) -> Facts:
    """The numbers of what something came to: counts alone, under their names."""
    return {name: value for name, value in facts.items() if type(value) is int}
