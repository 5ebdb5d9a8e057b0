"""Whole columns at once: Arrow arrays in and out, each person's ciphers made once for all columns of a batch.

A key that is missing is a person whose key was destroyed (or who never had one): their cells become null, or an error,
as the caller chooses. A null stays null.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING

from pii_tracer.common.plurals import counted
from pii_tracer.common.str_enum import StrEnum
from pii_tracer.lake.keys.envelope.cells import (
    NONCE,
    Act,
    Binding,
    Mode,
    Rows,
    does_not_open,
)
from pii_tracer.lake.keys.envelope.key_wrapping import Wrapper
from pii_tracer.model.errors import ShredError

if TYPE_CHECKING:
    import pyarrow as pa

WrappedKeys = Callable[[Sequence[str]], Mapping[str, bytes]]
"""Persons -> their wrapped keys; those without a key are left out."""


_SLICE = 4096
"""Rows at a time."""


class Missing(StrEnum):
    """What becomes of cells of persons without a key."""

    NULL = "null"
    ERROR = "error"


@dataclass(frozen=True)
class Keys:
    """The data keys of the persons of one batch, opened; it lives as long as the batch."""

    by_person: Mapping[str, bytes]

    def __repr__(self) -> str:
        return f"Keys({counted(len(self.by_person), 'person')})"

    @classmethod
    def unwrapped(cls, wrapped: Mapping[str, bytes], wrapper: Wrapper) -> Keys:
        """Open wrapped keys. Raises `ShredError` when one does not open."""
        return cls(wrapper.unwrap_all(wrapped))


class KeyCache:
    """Data keys of many persons for a service that reads a key table again and again.

    An entry is used for `seconds` and then read again: a destroyed key is readable no longer than that. Missing keys
    are not remembered. The key table's declaration in the estate file must name a time at least as long.
    """

    def __init__(
        self, load: WrappedKeys, wrapper: Wrapper, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._load, self._wrapper, self._seconds, self._clock = load, wrapper, seconds, clock
        self._known: dict[str, tuple[float, bytes]] = {}

    def __repr__(self) -> str:
        return f"KeyCache({counted(len(self._known), 'person')})"

    def keys(self, persons: Iterable[str]) -> Keys:
        """The keys of some persons, from memory where they are fresh.

        Raises:
            ShredError: a wrapped key does not open.
        """
        now = self._clock()
        self._known = {p: entry for p, entry in self._known.items() if now - entry[0] < self._seconds}
        wanted = set(persons)
        unknown = sorted(wanted - self._known.keys())
        if unknown:
            for person, key in Keys.unwrapped(self._load(unknown), self._wrapper).by_person.items():
                self._known[person] = (now, key)
        return Keys({p: self._known[p][1] for p in wanted if p in self._known})


def encrypt(values: pa.Array, persons: pa.Array, binding: Binding, keys: Keys) -> pa.Array:
    """`encrypt_all` of one column."""
    return encrypt_all([(values, binding)], persons, keys)[0]


def decrypt(
    cells: pa.Array, persons: pa.Array, binding: Binding, keys: Keys, *, missing: Missing = Missing.NULL
) -> pa.Array:
    """`decrypt_all` of one column."""
    return decrypt_all([(cells, binding)], persons, keys, missing=missing)[0]


def encrypt_all(columns: Sequence[tuple[pa.Array, Binding]], persons: pa.Array, keys: Keys) -> list[pa.Array]:
    """Encrypt columns of text or binary that belong to the same rows; the results are binary, in the same order.

    Columns that are given together share the persons' ciphers, which cost more to make than a cell.

    Raises:
        ShredError: a person without a key (plain values are never passed through), or another type.
    """
    plain = [(_bytes(values), binding) for values, binding in columns]
    return _turned(plain, _grouped(columns, persons, keys, Missing.ERROR), Act.ENCRYPT)


def decrypt_all(
    columns: Sequence[tuple[pa.Array, Binding]], persons: pa.Array, keys: Keys, *, missing: Missing = Missing.NULL
) -> list[pa.Array]:
    """Decrypt columns of the same rows; the results are binary (cast to `pa.string()` where text was encrypted).

    Raises:
        ShredError: an altered or misplaced cell; a missing key with `Missing.ERROR`.
    """
    cells = [(_bytes(values), binding) for values, binding in columns]
    return _turned(cells, _grouped(columns, persons, keys, missing), Act.DECRYPT)


@dataclass(frozen=True, repr=False)
class _Grouped:
    """Whose the rows are. order: the rows person by person, None where they stand so already.

    indices: each row's place among the people, in that order. held: whether the row has a key (None: all have one);
    a row without a person has none.
    """

    people: list[bytes]
    keys: list[bytes | None]
    indices: pa.Array
    order: pa.Array | None
    held: pa.Array | None

    def ordered(self, values: pa.Array) -> pa.Array:
        return values if self.order is None else values.take(self.order)

    def back(self, values: pa.Array) -> pa.Array:
        import pyarrow.compute as pc

        return values if self.order is None else values.take(pc.sort_indices(self.order))


def _grouped(columns: Sequence[tuple[pa.Array, Binding]], persons: pa.Array, keys: Keys, missing: Missing) -> _Grouped:
    import pyarrow as pa
    import pyarrow.compute as pc

    encoded = _whole(persons).dictionary_encode(null_encoding="encode")
    names = encoded.dictionary
    found = [None if person is None else keys.by_person.get(str(person)) for person in names.to_pylist()]
    without = found.count(None)
    if without and missing is Missing.ERROR:
        raise ShredError(
            f"no key was found for {counted(without, 'person')}",
            where=", ".join(f"{b.table}, column {b.column}" for _, b in columns),
            todo="create the keys first, or read cells of destroyed keys as null",
        )
    indices, order = encoded.indices, None
    if pc.any(pc.greater(indices[:-1], indices[1:])).as_py():
        order = pc.sort_indices(indices)
        indices = indices.take(order)
    people = _with_lengths(names.cast(pa.binary()))
    held = pa.array([key is not None for key in found], pa.bool_()).take(indices) if without else None
    return _Grouped(people, found, indices, order, held)


def _with_lengths(names: pa.Array) -> list[bytes]:
    """Every name with its length in front, in four bytes, most significant first (as in `Binding.place`)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = pc.fill_null(names, b"")
    lengths = pa.py_buffer(struct.pack(f">{len(names)}I", *pc.binary_length(names).to_pylist()))
    fronts = pa.Array.from_buffers(pa.binary(4), len(names), [None, lengths]).cast(pa.binary())
    joined: list[bytes] = _joined(b"", fronts, names).to_pylist()
    return joined


