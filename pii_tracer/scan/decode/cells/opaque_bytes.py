"""Bytes that look random: compressed or encrypted, so that they do not show what they hold."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

LEAST = 80
"""Of fewer bytes nobody can tell."""
_WINDOW, _STEP = 256, 128
_MET_BYTES, _MET_LETTERS = 0.0075, 0.0205
"""How often two of some bytes are the same. Of random bytes 0.0039 (1/256), of letters of base64 0.0156 (1/64); of
deflate up to 0.0052, of keys in Protocol Buffers from 0.0075, of numbers of eight bytes 0.018, of text 0.04."""

_DIFFERENT = 0.7
_SIGNED = frozenset({96, 128, 132, 256, 384, 512})
"""Bytes of signatures and keys (RSA, ECDSA), which hold no text. A few may be missing in front."""
_MISSING = 2


def is_opaque(data: bytes, explained: Iterable[range] = ()) -> bool:
    """Whether bytes, or a part of them, look random. explained: parts that were read."""
    if len(data) < LEAST or any(0 <= size - len(data) <= _MISSING for size in _SIGNED):
        return False
    whole = np.frombuffer(data, np.uint8)
    for part in sorted(explained, key=lambda part: -part.start):
        whole = np.concatenate([whole[: part.start], whole[part.stop :]])
    if len(whole) < LEAST:
        return False
    if len(whole) < 2 * _WINDOW:
        return bool(_met(whole[None, :])[0] < _MET_BYTES)
    windows = np.lib.stride_tricks.sliding_window_view(whole, _WINDOW)[::_STEP]
    return any(bool((_met(windows[at : at + 4096]) < _MET_BYTES).any()) for at in range(0, len(windows), 4096))


def is_record(data: bytes) -> bool:
    """Whether there are so few different bytes that they are text or numbers, and surely nothing packed."""
    return len(set(data)) < _DIFFERENT * 256 * (1 - math.exp(-len(data) / 256))


def are_random_letters(letters: bytes) -> bool:
    """Whether letters could be base64 of such bytes: of words, paths and numbers fewer kinds are met more often."""
    whole = np.frombuffer(letters, np.uint8)
    if len(whole) < 4 * _WINDOW:
        return bool(_met(whole[None, :])[0] < _MET_LETTERS)
    windows = np.lib.stride_tricks.sliding_window_view(whole, 2 * _WINDOW)[:: 2 * _WINDOW]
    return any(bool((_met(windows[at : at + 4096]) < _MET_LETTERS).any()) for at in range(0, len(windows), 4096))


def _met(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Of each row how often two of its bytes are the same."""
    count, size = rows.shape
    keys = rows.astype(np.int64) + 256 * np.arange(count)[:, None]
    times = np.bincount(keys.ravel(), minlength=256 * count).reshape(count, 256)
    return np.asarray((times * (times - 1)).sum(axis=1) / (size * (size - 1)), np.float64)
