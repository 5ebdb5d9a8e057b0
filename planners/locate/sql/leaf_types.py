"""Types of the leaves that keys stand in."""

from __future__ import annotations

from pii_tracer.model.column_paths import struct_fields
from pii_tracer.model.datasets import Access, FieldAccess, JsonAccess


def leaf_type(column_type: str, access: tuple[Access, ...]) -> str:
    """Type of the leaf that an access leads to; JSON members are strings."""
    for step in access:
        if isinstance(step, JsonAccess):
            return "string"
        column_type = _field_type(column_type, step)
    return column_type


def _field_type(struct: str, step: FieldAccess) -> str:
    fields = struct_fields(struct) or ()
    return next((kind for name, kind in fields if name.lower() == step.name.lower()), "string")
