"""The windows of every writing and digest of many values: what `Tables` would write down, without writing it down."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import TypeVar

import numpy as np

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.forms import transcriptions
from pii_tracer.scan.forms.pattern_automaton import Tables, digested_texts, strong_writings
from pii_tracer.scan.many_values import base_encodings, per_character_encodings
from pii_tracer.scan.many_values.pattern_windows import Builder, Bytes, Owners, OwnersInTexts, Ragged
from pii_tracer.scan.value_encodings import ALGORITHMS, ENOUGH, SEALED, SHORT_BASE64, bare_number, uuid_of

Value = tuple[KeySet, str]
_B = TypeVar("_B", bound=Builder)

DIGESTS, WRITINGS = 0, 1
"""What of a value a window is of. Twice the number of the value, and this, is the owner of the window."""

_TOGETHER = 1 << 14
"""Values that are written together."""
_SIDE_BY_SIDE = 2
"""Parts of the values that are written at a time, each in some hundred MiB."""
_SINGLES = 1 << 8
"""Values of which each is written by itself; their windows are chosen together."""
_Single = tuple[Callable[[Tables, KeySet, str], None], KeySet, str, int]

_ODD = ("~", "\\", "xn--")
"""UTF-7 and Punycode write these otherwise than sign by sign."""
_DENSE, _SPARSE = 8, 16
_LEAST_HEX = 32
"""Bytes of a window of what takes a byte for a byte, and of what takes more."""


def builder_of(values: Sequence[Value]) -> Builder:
    """Windows of every digest and every writing of some values."""
    return _filled(_tasks(values), Builder)


def written_in(texts: Sequence[bytes], values: Sequence[Value]) -> set[int]:
    """The numbers of all values of which a digest or a writing may stand in some short texts, and of few others."""
    found = _filled(_tasks(values), partial(OwnersInTexts, texts))
    return {owner // 2 for owner in (*found.owners, *found.windowless)}


def _tasks(values: Sequence[Value]) -> list[Callable[[Builder], None]]:
    tasks: list[Callable[[Builder], None]] = [
        partial(_add_digests, values=values[start : start + _TOGETHER], first=start)
        for start in range(0, len(values), _TOGETHER)
    ]
    regular: dict[int, list[tuple[int, str]]] = defaultdict(list)
    singles: list[_Single] = []
    for number, (key_set, given) in enumerate(values):
        strong = strong_writings(key_set, given)
        owner = 2 * number + WRITINGS
        if strong == (given,) and given.isascii() and given.isprintable() and not any(o in given.lower() for o in _ODD):
            regular[len(given)].append((owner, given))
            if uuid_of(given) is not None or bare_number(given) is not None:
                singles.append((Tables.of_its_kind, key_set, given, owner))
        else:
            singles.append((Tables.written, key_set, given, owner))
    tasks.append(partial(_add_one_by_one, values=singles))
    for length, some in regular.items():
        for start in range(0, len(some), _TOGETHER):
            part = some[start : start + _TOGETHER]
            owners = np.array([owner for owner, _ in part], np.uint32)
            rows = np.frombuffer("".join(text for _, text in part).encode(), np.uint8).reshape(-1, length)
            tasks.append(partial(_add_rows, rows=rows, owners=owners))
    return tasks


def _filled(tasks: Sequence[Callable[[Builder], None]], new: Callable[[], _B]) -> _B:
    """A builder that took what all tasks add. They run side by side: NumPy works outside of Python's lock."""
    waiting: SimpleQueue[Callable[[Builder], None]] = SimpleQueue()
    for task in tasks:
        waiting.put(task)

    def work(_: int) -> _B:
        builder = new()
        with suppress(Empty):
            while True:
                waiting.get_nowait()(builder)
        return builder

    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        first, *others = pool.map(work, range(_SIDE_BY_SIDE))
    for other in others:
        first.take(other)
    return first


def _add_one_by_one(builder: Builder, values: Sequence[_Single]) -> None:
    for start in range(0, len(values), _SINGLES):
        strings: list[bytes] = []
        owners: list[int] = []
        for write, key_set, given, owner in values[start : start + _SINGLES]:
            tables = Tables()
            write(tables, key_set, given)
            plain = {given.strip().lower().encode(), given.lower().encode()}
            some = [p for table in (tables.folded, tables.exact, tables.bounded) for p in table if p not in plain]
            strings += some
            owners += [owner] * len(some)
        builder.add(Ragged.of(strings), np.array(owners, np.uint32))


