"""The persons' key is a short number, and the same digits stand where no lineage explains them: theirs, or by chance?

Digits are taken for the key where the column is named as the key is, or where its values are keys of the source. Where
neither can be asked, a number of six digits that stands alone is taken for it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from pii_tracer.common.plurals import counted
from pii_tracer.lake.inventory import TableState
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import (
    Column,
    FieldAccess,
    JsonAccess,
    Match,
    MatchTerm,
    place_of,
)
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.number_keys import FEW, bare, bare_parts
from pii_tracer.model.plan import Examined, Gap
from planners.copies.derived_keys import everybodys
from planners.copies.scan_evidence import Digits, Evidence
from planners.locate.edge_effects import value_edges
from planners.locate.identifier_traces import ColumnCarriage
from planners.locate.key_location import Carriage
from planners.locate.subject_survey import Survey, World, title
from planners.step_drafts import slug

ALONE = 6
"""A number of so many digits is taken for the key where there is nothing to compare it with."""

_PARTS = re.compile(r"[.\[\]()$]+")
_DIGITS = re.compile(r"\D*0*(\d+?)(?:\.0+)?\D*")
_ANY = "id"
"""Every table may have a column of this name: it says nothing."""

_NAMES = re.compile(r"[^<>,:`\s]+")

_TODO = (
    "if the number is the person's, declare the table under the subject's `tables` in the estate file, or load its "
    "lineage, then plan again. Or ask the owner to remove the number. If it is the number of something else, waive "
    "this gap"
)


Names = Mapping[str, frozenset[str]]
"""By the origin of key sets: what columns with its values are called, in lower case and without signs."""


def key_names(found: Survey, matches: Iterable[Match]) -> Names:
    """What columns with a short key are called: by the estate file, and in the copies that are found by it."""
    names: dict[str, set[str]] = {}
    leaves: dict[str, str] = {}
    for match in matches:
        for term in match.terms:
            leaves[term.label().lower()] = _leaf(term)
            names.setdefault(found.key_sets[term.key_set].origin, set()).add(bare(_leaf(term)))

    def called_by(name: str) -> str:
        return bare(leaves.get(name.lower()) or name.rsplit(".", 1)[-1])

    subject = found.subject
    for told in (subject, *subject.tables):
        called = {called_by(name) for name in told.key_names}
        names.setdefault(told.keyed_by or subject.key, set()).update(called)
        for column in told.record_keys:
            names.setdefault(told.origin(column), set()).add(called_by(column))
    return {origin: frozenset(called - {""}) for origin, called in names.items()}


def _leaf(term: MatchTerm) -> str:
    """The elements of a list are called as the list is, and the keys of a map as the map."""
    for step in reversed(term.access):
        if isinstance(step, FieldAccess):
            return step.name
        if isinstance(step, JsonAccess):
            return step.path[-1]
    return term.column


def unexplained(
    found: Survey, graph: LineageGraph, carriage: Carriage | None, seen: Evidence | None
) -> tuple[Digits, ...]:
    """The short numbers in a table that no lineage explains.

    Where lineage connects the table with the persons, it explains the columns that come from other columns, and those
    in which it looks for the persons. That a column comes from none (a constant), or that the estate file calls what
    fills it an anonymiser, does not explain what stands there. Nor does a key in a field of a column, or in the keys of
    a map, explain what stands elsewhere in it.
    """
    mine = sorted((d for d in seen.digits if d.key_set in found.key_sets) if seen else (), key=repr)
    if carriage is None:
        return tuple(mine)
    filled = {e.target.column.lower() for e in value_edges(graph.edges_into(carriage.dataset))}
    places = set[str]()
    if carriage.found_in:
        mine = [d for d in mine if d.column]
        inside = {name: column.traces for name, column in carriage.columns.items() if _is_inside(column)}
        filled |= {name.lower() for name in carriage.columns if name not in inside}
        places = {_plain(place_of(name, t.access)) for name, traces in inside.items() for t in traces}
    filled -= {name.lower() for name, column in carriage.columns.items() if column.ended}
    open_ = (d for d in mine if not filled.intersection(tops(d.column or "")))
    return tuple(d for d in open_ if not places.intersection(tops(_plain(d.column or ""))))


def _is_inside(column: ColumnCarriage) -> bool:
    """Whether all that a column has of the persons stands in known places inside of it."""
    return bool(column.traces) and all(t.access for t in column.traces) and not column.lost and not column.ended


def _plain(label: str) -> str:
    """A label in lower case, without the signs that say in what a part of it stands: JSON, or a union."""
    return ".".join(filter(None, _PARTS.split(label.lower())))


def doubted(found: Survey, world: World, location: str) -> frozenset[str]:
    """What the top-level columns may be called, in lower case, in which digits of a location look like the key."""
    told = world.digits.get(location, ())
    return frozenset(name for d in told if d.key_set in found.key_sets for name in tops(d.place))


def tops(label: str) -> tuple[str, ...]:
    """What the top-level column of a label may be called, in lower case, longest first: a name may hold dots itself."""
    parts = label.lower().split(".")
    return tuple(".".join(parts[:length]) for length in range(len(parts), 0, -1))


def by_name(found: Survey, digits: Digits, names: Names) -> bool:
    """Whether any part of the place's label is called as the key is."""
    return bool(_called(found, digits, names) - {_ANY})


