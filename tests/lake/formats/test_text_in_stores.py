"""Folders of delimited text in a store: which files are rows, how each is read, and what keeps a folder from it."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest

from executors.formats.plain_files.arrow_match import NOTHING, RowsError
from executors.formats.plain_files.parquet_dictionaries import holds_nothing
from executors.formats.plain_files.row_removal import RowRemoval
from pii_tracer.lake.formats.plain_files.rows import rows_of_file
from pii_tracer.lake.formats.plain_files.store_folder import Bare, StoredFolder, look_at_folder
from pii_tracer.lake.stores.remote_path import RemoteFile
from pii_tracer.model.datasets import DatasetId, Format, Match, MatchTerm
from pii_tracer.model.hive_text.layout import (
    Serde,
    TextColumn,
    TextLayout,
    TextPartition,
    TextTable,
    digest_of,
    text_of,
)

COLUMNS = (TextColumn(name="uid", type="string", whole=64), TextColumn(name="name", type="string"))
BARS = TextLayout(serde=Serde.DELIMITED, delimiter="|", escape="\\", null="\\N")
QUOTED = TextLayout(serde=Serde.QUOTED, delimiter=";", header_lines=1)
OTHER = TextPartition(folder=digest_of(PurePosixPath("day=2")), layout=QUOTED)
DAYS = TextTable(columns=COLUMNS, layout=BARS, keys=("day",), others=(OTHER,))
FILES = {"day=1/a.gz": gzip.compress(b"007|x\\|y\n8|z\n"), "day=2/000000_0": b'n;m\n"7";"a;b"\n', "day=1/_SUCCESS": b""}


@dataclass(frozen=True)
class Kept(RemoteFile):
    """A file in memory."""

    path: str
    data: bytes = b""

    def __str__(self) -> str:
        return self.path

    def part(self, first: int, at_most: int) -> bytes:
        return self.data[first : first + at_most]

    def length(self) -> int:
        return len(self.data)


def look(files: dict[str, bytes], table: TextTable = DAYS) -> Bare | str:
    listed = [Kept(f"gs://b/t/{name}", data) for name, data in files.items()]
    folder = DatasetId(namespace="gs://b", name="t")
    return look_at_folder(StoredFolder(folder, Kept("gs://b/t"), listed, "s", "db.t", table))


def test_each_file_is_read_by_its_partition() -> None:
    found = look(FILES)
    assert isinstance(found, Bare)
    assert [c.name for c in found.state.columns] == ["uid", "name", "day"]
    assert text_of(found.state.properties) == DAYS
    rows = [rows_of_file(file, ["uid", "name"]).to_pydict() for file in found.files]
    assert rows == [{"uid": ["7", "8"], "name": ["x|y", "z"]}, {"uid": ["7"], "name": ["a;b"]}]


@pytest.mark.parametrize(
    ("told", "name", "data"),
    [
        ("other than data files", "f.csv", b"uid,name\n1,a\n"),
        ("other than data files", "day=1/more/f", b"1|a\n"),
        ("other than data files", "day=1/.f", b"1|a\n"),
        ("other than data files", "hour=1/f", b"1|a\n"),
        ("codec is not supported", "day=1/f.lz4", b"1|a\n"),
        ("content is not what its name says", "day=1/f", b"PAR1\0\0\0"),
        ("not closed on its line", "day=2/f", b'n\n"1\n'),
        ("bytes that are not text", "day=1/f", b"1|a\0\n"),
    ],
)
def test_what_is_no_row_keeps_a_folder_from_being_written(told: str, name: str, data: bytes) -> None:
    found = look(FILES | {name: data})
    assert isinstance(found, str)
    assert told in found


def removal() -> RowRemoval:
    match = Match(terms=(MatchTerm(column="uid", key_set="uid", type="bigint"),))
    keys = {"uid": frozenset({"7"})}
    return RowRemoval(Format.CSV, match, keys, frozenset(), NOTHING, holds_nothing, DAYS, "t/")


def test_the_other_lines_of_an_object_stay_byte_for_byte() -> None:
    left = {name: removal().kept(data, f"t/{name}") for name, data in FILES.items()}
    assert gzip.decompress(left["day=1/a.gz"].data or b"") == b"8|z\n"
    assert left["day=2/000000_0"].data == b"n;m\n"
    assert left["day=1/_SUCCESS"].data is None
    assert [(one.rows_before, one.rows_after) for one in left.values()] == [(2, 1), (1, 0), (0, 0)]


@pytest.mark.parametrize("name", ["t/f", "t/day=1/more/f", "t//day=1/f", "elsewhere/day=1/f"])
def test_an_object_beyond_the_partitions_is_never_written(name: str) -> None:
    with pytest.raises(RowsError, match="not a partition of the table"):
        removal().kept(b"7|x\n", name)
