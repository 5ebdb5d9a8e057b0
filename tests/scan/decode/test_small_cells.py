"""What rules cells out at once rules out none that a decoder reads; runs of letters are those of a plain search."""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import random
import re
import struct
import zlib
from collections.abc import Callable, Iterator

import cramjam
import numpy as np
import pytest
import zstandard

from pii_tracer.scan.decode.cells import cell_search, small_cells, unmarked_streams
from pii_tracer.scan.forms.text_bytes_finding import LEAST_HEX, LINE, LONG, long_runs
from pii_tracer.scan.hit_collector import Collector
from tests.scan.support import BOTH, PHONE

Pack = Callable[[bytes], bytes]


def _deflate(level: int, strategy: int, *, flush: bool = False) -> Pack:
    def pack(data: bytes) -> bytes:
        packer = zlib.compressobj(level, zlib.DEFLATED, -15, 8, strategy)
        begun = packer.compress(data[:9]) + (packer.flush(zlib.Z_FULL_FLUSH) if flush else b"")
        return begun + packer.compress(data[9:]) + packer.flush()

    return pack


def _brotli(level: int) -> Pack:
    return lambda data: bytes(cramjam.brotli.compress(data, level=level))


_PACKERS: tuple[Pack, ...] = (
    *(_deflate(level, strategy) for level in (0, 1, 6, 9) for strategy in (0, zlib.Z_HUFFMAN_ONLY, zlib.Z_FIXED)),
    *(_deflate(6, strategy, flush=True) for strategy in (0, zlib.Z_FIXED)),
    *(_brotli(level) for level in (0, 1, 5, 11)),
    *(zlib.compress, gzip.compress, bz2.compress, zstandard.compress),
    lambda data: lzma.compress(data, lzma.FORMAT_ALONE),
    lambda data: bytes(cramjam.snappy.compress_raw(data)),
    lambda data: bytes(cramjam.lz4.compress_block(data)),
    lambda data: bytes(cramjam.lz4.compress_block(data, store_size=False)),
    lambda data: struct.pack(">ii", len(data), len(packed := bytes(cramjam.snappy.compress_raw(data)))) + packed,
)


def _cells(draw: random.Random, count: int) -> Iterator[bytes]:
    """Streams as they are, behind a header, before a trailer, and with a byte changed; and bytes by chance."""
    texts = (PHONE, "ab" * 9, "{'phone': '" + PHONE + "'}", "aaaaaaaaaaaaaaaaaaaaaaaa" + PHONE, "x-1", PHONE * 3)
    for _ in range(count):
        kind = draw.randrange(6)
        if kind == 0:
            yield draw.randbytes(draw.randrange(2, 64))
            continue
        cell = draw.choice(_PACKERS)(draw.choice(texts).encode() + draw.randbytes(draw.choice((0, 0, 3))))
        if kind == 2:
            cell = draw.randbytes(draw.randrange(1, 18)) + cell
        elif kind == 3:
            cell += draw.choice((draw.randbytes(draw.randrange(10)), bytes(draw.randrange(20))))
        elif kind == 4:
            at = draw.randrange(len(cell))
            cell = cell[:at] + draw.randbytes(1) + cell[at + 1 :]
        yield cell


def test_no_cell_is_ruled_out_that_a_decoder_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    contents: list[bytes] = []
    monkeypatch.setattr(cell_search, "search_content", lambda content, *_: contents.append(content))
    cells = [cell for cell in _cells(random.Random(11), 8_000) if len(cell) < small_cells.SMALL]
    sizes = np.array([len(cell) for cell in cells], np.int64)
    held = small_cells.may_hold(np.frombuffer(b"".join(cells), np.uint8), np.cumsum(sizes) - sizes, sizes)
    out = [cell for cell, is_held in zip(cells, held.tolist(), strict=True) if not is_held]
    assert len(out) > 1_000
    for cell in out:
        collector = Collector(BOTH)
        cell_search.search_cell(cell, "data", None, collector)
        assert not contents, cell
        assert not collector.reasons, cell


def test_of_random_cells_few_are_tried() -> None:
    draw = random.Random(12)
    cells = [draw.randbytes(draw.randrange(8, 64)) for _ in range(4_000)]
    sizes = np.array([len(cell) for cell in cells], np.int64)
    held = small_cells.may_hold(np.frombuffer(b"".join(cells), np.uint8), np.cumsum(sizes) - sizes, sizes)
    assert held.mean() < 0.1


def test_no_header_of_brotli_is_taken_for_none() -> None:
    draw = random.Random(13)
    words = [draw.randbytes(draw.randrange(1, 9)) for _ in range(60)]
    for number in range(400):
        data = b"".join(draw.choice(words) for _ in range(draw.randrange(1, 400)))
        packed = bytes(cramjam.brotli.compress(data, level=number % 12))
        assert unmarked_streams.may_be_brotli(packed), packed


def test_long_runs_are_those_of_a_plain_search() -> None:
    draw = random.Random(14)
    for _ in range(300):
        often = draw.choice((0.9, 0.98, 0.998))
        size = draw.choice((60, 300, 2_000))
        text = bytes(
            draw.choice(b"gzAF09+/%\\-_") if draw.random() < often else draw.choice(b' \n",:') for _ in range(size)
        )
        cuts = np.unique([0, *(draw.randrange(size) for _ in range(draw.randrange(4)))]).astype(np.int64)
        for borders in (None, cuts):
            found = set(long_runs(text, borders).tolist())
            for run in re.finditer(rb"[A-Za-z0-9+/\\%_-]+", text):
                parts = [run.start(), *(c for c in cuts.tolist() if run.start() < c < run.end()), run.end()]
                parts = parts if borders is not None else [run.start(), run.end()]
                for start, end in itertools.pairwise(parts):
                    telling = max(text[start : start + LEAST_HEX]) > ord("9")
                    on_the_next_line = end - start >= LINE and text[end : end + 1] == b"\n"
                    if telling and (end - start >= LONG or on_the_next_line):
                        assert start in found
                    if end - start < LEAST_HEX:
                        assert start not in found
