"""Tables that have data files in common: Iceberg's `add_files` and `snapshot` take files over without copying them.

https://iceberg.apache.org/docs/latest/spark-procedures/#table-migration (hazard I7). A file belongs to every table
whose snapshots name it, and to the table or folder it lies in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.registry import table_formats
from pii_tracer.lake.inventory import InventoryGap, Sharing, TableState
from pii_tracer.lake.read_result import Found, gap
from pii_tracer.model.gap_kinds import GapKind


def with_sharing(found: Sequence[Found]) -> tuple[Found, ...]:
    """What was found, each state with `sharing`, `outside` and `clones`.

    Where the steps of the plan cannot spare the other side the gap `shared_files` is added: a Delta or Hudi table is
    among the sharers, or one whose metadata names another folder than its own.
    """
    by_location = {Path(f.state.location): f for f in found}
    common: dict[str, dict[str, set[str]]] = {}
    for path, sharers in _shared(found, by_location):
        for one in sharers:
            for other in sharers - {one}:
                common.setdefault(one, {}).setdefault(other, set()).add(str(path))
    states = {f.state.location: f.state for f in found}
    clones: dict[str | None, list[str]] = {}
    for state in states.values():
        clones.setdefault(state.clone_of, []).append(state.location)
    moved = {f.state.location for f in found if any(g.kind == GapKind.MOVED_TABLE for g in f.gaps)}
    result = []
    for item in found:
        others = sorted(common.get(item.state.location, {}).items())
        sharing = tuple(_sharing(states[o], files) for o, files in others)
        outside = tuple(sorted(str(p) for p in item.references if not p.is_relative_to(item.state.location)))
        mine = tuple(sorted(clones.get(item.state.location, ())))
        state = item.state.model_copy(update={"sharing": sharing, "outside": outside, "clones": mine})
        gaps = (*item.gaps, *_careless(state, [states[o] for o, _ in others], moved), *_unowned(state, by_location))
        result.append(replace(item, state=state, gaps=gaps))
    return tuple(result)


def _sharing(other: TableState, files: set[str]) -> Sharing:
    return Sharing(table=other.table, location=other.location, format=other.format, files=tuple(sorted(files)))


def _shared(found: Sequence[Found], by_location: dict[Path, Found]) -> Iterator[tuple[Path, set[str]]]:
    """Files with more than one table, by what snapshots name and by where the file lies."""
    owners: dict[Path, set[str]] = {}
    for item in found:
        for path in item.references:
            owners.setdefault(path, set()).add(item.state.location)
    for path, locations in sorted(owners.items()):
        home = next((by_location[p].state.location for p in path.parents if p in by_location), None)
        sharers = locations | ({home} if home else set())
        if len(sharers) > 1:
            yield path, sharers


def _careless(state: TableState, others: Sequence[TableState], moved: set[str]) -> tuple[InventoryGap, ...]:
    # engines whose clean-up takes no account of another table's files
    careless = {one.name for one in table_formats() if not one.spares_shared_files}
    risky = [s for s in (state, *others) if s.format in careless or s.location in moved]
    if not others or not risky:
        return ()
    names = ", ".join(sorted(s.table or s.location for s in others))
    reason = f"files of this table also belong to other tables ({names}), and an erasure in one table breaks the others"
    return (
        gap(
            state.dataset,
            GapKind.SHARED_FILES,
            reason,
            state.sharing[0].files[0],
            [f for one in state.sharing for f in one.files],
        ),
    )


def _unowned(state: TableState, by_location: Mapping[Path, Found]) -> tuple[InventoryGap, ...]:
    """Files beyond the table's folder that lie in no table or folder of the estate: nobody's sweep removes them."""
    lost = [path for path in state.outside if not any(parent in by_location for parent in Path(path).parents)]
    if not lost:
        return ()
    reason = (
        f"{counted(len(lost), 'file of the table is', 'files of the table are')} outside of its folder, and in no "
        "table or folder of this estate"
    )
    return (gap(state.dataset, GapKind.EXTERNAL_FILES, reason, lost[0], lost),)
