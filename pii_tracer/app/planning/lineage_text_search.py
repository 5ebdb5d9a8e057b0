"""Statements that lineage was read from, searched for the persons: a key stands in them as a literal.

`DELETE … WHERE id = 4417700102` is in an event, in a SQL file or a query log, and in the graph that was made of it. No
step writes any of these again. A short number is not looked for: in a statement it can mean anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.scan.folder_scan import scan_bytes
from pii_tracer.scan.value_forms import Patterns
from planners.copies.scan_evidence import JobEvidence

_AT_ONCE = 1 << 24
"""Characters of statements that are searched together."""


@dataclass
class _Found:
    """Of one job: the places and the digests of its statements that name the persons."""

    places: dict[str, None] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)


def telling_jobs(graph: LineageGraph, patterns: Patterns) -> tuple[JobEvidence, ...]:
    """The jobs in whose recorded statements a value of the persons stands, each with the places of these."""
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
    return tuple(JobEvidence(job, tuple(one.places), frozenset(one.texts)) for job, one in sorted(found.items()))


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
            texts = [text for text in (job.statement, job.sql, *(view for _, view in job.views)) if text]
            for one in dict.fromkeys(texts):
                key = (job.job, job.where, one)
                if key not in seen:
                    seen.add(key)
                    yield key
