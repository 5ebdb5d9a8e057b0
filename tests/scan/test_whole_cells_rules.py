"""What a longer word in a key column is, and what is none: cells, folders, bounds, and bytes beside them; and a slow model."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pii_tracer.model.datasets import (
    FieldAccess,
    KeySet,
    Match,
    MatchTerm,
)
from pii_tracer.scan.key_boundaries import KeyColumns
from pii_tracer.scan.known_columns import key_columns
from pii_tracer.scan.value_forms import build_patterns
from tests.scan.support import avro_value, hfile, parquet, scan
from tests.scan.test_whole_cells import ASHAK, EVERYWHERE, HERS, KEYS, OTHERS, PARQUET, keys_and_note, made, seen

SEPARATED = [
    HERS,
    HERS.upper(),
    f" {HERS}\t",
    f"{HERS}-Pune",
    f"{HERS}@x",
    f"{HERS}, {ASHAK}",
    f"{ASHAK} {HERS}",
    f"{HERS}_2",
    f"{HERS}\u0301",
    f"{ASHAK}\\n{HERS}",
    f"\\n{HERS}",
    f"%3C{HERS}",
    f"=3D{HERS}",
    f"&lt{HERS}",
    f'{{"a": "{HERS}"}}',
    f"https://x.example/{HERS}k%20",
]


@pytest.mark.parametrize("text", SEPARATED)
def test_what_still_counts_in_a_key_cell(text: str) -> None:
    for options in PARQUET.values():
        assert seen(("a.parquet", parquet(pa.table({"uid": [ASHAK, text, ASHAK]}), **options))).hits
    assert seen(("a.json", "\n".join(json.dumps({"uid": key}) for key in (ASHAK, text)).encode())).hits


def test_digits_and_words_of_digits_keep_their_own_rules() -> None:
    """Zeros in front, a unit or an extension behind: the same number. Only a word can be a longer word."""
    phone = "+91 98450 12345"
    patterns = build_patterns([KeySet(name="uid", origin="uid", weak=False, values=(("s", phone),))])
    patterns = patterns.comparing(KeyColumns({"uid": ["uid"]}))
    for text in (f"{phone}x7", f"{phone}ext"):
        assert seen(("a.parquet", parquet(pa.table({"uid": [text]}))), patterns).hits


def test_binary_cells_and_text_without_columns_keep_counting() -> None:
    assert seen(("a.parquet", parquet(pa.table({"uid": [ASHAK.encode()]})))).hits
    assert seen(("a.txt", f"uid={ASHAK}\n".encode())).hits
    assert seen(("a.csv", f"uid\n{ASHAK}\n".encode())).hits, "one column: the end of a value cannot be seen"


def test_cells_of_ragged_rows_belong_to_no_column() -> None:
    """A comma in a note that nobody quoted moves the rest of it into the key's column."""
    for row in (f"see,{ASHAK},1", f"1,{ASHAK}"):
        assert seen(("a.csv", f"note,uid,at\nx,Z-9,1\n{row},9\n"[:-2].encode() + b"0,0\n")).hits


def test_a_csv_column_is_known_by_the_name_that_the_plan_gives_it() -> None:
    keys = EVERYWHERE.comparing(KeyColumns({"userId": ["uid"]}))
    assert seen(("a.csv", f"userId,Note\n{ASHAK},x\n".encode()), keys).hits == ()
    assert seen(("a.csv", f"userId,Note\n{ASHAK},{ASHAK}\n".encode()), keys).hits
    assert seen(("a.csv", f"userId,userId\n{ASHAK},{ASHAK}\n".encode()), keys).hits, "whose is which?"


@pytest.mark.parametrize("hidden", [HERS, f"for {ASHAK}", f"{ASHAK} x"])
def test_what_no_member_or_cell_shows_counts_beside_the_longer_key(hidden: str) -> None:
    """Of a name that is repeated the last one is shown; behind a field that is too long, no cell is."""
    repeated = f'{{"uid": "{ASHAK}", "note": "{hidden}", "note": "x"}}'
    assert seen(("a.json", repeated.encode())).hits
    assert seen(
        ("t/_delta_log/1.json", f'{{"add": {{"minValues": {{"uid": "{ASHAK}"}}, "t": {repeated}}}}}'.encode())
    ).hits
    long = "x" * 200_000
    assert seen(("a.csv", f"uid,note\n{ASHAK},x\n{long},x\nx,{hidden}\n".encode())).hits
    assert seen(("a.csv", f"uid,note\n{ASHAK},x\n".encode())).hits == ()


def test_free_text_in_a_log_has_no_partition_folders() -> None:
    note = {"operationParameters": {"predicate": f"x/uid={ASHAK}/y"}}
    assert seen(("t/_delta_log/1.json", json.dumps({"commitInfo": note}).encode())).hits
    assert seen(("t/_delta_log/1.json", json.dumps({"add": {"path": f"x/uid={ASHAK}/y"}}).encode())).hits == ()


