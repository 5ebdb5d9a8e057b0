"""Waivers files of tests: each waiver names what its gap shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from pii_tracer.model.plan import Gap
from pii_tracer.model.waivers import MarkKey, Waiver

MARKS = MarkKey(b"of tests")
WORD = {"who": "Asha Rao", "why": "looked at", "until": "2099-12-31T00:00:00+00:00"}


def write_waivers(path: Path, gaps: Iterable[Mapping[str, Any]], **more: Any) -> Path:
    """A waiver for each of some gaps of a plan file."""
    path.write_text(yaml.safe_dump({gap["id"]: {**WORD, "of": gap["seen"], **more} for gap in gaps}))
    return path


def waivers_of(gaps: Iterable[Gap], until: datetime, **more: Any) -> dict[str, Waiver]:
    """The same for gaps of a plan in memory."""
    return {gap.id: Waiver(who="Asha Rao", why="looked at", until=until, of=gap.seen, **more) for gap in gaps}


def name_what_was_seen(path: Path, gaps: Iterable[Mapping[str, Any]]) -> bool:
    """Write into a waivers file what the gaps show now; whether that changes anything."""
    said = yaml.safe_load(path.read_text()) or {}
    stale = [gap for gap in gaps if gap["id"] in said and said[gap["id"]].get("of") != gap["seen"]]
    for gap in stale:
        said[gap["id"]]["of"] = gap["seen"]
    if stale:
        path.write_text(yaml.safe_dump(said))
    return bool(stale)
