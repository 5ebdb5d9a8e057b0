"""Which of many texts stand in another one, in one pass over it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ahocorasick_rs import BytesAhoCorasick


@dataclass(frozen=True)
class Within:
    """A text that stands in another one. before, behind: the sign on either side of it; empty at an end."""

    text: str
    before: str
    behind: str


class TextsWithin:
    """Looks for some texts. It may hold persons' values: never printed, never stored."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = sorted({text for text in texts if text})
        self._search = BytesAhoCorasick(list(map(_bytes, self._texts))) if self._texts else None

    def __repr__(self) -> str:
        return "TextsWithin(…)"

    def stand_in(self, data: bytes) -> bool:
        """Whether one of them stands in bytes, in UTF-8."""
        return self._search is not None and bool(self._search.find_matches_as_indexes(data))

    def found(self, text: str) -> Iterator[Within]:
        """Wherever one of them stands, also where another one does."""
        if self._search is None:
            return
        data = _bytes(text)
        for number, start, end in self._search.find_matches_as_indexes(data, overlapping=True):
            first, last = (at if len(data) == len(text) else _signs(data, at) for at in (start, end))
            yield Within(self._texts[number], text[:first][-1:], text[last : last + 1])


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _signs(data: bytes, end: int) -> int:
    """How many signs there are before a place."""
    return len(data[:end].decode("utf-8", "surrogatepass"))
