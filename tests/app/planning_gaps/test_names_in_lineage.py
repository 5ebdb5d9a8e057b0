"""Names in the lineage that are values of a person: they stay in the graph's file."""

from __future__ import annotations

import pytest

from pii_tracer.app.planning.lineage_text_search import telling_jobs
from pii_tracer.lineage.graph.canonical_facts import collect
from pii_tracer.lineage.graph.edges import JobRef
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from tests.lineage.graphs import ds, edge
from tests.scan.test_altered_forms import _patterns


def named(*tables: str) -> LineageGraph:
    jobs = [JobRef(job="j", sql=None, inputs=(ds("/a"),), output=ds(table)) for table in tables]
    return LineageGraph(collect([edge("/a", tables[0])], [], jobs, [], {}, {}))


@pytest.mark.parametrize(
    ("value", "name", "found"),
    [
        ("asha.rao@x.example", "/exports/asha.rao@x.example/1", True),
        ("4417700102", "/exports/4417700102", True),
        ("4417700102", "/exports/44177001023/y", False),
        ("rao@x.example", "/exports/asha.rao@x.example", False),
        ("payments", "/exports/payments", False),
        ("zoe", "/exports/zoe/x", False),
        ("Mira Zoe", "/exports/Mira Zoe/x", True),
        ("Mira Zoe", "/exports/mira zoe 2", True),
    ],
)
def test_a_name_that_is_a_value(value: str, name: str, found: bool) -> None:
    assert bool(telling_jobs(named(name), _patterns(value))) is found
