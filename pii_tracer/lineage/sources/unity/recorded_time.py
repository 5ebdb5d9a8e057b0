"""From when until when rows of lineage were recorded: of what was written before or after, nothing is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pii_tracer.lineage.dataset_names import plain_name
from pii_tracer.lineage.graph.edges import LineageGap
from pii_tracer.lineage.sources.evidence_merging import iso
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.unity.flows import TABLES, Flows
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.gap_kinds import LineageGapKind


@dataclass(frozen=True)
class Frame:
    """Times of the oldest and the newest row of `table_lineage` in one source, 0 where there is none."""

    source: str
    since: int
    until: int

    @staticmethod
    def of(source: str, flows: Flows) -> Frame:
        rows = flows.of(TABLES)
        return Frame(source, rows.since, rows.until)


def unrecorded(frames: Sequence[Frame], created: Mapping[str, int], ledger: Ledger) -> Iterator[LineageGap]:
    """frames: of sources of one metastore. created: when its tables were made (microseconds, or 0), by name."""
    for frame in frames:
        if not frame.since:
            yield _gap(
                None,
                f"{frame.source} has no row of `{TABLES}` with a time",
                frame.source,
                "enable the schema `system.access`, or let the account see its rows",
            )
    timed = sorted((frame for frame in frames if frame.since), key=lambda frame: frame.since)
    if not timed:
        return
    since, until = timed[0].since, timed[0].until
    names = ", ".join(frame.source for frame in timed)
    for frame in timed[1:]:
        if frame.since > until:
            yield _gap(None, f"{names}: no source has rows between {iso(until)} and {iso(frame.since)}", names)
        until = max(until, frame.until)
    for name, at in sorted(created.items()):
        dataset = ledger.identities.aliases.get(plain_name(name))
        if dataset is None or not at or since <= at <= until:
            continue
        when = f"begins at {iso(since)}: earlier writes are not known"
        if at > until:
            when = f"ends at {iso(until)}: later writes are not known"
        yield _gap(dataset, f"the table is from {iso(at)}, and the lineage of {names} {when}", names)


def _gap(
    dataset: DatasetId | None, reason: str, evidence: str, closes: str = "add the SQL of the jobs of that time"
) -> LineageGap:
    return LineageGap(dataset=dataset, kind=LineageGapKind.LOST_EVENTS, reason=reason, evidence=evidence, closes=closes)
