"""What lineage was read from, searched for the persons: a key stands in a statement as a literal, or in a name.

`DELETE … WHERE id = 4417700102` is in an event, in a SQL file or a query log. No step writes any of these again. The
stored graph has no statements, but the names of datasets, columns, jobs and files. A short number is not looked for:
in a statement it can mean anything.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.scan.folder_scan import scan_bytes
from pii_tracer.scan.value_forms import Patterns
from planners.copies.scan_evidence import JobEvidence

_TELLING = re.compile(rb"[0-9@%]|[^\W\d_] [^\W\d_]|[^\W\d_]\+[^\W\d_]")
"""What a value has that is no common word: a digit, an `@`, or two words."""
_AT_ONCE = 1 << 24
"""Characters of statements that are searched together."""


@dataclass
class _Found:
    """Of one job: the places and the digests of its statements that name the persons."""

    places: dict[str, None] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)


def telling_jobs(graph: LineageGraph, patterns: Patterns) -> tuple[JobEvidence, ...]:
    """The jobs in whose recorded statements a value of the persons stands, each with the places of these; before them
    one without a name, if a name in the graph has a value.
    """
    found: dict[str, _Found] = {}
    told: list[tuple[str, str, bytes]] = []
    size = 0
    for job, where, text in _statements(graph):
        told.append((job, where, text.encode("utf-8", "replace")))
        size += len(text)
        if size > _AT_ONCE:
            _search(told, patterns, found)
            told, size = [], 0
    _search(told, patterns, found)
    named = _named(graph, patterns)
    of_jobs = (JobEvidence(job, tuple(one.places), frozenset(one.texts)) for job, one in sorted(found.items()))
    return (named, *of_jobs) if named else tuple(of_jobs)


def _named(graph: LineageGraph, patterns: Patterns) -> JobEvidence | None:
    """A value of one word is no find: `payments` is a username, and the name of a table."""
    made = graph.columnar
    jobs = {job.job: None for dataset in graph.datasets() for job in graph.jobs_into(dataset)}
    pools: dict[str, Iterable[str]] = {
        "the name of a dataset": made.dataset_names,
        "the name of a column": made.words,
        "the name of a table": made.aliases,
        "the name of a job": jobs,
        "the evidence of a fact": made.evidence,
        "what is said of a gap of lineage": made.gaps,
    }
    found = _Found()
    for what, names in pools.items():
        data = "\n".join(names).encode("utf-8", "replace")
        lines = {_line(data, start, end) for _, start, end in patterns.occurrences(data)}
        for first, last in sorted(lines):
            if _names_person(data[first:last], patterns):
                found.places[what] = None
                found.texts.add(hashlib.sha256(data[first:last]).hexdigest())
    return JobEvidence("", tuple(found.places), frozenset(found.texts)) if found.places else None


def _line(data: bytes, start: int, end: int) -> tuple[int, int]:
    last = data.find(b"\n", end)
    return data.rfind(b"\n", 0, start) + 1, len(data) if last < 0 else last


def _names_person(name: bytes, patterns: Patterns) -> bool:
    """Whether a value stands in a name that no longer key explains (`asha.rao@x.example` for `rao@x.example`)."""
    telling = any(_TELLING.search(name, start, end) for _, start, end in patterns.occurrences(name))
    return telling and bool(patterns.ended(name)[0])


def _search(told: list[tuple[str, str, bytes]], patterns: Patterns, found: dict[str, _Found]) -> None:
    """Together first: most statements name nobody."""
    if not told or not scan_bytes("statements.sql", b"\n;\n".join(text for _, _, text in told), patterns).strong:
        return
    for job, where, text in told:
        if scan_bytes("statement.sql", text, patterns).strong:
            one = found.setdefault(patterns.mask(job), _Found())
            one.places[patterns.mask(where)] = None
            one.texts.add(hashlib.sha256(b"\0".join((where.encode("utf-8", "replace"), text))).hexdigest())


def _statements(graph: LineageGraph) -> Iterator[tuple[str, str, str]]:
    seen: set[tuple[str, str, str]] = set()
    for dataset in graph.datasets():
        for job in graph.jobs_into(dataset):
            constants = (constant for _, constant in job.filled)
            texts = [text for text in (job.statement, job.sql, *(view for _, view in job.views), *constants) if text]
            for one in dict.fromkeys(texts):
                key = (job.job, job.where, one)
                if key not in seen:
                    seen.add(key)
                    yield key
