"""Samples of the values of tables, by which a draft guesses who the persons are. None of them is written down."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from pii_tracer.app.estate_draft.unfinished_estate import Say
from pii_tracer.app.stored_places.bare_folders import folder_in_hdfs, folder_of_objects
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lake.stores.hdfs.places import HdfsKind, HdfsPlace
from pii_tracer.lake.stores.hdfs.webhdfs import client_at
from pii_tracer.lake.stores.object_places.places import ObjectPlace
from pii_tracer.lake.stores.object_places.protocol import versioned_store
from pii_tracer.lake.stores.object_places.versions import VersionState
from pii_tracer.model.column_paths import names_in_lists
from pii_tracer.model.errors import EstateError
from planners.draft.column_guesses import key_strength
from planners.draft.subject_guesses import SampledTable

if TYPE_CHECKING:
    from pii_tracer.lake.formats.plain_files.store_folder import Bare

MOST_SAMPLED = 32 * 2**20
"""Bytes of a table's data files up to which its columns are looked into."""
MOST_VALUES = 5_000
"""Values of a column that are looked at."""
MOST_KEYS = 1_000_000
"""Values of a column that looks like a key: whether each stands once, and whose they are."""


def sampled_tables(
    estate: Estate, found: Inventory, paths: EstatePaths, say: Say
) -> tuple[list[SampledTable], tuple[str, ...]]:
    """The tables with a name, with a sample of their values; and those that were not looked into."""
    sampled, unread = [], []
    for table in found.tables:
        if table.table is None:
            continue
        columns, sample, count = _plain_columns(table), dict[str, Sequence[object]](), 0
        if columns and table.bytes <= MOST_SAMPLED:
            say(f"looking into {table.table}")
            try:
                sample, count = _values(table, columns, paths)
            except (EstateError, OSError):
                unread.append(table.table)
        elif columns:
            unread.append(table.table)
        clone = table.clone_of is not None or table.same_files_as is not None or paths.is_dev(table.location)
        listed = dict[str, Sequence[object]]()
        if table.bytes <= MOST_SAMPLED:
            try:
                listed = _listed(table, paths)
            except (EstateError, OSError):
                unread.append(table.table)
        elif names_in_lists(table.columns):
            unread.append(table.table)
        sampled.append(SampledTable(table.table, table.columns, sample, count, clone, table.in_objects, listed=listed))
    of_files, large = _folders_in_stores(estate, found, say)
    return [*sampled, *of_files], tuple(sorted({*unread, *large}))


def _values(table: TableState, columns: Sequence[str], paths: EstatePaths) -> tuple[dict[str, Sequence[object]], int]:
    from pii_tracer.lake.rows.current_rows import read_columns

    rows = read_columns(table, columns, paths)
    kinds = {column.name: column.type for column in table.columns}
    sample = {name: rows.column(name).slice(0, _most(name, kinds[name])).to_pylist() for name in columns}
    return sample, rows.num_rows


def _listed(table: TableState, paths: EstatePaths) -> dict[str, Sequence[object]]:
    """Values in lists and maps, by their names in the estate file.

    Raises:
        EstateError, OSError: such a column cannot be read.
    """
    from pii_tracer.lake.rows.current_rows import read_columns
    from pii_tracer.scan.decode.arrow import leaf_arrays

    found: dict[str, list[object]] = {}
    for column in table.columns:
        names = names_in_lists([column])
        if not names:
            continue
        rows = read_columns(table, [column.name], paths)
        for place, values in leaf_arrays(rows.column(column.name), column.name):
            there = found.setdefault(names[place], []) if place in names else []
            there += values.slice(0, max(MOST_VALUES - len(there), 0)).to_pylist()
    return dict(found)


def _folders_in_stores(estate: Estate, found: Inventory, say: Say) -> tuple[list[SampledTable], list[str]]:
    """Bare folders with a name in HDFS and in object stores: steps write their files again, and nobody asks them who
    the persons are."""
    declared = {table.location: table.name for catalog in estate.catalogs.values() for table in catalog.tables}
    folders: list[HdfsPlace | ObjectPlace] = [place for place in found.hdfs if place.kind is HdfsKind.FOLDER]
    folders += [place for place in found.object_places if not place.table]
    sampled, unread = [], []
    for place in folders:
        name = declared.get(str(place.location), place.sql_name)
        if name is None or place.opaque:
            continue
        if _size(place) > MOST_SAMPLED:
            unread.append(name)
            continue
        say(f"looking into {name}")
        try:
            bare = _bare(estate, place)
            if not isinstance(bare, str):
                sampled.append(_sampled_files(name, bare))
                continue
        except (EstateError, OSError):
            pass
        unread.append(name)
    return sampled, unread


def _bare(estate: Estate, place: HdfsPlace | ObjectPlace) -> Bare | str:
    if isinstance(place, HdfsPlace):
        return folder_in_hdfs(client_at(estate, place.location), place, {})
    return folder_of_objects(versioned_store(estate, place.location), place, {})


def _size(place: HdfsPlace | ObjectPlace) -> int:
    if isinstance(place, HdfsPlace):
        return sum(file.size for file in place.files)
    return sum(version.size for version in place.of_state(VersionState.LIVE))


def _sampled_files(name: str, bare: Bare) -> SampledTable:
    """Raises EstateError: a file cannot be read."""
    from pii_tracer.lake.formats.plain_files.rows import rows_of_file
    from pii_tracer.lake.rows.current_rows import guarded

    columns, count = _plain_columns(bare.state), 0
    sample: dict[str, list[object]] = {column: [] for column in columns}
    for file in bare.files:
        rows = guarded(bare.state, partial(rows_of_file, file, columns))
        for column in columns:
            there = rows.column(column).to_pylist() if column in rows.column_names else [None] * rows.num_rows
            sample[column] += there
        count += rows.num_rows
    kinds = {column.name: column.type for column in bare.state.columns}
    cut = {column: values[: _most(column, kinds[column])] for column, values in sample.items()}
    return SampledTable(name, bare.state.columns, cut, count, by_lineage=True)


def _plain_columns(table: TableState) -> list[str]:
    return [column.name for column in table.columns if _is_plain(column.type)]


def _most(name: str, kind: str) -> int:
    return MOST_KEYS if key_strength(name, kind) else MOST_VALUES


def _is_plain(kind: str) -> bool:
    return not any(mark in kind for mark in "<(") or kind.startswith(("decimal", "char", "varchar"))
