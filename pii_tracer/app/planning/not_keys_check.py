"""The owner's word on columns of another system's numbers (`not_keys`), compared with what stands in the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pii_tracer.app.planning.short_number_columns import distinct_in_files, distinct_values
from pii_tracer.app.stored_places.erasable_bare_folders import bare_folders
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.plain_files.store_folder import Bare
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lake.rows.rows_of_files import names_of_one
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import ColumnId, DatasetId
from pii_tracer.model.errors import EstateError
from pii_tracer.model.non_key_columns import NotKeys, no_keys_at
from pii_tracer.model.plan import Gap
from pii_tracer.scan.value_forms import Patterns
from planners.copies.declared_origins import tables_named
from planners.copies.declared_table_places import Carrier, carriers
from planners.gaps.unexplained_short_numbers import are_keys, known_keys
from planners.locate.not_keys import Word, contradicted, named, not_taken, plain_key_sets, spread
from planners.locate.subject_survey import Survey, title


@dataclass(frozen=True)
class OtherNumbers:
    """The columns that hold no keys, and what stands against the owner's word on some."""

    columns: tuple[NotKeys, ...] = ()
    gaps: tuple[Gap, ...] = ()

    def at(self, patterns: Patterns, *places: DatasetId | str) -> Patterns:
        """Patterns for what is one of some datasets, or lies at one of some locations."""
        return patterns.leaving_out(no_keys_at(self.columns, *places))


def other_numbers(
    surveys: Sequence[Survey],
    graph: LineageGraph,
    inventory: Inventory,
    estate: Estate,
    paths: EstatePaths,
    say: Callable[[str], None],
) -> OtherNumbers:
    """Every column that holds no keys by the owner's word, and by lineage from such a column; and these columns where
    rows of their tables are stored once more (`planners.copies.declared_table_places`).

    A word is not taken where lineage contradicts it. Where at least half of what stands in the column are keys of the
    source, or nobody can read it, a named person has to stand for it, which is a gap.
    """
    if not any(survey.subject.not_keys for survey in surveys):
        return OtherNumbers()
    known = _Known.of(inventory, estate, paths)
    columns: list[NotKeys] = []
    gaps: list[Gap] = []
    for survey in surveys:
        words = {}
        for told in survey.subject.not_keys:
            dataset = paths.aliases.get(told.table)
            state = known.states.get(dataset) if dataset is not None else None
            why = contradicted(survey, state, told)
            if why is None and state is not None:
                column = named(state, told.column) or told.column
                words[ColumnId(dataset=state.dataset, column=column)] = told
                say(f"comparing the values of {told.table}.{told.column} with the keys of the source")
                why = _doubt(survey, state, column, known)
            if why is not None:
                gaps.append(not_taken(survey, told, dataset, why))
        for word in spread(survey, graph, words):
            columns += _planned(survey, word, known)
    return OtherNumbers(tuple(sorted(columns, key=lambda c: (c.name, c.location))), tuple(gaps))


@dataclass(frozen=True)
class _Known:
    """The tables of an estate, bare folders of its stores among them. stored: these folders. carried: other places with
    rows of a table, by the table's dataset.
    """

    states: Mapping[DatasetId, TableState]
    stored: Mapping[DatasetId, Bare]
    carried: Mapping[DatasetId, Sequence[Carrier]]
    paths: EstatePaths

    @classmethod
    def of(cls, inventory: Inventory, estate: Estate, paths: EstatePaths) -> _Known:
        folders = list(bare_folders(estate, inventory))
        tables = {state.dataset: state for state in inventory.tables}
        stored = {bare.state.dataset: bare for bare in folders if bare.state.dataset not in tables}
        states = tables | {dataset: bare.state for dataset, bare in stored.items()}
        carried: dict[DatasetId, list[Carrier]] = {}
        for carrier in carriers(inventory):
            named = {state.dataset for state in tables_named(carrier.of, states.values())}
            if len(named) == 1:  # another one is a gap of its own
                carried.setdefault(named.pop(), []).append(carrier)
        return cls(states, stored, carried, paths)

    def values(self, state: TableState, column: str) -> frozenset[str]:
        """Distinct values of a column.

        Raises:
            EstateError: they cannot be read.
        """
        bare = self.stored.get(state.dataset)
        return distinct_values(state, column, self.paths) if bare is None else distinct_in_files(bare, column)


def _doubt(survey: Survey, state: TableState, column: str, known: _Known) -> str | None:
    """What of a column's values, or of its names, speaks against the word; None where nothing does."""
    if not _labels(state, column, known.paths):
        return "the table's files give that name to another column, too, or had one of it before: its values count"
    try:
        values = known.values(state, column)
    except EstateError as error:
        return f"its values cannot be compared with the keys of {survey.subject.source}: {error.what}"
    keys = frozenset[str]().union(*(known_keys(survey, name) for name in plain_key_sets(survey)))
    if are_keys(values, keys):
        return f"at least half of the different values there are keys of {survey.subject.source}"
    return None


def _planned(survey: Survey, word: Word, known: _Known) -> list[NotKeys]:
    """A column with what its files call it, in the table, in those that hold the same files and wherever else its rows
    are stored; none where the table is not there, or where a name in its files may be another column."""
    state = known.states.get(word.column.dataset)
    if state is None:
        return []
    copies = [s for s in known.states.values() if state.location in (s.clone_of, s.same_files_as) and _same(survey, s)]
    origin = known.states[word.origin.dataset]
    copied = f"{title(origin)}.{word.origin.column}" if word.origin != word.column else None
    found = []
    for table in (state, *copies):
        labels = _labels(table, named(table, word.column.column), known.paths)
        if not labels:
            continue
        mine = NotKeys(
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
        found += [mine, *_carried(mine, known.carried.get(table.dataset, ()))]
    return found


def _carried(mine: NotKeys, carried: Sequence[Carrier]) -> Iterator[NotKeys]:
    """The same column in other places with rows of its table."""
    for carrier in carried:
        labels = carrier.called(mine.column, mine.labels)
        if labels:
            there = {"table": carrier.location, "dataset": carrier.dataset, "location": carrier.location}
            yield mine.model_copy(update={**there, "labels": labels, "copied_from": mine.copied_from or mine.name})


def _same(survey: Survey, clone: TableState) -> bool:
    """Whether lineage tells nothing of its own of a table with another's files."""
    return clone.dataset not in survey.carriages


def _labels(state: TableState, column: str | None, paths: EstatePaths) -> tuple[str, ...]:
    """What files call a column, of the names that mean it alone."""
    try:
        return names_of_one(state, column, paths) if column is not None else ()
    except EstateError:
        return ()
