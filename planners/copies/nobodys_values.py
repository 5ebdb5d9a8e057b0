"""Values of identifiers that name nobody, as `unknown` for a phone: no row is deleted by them, and none is sought."""

from __future__ import annotations

from collections.abc import Iterable

from pii_tracer.model.number_keys import without_fraction

_ONCE_OR_TWICE = 2
_LONG = 20


def nobodys(values: Iterable[tuple[str, str]], category: str | None) -> set[str]:
    """Those of (reference, value) pairs that cannot name one person. category: None where it is no identifier."""
    if category is None:
        return set()
    # a number with a fraction is compared as the number, too
    return {v for _, v in values if names_nobody(v, category) or names_nobody(without_fraction(v), category)}


def names_nobody(value: str, category: str) -> bool:
    """Whether a value of an identifier cannot name one person, as `unknown` for a phone, or `0000000000`."""
    signs = [sign for sign in value.casefold() if sign.isalnum()]
    if not signs or (len(signs) > _ONCE_OR_TWICE and len(set(signs)) == 1):
        return True
    if len(value) >= _LONG:
        return False  # a digest
    return (category == "email" and "@" not in value) or (category == "phone" and not any(map(str.isdigit, signs)))
