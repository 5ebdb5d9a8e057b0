"""Many values: their writings are not all made, and the same is found."""

from __future__ import annotations

import base64
import hashlib
import struct
import uuid
import weakref
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.forms.pattern_automaton import Tables
from pii_tracer.scan.many_values import search
from pii_tracer.scan.many_values.encoding_windows import DIGESTS, WRITINGS, Value, builder_of
from pii_tracer.scan.parquet_decryption_keys import FileKeys
from pii_tracer.scan.value_forms import Patterns, build_patterns

_SIGNS = st.characters(min_codepoint=33, max_codepoint=0x24F) | st.sampled_from("~\\+&<\"' .-_/中文가")
VALUES = st.one_of(
    st.integers(10**6, 10**12).map(str),
    st.integers(10**9, 10**12).map(lambda n: f"+{n}"),
    st.builds(lambda n, m: f"+49 {n} {m}", st.integers(100, 999), st.integers(10**6, 10**8)),
    st.builds(lambda n, m: f"{n}{m}@Mail.example", st.sampled_from(("asha", "Lena.M", "o_x")), st.integers(0, 10**6)),
    st.builds(lambda a, b: f"{a} {b}", st.sampled_from(("Asha", "José", "Wei")), st.sampled_from(("Rao", "O'Neil"))),
    st.uuids().map(str) | st.uuids().map(lambda number: number.hex),
    st.text(_SIGNS, min_size=6, max_size=24).filter(lambda text: text.strip() != ""),
    st.integers(0, 10**5).map(lambda n: f"  K-{n} "),
)
KEY_SETS = tuple(KeySet(name=name, origin=name, weak=name == "weak", values=()) for name in ("one", "two", "weak"))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(KEY_SETS), VALUES), min_size=1, max_size=5), st.binary(max_size=9))
def test_a_window_stands_in_every_writing(values: list[Value], beside: bytes) -> None:
    builder = builder_of(values)
    windows = builder.table()
    for number, (key_set, value) in enumerate(values):
        plain = Tables()
        plain.plain(key_set, value)
        for what, write in ((DIGESTS, Tables.digested), (WRITINGS, Tables.written)):
            tables, owner = Tables(), 2 * number + what
            write(tables, key_set, value)
            tables.show_digests()
            patterns = [*(p for p in tables.folded if p not in plain.folded), *tables.exact, *tables.bounded]
            for pattern in patterns:
                places, owners = windows.find(beside + pattern + beside)
                found = owner in owners and any(0 <= place - len(beside) < len(pattern) for place in places)
                assert found or owner in builder.windowless, pattern
                assert len(pattern) <= builder.longest


def _both(values: list[Value], monkeypatch: pytest.MonkeyPatch) -> tuple[Patterns, Patterns]:
    names = {key_set.name: key_set for key_set, _ in values}
    sets = [
        key_set.model_copy(update={"values": tuple(("subj", v) for k, v in values if k.name == name)})
        for name, key_set in names.items()
    ]
    few = Patterns(sets)
    with monkeypatch.context() as patch:
        patch.setattr(search, "MANY", 0)
        return few, Patterns(sets)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_many_values_are_found_as_few_are(data: st.DataObject) -> None:
    values = data.draw(st.lists(st.tuples(st.sampled_from(KEY_SETS), VALUES), min_size=1, max_size=4))
    with pytest.MonkeyPatch.context() as patch:
        few, many = _both(values, patch)
    tables = Tables()
    for key_set, value in values:
        tables.add(key_set, value)
    tables.show_digests()
    planted = [*tables.folded, *tables.exact, *tables.bounded]
    pieces = data.draw(st.lists(st.sampled_from(planted) | st.binary(max_size=12), max_size=12))
    text = data.draw(st.sampled_from((b" ", b"\n", b",", b"", b"\xc2\xad", b"\r\n> "))).join(pieces)
    for lines in (False, True):
        assert _places(few, text, lines) == _places(many, text, lines)
        assert few.quiet(text, text=lines) == many.quiet(text, text=lines)
        assert few.ended(text, text=lines) == many.ended(text, text=lines)
    assert list(few.bounded(text, tiny=True)) == list(many.bounded(text, tiny=True))
    numbers = [number for number in tables.ints if 0 <= number < 2**63]
    cells = [number.to_bytes(8, "big") for number in numbers] + [struct.pack("<d", number) for number in numbers]
    for cell in data.draw(st.lists(st.sampled_from(cells) | st.binary(max_size=9), max_size=6)) if cells else ():
        assert few.packed.in_cell(cell) == many.packed.in_cell(cell)


