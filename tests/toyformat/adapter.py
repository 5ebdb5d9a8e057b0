"""The toy format for the rest of the tool: what a simple format of files has to tell, and nothing more."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.base import Role, TableFormat
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.read_result import Found
from pii_tracer.lake.stores.any_place import AnyPlace
from pii_tracer.model.datasets import Column
from pii_tracer.model.errors import EstateError
from tests.toyformat.tables import FOLDER, Toy, open_toy
from tests.toyformat.vocabulary import TOY, TOY_DELETE_ROWS, TOY_REMOVE_OLD

if TYPE_CHECKING:
    import pyarrow as pa


class ToyFormat(TableFormat):
    """Toy tables, by their `.toy/table.json`."""

    name = TOY
    title = "Toy"
    metadata_folders = frozenset({FOLDER})
    actions = {
        TOY_DELETE_ROWS: frozenset({Role.ON_ROWS, Role.COUNTS_ROWS}),
        TOY_REMOVE_OLD: frozenset({Role.FORGETS_VERSIONS, Role.REMOVES_FILES}),
    }

    def is_table(self, folder: Path) -> bool:
        return (folder / FOLDER).is_dir()

    def read_state(self, folder: Path, paths: EstatePaths) -> Found:
        table = _opened(folder)
        state = TableState(
            dataset=paths.dataset_of(folder),
            table=paths.table_at(folder),
            location=str(folder),
            format=TOY,
            snapshot=str(table.version),
            columns=tuple(Column(name=name, type=kind) for name, kind in table.columns.items()),
            rows=len(table.rows()),
            files=1,
            bytes=table.file.stat().st_size,
            versions=1 + len(table.old_files),
        )
        return Found(state)

    def data_files(self, state: TableState, paths: EstatePaths) -> tuple[AnyPlace, ...]:
        return (_opened(Path(state.location)).file,)

    def read_columns(self, state: TableState, columns: Sequence[str], paths: EstatePaths) -> pa.Table:
        import pyarrow as pa

        rows = _opened(Path(state.location)).rows()
        return pa.table({name: pa.array([row.get(name) for row in rows]) for name in columns})

    def read_file_rows(
        self, state: TableState, columns: Sequence[str], files: Collection[AnyPlace], paths: EstatePaths
    ) -> Iterator[pa.RecordBatch]:
        mine = set(self.data_files(state, paths)) & set(files)
        return iter(self.read_columns(state, columns, paths).to_batches() if mine else ())


def _opened(folder: Path) -> Toy:
    try:
        return open_toy(folder)
    except (OSError, ValueError, KeyError) as error:
        raise EstateError(
            f"the toy table cannot be read: {type(error).__name__}", where=str(folder), todo="repair its `.toy` folder"
        ) from None
