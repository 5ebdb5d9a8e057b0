"""Which of many tables a statement can mean, found without looking at all of them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

_WORD = re.compile(r"[\w$]+")

Columns = Sequence[tuple[str, str]]
"""Names and types."""


class Tables:
    """Columns by table name, from which a statement is given those it can mean."""

    def __init__(self, known: Mapping[str, Columns]) -> None:
        self.known = known
        self._by_word: dict[str, list[str]] = defaultdict(list)
        self._always: list[str] = []
        for name in known:
            word = _WORD.search(re.split(r"[./]", name.rstrip("`/").lower())[-1])
            if word:
                self._by_word[word.group()].append(name)
            else:
                self._always.append(name)

    def of(self, text: str) -> dict[str, Columns]:
        """Tables whose last name, or its beginning, stands in the text."""
        words = set(_WORD.findall(text.lower()))
        found = [name for word in sorted(words & self._by_word.keys()) for name in self._by_word[word]]
        return {name: self.known[name] for name in [*self._always, *found]}
