"""Many texts are found in another one as each alone is."""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from executors.formats.plain_files.parquet_stale_values import stand_in
from pii_tracer.common.texts_within import TextsWithin, Within

SIGNS = st.text(st.sampled_from("ab1٣_@ é中\ud800"), max_size=6)


@given(st.lists(SIGNS, max_size=5), SIGNS, st.lists(st.integers(0, 4), max_size=4))
def test_each_is_found_wherever_it_stands(texts: list[str], beside: str, planted: list[int]) -> None:
    text = beside.join(texts[n] for n in planted if n < len(texts))
    expected = Counter(
        Within(one, text[:at][-1:], text[at + len(one) : at + len(one) + 1])
        for one in set(texts) - {""}
        for at in range(len(text))
        if text.startswith(one, at)
    )
    search = TextsWithin(texts)
    assert Counter(search.found(text)) == expected
    assert search.stand_in(text.encode("utf-8", "surrogatepass")) == bool(expected)


@given(st.frozensets(SIGNS.filter(bool), max_size=4), SIGNS, SIGNS, st.booleans())
def test_a_value_stands_in_a_text_where_it_is_no_part_of_a_longer_one(
    values: frozenset[str], before: str, behind: str, word: bool
) -> None:
    for value in values:
        text = before + value + behind
        expected = False
        for one in values:
            for match in re.finditer(f"(?={re.escape(one)})", text):
                left, right = text[: match.start()][-1:], text[match.start() + len(one) :][:1]
                longer = one[-1].isdigit() and right.isdigit()
                named = word and any(sign.isalpha() for sign in one)
                expected |= not (longer or (named and (left.isalnum() or right.isalnum())))
        assert stand_in(values, text, word=word) == expected
