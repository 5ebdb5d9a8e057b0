"""CSV folders that are not UTF-8: a gap that names the option, and with the option a table like any other."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from pydantic import ValidationError

from pii_tracer.config.catalogs import (
    Catalog,
    CatalogType,
    DeclaredTable,
    TextEncoding,
)
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.inventory import ENCODING, TableState
from pii_tracer.lake.rows.current_rows import read_columns
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    Carries,
    CopyKind,
    DatasetId,
    Format,
    Match,
    MatchTerm,
    Strategy,
)
from pii_tracer.model.errors import EstateError
from pii_tracer.model.plan import Copy
from planners.formats.plain_files.steps import folder_steps
from planners.step_drafts import CopyDraft
from tests.lake.s3_lakehouse import estate_of


def estate(encoding: str | None) -> Estate:
    table = DeclaredTable.model_validate(
        {"name": "x.people", "format": "csv", "location": "warehouse/people", "encoding": encoding}
    )
    catalog = Catalog(type=CatalogType.DECLARED, tables=(table,))
    return estate_of().model_copy(update={"catalogs": {"session": catalog}})


def write(base: Path, data: bytes, name: str = "a.csv") -> None:
    folder = base / "warehouse" / "people"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


LATIN = "größe,no\nZoë,1\n“Bo”,2\n".encode("cp1252")
LATE = "größe,no\n".encode() + b"ok,1\n" * 5000 + b"Zo\xeb,1\n"


@pytest.mark.parametrize("data", [LATIN, LATE, gzip.compress(LATIN, mtime=0)])
def test_without_a_declaration_it_is_a_gap_that_names_the_option(tmp_path: Path, data: bytes) -> None:
    write(tmp_path, data, "a.csv.gz" if data[:2] == b"\x1f\x8b" else "a.csv")
    found = discover(estate(None), tmp_path)
    assert found.tables == ()
    (gap,) = [g for g in found.gaps if g.kind == "unreadable"]
    assert gap.reason == (
        "a csv file is not UTF-8: declare its folder as a table of the format csv with its `encoding`"
        " (windows-1252 or iso-8859-1), under a catalog of the type declared; write the declaration as docs/estate-file.md shows"
    )


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_with_one_it_is_read_in_it(tmp_path: Path, name: str) -> None:
    write(tmp_path, gzip.compress(LATIN) if name.endswith("gz") else LATIN, name)
    made = estate("windows-1252")
    found = discover(made, tmp_path)
    assert [g for g in found.gaps if g.kind in ("unreadable", "missing_table")] == []
    (state,) = found.tables
    assert ([c.name for c in state.columns], state.properties) == (["größe", "no"], {ENCODING: "windows-1252"})
    rows = read_columns(state, ["größe", "no"], EstatePaths(made, tmp_path)).to_pylist()
    assert rows == [{"größe": "Zoë", "no": "1"}, {"größe": "“Bo”", "no": "2"}]


def test_a_byte_without_a_character_leaves_the_table_known_and_its_rows_unread(tmp_path: Path) -> None:
    """Files are written again byte for byte all the same; only who stands in it cannot be told at planning."""
    write(tmp_path, LATIN + b"\x81,3\n")
    made = estate("windows-1252")
    (state,) = discover(made, tmp_path).tables
    assert [c.name for c in state.columns] == ["größe", "no"]
    with pytest.raises(EstateError, match="cannot be read"):
        read_columns(state, ["größe"], EstatePaths(made, tmp_path))


def test_utf_8_stays_as_it_was(tmp_path: Path) -> None:
    write(tmp_path, "größe,no\nŁuk,1\n".encode())
    (state,) = discover(estate(None), tmp_path).tables
    assert state.properties == {}
    assert read_columns(state, ["größe"], EstatePaths(estate(None), tmp_path)).to_pylist() == [{"größe": "Łuk"}]


@pytest.mark.parametrize("encoding", ["utf-16", "shift_jis", "windows-1251", "latin-1"])
def test_encodings_that_the_scan_does_not_read_are_refused(encoding: str) -> None:
    with pytest.raises(ValidationError, match="'windows-1252' or 'iso-8859-1'"):
        estate(encoding)


def test_only_csv_has_an_encoding() -> None:
    with pytest.raises(ValidationError, match="applies only to CSV tables"):
        DeclaredTable(name="x", format=Format.JSON, location="w", encoding=TextEncoding.ISO_8859_1)


@pytest.mark.parametrize("properties", [{}, {ENCODING: "iso-8859-1"}])
def test_the_plans_step_says_how_the_text_is_read(properties: dict[str, str]) -> None:
    dataset = DatasetId(namespace="file", name="/w/people")
    state = TableState(
        dataset=dataset,
        table="x.people",
        location="/w/people",
        format=Format.CSV,
        snapshot="1",
        columns=(),
        properties=properties,
    )
    copy = Copy(
        id="c",
        kind=CopyKind.DERIVED,
        dataset=dataset,
        table="x.people",
        location="/w/people",
        format=Format.CSV,
        carries=Carries.KEY,
        strategy=Strategy.DELETE_BY_KEY,
        columns=(),
        lineage=(),
        reason="",
        match=Match(terms=(MatchTerm(column="uid", key_set="uid", type="string"),)),
    )
    step = next(s for s in folder_steps(CopyDraft(copy=copy, state=state)) if s.action is Action.FILES_REWRITE)
    assert step.parameters.get("encoding") == properties.get(ENCODING)
