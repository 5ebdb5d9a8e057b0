"""Names in the SQL of an event that mean the event's own inputs and outputs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pii_tracer.lineage.dataset_names import Identities, is_place
from pii_tracer.lineage.naming_schemes import capitals_matter, may_mean
from pii_tracer.lineage.sources.openlineage.run_merging import Run
from pii_tracer.model.datasets import DatasetId

_WORD = re.compile(r"[\w$]+")
_WRITTEN = re.compile(r'"[^"]*"|[\w$]+')
_PART = re.compile(r'"[^"]*"|[^."]+')


@dataclass(frozen=True)
class OwnNames:
    """names: names of tables in small letters, each with the dataset that the event names."""

    names: tuple[tuple[str, DatasetId], ...] = ()

    def of(self, table: str) -> DatasetId | None:
        """The dataset of a table name, where the event names it."""
        plain = _plain(table)
        return next((dataset for name, dataset in self.names if name == plain), None)


NO_NAMES = OwnNames()
"""Those of a statement that no event tells."""


def own_names(runs: Iterable[Run], identities: Identities) -> dict[tuple[str, str], OwnNames]:
    """The names of each text (with its dialect). A name that two runs of one text use for two datasets is left out."""
    found: dict[tuple[str, str], list[OwnNames]] = defaultdict(list)
    for run in runs:
        for text in run.sql:
            found[text].append(_of_run(run, text[0], identities))
    return {text: together(names) for text, names in found.items()}


def together(several: Sequence[OwnNames]) -> OwnNames:
    """The names on which all agree."""
    common = frozenset(several[0].names).intersection(*(one.names for one in several[1:])) if several else ()
    return OwnNames(tuple(sorted(common)))


def _of_run(run: Run, text: str, identities: Identities) -> OwnNames:
    """Every end of a dataset's name that only one dataset of the run has, and whose words all stand in the text.

    A name that a catalog, a symlink or a path explains already is left to these.
    """
    words, lowered = frozenset(_WORD.findall(text)), frozenset(_WORD.findall(text.lower()))
    written: dict[str, set[str]] = defaultdict(set)
    for word in _WRITTEN.findall(text):
        written[_plain(word)].add(word)
    ends: dict[str, set[DatasetId]] = defaultdict(set)
    for dataset in run.inputs | run.outputs:
        parts = _plain(dataset.name).split(".")
        if is_place(dataset) or "/" in dataset.name:
            continue
        exact = capitals_matter(dataset.namespace)
        shown = _PART.findall(dataset.name)
        if exact and not words.issuperset(_WORD.findall(shown[-1])):
            continue
        if not exact and not all(may_mean(dataset.namespace, w, part) for part in shown for w in written[_plain(part)]):
            continue
        for at in range(len(parts)):
            ends[".".join(parts[at:])].add(dataset)
    return OwnNames(
        tuple(
            sorted(
                (name, next(iter(found)))
                for name, found in ends.items()
                if len(found) == 1 and lowered.issuperset(_WORD.findall(name)) and identities.of_rows(name) is None
            )
        )
    )


def _plain(name: str) -> str:
    return name.replace("`", "").replace('"', "").strip().lower()
