"""What the steps that write bare folders again would refuse: the plan says it, and not the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from executors.formats.plain_files.executor import rehearse
from pii_tracer.lake.careful_reading import Readings
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.model.datasets import PLAIN, KeySet, Match
from pii_tracer.model.errors import EstateError, RunError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import is_remote
from planners.copies.classification import match_of
from planners.copies.executor_support import astray, unsupported
from planners.copies.scan_evidence import Evidence
from planners.locate.subject_survey import Survey, title

_WITHOUT = "No step writes the folder again as it is"


@dataclass(frozen=True)
class _Known:
    """The key sets of a survey, as a step has them from the sealed manifest."""

    key_sets: Mapping[str, KeySet]

    def key_set(self, name: str) -> KeySet:
        return self.key_sets[name]


def refused_rewrites(
    evidence: Mapping[str, Evidence],
    surveys: Sequence[Survey],
    inventory: Inventory,
    readings: Readings,
    say: Callable[[str], None],
) -> None:
    """Read each bare folder on this machine that holds the persons as its step will; what that refuses is a gap."""
    by_location = {state.location: state for state in inventory.tables}
    unread = {gap.dataset for gap in (*inventory.gaps, *readings.gaps) if gap.kind == GapKind.UNREADABLE}
    for survey in surveys:
        known = _Known(survey.key_sets)
        for state in inventory.tables:
            seen = evidence.get(state.location)
            bare = state.format in PLAIN and not is_remote(state.location) and state.dataset not in unread
            if not bare or seen is None or not (seen.found or seen.weak):
                continue
            match = match_of(survey, state, by_location)
            if match is not None and _may_be_rewritten(state, match):
                say(f"trying what the step for {title(state)} would read")
                readings.table(state, partial(_tried, state, match, known), None, _WITHOUT)


def _may_be_rewritten(state: TableState, match: Match) -> bool:
    """Whether nothing blocks the copy already."""
    ways = [(part.column, part.access) for term in match.terms for part in term.parts]
    return unsupported(state, match.columns) is None and astray(state, ways) is None


def _tried(state: TableState, match: Match, known: _Known) -> None:
    try:
        rehearse(state, match, known)
    except RunError as error:
        raise EstateError(error.what, where=error.where, todo=error.todo) from None
