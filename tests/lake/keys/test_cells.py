from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_tracer.lake.keys.envelope.cells import Binding, Mode, Rows
from pii_tracer.lake.keys.envelope.columns import (
    KeyCache,
    Keys,
    Missing,
    decrypt,
    decrypt_all,
    encrypt,
    encrypt_all,
)
from pii_tracer.lake.keys.envelope.key_wrapping import LocalFile, Wrapper
from pii_tracer.model.errors import ShredError

USERS = Binding("lake.prod.users", "phone")
JOINED = Binding("lake.prod.users", "phone", Mode.EQUAL)
PHONES = pa.array(["9800012345", None, "9800012345", ""])
PEOPLE = pa.array(["anita", "anita", "anita", "ravi"])


@pytest.fixture(scope="module")
def wrapper(tmp_path_factory: pytest.TempPathFactory) -> Wrapper:
    return Wrapper(LocalFile(str(kek(tmp_path_factory.mktemp("kek")))), 3600)


def kek(folder: Path) -> Path:
    path = folder / "kek"
    path.write_bytes(os.urandom(32))
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def wrapped(wrapper: Wrapper) -> dict[str, bytes]:
    return {person: wrapper.new_key(person) for person in ("anita", "ravi")}


@pytest.fixture(scope="module")
def keys(wrapper: Wrapper, wrapped: dict[str, bytes]) -> Keys:
    return Keys.unwrapped(wrapped, wrapper)


@pytest.mark.parametrize("binding", [USERS, JOINED])
def test_a_column_comes_back(keys: Keys, binding: Binding):
    cells = encrypt(PHONES, PEOPLE, binding, keys)
    assert cells.type == pa.binary()
    assert cells[1].as_py() is None
    assert b"98000" not in b"".join(c for c in cells.to_pylist() if c)
    assert decrypt(cells, PEOPLE, binding, keys).cast(pa.string()).equals(PHONES)


@settings(deadline=None, max_examples=60)
@given(values=st.lists(st.one_of(st.none(), st.binary(max_size=80)), max_size=20), mode=st.sampled_from(Mode))
def test_any_bytes_come_back(keys: Keys, values: list[bytes | None], mode: Mode):
    plain, people = pa.array(values, pa.binary()), pa.array(["anita"] * len(values), pa.string())
    binding = Binding("t", "c", mode)
    assert decrypt(encrypt(plain, people, binding, keys), people, binding, keys).to_pylist() == values


