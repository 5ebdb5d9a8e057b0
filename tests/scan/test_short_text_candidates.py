"""Words of people: no value of which a form stands in them is left out, and others mostly are."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.forms.pattern_automaton import Tables
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.many_values.short_text_candidates import may_stand_in
from pii_tracer.scan.value_forms import Patterns
from tests.scan.test_many_values import VALUES

_ODD = re.compile(r"[^A-Za-z0-9 .,:;_@/-]")


def _found(texts: list[str], key_set: KeySet) -> bool:
    looked = Collector(Patterns([key_set]))
    for text in texts:
        looked.text(text, "")
    return bool(looked.hits())


@settings(max_examples=60, deadline=None)
@given(st.data(), st.lists(VALUES, min_size=1, max_size=4), st.booleans())
def test_no_value_that_is_found_is_left_out(data: st.DataObject, values: list[str], weak: bool) -> None:
    key_set = KeySet(name="one", origin="one", weak=weak, values=tuple((str(n), v) for n, v in enumerate(values)))
    tables = Tables()
    for value in values:
        tables.add(key_set.model_copy(update={"weak": False}), value)
    tables.show_digests()
    patterns = [p for table in (tables.folded, tables.exact, tables.bounded, tables.tiny) for p in table]
    planted = [p.decode("ascii", "replace") for p in patterns] + [*values, *map(str.upper, values), *tables.spaced]
    easy = sorted({_ODD.sub("-", text) for text in planted})
    joint = data.draw(st.sampled_from((" ", ", ", "", ".", "/", ": ", "-")))
    texts = data.draw(st.lists(st.lists(st.sampled_from(easy), max_size=3).map(joint.join), min_size=1, max_size=3))
    cut = data.draw(st.integers(1, 5))
    texts += [joint.join(text[at : at + cut] for at in range(0, len(text), cut)) for text in texts[:1]]
    near = may_stand_in(texts, key_set)
    for number, pair in enumerate(key_set.values):
        if number not in near:
            assert not _found(texts, key_set.model_copy(update={"values": (pair,)})), (texts, pair)


def test_each_form_without_odd_signs_is_near() -> None:
    for value in ("asha.rao77@mail.example", "8841302977", "+91 98450 12345", "Asha Rao", "K-123456"):
        key_set = KeySet(name="one", origin="one", weak=False, values=(("s", value), ("t", "nobody-else@x.example")))
        tables = Tables()
        tables.add(key_set, value)
        tables.show_digests()
        patterns = [p for table in (tables.folded, tables.exact, tables.bounded) for p in table]
        easy = [text for p in patterns if p.isascii() and not _ODD.search(text := p.decode())]
        assert len(easy) > 10
        for text in easy:
            assert 0 in may_stand_in([f"seen {text}, right"], key_set), text


def test_words_without_a_value_are_near_to_none() -> None:
    key_set = KeySet(
        name="one",
        origin="one",
        weak=False,
        values=tuple(
            (str(n), value) for n in range(200) for value in (f"person{n}@example.net", str(6_123_456_000 + n))
        ),
    )
    texts = ["Dr. Sen", "privacy officer", "erasure by Art. 17 GDPR, registered and checked on 2026-11-30"]
    assert may_stand_in(texts, key_set) == set()
    assert may_stand_in([*texts, "asked by person12 @ example.net"], key_set) == {2, 24}  # `person1`, too
    assert may_stand_in(["person 7: 100% right"], key_set) == set(range(400))  # of other signs nothing is known