def worth_reading(found: Survey, digits: Digits, names: Names) -> bool:
    """Whether the column's values can tell more than chance does."""
    return _length(found, digits) >= FEW or bool(_called(found, digits, names))


def _called(found: Survey, digits: Digits, names: Names) -> frozenset[str]:
    return names.get(found.key_sets[digits.key_set].origin, frozenset()) & bare_parts(digits.column or "")


def without_values(found: Survey, digits: Digits) -> bool:
    """Whether digits that nothing can be compared with are taken for the key."""
    return _length(found, digits) >= ALONE


def _length(found: Survey, digits: Digits) -> int:
    return max((len(value) for _, value in found.key_sets[digits.key_set].values), default=0)


def are_keys(values: Collection[str], known: Collection[str]) -> bool:
    """Whether at least half of a column's distinct values are keys of the source, with letters around them or none."""
    return 2 * sum(value in known or _number(value) in known for value in values) >= len(values) > 0


def _number(text: str) -> str:
    match = _DIGITS.fullmatch(text)
    return match[1] if match else text


def known_keys(found: Survey, key_set: str) -> frozenset[str]:
    """Everybody's values of a key set, the persons' and all others'; of numbers also without leading zeros."""
    ways = [at for at, derived in found.derived.items() if derived.keys.name == key_set]  # plain casts share one
    values = frozenset[str]().union(*(everybodys(found.keys, *way) for way in ways))
    return values | {_number(value) for value in values if value.isdigit()}


def same_digits(found: Survey, world: World, state: TableState) -> list[Gap]:
    """One gap for a table in which digits look like the persons' key, with their columns."""
    told = {d for d in world.digits.get(state.location, ()) if d.key_set in found.key_sets}
    if not told:
        return []
    places = "; ".join(f"{place} ({why})" for place, why in sorted({(d.place, d.why.value) for d in told}))
    return [
        Gap(
            id=f"gap-{GapKind.SAME_DIGITS}-{slug(title(state))}",
            dataset=state.dataset,
            kind=GapKind.SAME_DIGITS,
            reason=f"the dataset contains digits of the person's key, and no lineage explains these digits: {places}",
            evidence=_TODO,
        )
    ]


def with_digits(examined: Iterable[Examined], world: World) -> tuple[Examined, ...]:
    """What is no copy, with the short numbers that were seen in it: verification tells others from them. A place of a
    store that is neither a table nor a folder to write has none, else it would be a gap.
    """
    counts = {state.dataset: world.evidence[location].short for location, state in _searched(world)}
    none = {place.location.dataset for place in world.inventory.hdfs}
    none |= {place.location.dataset for place in world.inventory.object_places}
    found = []
    for one in examined:
        told = counts.get(one.dataset, () if one.dataset in none else None)
        found.append(one.model_copy(update={"digits": told}))
    return tuple(found)


def _searched(world: World) -> Iterator[tuple[str, TableState]]:
    stored = [seen.state for seen in (*world.hdfs.values(), *world.stored.values()) if seen.state]
    for state in (*world.inventory.tables, *stored):
        if state.location in world.evidence:
            yield state.location, state


def telling(found: Survey, column: Column) -> int:
    """How many names of a column, and of fields in it, are a value of the persons: words and tiny numbers are not."""
    values = found.telling_values
    inside = _NAMES.findall(column.type) if "<" in column.type else []
    return sum(name.strip().lower() in values for name in (column.name, *inside))


def telling_columns(found: Survey, columns: Sequence[Column]) -> tuple[Column, ...]:
    """Those of a table's columns that are called by a value of the persons, or have a field that is."""
    names = map(str.lower, [column.name for column in columns])  # a million of them are looked at
    if found.telling_values.isdisjoint(names) and "<" not in "".join([column.type for column in columns]):
        return ()
    return tuple(column for column in columns if telling(found, column))


def called_by_values(found: Survey, world: World) -> list[Gap]:
    """Tables in which columns are called by a value of the persons, as a pivot makes them: no step renames a column."""
    gaps = []
    for state in world.inventory.tables:
        if number := sum(telling(found, column) for column in telling_columns(found, state.columns)):
            gaps.append(
                Gap(
                    id=f"gap-{GapKind.COLUMN_NAMES}-{slug(title(state))}",
                    dataset=state.dataset,
                    kind=GapKind.COLUMN_NAMES,
                    reason=f"{counted(number, 'column or field name contains', 'column or field names contain')}"
                    " a value of the person. No step renames columns",
                    evidence=(
                        "ask the owner to rewrite the table, with old versions, without these names; then plan again"
                    ),
                )
            )
    return gaps
