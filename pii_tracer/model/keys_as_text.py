"""The key of a person as one text, whatever number of columns it has: `user_id`, or `tenant_id` and `user_id` together.

Of one column it is the value. Of several it is each value behind its length in characters, so that no two keys have the
same text. A key that is compared as one text is never compared column by column: tenant 4 with user 17 and tenant 5
with user 18 are not tenant 4 with user 18. Spark, Arrow and Python count characters alike, as code points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def key_name(columns: Sequence[str]) -> str:
    """What a key is called: its column, or `(tenant_id, user_id)`."""
    return columns[0] if len(columns) == 1 else f"({', '.join(columns)})"


def columns_of_key(name: str) -> tuple[str, ...]:
    """The columns that `key_name` made a name of; empty for a key of one column."""
    return tuple(name[1:-1].split(", ")) if name.startswith("(") and name.endswith(")") and ", " in name else ()


def has_several_columns(key_set: str) -> bool:
    """Whether a key set's name (`customer.(tenant_id, user_id)`) says that its key has several columns."""
    return ".(" in key_set


def joined(parts: Sequence[str | None]) -> str | None:
    """The text of a key; None where a part is missing: such a row names nobody."""
    if len(parts) == 1:
        return parts[0]
    known = [part for part in parts if part is not None]
    return "".join(f"{len(part)}:{part}" for part in known) if len(known) == len(parts) else None


def split(text: str) -> tuple[str, ...]:
    """The parts of a key of several columns.

    Raises:
        ValueError: the text is none that `joined` gives.
    """
    parts, at = [], 0
    while at < len(text):
        colon = text.index(":", at)
        end = colon + 1 + int(text[at:colon])
        if end > len(text):
            raise ValueError("a key of several columns ends too early")
        parts.append(text[colon + 1 : end])
        at = end
    return tuple(parts)


def joined_sql(parts: Sequence[str]) -> str:
    """As `joined`, in Spark SQL over expressions of type string."""
    if len(parts) == 1:
        return parts[0]
    return f"concat({', '.join(f'CAST(length({part}) AS STRING), {_COLON}, {part}' for part in parts)})"


_COLON = "':'"


def joined_arrays(parts: Sequence[pa.Array]) -> pa.Array:
    """As `joined`, over arrays of texts, row by row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(parts) == 1:
        return parts[0]
    found: list[Any] = []
    for part in parts:
        text = part.cast(pa.large_string())
        found += [pc.utf8_length(text).cast(pa.large_string()), pa.scalar(":", pa.large_string()), text]
    return pc.binary_join_element_wise(*found, pa.scalar("", pa.large_string()), null_handling="emit_null")
