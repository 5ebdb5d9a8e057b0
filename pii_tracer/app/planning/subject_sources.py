"""Where the persons of an estate file's subjects are known from, in the tables that exist."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pii_tracer.config.subjects import Named, RowFate, Subject, SubjectTable
from pii_tracer.lake.careful_reading import Readings
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.model.column_paths import Spots, find_spot, spot_of
from pii_tracer.model.datasets import ColumnId, DatasetId
from pii_tracer.model.errors import ConfigError, EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.keys_as_text import joined
from pii_tracer.model.locations import is_remote

if TYPE_CHECKING:
    from planners.copies.match_key_resolution import Keys, SourceRows, Wanted


def table_of(subject: Subject, name: str, paths: EstatePaths, states: Mapping[DatasetId, TableState]) -> TableState:
    """The source of a subject, or a further table.

    Raises:
        EstateError: discovery did not find it, or it lies in a store where its rows cannot be read.
    """
    dataset = paths.aliases.get(name)
    if dataset is not None and is_remote(dataset.namespace) and dataset not in states:
        store = dataset.namespace.partition("://")[0].upper()
        raise EstateError(
            f"the table {name} of subject `{subject.name}` lies in {store}, where its rows cannot be read",
            where="the estate file, `subjects`",
            todo="`pii-tracer inventory` says why; or name another table that has the persons",
        )
    if dataset is None or dataset not in states:
        raise EstateError(
            f"the table {name} of subject `{subject.name}` was not found",
            where="the estate file, `subjects`",
            todo="correct the name of the table or of its catalog",
        )
    return states[dataset]


def further_tables(subject: Subject, paths: EstatePaths, inventory: Inventory) -> dict[DatasetId, SubjectTable]:
    """The datasets of a subject's further tables. Raises as `dataset_of`."""
    return {dataset_of(subject, table.table, paths, inventory): table for table in subject.tables}


def dataset_of(subject: Subject, name: str, paths: EstatePaths, inventory: Inventory) -> DatasetId:
    """The dataset of a subject's source, or of a further table. What discovery met and could not read is one, too.

    Raises:
        EstateError: as `table_of`.
    """
    dataset = paths.aliases.get(name)
    if dataset is not None and any(g.kind == GapKind.UNREADABLE and g.dataset == dataset for g in inventory.gaps):
        return dataset
    return table_of(subject, name, paths, {state.dataset: state for state in inventory.tables}).dataset


def keys_of(
    subject: Subject,
    wanted: Sequence[Wanted],
    paths: EstatePaths,
    inventory: Inventory,
    readings: Readings,
    say: Callable[[str], None],
    *,
    source_erased: bool,
) -> Keys:
    """The persons' keys, from the source and the further tables, of now and of every version that is retained.

    source_erased: whether persons of whom no version knows are taken by the keys of their requests. So they are, too,
    where the source cannot be read, which is a gap.

    Raises:
        EstateError: a table was not found.
        ConfigError: a column does not exist, or a field of one.
        PlanError: a person is in no version of the source.
    """
    from pii_tracer.lake.rows.current_rows import read_spots
    from pii_tracer.lake.rows.historical_rows import Sought, read_former
    from planners.copies.match_key_resolution import (
        SourceRows,
        Unread,
        resolve,
        with_table,
    )

    states = {state.dataset: state for state in inventory.tables}
    spots = spots_of(subject, paths, states)
    unread: list[Unread] = []

    def texts(told: Named, found: Mapping[str, Sequence[Any]]) -> SourceRows:
        return SourceRows(with_whole_key(told, {column: texts_of(values) for column, values in found.items()}))

    def rows(name: str, told: Named) -> tuple[SourceRows | None, Iterator[SourceRows]]:
        state = states.get(dataset_of(subject, name, paths, inventory))
        if state is None:
            return None, iter(())
        places = {column: spot_of(spots, state.dataset, column) for column in told.named}
        mine = {column: spot for column, spot in places.items() if not spot.shared}  # nothing is looked up in a list
        if not mine:
            return None, iter(())
        origins = frozenset(told.origins.values())
        former = read_former(
            state,
            Sought(mine, tuple(column for column in told.key_parts if column in mine)),
            paths,
            say,
            lambda why: unread.append(Unread(state.dataset, origins, why)),
        )
        without = f"What {name} says of the persons is not known, so it is not searched for"
        now = readings.table(state, lambda: texts(told, read_spots(state, mine, paths)), None, without)
        return now, readings.each(state, map(partial(texts, told), former), without)

    now, former = rows(subject.source, subject)
    keys = resolve(subject, now or _nothing(subject), wanted, former, source_erased=source_erased or now is None)
    keys = replace(keys, unseen=now is None)
    for table in subject.tables:
        now, former = rows(table.table, table)
        keys = with_table(keys, table, now or _nothing(table), wanted, former)
    return replace(keys, unread=tuple(unread))


