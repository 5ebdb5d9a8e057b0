"""What planning does with a stored graph: follow one source's persons through all that was made from it.

python -m tests.benchmarks.plan_walk FILE
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from pii_tracer.config.subjects import Subject
from pii_tracer.lineage.graph import array_decoding
from pii_tracer.lineage.graph.graph_file import load
from planners.locate.key_location import follow
from tests.benchmarks.graph_engines import memory


def measured(file: Path) -> dict[str, Any]:
    """Seconds and memory of load and follow, and how many edges of the store became objects."""
    made = 0
    real = array_decoding.Reader._edge

    def counted(*args: Any) -> Any:
        nonlocal made
        made += 1
        return real(*args)

    array_decoding.Reader._edge = counted  # type: ignore[method-assign]
    begin = time.perf_counter()
    graph = load(file)
    loaded = time.perf_counter() - begin
    # a source in the last fifth of the estate: a few hundred tables are made from it
    source = graph.datasets()[len(graph.datasets()) * 21 // 25]
    subject = Subject(name="person", source="source", key="column_000", identifiers=())
    begin = time.perf_counter()
    carriages = follow(graph, source, subject)
    return {
        "load_s": loaded,
        "follow_s": time.perf_counter() - begin,
        "datasets": len(carriages),
        "of": len(graph.datasets()),
        "made_edges": made,
        "edges": len(graph.columnar.edge_source),
        "process_mib": memory("VmHWM"),
    }


if __name__ == "__main__":
    print(json.dumps(measured(Path(sys.argv[1]))))