def _add_rows(builder: Builder, rows: Bytes, owners: Owners) -> None:
    """All writings of values of ASCII of the same length."""
    lower, upper = _cased(rows, bytes.lower), _cased(rows, bytes.upper)
    everything, length = np.arange(len(rows), dtype=np.int64), rows.shape[1]
    in_lower = np.flatnonzero((lower != rows).any(axis=1))
    in_upper = np.flatnonzero(((upper != rows) & (upper != lower)).any(axis=1))
    for cases, maps in (
        ([(rows, everything)], per_character_encodings.partly()),
        ([(rows, everything), (lower, in_lower)], per_character_encodings.in_two_cases()),
        ([(rows, everything), (lower, in_lower), (upper, in_upper)], per_character_encodings.in_three_cases()),
    ):
        for signs, which in cases:
            used = np.unique(signs[which])
            for one in maps if len(which) else ():
                leads, size = one.codes[used[one.changes[used]], 0], length * int(one.sizes[used].min()) - one.trimmed
                if not builder.may_take([one.codes[used]], size, one.window, leads):
                    continue
                for found in per_character_encodings.written(signs[which], one):
                    theirs = owners[which[found.rows]]
                    builder.add(found.patterns, theirs, one.window, found.inside, longest=found.longest)
    for signs, which in ((rows, everything), (lower, in_lower)):
        if len(which):
            _add_groups(builder, signs[which], owners[which])
    in_base64 = builder.may_take(base_encodings.BASE64, max(SHORT_BASE64, length * 8 // 6 - 3))
    for signs, which in ((rows, everything), (lower, in_lower), (upper, in_upper)):
        if not len(which):
            continue
        for ways in (base_encodings.base64, base_encodings.twice_base64):
            for shown, of in ways(signs[which]) if in_base64 else ():
                builder.add(base_encodings.table(shown), owners[which[of]], _SPARSE)
    for shown, of in base_encodings.wide_base64(rows) if in_base64 else ():
        builder.add(base_encodings.table(shown), owners[of], _SPARSE)


def _add_groups(builder: Builder, rows: Bytes, owners: Owners) -> None:
    for shown, of in base_encodings.uuencoded(rows):
        builder.add(base_encodings.table(shown), owners[of], _SPARSE)
    if not builder.may_take(base_encodings.IN_ONE_WORD, transcriptions.LEAST):
        return
    for shown in base_encodings.base32(rows, transcriptions.LEAST):
        builder.add(base_encodings.table(shown), owners, _SPARSE)
    for shown in base_encodings.base85(rows, transcriptions.LEAST):
        builder.add(base_encodings.table(shown), owners, _SPARSE)


def _cased(rows: Bytes, change: Callable[[bytes], bytes]) -> Bytes:
    return np.frombuffer(change(rows.tobytes()), np.uint8).reshape(rows.shape)


def _add_digests(builder: Builder, values: Sequence[Value], first: int) -> None:
    """Digests in hex; those that are searched as bytes, in base64 and in pieces, too. first: number of the first."""
    texts = [
        (variant.encode(), 2 * number + DIGESTS)
        for number, (_, given) in enumerate(values, first)
        for text in digested_texts(given)
        for variant in dict.fromkeys((text, text.lower(), text.upper()))
    ]
    owners = np.array([owner for _, owner in texts], np.uint32)
    in_hex, in_base64 = builder.may_take([_HEX], _LEAST_HEX), builder.may_take(base_encodings.BASE64, ENOUGH)
    for form, algorithm in ALGORITHMS.items():
        if not in_hex and form not in SEALED:
            continue
        digest = getattr(hashlib, algorithm)
        joined = b"".join([digest(text, usedforsecurity=False).digest() for text, _ in texts])
        rows = np.frombuffer(joined, np.uint8).reshape(len(texts), -1)
        if in_hex:
            builder.add(base_encodings.table(_hex(rows)), owners, _SPARSE)
        if form in SEALED:
            builder.add(base_encodings.table(rows), owners, _DENSE)
            for patterns, of in base_encodings.base64_alone(rows) if in_base64 else ():
                builder.add(patterns, owners[of], _SPARSE)
            for joint in transcriptions.DIGEST_JOINTS:
                signs = _HEX, np.frombuffer(joint.encode(), np.uint8)
                if not builder.may_take(signs, 3 * transcriptions.TELLING - 1):
                    continue
                builder.add(base_encodings.table(_in_pieces(rows, joint)), owners, _SPARSE)


_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


def _hex(rows: Bytes) -> Bytes:
    return np.asarray(_HEX[np.stack([rows >> 4, rows & 15], axis=2)].reshape(len(rows), -1))


def _in_pieces(rows: Bytes, joint: str) -> Bytes:
    """As `transcriptions.digest_in_pieces`."""
    some = rows[:, : transcriptions.TELLING]
    parted = np.full((*some.shape, 3), ord(joint), np.uint8)
    parted[:, :, :2] = _HEX[np.stack([some >> 4, some & 15], axis=2)]
    return np.asarray(parted.reshape(len(rows), -1)[:, :-1])
