"""A reading as one HTML page: verdict, score, trend, canaries, findings, and every table by schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pii_tracer.readiness.canaries import Arrival
from pii_tracer.readiness.estate_snapshot import Coverage, TableFacts
from pii_tracer.readiness.findings import Level
from pii_tracer.readiness.readiness_reading import Readiness, TrendPoint, counted
from reports.html_templates import render_html
from reports.readiness.readiness_text import cost_of, provable_line, verdict

MOST_FINDINGS = 2000
"""Findings that the page lists; the others are counted, and in the JSON."""
MOST_READINGS = 90
"""Readings that the trend draws: a quarter of a year of mornings."""
WIDTH, HEIGHT = 720, 90


@dataclass(frozen=True)
class Schema:
    """Tables of one schema, or of one folder. counts: of each coverage."""

    name: str
    tables: tuple[TableFacts, ...]
    counts: tuple[tuple[str, int], ...]


def render_readiness_html(found: Readiness) -> str:
    """A self-contained page (inline style and SVG, no script, no request)."""
    scores = [point.score for point in found.trend[-MOST_READINGS + 1 :]] + [found.score.points]
    return render_html(
        "readiness.html.j2",
        found=found,
        verdict=verdict(found),
        provable=provable_line(found),
        cost=cost_of(found),
        totals=counted(found.tables),
        owners=found.coverage(),
        coverages=[coverage.value for coverage in Coverage],
        schemas=_schemas(found.tables),
        listed=found.findings[:MOST_FINDINGS],
        hidden=max(0, len(found.findings) - MOST_FINDINGS),
        blocking=len(found.of_level(Level.BLOCKING)),
        warnings=len(found.of_level(Level.WARNING)),
        arrivals=[arrival.value for arrival in Arrival],
        line=_line(scores),
        width=WIDTH,
        height=HEIGHT,
        first=_first(found.trend),
    )


def _first(trend: Sequence[TrendPoint]) -> str:
    return trend[-MOST_READINGS + 1 :][0].at[:10] if trend else ""


def _line(scores: Sequence[int]) -> str:
    """Points of a polyline, oldest on the left; 100 is on top."""
    step = WIDTH / max(1, len(scores) - 1)
    return " ".join(f"{n * step:.1f},{HEIGHT * (1 - score / 100):.1f}" for n, score in enumerate(scores))


def _schemas(tables: Sequence[TableFacts]) -> list[Schema]:
    found: dict[str, list[TableFacts]] = {}
    for table in tables:
        name = table.name
        between = "/" if "/" in name else "."
        found.setdefault(name.rpartition(between)[0] or "(no schema)", []).append(table)
    return [
        Schema(name, tuple(inside), tuple(sorted(Counter(t.coverage.value for t in inside).items())))
        for name, inside in sorted(found.items())
    ]
