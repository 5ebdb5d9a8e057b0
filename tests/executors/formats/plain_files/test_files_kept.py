"""What else a rewritten file keeps: who may read it, encodings and indexes; and that encrypted ones are left alone."""

from __future__ import annotations

import base64
import io
import os
import stat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.parquet import encryption

from executors.engine import local_files
from executors.formats.plain_files import parquet_rewrite
from executors.formats.plain_files.arrow_match import RowsError
from pii_tracer.model.datasets import Format, Match, MatchTerm
from pii_tracer.model.errors import RunError
from tests.executors.formats.plain_files.alone import drop_rows
from tests.executors.formats.plain_files.test_files import (
    here,
    parquet,
    rewrite,
    steps_for,
)
from tests.executors.world import UID, residue, rows
from tests.sparksession import SparkEstate

__all__ = ["here"]

MATCH = Match(terms=(MatchTerm(column="uid", key_set="uid", type="bigint"),))
KEYS = {"uid": frozenset({"7"})}
NOBODY = 65_534


def lines(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("id,uid,email,amount\n" + "".join(",".join(map(str, row)) + "\n" for row in rows(0, 5, (2,))))


@pytest.mark.parametrize(("kind", "name"), [(Format.PARQUET, "a.parquet"), (Format.CSV, "a.csv")])
def test_the_same_people_may_read_it(
    here: SparkEstate, monkeypatch: pytest.MonkeyPatch, kind: Format, name: str
) -> None:
    path = here.folder("kept") / name
    parquet(path, rows(0, 5, (2,))) if kind is Format.PARQUET else lines(path)
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    path.chmod(0o640)
    before, meanwhile = path.stat(), []
    let_in = local_files.let_in

    def watched(old: Path, new: Path) -> None:
        meanwhile.append(stat.S_IMODE(new.stat().st_mode))
        let_in(old, new)

    monkeypatch.setattr(local_files, "let_in", watched)
    steps = steps_for(here, path.parent, kind)
    steps.all(rewrite(steps))
    assert residue(path.parent) == []
    after = path.stat()
    assert after.st_ino != before.st_ino
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert meanwhile == [0o600], "nobody else may read what is not whole yet"


def test_a_file_whose_group_cannot_be_given_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("old")
    new.write_text("new")

    def refused(path: Path, user: int, group: int) -> None:
        raise PermissionError

    real = Path.stat

    def another_group(path: Path, **options: Any) -> os.stat_result:
        found = real(path, **options)
        return os.stat_result([*found[:5], 4711, *found[6:10]]) if path == old else found

    monkeypatch.setattr(os, "chown", refused)
    monkeypatch.setattr(Path, "stat", another_group)
    with pytest.raises(RunError, match="cannot get the group of the old file"):
        local_files.swap(old, new, local_files.state_of(old))
    assert old.read_text() == "old"


def encrypted(path: Path, made: list[tuple[int, int, str, int]]) -> None:
    """One column is, the footer is not."""

    class Client(encryption.KmsClient):  # type: ignore[misc]
        def __init__(self, _: Any) -> None:
            encryption.KmsClient.__init__(self)

        def wrap_key(self, key: bytes, _: str) -> bytes:
            return base64.b64encode(key)

        def unwrap_key(self, wrapped: bytes, _: str) -> bytes:
            return base64.b64decode(wrapped)

    how = encryption.EncryptionConfiguration(footer_key="f", column_keys={"c": ["amount"]}, plaintext_footer=True)
    factory = encryption.CryptoFactory(Client)
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), how)
    parquet(path, made, encryption_properties=properties)


def test_a_file_with_an_encrypted_column_stops_the_step_before_anything_is_written(here: SparkEstate) -> None:
    """Arrow would end the whole process when it is asked how such a column is compressed."""
    folder = here.folder("secret")
    parquet(folder / "a.parquet", rows(0, 5, (2,)))
    encrypted(folder / "b.parquet", rows(5, 5, (7,)))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    steps = steps_for(here, folder, Format.PARQUET)
    with pytest.raises(RunError, match="encrypted columns"):
        steps.once(*rewrite(steps)[:1], format="parquet")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    with pytest.raises(RowsError, match="encrypted columns"):
        drop_rows(before["b.parquet"], Format.PARQUET, MATCH, {"uid": frozenset({str(UID)})}, frozenset(), "b.parquet")


def test_encodings_indexes_bloom_filters_and_order_are_kept() -> None:
    table = pa.table(
        {
            "uid": list(range(50)),
            "text": [f"s{n}" for n in range(50)],
            "share": [n / 7 for n in range(50)],
            "kind": ["x", "y"] * 25,
            "several": [[n, n + 1] for n in range(50)],
        }
    )
    asked = {"uid": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY", "share": "BYTE_STREAM_SPLIT"}
    options: dict[str, Any] = {
        "use_dictionary": ["kind"],
        "column_encoding": asked | {"several.list.element": "DELTA_BINARY_PACKED"},
        "write_page_index": True,
        "sorting_columns": [pq.SortingColumn(0)],
        "bloom_filter_options": {"text": {"ndv": 20}},
    }
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=20, **options)

    def layout(data: bytes) -> list[Any]:
        group = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0)
        columns = [group.column(index) for index in range(group.num_columns)]
        told = [(c.encodings, c.has_column_index, c.has_offset_index, bool(c.bloom_filter_length)) for c in columns]
        return [*told, group.sorting_columns]

    kept = drop_rows(file.getvalue(), Format.PARQUET, MATCH, KEYS, frozenset(), "a.parquet")
    assert kept.data is not None
    assert layout(kept.data) == layout(file.getvalue())
    assert pq.read_table(io.BytesIO(kept.data)).to_pylist() == [r for r in table.to_pylist() if r["uid"] != 7]
    plain = io.BytesIO()
    pq.write_table(table, plain)
    again = drop_rows(plain.getvalue(), Format.PARQUET, MATCH, KEYS, frozenset(), "a.parquet").data
    assert again is not None
    assert layout(again) == layout(plain.getvalue())


def test_the_writer_that_is_asked_for_nothing_is_asked_for_nothing() -> None:
    """So that versions of Arrow which do not know an option write files that do not need it."""
    file = io.BytesIO()
    pq.write_table(pa.table({"uid": [1]}), file)
    assert parquet_rewrite._placed(pq.ParquetFile(file), None) == {}
