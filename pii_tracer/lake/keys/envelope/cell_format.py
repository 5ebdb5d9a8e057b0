"""Whether values have the form of cells, told without any key: plain values among ciphertext stay when a key goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pii_tracer.lake.keys.envelope.cells import NONCE, Mode

if TYPE_CHECKING:
    import pyarrow as pa

TAG = 16
"""Bytes that either cipher adds: GCM's tag, and SIV's synthetic IV (RFC 5297, section 2.6)."""


def unlike_cells(values: pa.Array, mode: Mode) -> pa.Array:
    """By row, whether a value is no cell of the mode: of another type, of another kind, or too short. Null is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type)):
        return pc.is_valid(values)
    shortest = 1 + TAG + (NONCE if mode is Mode.RANDOM else 0)
    kind = pc.binary_slice(values.cast(pa.binary()), 0, 1)
    unlike = pc.or_(pc.not_equal(kind, pa.scalar(mode.kind, pa.binary())), pc.less(pc.binary_length(values), shortest))
    return pc.fill_null(unlike, False)