def test_a_longer_key_in_very_many_rows_is_one_cell() -> None:
    keys = [*[ASHAK] * 20_001, "kasha.rao", "z"]
    assert seen(("a.parquet", parquet(pa.table({"uid": keys}), compression="none", use_dictionary=False))).hits == ()


@pytest.mark.parametrize("folder", ["uid=asha.raok", "city=Pune/uid=kasha.rao"])
def test_partition_folders(folder: str) -> None:
    assert seen((f"t/{folder}/a.parquet", parquet(pa.table({"n": [1]})))).hits == ()
    for name in (f"t/uid={HERS}/{folder}/a", f"t/{folder}/uid={HERS}/a", f"t/x/{ASHAK}/a", f"t/note={ASHAK}/a"):
        assert seen((name, b"-")).hits, name
    assert seen((f"t/uid={ASHAK}k", b"-")).hits, "the name of a file, not of a folder"
    assert seen((f"t/uid=%3C{HERS}/a", b"-")).hits


RECORD_INDEX = {
    "type": "record",
    "name": "HoodieMetadataRecord",
    "fields": [{"name": "key", "type": "string"}, {"name": "type", "type": "int"}],
}


def _indexed(key: str, kind: int) -> tuple[str, bytes]:
    entry = (key.encode(), avro_value(RECORD_INDEX, {"key": key, "type": kind}))
    return ".hoodie/metadata/record_index/r.hfile", hfile([entry], RECORD_INDEX, gz=False)


def test_keys_of_rows_in_hudis_record_index() -> None:
    assert seen(_indexed(ASHAK, 5)).hits == ()
    assert seen(_indexed(HERS, 5)).hits
    # the key of a list of files is a folder, not a row: seen as the entry's key, and in its record
    assert [hit.count for hit in seen(_indexed(ASHAK, 2)).hits if hit.where == "hfile key"] == [2]


BOUNDS = [("asha.rao", True), ("asha.raok", False), ("asha.raokkkkkkkk", False), ("asha.rao@xxxxxxx", True)]


@pytest.mark.parametrize(("bound", "red"), BOUNDS)
def test_bounds_in_metadata(bound: str, red: bool) -> None:
    for place in ("iceberg manifest", "delta log", "delta checkpoint"):
        assert bool(seen(made(place, [bound])).hits) is red, place


def test_a_bound_that_may_be_cut_right_behind_the_person_counts() -> None:
    """`prefix@home` cut at sixteen characters and raised is `prefixA`."""
    hers = "asha.rao.mumbai"
    patterns = build_patterns([KeySet(name="uid", origin="uid", weak=False, values=(("s", hers),))])
    patterns = patterns.comparing(KeyColumns({"uid": ["uid"]}))
    for bound, red in (
        (f"{hers}A", True),
        (f"{hers}a", True),
        (f"{hers}0", True),
        (f"{hers}k", False),
        (f"{hers}Ax", False),
    ):
        assert bool(seen(made("iceberg manifest", [bound]), patterns).hits) is red, bound
    assert seen(made("csv", [f"{hers}A"]), patterns).hits == (), "a cell of a row is not cut"


@pytest.mark.parametrize("status", ["", ", deleted"])
def test_a_bound_cut_to_what_both_share_counts(status: str) -> None:
    """Nobody can tell from sixteen characters whose the rest was; where they differ before, everybody can."""
    hers = "asha.rao.of.mumbai"
    patterns = build_patterns([KeySet(name="uid", origin="uid", weak=False, values=(("s", hers),))])
    patterns = patterns.comparing(KeyColumns({"uid": ["uid"]}))
    for whole, red in ((hers, True), (f"{hers}k", True), (f"k{hers}", False)):
        assert bool(seen(made(f"iceberg manifest{status}", [whole[:16]]), patterns).hits) is red, whole
    raised = hers[:15] + chr(ord(hers[15]) + 1)
    assert seen(made(f"iceberg manifest{status}", [f"{hers}k", raised]), patterns).hits
    assert seen(made(f"iceberg manifest{status}", [f"{hers}k"]), patterns).hits == (), "not cut: not hers"


@pytest.mark.parametrize("options", PARQUET.values(), ids=PARQUET)
def test_the_person_in_one_place_of_a_file_beside_the_longer_key_everywhere_else(options: dict[str, Any]) -> None:
    """Bytes of the file that held the longer key now hold the person: wherever the text stands plain."""
    longer = "asha.raok"
    data = parquet(keys_and_note([longer], "paid"), **options)
    starts = [at for at in range(len(data)) if data.startswith(longer.encode(), at)]
    for at in starts:
        for hers in (b"asha.rao\0", b"asha.rao-", b"\x07asha.rao"):
            assert seen_or_unread(data[:at] + hers + data[at + len(longer) :]), at


