"""Spark's `xxhash64` and `hash` over bytes, as org.apache.spark.sql.catalyst.expressions.XXH64 and
org.apache.spark.unsafe.hash.Murmur3_x86_32 compute them (seed 42).

Source of the rules: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md (XXH64), and Spark's variant of
Murmur3, which mixes the bytes after the last whole word one by one, as signed numbers.
"""

from __future__ import annotations

SEED = 42
"""Spark's seed; also the hash of NULL."""

_M64, _M32 = 2**64 - 1, 2**32 - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def _rotated(value: int, by: int, bits: int) -> int:
    return ((value << by) | (value >> (bits - by))) & (_M64 if bits == 64 else _M32)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def xxhash64(data: bytes) -> int:
    """XXH64 with seed 42, as a signed number."""
    position, size = 0, len(data)
    if size >= 32:
        lanes = [(SEED + _P1 + _P2) & _M64, (SEED + _P2) & _M64, SEED, (SEED - _P1) & _M64]
        while position + 32 <= size:
            for lane in range(4):
                word = int.from_bytes(data[position : position + 8], "little")
                lanes[lane] = _round(lanes[lane], word)
                position += 8
        state = sum(_rotated(lane, by, 64) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _M64
        for lane in lanes:
            state = ((state ^ _round(0, lane)) * _P1 + _P4) & _M64
    else:
        state = (SEED + _P5) & _M64
    state = (state + size) & _M64
    return _signed(_avalanche(_tail(state, data[position:])), 64)


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _P2) & _M64, 31, 64) * _P1 & _M64


def _tail(state: int, rest: bytes) -> int:
    while len(rest) >= 8:
        state = (_rotated(state ^ _round(0, int.from_bytes(rest[:8], "little")), 27, 64) * _P1 + _P4) & _M64
        rest = rest[8:]
    if len(rest) >= 4:
        mixed = state ^ (int.from_bytes(rest[:4], "little") * _P1 & _M64)
        state = (_rotated(mixed, 23, 64) * _P2 + _P3) & _M64
        rest = rest[4:]
    for byte in rest:
        state = _rotated(state ^ (byte * _P5 & _M64), 11, 64) * _P1 & _M64
    return state


def _avalanche(state: int) -> int:
    state = (state ^ (state >> 33)) * _P2 & _M64
    state = (state ^ (state >> 29)) * _P3 & _M64
    return state ^ (state >> 32)


def murmur3(data: bytes) -> int:
    """Spark's Murmur3 with seed 42, as a signed number."""
    state = SEED
    whole = len(data) - len(data) % 4
    for position in range(0, whole, 4):
        state = _mixed(state, int.from_bytes(data[position : position + 4], "little"))
    for byte in data[whole:]:
        state = _mixed(state, _signed(byte, 8) & _M32)
    state ^= len(data)
    state = (state ^ (state >> 16)) * 0x85EBCA6B & _M32
    state = (state ^ (state >> 13)) * 0xC2B2AE35 & _M32
    return _signed(state ^ (state >> 16), 32)


def _mixed(state: int, word: int) -> int:
    word = _rotated(word * 0xCC9E2D51 & _M32, 15, 32) * 0x1B873593 & _M32
    return (_rotated(state ^ word, 13, 32) * 5 + 0xE6546B64) & _M32
