"""Samples of the values of tables, by which a draft guesses who the persons are. None of them is written down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pii_tracer.app.estate_draft.provisional_estate import Say
from pii_tracer.app.stored_places.erasable_bare_folders import (
    declared_names,
    folder_in_hdfs,
    folder_of_objects,
    name_of,
)
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lake.stores.hdfs.places import HdfsKind, HdfsPlace
from pii_tracer.lake.stores.hdfs.webhdfs import client_at
from pii_tracer.lake.stores.object_places.places import ObjectPlace
from pii_tracer.lake.stores.object_places.protocol import versioned_store
from pii_tracer.lake.stores.object_places.version_types import VersionState
from pii_tracer.model.column_paths import Spot, find_spot, leaves, names_in_lists
from pii_tracer.model.datasets import Column
from pii_tracer.model.errors import ConfigError, EstateError
from planners.draft.column_guesses import key_strength
from planners.draft.subject_guesses import SampledTable

if TYPE_CHECKING:
    import pyarrow as pa

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
        spots, sample, count = _single_values(table.columns), dict[str, Sequence[object]](), 0
        if spots and table.bytes <= MOST_SAMPLED:
            say(f"looking into {table.table}")
            try:
                sample, count = _values(table, spots, paths)
            except (EstateError, OSError):
                unread.append(table.table)
        elif spots:
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
        columns, tops = _with_fields(table.columns, spots)
        made = SampledTable(table.table, columns, sample, count, clone, table.in_objects, listed=listed, tops=tops)
        sampled.append(made)
    of_files, large = _folders_in_stores(estate, found, say)
    return [*sampled, *of_files], tuple(sorted({*unread, *large}))


def _values(
    table: TableState, spots: Mapping[str, Spot], paths: EstatePaths
) -> tuple[dict[str, Sequence[object]], int]:
    from pii_tracer.lake.rows.current_rows import at_spot, read_columns

    rows = read_columns(table, sorted({spot.column for spot in spots.values()}), paths)
    return {
        name: _cut(name, spot, at_spot(rows.column(spot.column), spot)) for name, spot in spots.items()
    }, rows.num_rows


def _cut(name: str, spot: Spot, values: pa.ChunkedArray) -> list[object]:
    """As many as are looked at."""
    few: list[object] = values.slice(0, MOST_VALUES).to_pylist()
    if not key_strength(name, spot.type, few):
        return few
    more: list[object] = values.slice(0, MOST_KEYS).to_pylist()
    return more


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
    sampled, unread = [], []
    for name, place in named_folders(estate, found):
        if _size(place) > MOST_SAMPLED:
            unread.append(name)
            continue
        say(f"looking into {name}")
        try:
            bare = bare_of(estate, place)
            if not isinstance(bare, str):
                sampled.append(_sampled_files(name, bare))
                continue
        except (EstateError, OSError):
            pass
        unread.append(name)
    return sampled, unread


def named_folders(estate: Estate, found: Inventory) -> Iterator[tuple[str, HdfsPlace | ObjectPlace]]:
    """Bare folders in HDFS and in object stores, with their names."""
    names = declared_names(estate)
    places: list[HdfsPlace | ObjectPlace] = [place for place in found.hdfs if place.kind is HdfsKind.FOLDER]
    places += [place for place in found.object_places if not place.table]
    for place in places:
        name = name_of(place, names)
        if name is not None and not place.opaque:
            yield name, place


def bare_of(estate: Estate, place: HdfsPlace | ObjectPlace) -> Bare | str:
    """What a folder is, or why no step can write its files again."""
    if isinstance(place, HdfsPlace):
        return folder_in_hdfs(client_at(estate, place.location), place, {})
    return folder_of_objects(versioned_store(estate, place.location), place, {})


def _size(place: HdfsPlace | ObjectPlace) -> int:
    if isinstance(place, HdfsPlace):
        return sum(file.size for file in place.files)
    return sum(version.size for version in place.of_state(VersionState.LIVE))


def _sampled_files(name: str, bare: Bare) -> SampledTable:
    """Raises EstateError: a file cannot be read."""
    import pyarrow as pa

    from pii_tracer.lake.formats.plain_files.rows import rows_of_file
    from pii_tracer.lake.rows.current_rows import at_spot, guarded

    spots, count = _single_values(bare.state.columns), 0
    wanted = sorted({spot.column for spot in spots.values()})
    sample: dict[str, list[object]] = {column: [] for column in spots}
    for file in bare.files:
        rows = guarded(bare.state, partial(rows_of_file, file, wanted))
        for column, spot in spots.items():
            there = (
                rows.column(spot.column)
                if spot.column in rows.column_names
                else pa.chunked_array([pa.nulls(rows.num_rows)])
            )
            sample[column] += guarded(bare.state, partial(at_spot, there, spot)).to_pylist()
        count += rows.num_rows
    for column, values in sample.items():
        most = MOST_KEYS if key_strength(column, spots[column].type, values[:MOST_VALUES]) else MOST_VALUES
        sample[column] = values[:most]
    columns, tops = _with_fields(bare.state.columns, spots)
    return SampledTable(name, columns, sample, count, by_lineage=True, tops=tops)


def _single_values(columns: Sequence[Column]) -> dict[str, Spot]:
    """Columns and fields of structs of which a row has one value, by their names in the estate file."""
    found = dict[str, Spot]()
    for name in dict.fromkeys(".".join(way) for column in columns for way in leaves(column.name, column.type)):
        try:
            spot = find_spot(name, columns, "")
        except ConfigError:  # a list, a map, or a name that means another column
            continue
        if _is_plain(spot.type):
            found[name] = spot
    return found


def _with_fields(columns: Sequence[Column], spots: Mapping[str, Spot]) -> tuple[tuple[Column, ...], dict[str, str]]:
    """The columns with fields of structs among them; and of each field, which column it is in."""
    fields = {name: spot for name, spot in spots.items() if spot.access}
    return (
        (*columns, *(Column(name=name, type=spot.type) for name, spot in fields.items())),
        {name: spot.column for name, spot in fields.items()},
    )


def _is_plain(kind: str) -> bool:
    return not any(mark in kind for mark in "<(") or kind.startswith(("decimal", "char", "varchar"))
