"""Which of very many values may stand in a few words of people: for these alone all patterns are made.

Of words without any sign with which an escape, a joint or another line begins, so that nothing has to be read in views.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.many_values.encoding_windows import written_in

_EASY = re.compile(r"[A-Za-z0-9 .,:;_@/-]*")
_RUN = re.compile(r"[a-z0-9]+")
_NO_DIGIT = re.compile(r"[^0-9]+")
_CODE = 4
"""Digits that a phone may lose in front: its country's code and a zero."""


def may_stand_in(texts: Sequence[str], key_set: KeySet) -> set[int]:
    """The numbers of all values of a key set of which any form may stand in the texts, and of some others."""
    some = {number for number, (_, value) in enumerate(key_set.values) if value}
    if not all(map(_EASY.fullmatch, texts)):
        return some
    strong = key_set.model_copy(update={"weak": False})  # of which no less is looked for
    values = [(strong, value) for _, value in key_set.values]
    folded = [text.lower() for text in texts]
    digits = [_NO_DIGIT.sub("", text) for text in texts]
    plain = {number for number, (_, value) in enumerate(values) if _is_near(value, folded, digits)}
    return some & (plain | written_in([text.encode() for text in texts], values))


def _is_near(value: str, folded: Sequence[str], digits: Sequence[str]) -> bool:
    """Whether all words of a value stand in a text; of a number, whether the digits do that no writing leaves out."""
    if not value.isascii():
        return True
    runs = _RUN.findall(value.lower())
    if any(all(run in text for run in runs) for text in folded):
        return True
    bare = value.strip()
    if any(map(str.isalpha, bare)) and not bare.startswith(("+", "00")):
        return False
    kept = _NO_DIGIT.sub("", bare).lstrip("0")[_CODE:].rstrip("0")
    return any(kept in text for text in digits if text)
