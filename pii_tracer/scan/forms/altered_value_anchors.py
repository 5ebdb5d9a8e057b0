"""Where a value may stand altered: an anchor of it, and all that nothing alters of it, in order and near."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from ahocorasick_rs import BytesAhoCorasick

_RUN = re.compile(rb"[a-z0-9]+")
_HIDES = re.compile(rb"[\\%&=]|\xc2\xad|\xcd\x8f|\xe1\xa0|\xe2[\x80\x81]|\xef[\xb8\xbb\xbf]")
"""How everything begins that can stand for a letter or inside a word: escapes, and what is not seen."""


_MOST = 64
"""Where more values share an anchor, each place of it counts."""


class Anchors:
    """Finds anchors. Names are common: of most that share one with a value, nothing else of the value is near."""

    def __init__(self, looks: Mapping[bytes, Collection[bytes]], around: int) -> None:
        """looks: by anchor, the values as they look. around: how far from its anchor a value may reach, in bytes."""
        self._runs = [[_RUN.findall(v) for v in vs] if len(vs) <= _MOST else [[]] for vs in looks.values()]
        self._search = BytesAhoCorasick(list(looks)) if looks else None
        self._around = around

    def places(self, data: bytes) -> list[tuple[int, int]]:
        """Where in folded bytes an anchor stands and a value may stand around it."""
        if self._search is None:
            return []
        found = []
        for index, start, end in self._search.find_matches_as_indexes(data, overlapping=True):
            near = data[max(0, start - self._around) : end + self._around]
            if any(in_order(runs, near) for runs in self._runs[index]) or _HIDES.search(near):
                found.append((start, end))
        return found


def in_order(runs: list[bytes], text: bytes) -> bool:
    """Whether a text has these pieces one behind the other."""
    position = 0
    for run in runs:
        position = text.find(run, position)
        if position < 0:
            return False
        position += len(run)
    return True
