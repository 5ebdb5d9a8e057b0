"""Cut bounds that two people share: the rows of the very file that a bound describes tell whose it is. Everything else
that looks like the person's cut value is residue: bounds of files that are gone, elsewhere, unread, or hold the person.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.hits import Form
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.byte_search import verify_bytes
from tests.scan.decode.test_places import MANIFEST
from tests.scan.support import avro, parquet, write
from tests.verify.conftest import a_copy

HERS, OTHERS = "christian.mueller@gmail.example", "christian.mueller@yahoo.example"
LONG, LONG_OTHERS = f"{'christian.mueller' * 2}@a.example", f"{'christian.mueller' * 2}@b.example"
EMAIL = KeySet(name="email", origin="email", weak=False, values=(("s", HERS), ("t", LONG)))
KEYS = build_patterns([EMAIL])
SCHEMA = json.dumps({"type": "struct", "fields": [{"id": 1, "name": "email", "type": "string"}]})


def rows(*emails: str) -> bytes:
    return parquet(pa.table({"email": list(emails)}), compression="zstd")


def entry(path: str, size: int, bound: str = HERS[:16], status: int = 1) -> dict[str, Any]:
    bounds = [{"key": 1, "value": bound.encode()}]
    return {"status": status, "data_file": {"file_path": path, "file_size_in_bytes": size, "lower_bounds": bounds}}


def manifest(*entries: dict[str, Any]) -> bytes:
    return avro(MANIFEST, list(entries), {"schema": SCHEMA}, "deflate")


def left(root: Path) -> set[tuple[str, str]]:
    """(file, form) of everything that counts as the person."""
    verdict = verify_bytes(a_copy(ICEBERG, root, match=None), KEYS, root)
    return {(found.file, found.form) for found in verdict.residue}


BOUND = {("metadata/m.avro", "prefix")}


@pytest.mark.parametrize("uri", ["{}", "file:{}", "file://{}"])
@pytest.mark.parametrize("status", [0, 1, 2])
def test_a_bound_of_a_file_that_holds_only_the_other_is_the_others(tmp_path: Path, uri: str, status: int) -> None:
    data = rows(OTHERS, "otto@x.example")
    write(tmp_path, "data/a.parquet", data)
    path = uri.format(tmp_path / "data/a.parquet")
    write(tmp_path, "metadata/m.avro", manifest(entry(path, len(data), status=status)))
    assert left(tmp_path) == set()
    raised = HERS[:15] + chr(ord(HERS[15]) + 1)
    write(tmp_path, "metadata/m.avro", manifest(entry(path, len(data), raised, status=status)))
    assert left(tmp_path) == set()


def test_whatever_does_not_prove_it_is_residue(tmp_path: Path) -> None:
    root, data = tmp_path / "t", rows(OTHERS)
    for name in ("t/data/a.parquet", "elsewhere/a.parquet", "t/data/a.txt"):
        write(tmp_path, name, data)
    (root / "data/link.parquet").symlink_to(tmp_path / "elsewhere/a.parquet")
    at = f"{root}/data"
    for path, size in (
        (f"{at}/gone.parquet", len(data)),
        (f"{at}/a.parquet", len(data) + 1),
        (f"{tmp_path}/elsewhere/a.parquet", len(data)),
        (f"{at}/../../elsewhere/a.parquet", len(data)),
        (f"{at}/link.parquet", len(data)),
        ("data/a.parquet", len(data)),
        ("a.parquet", len(data)),
        ("s3://bucket/data/a.parquet", len(data)),
        ("file://host/data/a.parquet", len(data)),
        ("", len(data)),
        (f"{at}/\0", len(data)),
    ):
        write(root, "metadata/m.avro", manifest(entry(path, size)))
        assert left(root) == BOUND, path
    write(root, "metadata/m.avro", manifest(entry(f"{at}/a.parquet", len(data)), entry(f"{at}/gone.parquet", 1)))
    assert left(root) == BOUND


@pytest.mark.parametrize(
    "content",
    [
        rows(HERS),
        rows(OTHERS, HERS),
        rows(f"see {HERS}"),
        rows(HERS.upper()),
        rows(OTHERS)[:-20],
        b"PAR1" + bytes(60) + b"PAR1",
        b"\x00\x01\x02 no format",
        b"",
        f"{OTHERS}\n".encode(),
        parquet(pa.table({"email": [OTHERS], "digest": ["1"]}).replace_schema_metadata({"note": HERS})),
    ],
)
def test_a_file_with_the_person_or_that_is_not_read_explains_nothing(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, "data/a.parquet", content)
    write(tmp_path, "metadata/m.avro", manifest(entry(f"{tmp_path}/data/a.parquet", len(content))))
    assert left(tmp_path) >= BOUND


def test_a_file_whose_name_holds_a_value_explains_nothing(tmp_path: Path) -> None:
    data, folder = rows(OTHERS), f"email={HERS}"
    write(tmp_path, f"data/{folder}/a.parquet", data)
    write(tmp_path, "data/email=[email]/a.parquet", data)
    for name in (folder, "email=[email]"):
        write(tmp_path, "metadata/m.avro", manifest(entry(f"{tmp_path}/data/{name}/a.parquet", len(data))))
        assert left(tmp_path) >= BOUND


CONTENT = {
    "hers": rows(HERS),
    "others": rows(OTHERS),
    "both": rows(OTHERS, HERS),
    "nobody": rows("a@x.example"),
    "cut": rows(OTHERS)[:-9],
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.lists(st.sampled_from([*CONTENT, "gone"]), min_size=1, max_size=4), st.booleans())
def test_no_bound_of_a_file_with_the_person_is_ever_explained(tmp_path: Path, kinds: list[str], one: bool) -> None:
    entries = []
    for number, kind in enumerate(kinds):
        path = tmp_path / f"data/{number}.parquet"
        path.unlink(missing_ok=True)
        if kind in CONTENT:
            write(tmp_path, f"data/{number}.parquet", CONTENT[kind])
        entries.append(entry(str(path), len(CONTENT.get(kind, b""))))
    for number in range(len(kinds), 4):
        (tmp_path / f"data/{number}.parquet").unlink(missing_ok=True)
    for old in (tmp_path / "metadata").glob("*"):
        old.unlink()
    parts = [entries] if one else [[each] for each in entries]
    for number, part in enumerate(parts):
        write(tmp_path, f"metadata/m{number}.avro", manifest(*part))
    found = {
        hit.of.path
        for file in scan_tree(tmp_path, KEYS).files
        for hit in file.hits
        if hit.form is Form.PREFIX and hit.of is not None
    }
    unproved = [str(tmp_path / f"data/{n}.parquet") for n, kind in enumerate(kinds) if kind not in ("others", "nobody")]
    assert found == set(unproved)


def _stats(bound: str) -> dict[str, Any]:
    return {"numRecords": 1, "minValues": {"email": bound}, "maxValues": {"email": f"{bound}\x7f"}}


def delta(place: str, path: str, size: int) -> tuple[str, bytes]:
    """A file of Delta's log that tells the bounds of a data file."""
    bounds = _stats(LONG[:32])
    file = {"path": path, "size": size, "stats": json.dumps(bounds)}
    if place in ("add", "remove"):
        return "_delta_log/00000000000000000001.json", json.dumps({place: file}).encode()
    if place == "crc":
        return "_delta_log/00000000000000000001.crc", json.dumps({"allFiles": [file]}).encode()
    parsed = {"path": path, "size": size, "stats_parsed": {k: v for k, v in bounds.items() if k != "numRecords"}}
    row = file if place == "checkpoint" else parsed
    return "_delta_log/00000000000000000001.checkpoint.parquet", parquet(pa.table({"add": [row]}), compression="zstd")


