"""Prometheus text metrics, for a textfile collector.

https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reports.escape import visible

Sample = tuple[Mapping[str, str], float]


@dataclass(frozen=True)
class Metric:
    """Samples of one name. suffixed: further samples whose name goes on (`_sum`, `_count`), as summaries have."""

    name: str
    text: str
    samples: Sequence[Sample]
    kind: str = "gauge"
    suffixed: Mapping[str, Sequence[Sample]] | None = None


def render(prefix: str, metrics: Iterable[Metric], common: Mapping[str, str]) -> str:
    """The metrics that have samples, in the text format. common: labels of every sample."""
    return "".join(_metric(f"{prefix}_{metric.name}", metric, common) for metric in metrics)


def _metric(full: str, metric: Metric, common: Mapping[str, str]) -> str:
    named = {"": metric.samples, **(metric.suffixed or {})}
    lines = [
        _sample(full + suffix, {**common, **labels}, value)
        for suffix, samples in named.items()
        for labels, value in samples
    ]
    return "\n".join([f"# HELP {full} {metric.text}", f"# TYPE {full} {metric.kind}", *lines, ""]) if lines else ""


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    inside = ",".join(f'{label}="{_label(text)}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {'+Inf' if value == float('inf') else repr(float(value))}"


def _label(text: str) -> str:
    return visible(text).replace("\\", "\\\\").replace('"', '\\"')
