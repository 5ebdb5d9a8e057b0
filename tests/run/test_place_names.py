"""Where something lies, as journals may have it: names that a writer of tables makes, and no others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.run.masked_place_names import shown_path, shown_place

MADE = (
    "part-00000-3f2b8c1e-9a47-4e8e-8d3e-0c5f0a6b7d21-c000.snappy.parquet",
    "part-0.parquet",
    "0-3f2b8c1e-9a47-4e8e-8d3e-0c5f0a6b7d21-0.parquet",
    "00000-0-3f2b8c1e-9a47-4e8e-8d3e-0c5f0a6b7d21-00001.parquet",
    "3f2b8c1e-9a47-4e8e-8d3e-0c5f0a6b7d21-0_0-12-13_20261130101112123.parquet",
    "snap-7214578125978125781-1-3f2b8c1e-9a47-4e8e-8d3e-0c5f0a6b7d21.avro",
    "00000000000000000010.checkpoint.parquet",
    "00000000000000000010.json",
    "deletion_vector_3f2b8c1e-9a47-4e8e-8d3e-0c5f0a6b7d21.bin",
    "part-m-00003.snappy.orc",
    ".part-00000-3f2b8c1e-9a47-4e8e-8d3e-0c5f0a6b7d21-c000.csv.crc",
)
OF_PERSONS = (
    "bob.smith@example.org.parquet",
    "export_ada.lovelace@example.org.parquet",
    "4417700101.parquet",
    "part-4417700101.parquet",
    "part_ada.parquet",
    "part-4417-7001-0112-ada.csv.gz",
    "3f2b8c1e-9a47-4e8e-8d3e-0c5f0a6b7d21.json",
    "ada lovelace.CSV",
    "Ada Lovelace.pdf",
    "ada.lovelace",
    "ada.lovelace.zip",
    "ada.csv.enc",
    "part-47110.parquet",
    "00000000004417700101.json",
    "part-0bc83cb571cd1c50ba6f3e8a78ef1346.parquet",
)


@pytest.mark.parametrize("name", MADE)
def test_what_a_writer_of_tables_calls_a_file_is_told(name: str) -> None:
    assert shown_path(f"/lake/app/orders/{name}") == f"/lake/app/orders/{name}"


@pytest.mark.parametrize("name", OF_PERSONS)
def test_what_somebody_calls_a_file_is_not(name: str) -> None:
    shown = shown_path(name)
    assert shown.startswith("…")
    assert shown.partition(".")[0][1:].isalnum()
    assert shown_place(f"s3://lake/orders/{name}") == f"s3://lake/orders/{shown}"


def test_folders_tell_their_names_but_no_values() -> None:
    assert shown_path("w/mail=a@x.example/day=1/part-0.parquet") == "w/mail=…/day=…/part-0.parquet"
    assert "ada" not in shown_path("/lake/of/ada@x.example/part-0.parquet")
    assert "ada" not in shown_path("/lake/of/ada%40x.example/part-0.parquet")
    assert "44177" not in shown_path("/lake/users/4417700101/part-0.parquet")
    for folder in ("4711-2233-1199", "+49 170 12 34", "0bc83cb571cd1c50ba6f3e8a78ef1346", "u47110"):
        assert shown_path(f"/lake/{folder}/part-0.parquet").startswith("/lake/…")
    assert (
        shown_path("/lake/2026-11-30/of_2026_11_30/part-0.parquet") == "/lake/2026-11-30/of_2026_11_30/part-0.parquet"
    )
    assert shown_path("/lake/2026/11/20261130/part-0.parquet") == "/lake/2026/11/20261130/part-0.parquet"
    assert shown_path("s3://logs-123456789012/app/users") == "s3://logs-123456789012/app/users"
    key = "arn:aws:kms:eu-west-1:123456789012:key/3f2b8c1e-9a47-4e8e-8d3e-0c5f0a6b7d21"
    assert shown_place(key) == key


def test_the_name_of_a_table_is_told() -> None:
    assert shown_place("lake.app.users_20261130") == "lake.app.users_20261130"


@given(st.from_regex(r"[a-z]{1,9}[._-]?[a-z]{0,9}@[a-z]{1,9}\.(example|test)", fullmatch=True), st.sampled_from(MADE))
def test_no_address_is_ever_told(address: str, made: str) -> None:
    suffix = made[made.index(".") :]
    for name in (address, address + suffix, f"part-0-{address}{suffix}", f"{address}/{made}"):
        assert address not in shown_place(f"/lake/{name}")


@given(st.integers(10**9, 10**16 - 1), st.sampled_from(["{}.csv", "part-{}.parquet", "{}/part-0.orc", "data_{}.json"]))
def test_no_long_number_is_ever_told(number: int, pattern: str) -> None:
    assert str(number) not in shown_path("w/" + pattern.format(number))