def _turned(columns: Sequence[tuple[pa.Array, Binding]], grouped: _Grouped, act: Act) -> list[pa.Array]:
    """Encrypt or decrypt, mode by mode and some thousand rows at a time: these stay in the processor's cache."""
    import pyarrow as pa

    results: dict[int, pa.Array] = {}
    for mode in Mode:
        at = [n for n, (_, binding) in enumerate(columns) if binding.mode is mode]
        if not at:
            continue
        given = [grouped.ordered(columns[n][0]) for n in at]
        places = [columns[n][1].place for n in at]
        if act is Act.DECRYPT:
            for cells in given:
                _refuse_other_kinds(cells, mode, grouped.held)
        parts: list[list[pa.Array]] = [[] for _ in at]
        for start in range(0, len(grouped.indices), _SLICE):
            slices = [values.slice(start, _SLICE) for values in given]
            indices = grouped.indices.slice(start, _SLICE)
            for part, done in zip(parts, _slice(slices, indices, places, mode, grouped, act), strict=True):
                part.append(done)
        for n, part in zip(at, parts, strict=True):
            results[n] = grouped.back(pa.concat_arrays(part) if part else pa.array([], pa.binary()))
    return [results[n] for n in range(len(columns))]


def _slice(
    values: list[pa.Array], indices: pa.Array, places: list[bytes], mode: Mode, grouped: _Grouped, act: Act
) -> list[pa.Array]:
    """The columns of one slice."""
    import pyarrow as pa
    import pyarrow.compute as pc

    fresh: list[pa.Array] = []
    if mode is Mode.RANDOM and act is Act.ENCRYPT:
        fresh = [_nonces(len(indices)) for _ in values]
    elif mode is Mode.RANDOM:
        fresh = [pc.binary_slice(cells, 1, 1 + NONCE) for cells in values]
        values = [_from(cells, 1 + NONCE) for cells in values]
    elif act is Act.ENCRYPT:
        # a byte in front, since AES-SIV of nothing is refused by older releases of the library
        values = [_joined(b"\0", plain) for plain in values]
    else:
        values = [_from(cells, 1) for cells in values]
    rows = Rows(
        mode=mode,
        places=places,
        people=grouped.people,
        keys=grouped.keys,
        indices=indices.to_pylist(),
        cells=zip(*(column.to_pylist() for column in values), strict=True),
        fresh=zip(*(column.to_pylist() for column in fresh), strict=True) if fresh else repeat(()),
    )
    flat = rows.turned(act)
    done = [pa.array(flat[n :: len(places)], pa.binary()) for n in range(len(places))]
    if act is Act.ENCRYPT:
        return [_joined(mode.kind, *pair) for pair in (zip(fresh, done, strict=True) if fresh else zip(done))]
    return done if mode is Mode.RANDOM else [_from(plain, 1) for plain in done]


def _refuse_other_kinds(cells: pa.Array, mode: Mode, held: pa.Array | None) -> None:
    """Raise `ShredError` when a cell whose key exists is none of this mode."""
    import pyarrow as pa
    import pyarrow.compute as pc

    other = pc.not_equal(pc.binary_slice(cells, 0, 1), pa.scalar(mode.kind, pa.binary()))
    if pc.any(other if held is None else pc.and_(other, held)).as_py():
        raise does_not_open()


def _joined(front: bytes, *columns: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    given = [pa.scalar(front, pa.binary()), *columns] if front else columns
    return pc.binary_join_element_wise(*given, pa.scalar(b"", pa.binary()))


def _from(cells: pa.Array, start: int) -> pa.Array:
    """The bytes from a position on. An open end overflows in Arrow (26: "Negative buffer resize")."""
    import pyarrow.compute as pc

    end = pc.max(pc.binary_length(cells)).as_py() or 0
    return pc.binary_slice(cells, start, max(start, end))


def _nonces(count: int) -> pa.Array:
    """Fresh nonces, from one call of the system's generator."""
    import pyarrow as pa

    pool = pa.py_buffer(os.urandom(NONCE * count))
    return pa.Array.from_buffers(pa.binary(NONCE), count, [None, pool]).cast(pa.binary())


def _whole(values: pa.Array) -> pa.Array:
    """One array, where a column came in chunks."""
    return values.combine_chunks() if hasattr(values, "combine_chunks") else values


def _bytes(values: pa.Array) -> pa.Array:
    """Text and binary as binary; other types must be cast by who knows what they mean."""
    import pyarrow as pa

    kind = values.type
    kinds = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    if kind not in kinds:
        raise ShredError(f"columns of the type {kind} cannot be encrypted", todo="cast the column to string first")
    return _whole(values).cast(pa.binary())
