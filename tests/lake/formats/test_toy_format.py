"""A table format that another package brings: it is found and read, and no module of this one knows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pydantic import ValidationError

from pii_tracer.config.catalogs import Catalog, CatalogType, DeclaredTable
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.erasable_s3_tables import others
from pii_tracer.lake.formats.base import ObjectKind, Role
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.registry import actions_with, format_of, known_format, metadata_folders, table_formats
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.rows.current_rows import data_files, read_columns, read_spots
from pii_tracer.lake.rows.historical_rows import Sought, read_former
from pii_tracer.lake.rows.rows_of_files import names_in_files, read_part
from pii_tracer.lake.table_descriptions import PROPERTIES, description
from pii_tracer.model.column_paths import Spot
from pii_tracer.model.datasets import Column, Format
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.proof.storage_change_witness import in_log, manifest_of
from tests.lake.s3_lakehouse import estate_of
from tests.toyformat.installation import toy_installed
from tests.toyformat.tables import write_toy
from tests.toyformat.vocabulary import TOY, TOY_DELETE_ROWS

COLUMNS = {"uid": "bigint", "name": "string"}
PEOPLE = [{"uid": 1, "name": "Asha"}, {"uid": 2, "name": "Bo"}]


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[None]:
    with toy_installed(tmp_path / "site-packages"):
        yield


@pytest.fixture
def people(tmp_path: Path, installed: None) -> Path:
    folder = tmp_path / "warehouse" / "people"
    write_toy(folder, PEOPLE, COLUMNS)
    return folder


def estate(*tables: DeclaredTable) -> Estate:
    return estate_of().model_copy(
        update={"catalogs": {"session": Catalog(type=CatalogType.DECLARED, tables=tables)}, "dev_roots": ()}
    )


def only(folder: Path, *tables: DeclaredTable) -> tuple[TableState, EstatePaths]:
    found = discover(estate(*tables), folder.parent.parent)
    assert found.gaps == ()
    return found.tables[0], EstatePaths(estate(*tables), folder.parent.parent)


def test_a_table_is_found_by_its_adapter(people: Path) -> None:
    state, _ = only(people, DeclaredTable(name="shop.people", format=TOY, location="warehouse/people"))
    assert (state.format, state.table, state.snapshot, state.rows) == (TOY, "shop.people", "0", 2)
    assert state.columns == (Column(name="uid", type="bigint"), Column(name="name", type="string"))


def test_its_rows_are_read_by_its_adapter(people: Path) -> None:
    state, paths = only(people)
    (file,) = data_files(state, paths)
    assert read_columns(state, ["name", "uid"], paths).to_pylist() == [
        {"name": r["name"], "uid": r["uid"]} for r in PEOPLE
    ]
    assert read_spots(state, {"who": Spot("name", (), "string")}, paths) == {"who": ["Asha", "Bo"]}
    batches = list(read_part(state, ["uid"], [file], paths))
    assert [row["uid"] for batch in batches for row in batch.to_pylist()] == [1, 2]
    assert names_in_files(state, paths) == {"uid": {"uid"}, "name": {"name"}}
    assert description(state, paths) == {PROPERTIES: {}}
    with pytest.raises(EstateError, match="no column mail"):
        read_columns(state, ["mail"], paths)


def test_former_rows_that_its_adapter_does_not_read_are_told(people: Path) -> None:
    told: list[str] = []
    sought = Sought({"uid": Spot("uid", (), "bigint")}, ("uid",))
    state, paths = only(people)
    assert list(read_former(state, sought, paths, told.append, told.append)) == []
    assert told == []
    write_toy(people, PEOPLE[1:], COLUMNS)
    state, paths = only(people)
    assert list(read_former(state, sought, paths, told.append, told.append)) == []
    assert told == [f"{people} keeps 2 versions, but the tool does not read former rows of Toy tables"]


def test_a_folder_of_two_formats_is_a_gap(people: Path) -> None:
    write_deltalake(people, pa.table({"uid": [1]}))
    gaps = discover(estate(), people.parent.parent).gaps
    assert [g.evidence for g in gaps if g.kind == GapKind.TWO_FORMATS] == [str(people)]


def test_a_table_inside_another_one_is_a_gap(people: Path) -> None:
    write_toy(people / "inner", PEOPLE, COLUMNS)
    (gap,) = discover(estate(), people.parent.parent).gaps
    assert (gap.kind, gap.evidence) == (GapKind.NESTED_TABLE, str(people / "inner"))


def test_another_format_than_declared_is_a_gap(people: Path) -> None:
    declared = DeclaredTable(name="shop.people", format=DELTA, location="warehouse/people")
    (gap,) = discover(estate(declared), people.parent.parent).gaps
    assert (gap.kind, gap.reason) == (GapKind.FORMAT_MISMATCH, "shop.people is declared as delta, but contains toy")


def test_metadata_that_cannot_be_read_is_a_gap(people: Path) -> None:
    (people / ".toy" / "table.json").write_text("{")
    found = discover(estate(), people.parent.parent)
    assert found.tables == ()
    assert [g.kind for g in found.gaps] == [GapKind.UNREADABLE]


def test_what_an_adapter_leaves_out_is_taken_for_the_worst(people: Path) -> None:
    toy = format_of(TOY)
    assert not toy.spares_shared_files
    assert toy.erased_in_s3 is None
    assert toy.may_hold_rows(people / "whatever.bin")
    assert toy.object_kind(["people", ".toy"], "table.json") is ObjectKind.METADATA
    assert toy.object_kind(["people"], "rows-0.jsonl") is None
    assert manifest_of(people, TOY) is None
    assert in_log(".toy/table.json", TOY) is None


def test_registered_with_the_others(installed: None) -> None:
    assert TOY in {one.name for one in table_formats()}
    assert TOY_DELETE_ROWS in actions_with(Role.ON_ROWS)
    assert ".toy" in metadata_folders()


def test_without_its_adapter_nothing_takes_the_table_for_plain_files_in_silence(tmp_path: Path) -> None:
    folder = tmp_path / "warehouse" / "people"
    write_toy(folder, PEOPLE, COLUMNS)
    found = discover(estate(), tmp_path)
    assert [(g.kind, g.evidence) for g in found.gaps] == [(GapKind.HIDDEN_DATA, str(folder / ".toy"))]
    with pytest.raises(ValidationError, match="no installed adapter knows this format"):
        DeclaredTable(name="shop.people", format=TOY, location="warehouse/people")
    with pytest.raises(EstateError, match="no installed package knows the table format `toy`"):
        format_of(TOY)


def test_formats_of_no_table_have_no_adapter() -> None:
    assert known_format(None) is None
    assert known_format(Format.KAFKA) is None
    assert known_format(Format.STREAM_CHECKPOINT) is None


def test_who_must_name_a_table_in_s3_is_told_of_every_format() -> None:
    assert others() == (
        "a plan erases a table there only if the estate file declares it (Delta, Hudi, and folders of Parquet, ORC, "
        "Avro, CSV or JSON) or a catalog names it (these, and Iceberg)"
    )
