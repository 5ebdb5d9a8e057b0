"""Cells under a person's key: AES-256-GCM, or AES-SIV where equal values must stay equal.

A cell is one byte (its kind), then for GCM a random nonce of 12 bytes (NIST SP 800-38D) and the ciphertext with its
tag; for SIV the ciphertext with its synthetic IV (RFC 5297). Associated data binds every cell to table, column and
person, so that one moved elsewhere does not open. A 10-byte value takes 39 bytes (GCM) or 28 (SIV).

The keys of both ciphers come from the data key by HKDF-Expand (RFC 5869, section 2.3, one block; the data key is
uniformly random, so that section 3.3 lets Extract be left out).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256, sha512
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.errors import ShredError

DATA_KEY, NONCE = 32, 12
_LABEL = b"pii-tracer cell v1"
_LENGTH = struct.Struct(">I")


class Mode(StrEnum):
    """random: equal values look different. equal: they look the same within one person and one binding."""

    RANDOM = "random"
    EQUAL = "equal"

    @property
    def kind(self) -> bytes:
        """The first byte of a cell."""
        return b"\x01" if self is Mode.RANDOM else b"\x02"


class Act(StrEnum):
    """What is done with cells, as the library's ciphers call it."""

    ENCRYPT = "encrypt"
    DECRYPT = "decrypt"


@dataclass(frozen=True)
class Binding:
    """Where a cell belongs. Columns that are to be joined by their ciphertext share one binding (of the first home)."""

    table: str
    column: str
    mode: Mode = Mode.RANDOM

    @property
    def place(self) -> bytes:
        """The first part of the associated data. Lengths stand in front, so that no two places are alike."""
        return b"".join(_with_length(part) for part in (_LABEL, self.table.encode(), self.column.encode()))


@dataclass(frozen=True, repr=False)
class Rows:
    """Rows of the columns of one mode; those of one person stand together.

    people, keys: the persons with their lengths in front, and their data keys (None: there is none).
    indices: each row's place among them. cells: each row's values or cells, one a column, without the byte of their
    kind. fresh: each row's nonces, one a column; nothing for AES-SIV. places: of the columns' bindings.
    """

    mode: Mode
    places: Sequence[bytes]
    people: Sequence[bytes]
    keys: Sequence[bytes | None]
    indices: Iterable[int]
    cells: Iterable[Sequence[bytes | None]]
    fresh: Iterable[Sequence[bytes]]

    def turned(self, act: Act) -> list[bytes | None]:
        """All cells encrypted or decrypted, in one list row by row; None where the value or the key is missing.

        A cipher is made once for a person, serves all columns and is let go with the person's last row: the contexts
        of many persons do not fit the processor's cache, and cost more there than the cells.

        Raises:
            ShredError: a cell does not open.
        """
        cipher = _gcm if self.mode is Mode.RANDOM else _siv
        single = self.mode is Mode.RANDOM  # AES-SIV takes a list of associated data
        nothing = [None] * len(self.places)
        done: list[bytes | None] = []
        call: Callable[..., bytes] | None = None
        last, bound = -1, list[Any]()
        try:
            for index, row, fresh in zip(self.indices, self.cells, self.fresh, strict=False):
                if index != last:
                    last, key = index, self.keys[index]
                    call = None if key is None else getattr(cipher(key), act)
                    who = self.people[index]
                    bound = [p + who for p in self.places] if single else [[p + who] for p in self.places]
                if call is None:
                    done += nothing
                elif None in row:
                    given = zip(*((fresh, row, bound) if fresh else (row, bound)), strict=True)
                    done += [None if cell is None else call(*one) for cell, one in zip(row, given, strict=True)]
                else:
                    done += map(call, fresh, row, bound) if fresh else map(call, row, bound)
        except (InvalidTag, ValueError):
            raise does_not_open() from None
        return done


def does_not_open() -> ShredError:
    """Altered, of another place or person, or no cell of the mode."""
    return ShredError(
        "a cell cannot be decrypted: it was altered, or belongs to a different table, column or person",
        todo="decrypt the cell with the table and column for which it was encrypted",
    )


_INNER, _OUTER = (bytes(byte ^ pad for byte in range(256)) for pad in (0x36, 0x5C))


def _pads(block: int, label: bytes) -> tuple[bytes, bytes]:
    """What follows a data key's own bytes in the inner and the outer hash of HMAC (RFC 2104).

    The data key is shorter than the hash's block: zeros fill it up, and so their pads are constant.
    """
    return bytes([0x36]) * (block - DATA_KEY) + label, bytes([0x5C]) * (block - DATA_KEY)


_GCM_INNER, _GCM_OUTER = _pads(64, b"AES-256-GCM\x01")
_SIV_INNER, _SIV_OUTER = _pads(128, b"AES-SIV\x01")


def _gcm(data_key: bytes) -> AESGCM:
    """By HMAC-SHA-256 in two hashes: `hmac.digest` looks the hash up anew for every key, which takes as long again."""
    inner = sha256(data_key.translate(_INNER) + _GCM_INNER)
    return AESGCM(sha256(data_key.translate(_OUTER) + _GCM_OUTER + inner.digest()).digest())


def _siv(data_key: bytes) -> AESSIV:
    """As `_gcm`, by HMAC-SHA-512."""
    inner = sha512(data_key.translate(_INNER) + _SIV_INNER)
    return AESSIV(sha512(data_key.translate(_OUTER) + _SIV_OUTER + inner.digest()).digest())


def _with_length(part: bytes) -> bytes:
    """A part of the associated data: its length in four bytes, most significant first, and itself."""
    return _LENGTH.pack(len(part)) + part
