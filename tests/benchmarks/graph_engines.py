"""One walk over one large estate, by our store, networkx and rustworkx; each in a process of its own, for its memory.

python -m tests.benchmarks.graph_engines ENGINE FILE RUNS
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ENGINES = ("store", "networkx", "rustworkx")
START = 7 * 40 + 3
"""A column of the first layer."""


def memory(key: str) -> float:
    """A line of /proc/self/status in MiB: `VmRSS` now, `VmHWM` at most since `reset`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(key + ":"))


def reset() -> None:
    """Forget the highest memory so far (proc(5), clear_refs)."""
    Path("/proc/self/clear_refs").write_text("5")


def value_edges(file: Path) -> tuple[int, Any, Any]:
    """Number of columns, and sources and targets of the DIRECT edges."""
    from pii_tracer.lineage.graph.arrays import is_direct, numbers_of
    from pii_tracer.lineage.graph.graph_file import load

    made = load(file).columnar
    direct = is_direct(made.edge_kind)
    targets = numbers_of(made.edge_start)
    return len(made.column_name), np.array(made.edge_source[direct]), targets[direct]


def store(file: Path) -> tuple[float, Callable[[], int]]:
    """Seconds until the graph is there, and its walk."""
    from pii_tracer.lineage.graph import traversal as walk
    from pii_tracer.lineage.graph.graph_file import load

    begin = time.perf_counter()
    made = load(file).columnar
    taken = time.perf_counter() - begin
    return taken, lambda: len(walk.reached(len(made.column_name), START, walk.values_down(made)))


def networkx(file: Path) -> tuple[float, Callable[[], int]]:
    """As `store`."""
    import networkx as nx

    size, sources, targets = value_edges(file)
    pairs = list(zip(sources.tolist(), targets.tolist(), strict=True))
    begin = time.perf_counter()
    graph = nx.DiGraph()
    graph.add_nodes_from(range(size))
    graph.add_edges_from(pairs)
    return time.perf_counter() - begin, lambda: len(nx.descendants(graph, START))


def rustworkx(file: Path) -> tuple[float, Callable[[], int]]:
    """As `store`."""
    import rustworkx as rx

    size, sources, targets = value_edges(file)
    pairs = list(zip(sources.tolist(), targets.tolist(), strict=True))
    begin = time.perf_counter()
    graph = rx.PyDiGraph(multigraph=False)
    graph.add_nodes_from(range(size))
    graph.add_edges_from_no_data(pairs)
    return time.perf_counter() - begin, lambda: len(rx.descendants(graph, START))


def measured(engine: str, file: Path, runs: int) -> dict[str, Any]:
    """Seconds to have the graph, of the first and the median walk; MiB that the walk adds, and of the process."""
    ready, walk = {"store": store, "networkx": networkx, "rustworkx": rustworkx}[engine](file)
    before = memory("VmRSS")
    reset()
    times = []
    reached = 0
    for _ in range(runs):
        begin = time.perf_counter()
        reached = walk()
        times.append(time.perf_counter() - begin)
    return {
        "engine": engine,
        "ready_s": ready,
        "first_walk_s": times[0],
        "walk_s": statistics.median(times),
        "walk_mib": memory("VmHWM") - before,
        "process_mib": memory("VmRSS"),
        "reached": reached,
    }


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))))
