"""The owner's word on columns of another system's numbers (`not_keys`), compared with what stands in the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pii_tracer.app.planning.short_number_columns import distinct_values
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lake.rows.rows_of_files import names_of_one
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import ColumnId, DatasetId
from pii_tracer.model.errors import EstateError
from pii_tracer.model.other_numbers import NotKeys, no_keys_at
from pii_tracer.model.plan import Gap
from pii_tracer.scan.value_forms import Patterns
from planners.gaps.short_number_columns import are_keys, known_keys
from planners.locate.not_keys import Word, contradicted, named, not_taken, plain_key_sets, spread
from planners.locate.subject_survey import Survey, title


@dataclass(frozen=True)
class OtherNumbers:
    """The columns that hold no keys, and what stands against the owner's word on some."""

    columns: tuple[NotKeys, ...] = ()
    gaps: tuple[Gap, ...] = ()

    def at(self, patterns: Patterns, location: str) -> Patterns:
        """Patterns for the table at a location."""
        return patterns.leaving_out(no_keys_at(self.columns, location))


def other_numbers(
    surveys: Sequence[Survey],
    graph: LineageGraph,
    inventory: Inventory,
    paths: EstatePaths,
    say: Callable[[str], None],
) -> OtherNumbers:
    """Every column that holds no keys by the owner's word, and by lineage from such a column.

    A word is not taken where lineage contradicts it. Where at least half of what stands in the column are keys of the
    source, or nobody can read it, a named person has to stand for it, which is a gap.
    """
    states = {state.dataset: state for state in inventory.tables}
    columns: list[NotKeys] = []
    gaps: list[Gap] = []
    for survey in surveys:
        words = {}
        for told in survey.subject.not_keys:
            dataset = paths.aliases().get(told.table)
            state = states.get(dataset) if dataset is not None else None
            why = contradicted(survey, state, told)
            if why is None and state is not None:
                column = named(state, told.column) or told.column
                words[ColumnId(dataset=state.dataset, column=column)] = told
                say(f"comparing what stands in {told.table}.{told.column} with the keys of the source")
                why = _doubt(survey, state, column, paths)
            if why is not None:
                gaps.append(not_taken(survey, told, dataset, why))
        for word in spread(survey, graph, words):
            columns += _planned(survey, word, states, inventory.tables, paths)
    return OtherNumbers(tuple(sorted(columns, key=lambda c: (c.name, c.location))), tuple(gaps))


def _doubt(survey: Survey, state: TableState, column: str, paths: EstatePaths) -> str | None:
    """What of a column's values, or of its names, speaks against the word; None where nothing does."""
    if not _labels(state, column, paths):
        return (
            "the table's files give that name to another column, too, or had one of it before: what stands there counts"
        )
    try:
        values = distinct_values(state, column, paths)
    except EstateError as error:
        return f"what stands there cannot be compared with the keys of {survey.subject.source}: {error.what}"
    known = frozenset[str]().union(*(known_keys(survey, name) for name in plain_key_sets(survey)))
    if are_keys(values, known):
        return f"at least half of the different values there are keys of {survey.subject.source}"
    return None


def _planned(
    survey: Survey,
    word: Word,
    states: Mapping[DatasetId, TableState],
    tables: Sequence[TableState],
    paths: EstatePaths,
) -> list[NotKeys]:
    """A column with what its files call it, in the table and in those that hold the same files; none where the table is
    not there, or where a name in its files may be another column."""
    state = states.get(word.column.dataset)
    if state is None:
        return []
    copies = [s for s in tables if state.location in (s.clone_of, s.same_files_as) and _same(survey, s)]
    copied = f"{title(states[word.origin.dataset])}.{word.origin.column}" if word.origin != word.column else None
    found = []
    for table in (state, *copies):
        labels = _labels(table, named(table, word.column.column), paths)
        if labels:
            found.append(
                NotKeys(
                    table=title(table),
                    column=word.column.column,
                    dataset=table.dataset,
                    location=table.location,
                    labels=labels,
                    key_sets=plain_key_sets(survey),
                    owner=word.told.owner,
                    reason=word.told.reason,
                    copied_from=copied or (f"{title(state)}.{word.column.column}" if table is not state else None),
                )
            )
    return found


def _same(survey: Survey, clone: TableState) -> bool:
    """Whether lineage tells nothing of its own of a table with another's files."""
    return clone.dataset not in survey.carriages


def _labels(state: TableState, column: str | None, paths: EstatePaths) -> tuple[str, ...]:
    """What files call a column, of the names that mean it alone."""
    try:
        return names_of_one(state, column, paths) if column is not None else ()
    except EstateError:
        return ()
