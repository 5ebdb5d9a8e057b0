"""Which keys of other people look like the persons' to a search, so that the verifier has to know them."""

from __future__ import annotations

import pytest

from planners.copies.match_key_resolution import MOST_LONGER, lookalikes


@pytest.mark.parametrize(
    ("hers", "other", "another_key"),
    [
        ("asha", "Asha", True),
        ("asha", "asha-rao", True),
        ("asha", "V. ASHA", True),
        ("K-1", "k-1-2", True),
        ("K-1", "A/K-1", True),
        ("a-b", "a.b.c", False),  # other signs between the words: no search finds hers in it
        ("asha", "asharao", False),
        ("asha", "asha ", False),
        ("asha", '"asha"', False),
        ("asha", "sha", False),
        ("4711", "4711.0", False),
        ("4711", "4711-1", False),
    ],
)
def test_what_is_another_persons_key_by_its_words(hers: str, other: str, another_key: bool) -> None:
    assert lookalikes([hers], [other, "zoe"]) == (frozenset({other}) if another_key else frozenset())


def test_a_word_of_very_many_keys_makes_none_of_them_known() -> None:
    many = [f"acme-{n}" for n in range(MOST_LONGER + 1)]
    assert lookalikes(["acme"], many[1:]) == frozenset(many[1:])
    assert lookalikes(["acme"], [*many, "Acme"]) == {"Acme"}


def test_a_word_of_very_many_keys_hides_none_of_another_person() -> None:
    acme, bo = ([f"{name}-{n}" for n in range(MOST_LONGER)] for name in ("acme", "bo"))
    assert lookalikes(["acme", "bo"], [*acme, *bo]) == {*acme, *bo}
    assert lookalikes(["acme", "bo"], [*acme, "acme-x", *bo]) == set(bo)
