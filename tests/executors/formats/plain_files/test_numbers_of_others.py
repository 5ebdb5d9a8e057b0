"""A Parquet file with another system's numbers: the number there is no reason to write the file again."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from executors.formats.plain_files.row_removal import Kept, RowRemoval
from pii_tracer.model.datasets import Format, KeySet, Match, MatchTerm
from pii_tracer.model.errors import RunError
from tests.executors.formats.plain_files.alone import Alone

KEY, MAIL = "7340219981", "asha.rao@mail.example"
MATCH = Match(terms=(MatchTerm(column="rider", key_set="rider.id", type="bigint"),))
NOBODYS = {"driver": frozenset({KEY})}


class Ring:
    def key_set(self, name: str) -> KeySet:
        return KeySet(name=name, origin="id", weak=False, values=(("s", KEY),))


def parquet(columns: dict[str, Any], metadata: dict[str, str] | None = None, **options: Any) -> bytes:
    out, table = io.BytesIO(), pa.table(columns)
    pq.write_table(table.replace_schema_metadata(metadata) if metadata else table, out, **options)
    return out.getvalue()


def kept(data: bytes, *, nobodys: dict[str, frozenset[str]] = NOBODYS) -> Kept:
    return RowRemoval.of(Alone(Ring(), nobodys, MAIL), None, MATCH, Format.PARQUET).kept(data)


NUMBERS = pa.array([int(KEY), int(KEY) + 1])
TEXTS = pa.array([KEY, "x"])
UNUSED = pa.DictionaryArray.from_arrays(pa.array([1, 1]), pa.array([KEY, "x"]))
DRIVERS = {"numbers": NUMBERS, "texts": TEXTS, "decimals": NUMBERS.cast(pa.decimal128(22, 2)), "unused entries": UNUSED}


@pytest.mark.parametrize("drivers", DRIVERS.values(), ids=DRIVERS)
def test_the_number_of_another_system_leaves_a_file_as_it_is(drivers: pa.Array) -> None:
    data = parquet({"rider": [1, 2], "driver": drivers})
    assert kept(data).data is None
    assert kept(data, nobodys={}).stale


@pytest.mark.parametrize("drivers", [NUMBERS, TEXTS], ids=["numbers", "texts"])
def test_a_file_that_was_written_again_is_free_of_the_person(drivers: pa.Array) -> None:
    first = kept(parquet({"rider": [int(KEY), 2, 3], "driver": [*drivers.to_pylist(), drivers[1].as_py()]}))
    assert first.rows_after == 2
    again = kept(parquet({"rider": [int(KEY), 2], "driver": drivers}, use_dictionary=False)).data
    assert first.data is not None
    assert again is not None
    assert kept(first.data).data is None
    assert kept(parquet({"rider": [2], "driver": [drivers[0].as_py()]})).data is None


@pytest.mark.parametrize(
    "columns",
    [
        {"fleet": TEXTS},
        {"driver": pa.array([f"of {KEY}", "x"])},
        {"driver": pa.array([{"driver": KEY}, {"driver": "x"}])},
    ],
    ids=["another column", "a longer text", "a struct"],
)
def test_the_same_number_elsewhere_is_stale(columns: dict[str, Any]) -> None:
    assert kept(parquet({"rider": [1, 2], **columns})).stale


def test_a_number_in_the_files_own_metadata_is_refused() -> None:
    with pytest.raises(RunError, match="metadata"):
        kept(parquet({"rider": [1], "driver": [KEY]}, {"made for": KEY}))


def test_a_column_of_many_names_is_compared_in_any_case() -> None:
    assert kept(parquet({"rider": [1, 2], "Driver": NUMBERS})).data is None


@pytest.mark.parametrize("entry", [MAIL, f"of {MAIL}", "somebody else's"])
def test_an_entry_of_a_dictionary_that_no_row_uses_goes(entry: str) -> None:
    """By whatever value of the person: an archive's rows may be found by her key, and a dictionary have her mail."""
    notes = pa.DictionaryArray.from_arrays(pa.array([1, 1]), pa.array([entry, "x"]))
    found = kept(parquet({"rider": [1, 2], "note": notes}))
    assert found.stale is (MAIL in entry)
    if found.data is not None:
        assert MAIL.encode() not in found.data
        assert found.rows_after == 2
        assert kept(found.data).data is None