def _nothing(told: Named) -> SourceRows:
    from planners.copies.match_key_resolution import SourceRows

    return SourceRows(with_whole_key(told, dict.fromkeys(told.named, ())))


def with_whole_key(told: Named, rows: Mapping[str, Sequence[str | None]]) -> dict[str, Sequence[str | None]]:
    """The rows of a table by column, with the key under its name; of several columns with their text together, and
    without each alone, which tells nobody."""
    parts = [rows[column] for column in told.key_parts if column in rows]
    rest = {column: values for column, values in rows.items() if column not in told.key_parts}
    if not parts:  # the key is in a list, and nothing is looked up by it
        return rest
    return {told.key: parts[0] if len(parts) == 1 else list(map(joined, zip(*parts, strict=True))), **rest}


def spots_of(subject: Subject, paths: EstatePaths, states: Mapping[DatasetId, TableState]) -> Spots:
    """Where the names that a subject tells stand in its source and its further tables, as far as these were found.

    Raises:
        ConfigError: a name stands nowhere in its table, or in a list or a map of rows that do not stay; or a column
            under `clears` is none.
    """
    found = {}
    aliases = paths.aliases
    declared = {table.name: table.format for table in paths.declared.values()}
    for name, told in subject.by_table:
        state = states.get(aliases[name]) if name in aliases else None
        # a folder of another format shows another file's columns: discovery's gap, not a wrong name
        if state is not None and declared.get(name, state.format) is state.format:
            staying = {key.column for key in told.key_columns if key.row is RowFate.KEEP}
            for column in told.named:
                spot = find_spot(column, state.columns, name)
                if spot.shared and column not in staying:
                    raise _whole_rows(name, column)
                found[ColumnId(dataset=state.dataset, column=column)] = spot
            _refuse_missing(told, state, name)
    return found


def _whole_rows(table: str, column: str) -> ConfigError:
    """Of a key in a list: a row with such a list is not one person's."""
    return ConfigError(
        f"{column} of {table} is in a list or a map, and such a row belongs to everybody in it",
        where="the estate file, `subjects`",
        todo="name it as a key of rows that stay, with `row: keep`: the person's elements are then removed. No step"
        " deletes rows by it, and nothing else of a person is looked up by it",
    )


def _refuse_missing(told: Named, state: TableState, name: str) -> None:
    """What goes along with a key has to be there: else the person's name would stay where the key went."""
    known = {column.name.lower() for column in state.columns}
    missing = sorted(c for key in told.key_columns for c in key.clears if c.lower() not in known)
    if missing:
        raise ConfigError(
            f"{name} has no column {', '.join(missing)}", where="the estate file, `subjects`", todo="correct `clears`"
        )


def texts_of(values: Sequence[Any]) -> list[str | None]:
    return [None if value is None else _text(value) for value in values]


def _text(value: Any) -> str:
    """As Spark casts it to a string: bytes are text to it."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