@pytest.mark.parametrize("place", ["add", "remove", "crc", "checkpoint", "checkpoint, parsed"])
@pytest.mark.parametrize("below", ["", "folder/t/"])
def test_delta_tells_files_from_the_tables_folder(tmp_path: Path, place: str, below: str) -> None:
    data, name = rows(LONG_OTHERS), "city=Bad Tölz/part-0.parquet"
    write(tmp_path, f"{below}{name}", data)
    log, noted = delta(place, quote(name), len(data))
    write(tmp_path, f"{below}{log}", noted)
    assert left(tmp_path) == set()
    for path, size in ((quote(name), len(data) + 1), ("part-1.parquet", len(data)), (quote(f"../{name}"), len(data))):
        write(tmp_path, f"{below}{log}", delta(place, path, size)[1])
        assert left(tmp_path) == {(f"{below}{log}", "prefix")}
    write(tmp_path, f"{below}{log}", noted)
    write(tmp_path, f"{below}{name}", rows(LONG_OTHERS, LONG))
    assert (f"{below}{log}", "prefix") in left(tmp_path)


def test_a_parquet_files_own_bounds_are_its_rows(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", rows(HERS[:16]))
    assert left(tmp_path) == set()
    write(tmp_path, "a.parquet", rows(HERS[:16], OTHERS, HERS))
    assert ("a.parquet", "text") in left(tmp_path)
    assert ("a.parquet", "prefix") in left(tmp_path)


def test_the_bounds_of_a_real_table_of_two_namesakes(tmp_path: Path) -> None:
    """As PyIceberg writes it. What her delete leaves behind, old manifests too, stays residue until it is swept."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/lake")
    catalog.create_namespace("n")
    people = pa.table({"email": [OTHERS, "otto@x.example"]})
    table = catalog.create_table("n.t", people.schema)
    table.append(people)
    root = tmp_path / "lake/n/t"
    assert left(root) == set()
    table.append(pa.table({"email": [HERS]}))
    assert {form for _, form in left(root)} == {"prefix", "text"}
    table.delete(f"email = '{HERS}'")
    for path in root.glob("data/*.parquet"):
        if HERS.encode() in path.read_bytes():
            path.unlink()
    kept = {form for _, form in left(root)}
    assert kept == {"prefix"}, "her file is gone, the manifests that bound it are not"
    catalog.close()
