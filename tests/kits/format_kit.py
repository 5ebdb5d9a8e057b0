"""What every table format must do. A test of a format inherits `FormatKit` and says how a table of its kind is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.rows.current_rows import data_files, read_columns
from pii_tracer.lake.rows.rows_of_files import names_in_files, read_part
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import EstateError
from tests.lake.formats.test_folders import estate

PEOPLE = pa.table({"uid": pa.array([1, 2, 3], pa.int64()), "name": ["Asha", "Bo", "Chi"]})
MORE = pa.table({"uid": pa.array([4], pa.int64()), "name": ["Dee"]})


class FormatKit:
    """Abstract: `kind`, and `write`, which makes a table of some rows in a folder, or appends to the one there.

    checks_bytes: files that are not of the format are seen by their bytes; not where any text is a file of it.
    """

    kind: Format
    checks_bytes = True

    def write(self, folder: Path, rows: pa.Table) -> None:
        raise NotImplementedError

    @pytest.fixture
    def people(self, tmp_path: Path) -> Path:
        folder = tmp_path / "warehouse" / "people"
        folder.parent.mkdir()
        self.write(folder, PEOPLE)
        return folder

    def found(self, folder: Path) -> tuple[TableState, EstatePaths]:
        """The table in a folder, and the places of its estate."""
        base = folder.parent.parent
        inventory = discover(estate(), base)
        assert inventory.gaps == ()
        (state,) = inventory.tables
        return state, EstatePaths(estate(), base)

    def test_a_table_is_found_with_its_format_and_columns(self, people: Path) -> None:
        state, _ = self.found(people)
        assert (state.format, Path(state.location)) == (self.kind, people)
        assert [column.name for column in state.columns] == ["uid", "name"]
        assert state.rows in (None, PEOPLE.num_rows)

    def test_its_state_changes_with_its_rows_alone(self, people: Path) -> None:
        first, again = self.found(people)[0], self.found(people)[0]
        assert first == again
        self.write(people, MORE)
        assert self.found(people)[0].snapshot != first.snapshot

    def test_current_rows_are_read_without_an_engine(self, people: Path) -> None:
        self.write(people, MORE)
        state, paths = self.found(people)
        assert rows_of(read_columns(state, ["uid", "name"], paths)) == rows_of(pa.concat_tables([PEOPLE, MORE]))

    def test_a_column_that_is_not_there_is_an_error(self, people: Path) -> None:
        state, paths = self.found(people)
        with pytest.raises(EstateError, match="mail"):
            read_columns(state, ["mail"], paths)

    def test_its_data_files_hold_the_rows(self, people: Path) -> None:
        self.write(people, MORE)
        state, paths = self.found(people)
        files = data_files(state, paths)
        adapter = format_of(self.kind)
        assert len(files) == state.files
        for file in files:
            assert adapter.object_kind(Path(str(file)).relative_to(people).parts[:-1], Path(str(file)).name) is None
            assert adapter.may_hold_rows(Path(str(file)))
        batches = [batch for batch in read_part(state, ["uid", "name"], files, paths) if batch.num_rows]
        assert rows_of(pa.Table.from_batches(batches)) == rows_of(pa.concat_tables([PEOPLE, MORE]))

    def test_columns_are_told_by_their_names_in_files(self, people: Path) -> None:
        names = names_in_files(*self.found(people))
        assert {name: now for name, now in names.items() if now} == {"uid": {"uid"}, "name": {"name"}}

    def test_files_of_something_else_are_a_gap(self, people: Path) -> None:
        if not self.checks_bytes:
            pytest.skip("any text is a file of this format")
        for path in people.rglob("*"):
            if path.is_file():
                path.write_bytes(b"\0something else\0")
        assert discover(estate(), people.parent.parent).gaps


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """By `uid`, since no format promises an order; a number, since in some formats all is text."""
    rows = ({"uid": int(row["uid"]), "name": row["name"]} for row in table.to_pylist())
    return sorted(rows, key=lambda row: row["uid"])