def seen_or_unread(data: bytes) -> bool:
    result = scan("a.parquet", data, KEYS)
    return bool(result.hits or result.unread)


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_bytes_that_no_decoder_gave_keep_counting(compression: str) -> None:
    plain = parquet(keys_and_note([ASHAK], "paid"), compression=compression)
    footer = len(plain) - 8 - int.from_bytes(plain[-8:-4], "little")
    assert seen(("a.parquet", plain)).hits == ()
    for hidden in (HERS, f"{ASHAK}k", "q" + ASHAK):
        assert seen(("a.parquet", plain[:footer] + hidden.encode() + plain[footer:])).hits, hidden


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_dictionary_entries_that_no_row_uses(compression: str) -> None:
    for key, clean in ((HERS, False), (ASHAK, True), ("kasha.rao", True)):
        column = pa.array([key, "A-1", ASHAK]).dictionary_encode()
        data = parquet(pa.table({"uid": column}).slice(1), compression=compression)
        assert (seen(("a.parquet", data)).hits == ()) is clean
        nested = pa.table({"note": pa.StructArray.from_arrays([column], ["uid"])}).slice(1)
        assert seen(("a.parquet", parquet(nested, compression=compression))).hits, "another column's dictionary"


def test_one_value_in_two_key_sets_is_told_by_the_column_of_either() -> None:
    sets = [KeySet(name=name, origin="uid", weak=False, values=(("s", HERS),)) for name in ("uid", "uid|lower(x)")]
    patterns = build_patterns(sets).comparing(KeyColumns({"uid": ["uid|lower(x)"]}))
    assert seen(made("parquet snappy", OTHERS), patterns).hits == ()
    assert {hit.key_set for hit in seen(made("parquet snappy", [HERS]), patterns).hits} == {"uid", "uid|lower(x)"}


def test_key_columns_are_those_that_the_plan_deletes_by_as_they_are() -> None:
    term = MatchTerm(column="uid", key_set="uid", type="string")
    nested = MatchTerm(column="payer", access=(FieldAccess(name="uid"),), key_set="uid", type="string")
    keys = key_columns(Match(terms=(term, nested)))
    assert "UID" in keys
    assert "payer" not in keys
    assert "payer.uid" not in keys
    assert None not in key_columns(None)


def test_a_file_of_many_groups_and_both_persons() -> None:
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, pa.schema([("uid", pa.string())]), compression="zstd") as writer:
        for number in range(6):
            writer.write_table(pa.table({"uid": [ASHAK, f"A-{number}", HERS if number == 4 else "x"] * 5}))
    (hit,) = seen(("a.parquet", sink.getvalue())).hits
    assert (hit.where, hit.column) == ("data", "uid")


LETTERS = st.sampled_from("kx9éK-_@., '\u0301")
AROUND = st.text(LETTERS, max_size=3)
CELL = st.one_of(
    st.tuples(AROUND, st.sampled_from([HERS, HERS.upper(), HERS[:-1]]), AROUND).map("".join),
    st.text("ash.ro", max_size=12),
)


def _slow(cells: list[str], notes: list[str]) -> bool:
    """The slow model: whether a cell of the key column shows the value with no letter or digit touching it, or of the
    other column shows it at all but for the digits that make it a longer number.
    """

    def at(cell: str, of_keys: bool) -> bool:
        for match in re.finditer(f"(?={re.escape(HERS)})", cell, re.IGNORECASE):
            before, behind = cell[: match.start()][-1:], cell[match.start() + len(HERS) :][:1]
            if not (of_keys and (before.isalnum() or behind.isalnum())):
                return True
        return False

    return any(at(cell, True) for cell in cells) or any(at(note, False) for note in notes)


@given(
    st.lists(CELL, min_size=1, max_size=6),
    st.lists(st.one_of(st.just("paid"), CELL), max_size=1),
    st.sampled_from(["none", "snappy", "gzip", "zstd", "brotli", "lz4"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["1.0", "2.0"]),
    st.booleans(),
)
@example([ASHAK], [ASHAK], "none", True, True, "1.0", True)
@example([ASHAK, HERS], [], "snappy", True, True, "1.0", True)
@example(["kasha.rao", f"{ASHAK}-{HERS}"], [], "none", False, False, "2.0", False)
def test_found_exactly_when_a_slow_look_finds_it(
    cells: list[str], notes: list[str], codec: str, coded: bool, bounds: bool, version: str, index: bool
) -> None:
    size = max(len(cells), len(notes))
    padded = ([*cells, *["-"] * (size - len(cells))], [*notes, *["-"] * (size - len(notes))])
    data = parquet(
        pa.table({"uid": padded[0], "note": padded[1]}),
        compression=codec,
        use_dictionary=coded,
        write_statistics=bounds,
        data_page_version=version,
        write_page_index=bounds and index,
    )
    assert bool(seen(("a.parquet", data)).hits) is _slow(cells, notes)
