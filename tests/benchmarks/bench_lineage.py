"""The lineage graph on a large estate, and the SQL parser on TPC-DS, beside what else could be used.

    python -m tests.benchmarks.bench_lineage [--json] [--only graph|plan|parse] [--columns N] [--edges N] [--runs N]

`make bench-lineage` runs all of it: about five minutes on two cores, 2 GB of memory, most of it for networkx and
sqllineage. Everything is measured in this run; the TPC-DS queries are fetched with pip into a cache folder.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.benchmarks import graph_engines, parse_engines, tpcds
from tests.benchmarks.synthetic import write


def graph_results(file: Path, runs: int) -> list[dict[str, Any]]:
    """One row per engine, each in a process of its own."""
    rows = []
    for engine in graph_engines.ENGINES:
        command = [sys.executable, "-m", "tests.benchmarks.graph_engines", engine, str(file), str(runs)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        rows.append(json.loads(done.stdout))
    if len({row["reached"] for row in rows}) != 1:
        raise SystemExit(f"the engines do not agree: {rows}")
    return rows


def plan_results(file: Path) -> dict[str, Any]:
    """Following one person from the stored graph, in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.plan_walk", str(file)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def parse_results(cache: Path) -> list[dict[str, Any]]:
    """One row per parser."""
    queries, schemas = tpcds.read(tpcds.fetched(cache))
    return [{**vars(score), "per_second": score.per_second} for score in parse_engines.scored(queries, schemas)]


def table(rows: list[dict[str, Any]], columns: dict[str, str]) -> str:
    """Rows as aligned text; columns: key to format."""
    cells = [list(columns), *([columns[key].format(row[key]) for key in columns] for row in rows)]
    widths = [max(len(line[n]) for line in cells) for n in range(len(columns))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def main() -> None:
    """Run, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", choices=["graph", "plan", "parse"])
    parser.add_argument("--columns", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=3_000_000)
    parser.add_argument("--runs", type=int, default=9)
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser.add_argument("--cache", type=Path, default=home / "pii-tracer-bench")
    given = parser.parse_args()
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lineage.graph"
        if given.only != "parse":
            begin = time.perf_counter()
            write(file, given.columns, given.edges)
            result["store"] = {
                "columns": given.columns,
                "edges": given.edges,
                "bytes": file.stat().st_size,
                "make_and_write_s": time.perf_counter() - begin,
            }
        if given.only in (None, "graph"):
            result["graph"] = graph_results(file, given.runs)
        if given.only in (None, "plan"):
            result["plan"] = plan_results(file)
    if given.only in (None, "parse"):
        result["parse"] = parse_results(given.cache)
    print(json.dumps(result, indent=2) if given.json else told(result))


def told(result: dict[str, Any]) -> str:
    """The result for people."""
    parts = []
    if "store" in result:
        parts.append("{columns:,} columns, {edges:,} edges: a file of {bytes:,} bytes".format(**result["store"]))
    if "graph" in result:
        parts.append("Every column that values of one column go into (value edges only):")
        form = dict.fromkeys(("ready_s", "first_walk_s", "walk_s"), "{:.3f}") | dict.fromkeys(
            ("walk_mib", "process_mib"), "{:.0f}"
        )
        parts.append(table(result["graph"], {"engine": "{}", **form, "reached": "{:,}"}))
    if "plan" in result:
        parts.append(
            "Following one person with the planner: load {load_s:.3f} s, follow {follow_s:.3f} s over {datasets:,} datasets"
            " of {of:,}, {made_edges:,} edge objects of {edges:,}, process {process_mib:.0f} MiB".format(
                **result["plan"]
            )
        )
    if "parse" in result:
        parts.append("TPC-DS, all output columns (recall and extra against sqlglot.lineage):")
        form = {
            "per_second": "{:.1f}",
            "seconds": "{:.2f}",
            "statements": "{}",
            "failed": "{}",
            "recall": "{:.4f}",
            "extra": "{}",
        }
        parts.append(table(result["parse"], {"engine": "{}", **form}))
    return "\n\n".join(parts)


if __name__ == "__main__":
    main()
