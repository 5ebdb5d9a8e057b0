"""`verify --values`: an auditor's own search, who has no plan, no manifest, no key, and trusts none."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from deltalake import DeltaTable, write_deltalake

from pii_tracer.cli.main import run
from tests.s3support import REGION, World, standin, world
from tests.verify.s3lake import MAIL, OTHER, Lake

__all__ = ["standin", "world"]

SHORT = "8841302"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with somebody else in it; the working folder has no estate file."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "lake"
    folder.mkdir()
    pq.write_table(pa.table({"mail": [OTHER], "uid": [7]}), folder / "a.parquet")
    return folder


def look(capsys: pytest.CaptureFixture[str], *words: str, values: tuple[str, ...] = (MAIL,)) -> tuple[int, Any]:
    """Exit code and final object; no value is ever said."""
    Path("values.txt").write_text("\n".join(values) + "\n")
    code = run(["verify", "--values", "values.txt", *words, "--format", "json"])
    out, err = capsys.readouterr()
    assert not any(value in out + err for value in values)
    return code, json.loads(out) if out else err


def test_a_place_where_everything_was_read_is_clean_and_nothing_is_left_behind(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = look(capsys, "--in", str(place))
    size = (place / "a.parquet").stat().st_size
    assert code == 0
    assert told == {
        "state": "clean",
        "values": 1,
        "short_numbers": 0,
        "places": [{"place": str(place), "files": 1, "bytes": size, "residue": 0}],
        "residue": [],
        "unverified": [],
    }
    assert sorted(p.name for p in place.parent.iterdir()) == ["lake", "values.txt"]


def test_who_was_deleted_by_a_statement_is_found_in_the_version_before(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = place / "t"
    write_deltalake(table, pa.table({"mail": [MAIL, OTHER]}))
    DeltaTable(table).delete(f"mail = '{MAIL}'")
    code, told = look(capsys, "--in", str(place))
    assert (code, told["state"]) == (9, "found")
    found = {
        (item["file"].partition("/")[0], item["file"].rpartition(".")[2], item["form"]) for item in told["residue"]
    }
    assert ("t", "parquet", "text") in found
    assert ("t", "json", "text") in found
    assert {item["copy"] for item in told["residue"]} == {str(place)}


@pytest.mark.parametrize(
    ("name", "body", "form"),
    [
        ("mail.csv.gz", gzip.compress(f"mail\n{MAIL}\n".encode(), mtime=0), "text"),
        (".hidden", json.dumps({"hash": hashlib.sha256(MAIL.encode()).hexdigest()}).encode(), "sha256"),
        (f"mail={MAIL}/part-0", b"", "text"),
    ],
)
def test_it_is_found_in_other_shapes_and_in_names(
    place: Path, capsys: pytest.CaptureFixture[str], name: str, body: bytes, form: str
) -> None:
    (place / name).parent.mkdir(exist_ok=True)
    (place / name).write_bytes(body)
    code, told = look(capsys, "--in", str(place))
    assert code == 9
    assert form in {item["form"] for item in told["residue"]}


def test_what_nobody_can_read_is_not_clean(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "b.parquet").write_bytes(b"PAR1 cut")
    code, told = look(capsys, "--in", str(place))
    assert (code, told["state"], told["residue"]) == (7, "unverified", [])
    assert told["unverified"][0].startswith("b.parquet: ")


def test_a_short_number_counts_where_a_whole_cell_is_it_and_the_column_is_told(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = [f"order {SHORT}99", "nothing"]
    pq.write_table(pa.table({"merchant": [int(SHORT), 5], "note": text}), place / "b.parquet")
    code, told = look(capsys, "--in", str(place), values=(SHORT,))
    assert (code, told["short_numbers"]) == (9, 1)
    assert {item["where"] for item in told["residue"]} == {"merchant"}
    assert run(["verify", "--values", "values.txt", "--in", str(place)]) == 9
    assert "1 of the values are short numbers: only their columns show whose they are" in capsys.readouterr().out


def test_values_may_come_from_a_pipe(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import io
    import sys

    (place / "b.txt").write_text(f"write to {MAIL}")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{OTHER}x\r\n\r\n {MAIL} \r\n".encode())))
    assert run(["verify", "--values", "-", "--in", str(place)]) == 9
    out = capsys.readouterr().out
    assert "found: " in out
    # as the cell of a text with one column, and as text
    assert out.rstrip().endswith("found: searched for 2 values · found in 2 places · unverified 0")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--values", "none.txt", "--in", "lake"], "there are no values to look for"),
        (["--values", "values.txt", "--in", "nowhere"], "the place to search does not exist"),
        (["--in", "lake"], "`--in` works only with `--values`"),
        (
            ["some.plan.json", "--values", "values.txt"],
            "`--values` cannot be combined with a plan, because the plan has its own values",
        ),
        (["--values", "values.txt", "--in", "s3://bucket/x"], "S3 needs an estate file, which says how to reach it"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    Path("values.txt").write_text(MAIL)
    Path("none.txt").write_text("\n  \n")
    assert run(["verify", *words]) == 2
    assert told in capsys.readouterr().err


def test_by_an_estate_its_roots_and_its_places_in_s3_are_searched_and_the_rest_is_told(
    place: Path, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = Lake(world, place.parent)
    lake.put("old.txt", MAIL.encode())
    lake.hide("old.txt")
    estate = {
        "version": 1,
        "estate": "shop",
        "environment": "local",
        "s3": {"endpoint_url": world.endpoint_url, "region": REGION},
        "catalogs": {},
        "roots": ["lake", "gone", f"s3://{lake.bucket}/"],
        "lineage": {},
        "subjects": [{"name": "c", "source": "a.b", "key": "mail"}],
        "kafka": [
            {
                "name": "k",
                "bootstrap": "127.0.0.1:1",
                "topics": [{"name": "orders", "of": "c", "value": {"format": "json"}}],
            }
        ],
    }
    Path("pii-tracer.yaml").write_text(yaml.safe_dump(estate))
    code, told = look(capsys)
    assert code == 9
    assert {item["file"].partition("?")[0] for item in told["residue"]} == {f"{lake.key}/old.txt"}
    assert {p["place"] for p in told["places"]} >= {str(place), f"s3://{lake.bucket}/"}
    assert any("gone" in item and "does not exist" in item for item in told["unverified"])
    assert "127.0.0.1:1/orders: not searched: it is searched with a plan only" in told["unverified"]


def test_what_an_estate_leads_to_and_nobody_searched_keeps_it_from_being_clean(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table that is declared beyond the roots, one that is gone, and a catalog that does not answer."""
    write_deltalake(place.parent / "beyond", pa.table({"mail": [MAIL]}))
    tables = [
        {"name": "a.beyond", "format": "delta", "location": "beyond"},
        {"name": "a.lost", "format": "delta", "location": f"lake/{MAIL}"},
    ]
    estate: dict[str, Any] = {
        "version": 1,
        "estate": "shop",
        "environment": "local",
        "catalogs": {"spark_catalog": {"type": "declared", "tables": tables}},
        "roots": ["lake"],
        "lineage": {},
        "subjects": [{"name": "c", "source": "a.b", "key": "mail"}],
    }
    Path("pii-tracer.yaml").write_text(yaml.safe_dump(estate))
    code, told = look(capsys)
    assert (code, told["state"], told["residue"]) == (7, "unverified", [])
    assert [line.partition(":")[0] for line in told["unverified"]] == ["outside_roots", "missing_table"]
    assert str(place.parent / "beyond") in told["unverified"][0]
    estate["catalogs"]["spark_catalog"]["tables"] = []
    estate["catalogs"]["desk"] = {"type": "iceberg-rest", "uri": "http://127.0.0.1:1"}
    Path("pii-tracer.yaml").write_text(yaml.safe_dump(estate))
    code, told = look(capsys)
    assert (code, told["unverified"][0].partition(":")[0]) == (7, "catalog_unreadable")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (MAIL.encode("utf-16"), "not in UTF-8"),
        (MAIL.encode("utf-16-le"), "line 1"),
        (f"x\n{MAIL}\u2028{OTHER}\n".encode(), "line 2"),
        (f"x\n{MAIL}\0\n".encode(), "line 2"),
        ("Zoë\n".encode("latin-1"), "not in UTF-8"),
    ],
)
def test_values_that_are_no_text_are_refused(
    place: Path, capsys: pytest.CaptureFixture[str], data: bytes, why: str
) -> None:
    Path("values.txt").write_bytes(data)
    assert run(["verify", "--values", "values.txt", "--in", str(place)]) == 2
    told = capsys.readouterr().err
    assert why in told
    assert "save the values as plain text in UTF-8, one value a line" in told
    assert MAIL not in told


@pytest.mark.parametrize("written", ['"{}"', "'{}'"])
def test_a_value_in_quotes_is_looked_for_without_them_too(
    place: Path, capsys: pytest.CaptureFixture[str], written: str
) -> None:
    (place / "b.txt").write_text(f"write to {MAIL}")
    code, told = look(capsys, "--in", str(place), values=(written.format(MAIL),))
    assert (code, told["state"]) == (9, "found")


def test_where_no_file_is_nothing_is_clean(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "a.parquet").unlink()
    code, told = look(capsys, "--in", str(place))
    assert (code, told["state"]) == (7, "unverified")
    assert "nothing was searched" in told["unverified"][0]
