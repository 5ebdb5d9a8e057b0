"""Values that two systems can have for two things: whoever has one of these in a row need not be the person.

The decision and what speaks for it: docs/adr/0024-values-that-coincide.md.
"""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_UUID = re.compile(r"\{?[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}\}?", re.IGNORECASE)
_DIGEST = re.compile(
    r"(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})", re.IGNORECASE
)
_COUNTED = re.compile(r"[^a-f]*|.*(.)\1{7}.*", re.IGNORECASE)
"""A number without letters, or padded: `00000000-0000-0000-0000-000000000042`. By chance one of ten million has eight
equal digits in a row.
"""


def may_coincide(value: str) -> bool:
    """Whether another system may have come to the same value by itself.

    Not to an address, and not to what was drawn by chance or made by a digest (RFC 9562; 32 hexadecimal digits and
    more). How long a value is says nothing: order numbers are long, too.
    """
    if _ADDRESS.fullmatch(value):
        return False
    made = _UUID.fullmatch(value) or _DIGEST.fullmatch(value)
    return made is None or _COUNTED.fullmatch(value.strip("{}").replace("-", "")) is not None
