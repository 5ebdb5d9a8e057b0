"""Names of an open vocabulary: the project knows some, and an installed adapter can bring others."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema
from typing_extensions import Self

NAME = r"^[a-z][a-z0-9_]{0,63}$"


def word(name: str) -> Any:
    """A word of the class in whose body this stands; there it becomes one of the class's own."""
    return name


class OpenVocabulary(str):
    """A name that is text in files. Equal names of one vocabulary are one object, so that `is` compares them.

    Raises:
        ValueError: not lower-case letters, digits and underscores (or what the vocabulary's class has instead), or
            longer than 64 of them.
    """

    __slots__ = ()
    _names: ClassVar[dict[str, Any]]
    _pattern: ClassVar[str] = NAME
    _letters: ClassVar[str] = "lower-case letters, digits and underscores"

    def __init_subclass__(cls) -> None:
        cls._names = {}
        for attribute, name in [(a, n) for a, n in vars(cls).items() if a.isupper()]:
            setattr(cls, attribute, cls(name))

    def __new__(cls, name: str) -> Self:
        known: Self | None = cls._names.get(name)
        if known is not None:
            return known
        if not re.fullmatch(cls._pattern, name):
            raise ValueError(f"{cls.__name__} is written with {cls._letters}")
        made = super().__new__(cls, name)
        return cls._names.setdefault(str(name), made)  # type: ignore[no-any-return]

    @property
    def value(self) -> str:
        """The name as plain text."""
        return str.__str__(self)

    def __str__(self) -> str:
        return str.__str__(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str.__repr__(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.value,)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            cls, core_schema.str_schema(pattern=cls._pattern), serialization=core_schema.to_string_ser_schema()
        )
