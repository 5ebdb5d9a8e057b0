"""Rule out cells of a few bytes that hold no stream, all cells of a column at once.

Digests, identifiers and small records are most of all binary cells, and to try every decoder on each takes a hundred
microseconds. Here the decoders' first checks run over arrays. A cell that passes is tried as any other
(`cell_search.search_cell`); one that is ruled out would not unpack (`tests/scan/decode/test_small_cells.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pii_tracer.scan.decode.cells import cell_search, unmarked_streams
from pii_tracer.scan.decode.compressed_streams import STARTS

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

SMALL = cell_search.LEAST_FILE
"""Cells of fewer bytes are looked at here."""
_ROW = SMALL + 24
"""Bytes of a row: a cell, and zeros that a decoder may read behind it."""
_AT_ONCE = 4096

_BEGINS = np.zeros(1 << 16, np.bool_)
for _start in (*STARTS, *cell_search.FOREIGN_STARTS, b"\x2a\x4d", b"\x5d\0"):
    _BEGINS[int.from_bytes(_start[:2], "little")] = True
_STANDS = np.zeros(1 << 16, np.bool_)
for _start in (b"\x1f\x8b", b"BZ", b"\xfd7", b"\x28\xb5", b"\x04\x22", b"LZ", b"\xff\x06", b"PK"):
    _STANDS[int.from_bytes(_start, "little")] = True
for _second in b"\x01\x5e\x9c\xda":
    _STANDS[0x78 | _second << 8] = True
"""Two bytes with which a stream begins that is looked for anywhere in a cell (`cell_search`)."""


def _fixed_codes() -> tuple[Numbers, Numbers]:
    """Symbol and length of the code that each nine bits begin with (RFC 1951, section 3.2.6)."""
    symbols, lengths = np.zeros(512, np.int64), np.zeros(512, np.int64)
    for first, last, code, bits in ((0, 143, 48, 8), (144, 255, 400, 9), (256, 279, 0, 7), (280, 287, 192, 8)):
        for symbol in range(first, last + 1):
            turned = int(f"{code + symbol - first:0{bits}b}"[::-1], 2)
            symbols[turned :: 1 << bits], lengths[turned :: 1 << bits] = symbol, bits
    return symbols, lengths


_SYMBOLS, _LENGTHS = _fixed_codes()
_TURNED = np.array([int(f"{code:05b}"[::-1], 2) for code in range(32)])
_COPY_EXTRA = np.array([0] * 8 + [n // 4 for n in range(4, 24)] + [0] * 4)
_COPY = np.concatenate([np.arange(3, 11), 3 + np.cumsum([8, *(1 << n // 4 for n in range(4, 23))]), [258, 0, 0, 0]])
_BACK_EXTRA = np.array([0, 0, *(n // 2 for n in range(28)), 0, 0])
_BACK = np.concatenate([[1], 1 + np.cumsum(1 << _BACK_EXTRA[:29]), [1 << 40, 1 << 40]])
"""Lengths and distances of copies, and how many bits more each has (section 3.2.5). The last ones are none."""


def may_hold(data: Bytes, starts: Numbers, sizes: Numbers) -> Flags:
    """Of each cell whether a decoder has to look at it. starts, sizes: where the cells lie in the bytes.

    All cells have at least `unmarked_streams.LEAST` bytes and fewer than `SMALL`.
    """
    found = [_holding(data, starts[n : n + _AT_ONCE], sizes[n : n + _AT_ONCE]) for n in range(0, len(starts), _AT_ONCE)]
    return np.concatenate(found) if found else np.zeros(0, np.bool_)


def _holding(data: Bytes, starts: Numbers, sizes: Numbers) -> Flags:
    columns = np.arange(_ROW)
    rows = data.take(starts[:, None] + columns, mode="clip")
    inside = columns < sizes[:, None]
    rows[~inside] = 0
    cells = _Cells(rows.ravel(), sizes)
    pairs = rows[:, :-1].astype(np.uint16) | rows[:, 1:].astype(np.uint16) << np.uint16(8)
    held = _STANDS.take(pairs).any(axis=1) | _BEGINS.take(pairs[:, :2]).any(axis=1)
    zeros = ((rows == 0) & inside).sum(axis=1)
    perhaps = np.flatnonzero(~held & (zeros * unmarked_streams.ZEROS <= sizes))
    for test in (_hadoop_or_sized, _brotli, _snappy, _lz4, _deflate):
        held[perhaps] = test(cells, perhaps)
        perhaps = perhaps[~held[perhaps]]
    return np.asarray(held, np.bool_)


class _Cells:
    """Cells in rows of one size. All that is read of them is read at places of many rows at once."""

    def __init__(self, flat: Bytes, sizes: Numbers) -> None:
        self.flat, self.sizes = flat, sizes
        self._words: Any = np.ndarray((len(flat) - 7,), "<u8", flat, 0, (1,))

    def word(self, rows: Numbers, at: Any) -> npt.NDArray[np.uint64]:
        """The eight bytes from a place in each of some rows on."""
        return np.asarray(self._words[rows * _ROW + at], np.uint64)

    def byte(self, rows: Numbers, at: Any) -> Numbers:
        """The byte at a place in each of some rows."""
        return np.asarray(self.flat[rows * _ROW + at], np.int64)


def _bits(words: npt.NDArray[np.uint64], low: Any, count: Any) -> Numbers:
    """So many bits of each word."""
    low, count = np.asarray(low, np.uint64), np.asarray(count, np.uint64)
    return np.asarray(words >> low & ((np.uint64(1) << count) - np.uint64(1)), np.int64)


def _hadoop_or_sized(cells: _Cells, rows: Numbers) -> Flags:
    word, sizes = cells.word(rows, 0), cells.sizes[rows]
    big = word.byteswap()
    held = (big & np.uint64(0xFFFFFFFF)).astype(np.int64) == sizes - 8
    for size in (_bits(word, 0, 32), _bits(big, 32, 32)):
        held |= (size >= sizes // 2) & (size <= unmarked_streams.LZ4_RATIO * sizes)
    return np.asarray(held, np.bool_)


def _brotli(cells: _Cells, rows: Numbers) -> Flags:
    """As `unmarked_streams` reads the length in front."""
    word, sizes = cells.word(rows, 0), cells.sizes[rows]
    at = np.where(_bits(word, 0, 1) == 0, 1, np.where(_bits(word, 1, 3) != 0, 4, 7))
    at = at + np.where(_bits(word, at, 1) == 1, 2, 1)
    nibbles = 4 + _bits(word, at, 2)
    size = _bits(word, at + 2, 4 * nibbles) + 1
    plausible = (nibbles < 7) & (size >= sizes // 2) & (size <= unmarked_streams.MOST_BROTLI * sizes)
    for n in np.flatnonzero(plausible).tolist():
        start = int(rows[n]) * _ROW
        plausible[n] = unmarked_streams.may_be_brotli(cells.flat[start : start + int(sizes[n])].tobytes())
    return plausible


def _snappy(cells: _Cells, rows: Numbers) -> Flags:
    """Elements up to the end of each cell (https://github.com/google/snappy/blob/main/format_description.txt)."""
    word, sizes = cells.word(rows, 0), cells.sizes[rows]
    given, at, open_ = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64), np.ones(len(rows), np.bool_)
    for n in range(5):
        byte = _bits(word, 8 * n, 8)
        given += np.where(open_, (byte & 127) << 7 * n, 0)
        at += open_
        open_ &= byte > 127
    held = np.zeros(len(rows), np.bool_)
    out = np.zeros(len(rows), np.int64)
    left = np.flatnonzero((given >= sizes * 6 // 7 - 32) & (given <= 32 * sizes) & (given > 0))
    while len(left):
        here, place = rows[left], at[left]
        tag, behind = cells.byte(here, place), cells.word(here, place + 1)
        kind, number = tag & 3, tag >> 2
        long = number - 59
        literal = np.where(long > 0, _bits(behind, 0, 8 * np.maximum(long, 0)), number) + 1
        back = np.where(kind == 1, (tag >> 5) << 8 | _bits(behind, 0, 8), _bits(behind, 0, np.where(kind == 2, 16, 32)))
        step = np.where(kind == 0, 1 + np.maximum(long, 0) + literal, np.where(kind == 3, 5, kind + 1))
        fits = (kind == 0) | ((back > 0) & (back <= out[left]))
        out[left] += np.where(kind == 0, literal, np.where(kind == 1, 4 + (number & 7), number + 1))
        at[left] += step
        fits &= (at[left] <= sizes[left]) & (out[left] <= given[left])
        held[left[fits & (at[left] == sizes[left]) & (out[left] == given[left])]] = True
        left = left[fits & (at[left] < sizes[left])]
    return held


def _lz4(cells: _Cells, rows: Numbers) -> Flags:
    """Sequences up to the end of each cell (https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md)."""
    sizes = cells.sizes[rows]
    held = np.zeros(len(rows), np.bool_)
    at, out = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    left = np.flatnonzero(sizes >= unmarked_streams.LEAST_LZ4)
    while len(left):
        here = rows[left]
        token = cells.byte(here, at[left])
        at[left] += 1
        literals, longer = token >> 4, cells.byte(here, at[left])
        held[left[(literals == 15) & (longer == 255)]] = True
        at[left] += np.where(literals == 15, 1, 0) + literals + np.where(literals == 15, longer, 0)
        out[left] += literals + np.where(literals == 15, longer, 0)
        held[left[at[left] == sizes[left]]] = True
        on = (at[left] + 2 <= sizes[left]) & ~held[left]
        left, here, token = left[on], here[on], token[on]
        back = _bits(cells.word(here, at[left]), 0, 16)
        at[left] += 2
        longer = cells.byte(here, at[left])
        size = token & 15
        held[left[(size == 15) & (longer == 255)]] = True
        on = back <= out[left]  # decoders take a distance of zero, too
        at[left] += size == 15
        out[left] += 4 + size + np.where(size == 15, longer, 0)
        held[left[on & (at[left] == sizes[left])]] = True
        held[left[~on]] = False
        left = left[on & (at[left] < sizes[left]) & ~held[left]]
    return held


def _deflate(cells: _Cells, rows: Numbers) -> Flags:
    """Whether raw deflate may begin at the front of a cell or behind a header (RFC 1951)."""
    offsets = np.arange(unmarked_streams.HEADER)
    row, offset = np.repeat(rows, len(offsets)), np.tile(offsets, len(rows))
    fits = (offset == 0) | (offset < cells.sizes[row] - unmarked_streams.LEAST)
    row, offset = row[fits], offset[fits]
    word = cells.word(row, offset)
    kind = _bits(word, 1, 2)
    stored = (kind == 0) & (_bits(word, 8, 16) ^ _bits(word, 24, 16) == 0xFFFF)
    dynamic, fixed = kind == 2, kind == 1
    dynamic[dynamic] = _complete(word[dynamic], cells.word(row[dynamic], offset[dynamic] + 8))
    fixed[fixed] = _decodes(cells, row[fixed], offset[fixed])
    held = np.zeros(len(cells.sizes), np.bool_)
    held[row[stored | dynamic | fixed]] = True
    return held[rows]


def _complete(first: npt.NDArray[np.uint64], second: npt.NDArray[np.uint64]) -> Flags:
    """Whether the code for the lengths of codes has each of its bits used (section 3.2.7)."""
    count = 4 + _bits(first, 13, 4)
    lengths = first >> np.uint64(17) | second << np.uint64(47)
    used = np.zeros(len(first), np.int64)
    for n in range(19):
        length = _bits(lengths, 3 * n, 3)
        used += np.where((n < count) & (length > 0), 128 >> length, 0)
    return np.asarray((_bits(first, 3, 5) < 30) & (_bits(first, 8, 5) < 30) & (used == 128))


def _decodes(cells: _Cells, rows: Numbers, offsets: Numbers) -> Flags:
    """Whether a block with the fixed codes ends within each cell, and its copies reach back no further than it."""
    held = np.zeros(len(rows), np.bool_)
    at, ends, out = 8 * offsets + 3, 8 * cells.sizes[rows], np.zeros(len(rows), np.int64)
    last = _bits(cells.word(rows, offsets), 0, 1) == 1
    left = np.arange(len(rows))
    while len(left):
        place = at[left]
        word = cells.word(rows[left], place >> 3) >> (place & 7).astype(np.uint64)
        code = _bits(word, 0, 9)
        symbol, low = _SYMBOLS[code], _LENGTHS[code]
        ended, copy = symbol == 256, symbol > 256
        at[left] += low
        done = left[ended & (at[left] <= ends[left])]
        held[done] = last[done] & _closes(cells, rows[done], offsets[done], at[done], out[done])
        more = done[~last[done]]
        last[more], kind, held[more] = _next_block(cells, rows[more], at[more])
        at[more] += 3
        again = np.zeros(len(rows), np.bool_)
        again[more[kind == 1]] = True
        out[left] += symbol < 256
        copies = left[copy]
        number, word, low = symbol[copy] - 257, word[copy], low[copy]
        size = _COPY[number] + _bits(word, low, _COPY_EXTRA[number])
        low = low + _COPY_EXTRA[number]
        far = _TURNED[_bits(word, low, 5)]
        back = _BACK[far] + _bits(word, low + 5, _BACK_EXTRA[far])
        at[copies] += _COPY_EXTRA[number] + 5 + _BACK_EXTRA[far]
        on = ~ended | again[left]
        on[copy] = (number < 29) & (back <= out[copies])
        out[copies] += size
        left = left[on & (at[left] < ends[left])]
    return held


def _next_block(cells: _Cells, rows: Numbers, at: Numbers) -> tuple[Flags, Numbers, Flags]:
    """Of the block that begins at each of some bits: whether it is the last, its kind, and whether it may be stored or
    have codes of its own."""
    word = cells.word(rows, at >> 3) >> (at & 7).astype(np.uint64)
    kind = _bits(word, 1, 2)
    stored = cells.word(rows, at + 10 >> 3)
    held = (kind == 0) & (_bits(stored, 0, 16) ^ _bits(stored, 16, 16) == 0xFFFF)
    # the code for the lengths of codes has more bits than what is left of the word surely has
    return _bits(word, 0, 1) == 1, kind, held | ((kind == 2) & (_bits(word, 3, 5) < 30) & (_bits(word, 8, 5) < 30))


def _closes(cells: _Cells, rows: Numbers, offsets: Numbers, at: Numbers, out: Numbers) -> Flags:
    """Whether little enough stands behind the end of a last block, and enough came out of it."""
    end = at + 7 >> 3
    rest = cells.sizes[rows] - end
    clean = (rest <= unmarked_streams.TRAILER) | (cells.word(rows, end) == 0)
    enough = np.where(offsets > 0, out > (cells.sizes[rows] - offsets) * 3 // 4, out >= unmarked_streams.LEAST // 2)
    return np.asarray(clean & enough)
