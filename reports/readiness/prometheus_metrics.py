"""A reading as Prometheus text metrics."""

from __future__ import annotations

from collections import Counter

from pii_tracer.readiness.canaries import Arrival
from pii_tracer.readiness.readiness_reading import Readiness
from reports.prometheus_text import Metric, Sample, render


def render_metrics(found: Readiness) -> str:
    """Gauges; labels are owners, kinds and names of canaries, never values."""
    estate = {"estate": found.estate}
    findings = Counter((f.level.value, f.gap or f.kind.value, f.owner) for f in found.findings)
    oldest = max((f.age_days for f in found.findings), default=0)
    on = found.provable.on
    metrics: list[tuple[str, str, list[Sample]]] = [
        ("ready", "1 where a plan made now would be complete and in time.", [({}, float(found.ready))]),
        ("score", "Readiness score, 0 to 100.", [({}, found.score.points)]),
        ("score_part", "Parts of the score, 0 to 100.", [({"part": p.name}, p.points) for p in found.score.parts]),
        ("reading_timestamp_seconds", "When the reading was taken.", [({}, found.at.timestamp())]),
        (
            "tables",
            "Tables by owner and coverage of lineage.",
            [
                ({"owner": owner, "coverage": name}, count)
                for owner, counts in found.coverage().items()
                for name, count in sorted(counts.items())
            ],
        ),
        (
            "findings",
            "Findings by level, kind and owner.",
            [({"level": a, "kind": b, "owner": c}, count) for (a, b, c), count in sorted(findings.items())],
        ),
        ("oldest_finding_days", "Age of the oldest finding.", [({}, oldest)]),
        (
            "canary_places",
            "Places of each canary by answer.",
            [({"canary": c.name, "arrival": a.value}, c.count(a)) for c in found.canaries.canaries for a in Arrival],
        ),
        (
            "provable_timestamp_seconds",
            "Earliest proof for a request received now; +Inf where something keeps bytes without an end.",
            [({}, on.timestamp() if on else float("inf"))],
        ),
        (
            "deadline_timestamp_seconds",
            "Deadline of a request received now.",
            [({"law": a.law}, a.deadline.timestamp()) for a in found.provable.laws],
        ),
    ]
    if found.cost:
        cases = (("low", found.cost.low), ("expected", found.cost.expected), ("high", found.cost.high))
        samples: list[Sample] = [({"case": case, "currency": found.cost.currency}, amount) for case, amount in cases]
        metrics.append(("erasure_cost", "Estimated cost of erasing one person.", samples))
    return render("pii_tracer_readiness", (Metric(*one) for one in metrics), estate)
