from __future__ import annotations

import pytest

from pii_tracer.common.plurals import counted


@pytest.mark.parametrize(
    ("value", "forms", "said"),
    [
        (0, ("file",), "0 files"),
        (1, ("file",), "1 file"),
        (1200, ("file",), "1,200 files"),
        (1, ("copy is", "copies are"), "1 copy is"),
        (2, ("copy is", "copies are"), "2 copies are"),
    ],
)
def test_noun_and_verb_agree_with_the_number(value: int, forms: tuple[str, ...], said: str) -> None:
    assert counted(value, *forms) == said