@settings(deadline=None, max_examples=40)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["anita", "ravi", "nobody", None]),
            st.one_of(st.none(), st.text(max_size=9)),
            st.one_of(st.none(), st.binary(max_size=9)),
        ),
        max_size=30,
    ),
    size=st.integers(1, 7),
)
def test_columns_of_scattered_rows_come_back_in_their_order(
    keys: Keys, rows: list[tuple[str | None, str | None, bytes | None]], size: int
):
    whole = [row for row in rows if row[0] in ("anita", "ravi")]
    bindings = [Binding("t", "a", Mode.EQUAL), Binding("t", "b"), Binding("t", "c", Mode.EQUAL)]

    def columns(kept: list[tuple[str | None, str | None, bytes | None]]) -> list[pa.Array]:
        kinds = (pa.string(), pa.string(), pa.binary())
        return [pa.array([row[n] for row in kept], kind) for n, kind in enumerate(kinds)]

    people, text, raw = columns(whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pii_tracer.lake.keys.envelope.columns._SLICE", size)
        cells = encrypt_all(list(zip((text, text, raw), bindings, strict=True)), people, keys)
        given = list(zip(cells, bindings, strict=True))
        opened = decrypt_all(given, people, keys)
        assert [opened[0].cast(pa.string()), opened[1].cast(pa.string()), opened[2]] == [text, text, raw]
        # the same cells among rows of persons whose key is gone
        places = iter(range(len(whole)))
        at = pa.array([next(places) if row[0] in ("anita", "ravi") else None for row in rows], pa.int64())
        among = [(c.take(at), b) for c, b in given]
        assert decrypt_all(among, columns(rows)[0], keys) == [c.take(at) for c in opened]


def test_cells_are_what_the_standards_say(wrapper: Wrapper, wrapped: dict[str, bytes], keys: Keys):
    """Cells of earlier releases open, and join with new ones: key derivation and associated data by the book."""
    place = b"".join(len(p).to_bytes(4, "big") + p for p in (b"pii-tracer cell v1", b"lake.prod.users", b"phone"))
    bound = place + (5).to_bytes(4, "big") + b"anita"
    data_key = wrapper.unwrap("anita", wrapped["anita"])
    siv = AESSIV(HKDFExpand(hashes.SHA512(), 64, b"AES-SIV").derive(data_key))
    gcm = AESGCM(HKDFExpand(hashes.SHA256(), 32, b"AES-256-GCM").derive(data_key))
    by_the_book = b"\x02" + siv.encrypt(b"\x009800012345", [bound])
    assert encrypt(PHONES[:1], PEOPLE[:1], JOINED, keys)[0].as_py() == by_the_book
    random = pa.array([b"\x01" + b"n" * 12 + gcm.encrypt(b"n" * 12, b"9800012345", bound)])
    assert decrypt(random, PEOPLE[:1], USERS, keys)[0].as_py() == b"9800012345"


def test_nonces_are_not_used_twice(keys: Keys):
    cells = encrypt_all([(pa.array(["x"] * 5000), USERS)] * 2, pa.array(["anita"] * 5000), keys)
    assert len({cell[1:13] for column in cells for cell in column.to_pylist()}) == 10_000


def test_equal_values_show_only_where_they_are_meant_to(keys: Keys):
    hidden, shown = encrypt(PHONES, PEOPLE, USERS, keys), encrypt(PHONES, PEOPLE, JOINED, keys)
    assert hidden[0] != hidden[2]
    assert shown[0] == shown[2]
    others = encrypt(PHONES, pa.array(["ravi"] * 4), JOINED, keys)
    assert shown[0] != others[0]  # another person's same number does not show


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("wrong", ["table", "column", "person", "mode", "bytes"])
def test_a_cell_opens_only_where_it_belongs(keys: Keys, mode: Mode, wrong: str):
    binding = Binding("lake.prod.users", "phone", mode)
    cells, people = encrypt(PHONES[:1], PEOPLE[:1], binding, keys), PEOPLE[:1]
    if wrong == "person":
        people = pa.array(["ravi"])
    elif wrong == "bytes":
        cell = cells[0].as_py()
        cells = pa.array([cell[:-1] + bytes([cell[-1] ^ 1])])
    other = {"mode": next(m for m in Mode if m is not mode)} if wrong == "mode" else {}
    place = {"table": ("lake.prod.user", "sphone"), "column": ("lake.prod.users", "pan")}
    table, column = place.get(wrong, ("lake.prod.users", "phone"))
    with pytest.raises(ShredError, match="a cell cannot be decrypted"):
        decrypt(cells, people, Binding(table, column, other.get("mode", mode)), keys)


def test_a_destroyed_key_reads_as_null_or_error_and_others_stay(
    wrapper: Wrapper, wrapped: dict[str, bytes], keys: Keys
):
    cells = encrypt(PHONES, PEOPLE, USERS, keys)
    left = Keys.unwrapped({"ravi": wrapped["ravi"]}, wrapper)
    assert decrypt(cells, PEOPLE, USERS, left).to_pylist() == [None, None, None, b""]
    with pytest.raises(ShredError, match=r"no key was found for 1 person"):
        decrypt(cells, PEOPLE, USERS, left, missing=Missing.ERROR)
    with pytest.raises(ShredError, match="no key"):  # never passed through in plain
        encrypt(PHONES, PEOPLE, USERS, left)


def test_a_row_without_a_person_is_not_encrypted_under_anybodys_key(keys: Keys):
    with pytest.raises(ShredError, match="no key"):
        encrypt(pa.array(["9800012345"]), pa.array([None], pa.string()), USERS, keys)


def test_other_types_are_refused(keys: Keys):
    with pytest.raises(ShredError, match="int64"):
        encrypt(pa.array([1]), pa.array(["anita"]), USERS, keys)


def test_a_cached_key_reads_on_until_its_lifetime_ends(wrapper: Wrapper, wrapped: dict[str, bytes], keys: Keys):
    table, time = dict(wrapped), [0.0]
    cache = KeyCache(lambda people: {p: table[p] for p in people if p in table}, wrapper, 60, lambda: time[0])
    cells = encrypt(PHONES, PEOPLE, USERS, keys)
    people = ["anita", "ravi"]
    assert decrypt(cells, PEOPLE, USERS, cache.keys(people))[0].as_py() == b"9800012345"
    del table["anita"]
    time[0] = 59.9
    still = decrypt(cells, PEOPLE, USERS, cache.keys(people))
    assert still[0].as_py() == b"9800012345"  # destroyed, and readable: why the plan waits for the longest cache
    time[0] = 60.0
    gone = decrypt(cells, PEOPLE, USERS, cache.keys(people))
    assert gone.to_pylist() == [None, None, None, b""]


def test_a_wrapped_key_is_bound_to_its_person(wrapper: Wrapper, wrapped: dict[str, bytes]):
    with pytest.raises(ShredError, match="belongs to a different person"):
        wrapper.unwrap("ravi", wrapped["anita"])
    for broken in (b"", b"\x01", wrapped["anita"][:-1], b"\x02" + wrapped["anita"][1:]):
        with pytest.raises(ShredError, match="belongs to a different person"):
            wrapper.unwrap("anita", broken)


def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path):
    path = kek(tmp_path)
    path.chmod(0o644)
    with pytest.raises(ShredError, match="other users can read"):
        Wrapper(LocalFile(str(path)), 60).new_key("anita")
    path.chmod(0o600)
    path.write_bytes(b"short")
    with pytest.raises(ShredError, match="32 bytes"):
        Wrapper(LocalFile(str(path)), 60).new_key("anita")


def test_nothing_prints_a_key(wrapper: Wrapper, keys: Keys):
    cache = KeyCache(lambda people: {}, wrapper, 60)
    rows = Rows(Mode.RANDOM, [b"place"], [b"anita"], [b"key"], [0], [[b"value"]], [[b"nonce"]])
    shown = f"{wrapper!r} {keys!r} {cache!r} {rows!r}"
    assert "anita" not in shown
    assert "b'" not in shown
