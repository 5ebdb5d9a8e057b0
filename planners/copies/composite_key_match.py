"""Where the tables of an estate have keys of several columns, which no bytes show: rows are compared with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pii_tracer.lake.formats.plain_files.store_folder import Bare
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.model.datasets import Match
from pii_tracer.scan.known_columns import key_columns
from pii_tracer.scan.value_forms import Patterns
from planners.copies.classification import match_of
from planners.locate.subject_survey import Survey


@dataclass(frozen=True)
class WholeKeys:
    """surveys: of subjects with such a key."""

    surveys: Sequence[Survey] = ()
    by_location: Mapping[str, TableState] = field(default_factory=dict)

    @classmethod
    def of(cls, surveys: Sequence[Survey], inventory: Inventory) -> WholeKeys:
        """Of everything that a plan is made for."""
        known = tuple(found for found in surveys if found.subject.several_columns)
        return cls(known, {state.location: state for state in inventory.tables})

    def match(self, state: TableState | None) -> Match | None:
        """How rows of a table are found by such keys; None where none is."""
        found = (match_of(one, state, self.by_location) for one in self.surveys) if state else ()
        terms = tuple(term for match in found if match for term in match.terms if term.beside)
        return Match(terms=terms) if terms else None

    def at(self, patterns: Patterns, state: TableState | None) -> Patterns:
        """The same patterns for the files of a table; of one without a log their rows are compared, too."""
        match = self.match(state)
        return patterns.comparing(key_columns(match, kind=state.format)) if match and state else patterns

    def at_folder(self, patterns: Patterns, look: Callable[[], Bare | str]) -> Patterns:
        """The same for a folder of a store. look: tells what it is, which is asked only where it matters."""
        found = look() if self.surveys else ""
        return self.at(patterns, found.state) if isinstance(found, Bare) else patterns


NO_WHOLE_KEYS = WholeKeys()
"""Of estates in which every key has one column."""
