"""Rows of others that a statement for the persons' rows would take along: the engine finds rows by the table's own key,
and several rows have one. Its step refuses that; the plan says it before anybody approves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING

from pii_tracer.common.plurals import counted
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.rows.current_rows import guarded
from pii_tracer.model.datasets import KeySet, Match
from pii_tracer.model.errors import EstateError
from planners.copies.person_rows import rows_together, theirs

if TYPE_CHECKING:
    import pyarrow as pa


def refuse_shared_keys(
    state: TableState, match: Match, key_sets: Mapping[str, KeySet], paths: EstatePaths, *, kept: bool
) -> None:
    """Look whether rows that the match finds share the table's own key with others. kept: columns of them are set to
    NULL and the rows stay, so that of several rows of the persons with one key only one would.

    What cannot be read here is told by the count of the persons' rows, and the step looks itself.

    Raises:
        EstateError: they do.
    """
    adapter = format_of(state.format)
    by = adapter.changes_rows_by
    if not by:
        return
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        rows = guarded(state, partial(adapter.read_columns, state, sorted({*match.columns, *by}), paths))
        if state.row_key and (by[-1] not in rows.column_names or rows[by[-1]].null_count):
            # the engine makes the key of a row out of these columns, and writes none down
            by = tuple(dict.fromkeys((*state.partition_columns, *state.row_key)))
            rows = guarded(state, partial(adapter.read_columns, state, sorted({*match.columns, *by}), paths))
    except EstateError:
        return
    wanted: tuple[set[str | None], ...] = tuple(set() for _ in by)
    told: list[pa.BooleanArray] = []
    for batch in rows_together(rows, match, key_sets):
        mine = theirs(batch, match, key_sets)
        if mine is None or not {*by} <= {*batch.schema.names}:
            return  # only Spark can tell, and the step asks it
        told.append(mine)
        for values, column in zip(wanted, _texts(batch.filter(mine), by), strict=True):
            values.update(column.to_pylist())
    if not all(wanted):
        return
    sets = [pa.array(sorted(values, key=str), pa.string()) for values in wanted]
    found: list[pa.Table] = []  # the others' keys are not kept: there may be very many
    for batch, mine in zip(rows_together(rows, match, key_sets), told, strict=True):
        columns = _texts(batch, by)
        same = reduce(pc.and_, (pc.is_in(c, value_set=values) for c, values in zip(columns, sets, strict=True)))
        found.append(pa.table([*columns, mine.cast(pa.int64())], names=[*by, "mine"]).filter(same))
    groups = pa.concat_tables(found).group_by(list(by)).aggregate([("mine", "sum"), ("mine", "count")])
    sums, counts = (groups[f"mine_{how}"].to_pylist() for how in ("sum", "count"))
    several = sum(bool(mine) and (all_ > mine or (kept and all_ > 1)) for mine, all_ in zip(sums, counts, strict=True))
    if several:
        keys = counted(several, "record key of the person is", "record keys of the person are")
        what = "in other people's rows, too: a delete would take those"
        what = "in several rows: an update would leave one of each" if kept else what
        raise EstateError(f"{keys} {what}", where=state.location, todo="make the record keys unique; then plan again")


def _texts(batch: pa.RecordBatch, names: Sequence[str]) -> list[pa.Array]:
    return [batch.column(batch.schema.get_field_index(name)).cast("string") for name in names]
