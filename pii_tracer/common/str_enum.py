"""`StrEnum` as Python 3.11 has it, for Python 3.10 too."""

from __future__ import annotations

from enum import Enum


class StrEnum(str, Enum):
    """Members are strings and print as their value."""

    __str__ = str.__str__
    __format__ = str.__format__  # type: ignore[assignment]
