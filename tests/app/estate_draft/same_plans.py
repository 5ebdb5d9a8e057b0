"""Two plans of one lake, of an estate file by hand and of a drafted one: they have to say the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

_OWN = frozenset(
    {
        *("plan_id", "created_at", "graph_digest", "inventory_digest", "subjects_digest", "estate_digest"),
        *("etag", "checksum", "sha256", "seen"),
    }
)
"""What a plan has of its moment, of the folder of its estate file, and of that estate's own key: marks are made with it."""
_MARKS = frozenset({"files", "unread", "listed", "of"})
"""Of gaps and their waivers, made with the estate's key."""
_TIMES = frozenset({"earliest_start", "earliest_finish", "latest_start", "finish", "slack_days", "recheck_on"})


def compared(plan: Mapping[str, Any], *, at_one_time: bool = True) -> dict[str, Any]:
    """All that a plan says but for what is its own: each step with its parameters, each copy, gap, and schedule.

    at_one_time: both were made for one moment.
    """
    made: dict[str, Any] = _without(plan, _OWN if at_one_time else _OWN | _TIMES)
    made["gaps"] = _without(made["gaps"], _MARKS)
    made["requests"] = _without(made["requests"], {"subject"})
    return made


def differences(one: Any, other: Any, way: str = "") -> list[str]:
    """Where two plans say something else, for whoever reads the failure of a test."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        names = sorted({*one, *other})
        return [told for name in names for told in differences(one.get(name), other.get(name), f"{way}.{name}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [
            told for n, pair in enumerate(zip(one, other, strict=True)) for told in differences(*pair, f"{way}[{n}]")
        ]
    return [] if one == other else [f"{way}: {one!r} and {other!r}"]


def _without(said: Any, names: Collection[str]) -> Any:
    """What is said without some names, wherever they stand."""
    if isinstance(said, Mapping):
        return {name: _without(inner, names) for name, inner in said.items() if name not in names}
    return [_without(inner, names) for inner in said] if isinstance(said, list | tuple) else said
