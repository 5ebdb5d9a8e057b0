"""Keys that the estate file declares for tables which lineage cannot match: taken where the rows bear them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lake.rows.current_rows import data_files
from pii_tracer.lake.rows.rows_of_files import read_part
from pii_tracer.model.datasets import Match
from pii_tracer.model.errors import EstateError
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.value_forms import Patterns
from planners.copies.derived_keys import everybodys
from planners.copies.person_rows import texts_at, theirs
from planners.copies.scan_evidence import Evidence
from planners.copies.table_match import match_by
from planners.locate.key_location import Carriage
from planners.locate.subject_survey import Survey, title

if TYPE_CHECKING:
    import pyarrow as pa


def confirmed(
    surveys: Sequence[Survey],
    evidence: Mapping[str, Evidence],
    inventory: Inventory,
    paths: EstatePaths,
    patterns_at: Callable[[str], Patterns],
    say: Callable[[str], None],
) -> list[Survey]:
    """The surveys, with the word of the estate file in place of lineage's answer where the rows bear it out."""
    return [_survey(survey, evidence, inventory, paths, patterns_at, say) for survey in surveys]


def _survey(
    survey: Survey,
    evidence: Mapping[str, Evidence],
    inventory: Inventory,
    paths: EstatePaths,
    patterns_at: Callable[[str], Patterns],
    say: Callable[[str], None],
) -> Survey:
    carriages = dict(survey.carriages)
    for state in inventory.tables:
        lineage = survey.carriages.get(state.dataset)
        told, seen = lineage.if_confirmed if lineage else None, evidence.get(state.location)
        if lineage is None or told is None or seen is None or seen.unread or state.clone_of:
            continue
        say(f"checking whether the rows of {title(state)} agree with its declared key")
        try:
            why = _against(survey, state, told, patterns_at(state.location), paths)
        except EstateError as error:
            why = error.what
        if why is None:
            carriages[state.dataset] = replace(told, tags=lineage.tags)
        else:
            say(f"the declared key of {title(state)} is not taken: {why}")
    return replace(survey, carriages=carriages)


def _against(survey: Survey, state: TableState, told: Carriage, patterns: Patterns, paths: EstatePaths) -> str | None:
    """What in the rows speaks against the key; None where each row has the key of somebody whom the source knows, those
    found by it hold nobody else, and no other row holds the persons.

    Raises:
        EstateError: the rows cannot be read.
    """
    match = match_by(survey, state, told)
    if survey.keys.unseen or not any(survey.key_sets[term.key_set].values for term in match.terms):
        return "the source has no value that the persons could be found by"
    known = {t.origin: everybodys(survey.keys, t.origin, t.expression) for _, t in told.terms}
    others = frozenset[str]().union(*(survey.keys.others[i.column] for i in survey.subject.identifiers))
    found = 0
    columns = [column.name for column in state.columns]
    for batch in read_part(state, columns, data_files(state, paths), paths):
        mine = theirs(batch, match, survey.key_sets)
        if mine is None:
            return "only Spark can find out whose its rows are"
        if why := _unknown(batch, match, frozenset().union(*known.values())):
            return why
        found += mine.true_count
        if _holds(_rows(batch, mine, keep=False), survey, patterns):
            return "rows that it does not find hold the persons"
        if _names_others(_rows(batch, mine, keep=True), others):
            return "rows that it finds hold somebody else, too"
    return None if found else "it finds no row"


def _rows(batch: pa.RecordBatch, mine: pa.BooleanArray, *, keep: bool) -> pa.RecordBatch:
    import pyarrow.compute as pc

    return batch.filter(mine if keep else pc.invert(mine))


def _unknown(batch: pa.RecordBatch, match: Match, known: frozenset[str]) -> str | None:
    """Whether a row has no key, or one that nobody in the source has."""
    for term in match.terms:
        cells = texts_at(batch, term)
        values = cells.unique().to_pylist() if cells is not None else [None]
        if not known.issuperset(values):
            return "some rows have no key there, or one that the source does not know"
    return None


def _holds(rows: pa.RecordBatch, survey: Survey, patterns: Patterns) -> bool:
    """Whether rows hold a value of the persons that cannot be mistaken."""
    from pii_tracer.scan.decode.arrow import search_batch

    looked = Collector(patterns)
    search_batch(rows, looked, "data")
    return any(hit.key_set in survey.key_sets and not hit.weak for hit in looked.hits())


def _names_others(rows: pa.RecordBatch, others: frozenset[str]) -> bool:
    """Whether a cell is an identifier of somebody else."""
    from pii_tracer.scan.decode.arrow import leaf_arrays

    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        for _, leaf in leaf_arrays(column, name):
            if any(str(value) in others for value in leaf.unique().to_pylist() if value is not None):
                return True
    return False