def _places(patterns: Patterns, text: bytes, lines: bool) -> Counter[tuple[str, int, int]]:
    found = patterns.occurrences(text, lines=lines)
    return Counter((name, start, end) for terms, start, end in found for name, _ in terms)


@pytest.mark.parametrize("many", [0, 5_000])
def test_all_who_search_share_patterns_that_go_with_the_last(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MANY", many)
    keys = FileKeys(lambda wrapped, name: b"0" * 16)
    asha = KeySet(name="one", origin="one", weak=False, values=(("s", "asha.rao@x.example"),))
    first, second = build_patterns([asha]), build_patterns((asha,), keys)
    assert (first.file_keys, second.file_keys) == (None, keys)
    assert first.sought is second.sought
    lena = build_patterns([asha.model_copy(update={"values": (("s", "lena.berg@x.example"),)})])
    assert not lena.raw(b"asha.rao@x.example")
    assert second.raw(b"asha.rao@x.example")
    kept = weakref.ref(first.sought)
    del first, second
    assert kept() is None  # no value stays in memory when nobody looks for it any more


def test_values_in_long_data_are_found_among_thousands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the size at which data are searched as they are; nobody else's number is taken for one of these."""
    numbers = tuple((f"s{n}", str(uuid.UUID(int=n << 64 | n * 7919))) for n in range(1, 61))
    key_set = KeySet(name="one", origin="one", weak=False, values=numbers)
    monkeypatch.setattr(search, "MANY", 50)
    patterns = Patterns([key_set])
    noise = "".join(f"row {n}, {uuid.UUID(int=n << 80)}, nothing here\n" for n in range(4000)).encode()
    assert not patterns.raw(noise, lines=True)
    for form, written in (("text", numbers[7][1].encode()), ("hex", numbers[8][1].encode().hex().encode())):
        found = patterns.raw(noise + written + noise, lines=True)
        assert [term for term, _ in found.items()] == [("one", form)]


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha256", "sha512"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"=\n"])
def test_a_digest_that_goes_on_in_the_next_line_is_found_by_both(
    algorithm: str, end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = "asha.rao@x.example"
    digest = hashlib.new(algorithm, value.encode())
    for written in (digest.hexdigest().encode(), base64.b64encode(digest.digest()).rstrip(b"=")):
        text = b"id: " + written[:19] + end + written[19:] + b" x"
        for patterns in _both([(KEY_SETS[0], value)], monkeypatch):
            assert "one" in {name for name, _ in patterns.raw(text, lines=True)}, written


@settings(max_examples=25, deadline=None)
@given(
    st.lists(VALUES, min_size=1, max_size=3), st.lists(st.sampled_from((b"", b"\n", b"x", b"--", b"%40")), max_size=4)
)
def test_a_text_that_was_met_before_is_answered_as_the_first_time(values: list[str], beside: list[bytes]) -> None:
    sets = [KeySet(name="one", origin="one", weak=False, values=tuple((str(n), v) for n, v in enumerate(values)))]
    known, forgetful = Patterns(sets), Patterns(sets)
    half = len(values[0].encode()) // 2
    texts = [values[0].encode(), b"".join([*beside, values[-1].encode()])]
    texts += [part + values[0].encode()[:half] + part + values[0].encode()[half:] for part in beside]
    asked = [(text, lines) for text in texts for lines in (True, False)]
    for text, lines in (*asked, *reversed(asked)):
        forgetful._known.clear()
        assert list(known.occurrences(text, lines=lines)) == list(forgetful.occurrences(text, lines=lines))
