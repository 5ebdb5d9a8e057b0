"""Files that could not be read where the persons are not known to be."""

from __future__ import annotations

import pytest

from pii_tracer.lineage.graph.edges import JobRef
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.verify.verdicts import read_as_a_whole
from planners.copies.scan_evidence import Evidence
from tests.planners.smalllake import Lake, dataset


class _WithoutColumns(Lake):
    """A job also writes `d` from the source, and lineage names no columns of that."""

    def _graph(self) -> LineageGraph:
        facts = super()._graph().facts
        job = JobRef(job="job_d", sql=None, inputs=(dataset("users"),), output=dataset("d"), at=None, where="j:2")
        return LineageGraph(facts.model_copy(update={"jobs": (*facts.jobs, job)}))


@pytest.mark.parametrize("unread", [(), ("1.csv: torn",)])
def test_what_is_unread_is_a_gap_although_lineage_leads_there_without_the_person(unread: tuple[str, ...]) -> None:
    """The plan said that all files were decoded; and a run that reads them again would never be complete."""
    plan = _WithoutColumns(loose=("d",), seen={"/w/d": Evidence(2, 0, 9, unread=unread)}).plan()
    assert [one.dataset.name for one in plan.examined] == [dataset("d").name] * (not unread)
    gaps = [gap for gap in plan.gaps if gap.dataset == dataset("d")]
    assert [gap.kind for gap in gaps] == [GapKind.NOT_SCANNED] * len(unread)
    assert (dataset("d") in read_as_a_whole(plan)) == (not unread)
