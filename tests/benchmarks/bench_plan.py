"""Plans for a large estate: 100 requests on 2,500, 5,000 and 10,000 tables, and one request on the largest.

    python -m tests.benchmarks.bench_plan [--json] [--tables N …] [--requests N]

A quarter of the tables holds the persons (`plan_estate`). Timed is all that planning does with what discovery, scan and
harvest found: opening the stored graph, following the persons, deriving their keys, building and writing the plan.
Reading the estate's systems is not in it, nor is making the estate. The limits are asked of the processor's time;
`loop_s`, ten million additions in the same process, tells a busy or slow machine (0.35 s on a quiet one, by which the limits are scaled).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks.bench_lineage import table

QUIET_LOOP_S = 0.35
LIMIT_S, LIMIT_MIB, LIMIT_ONE_S = 30.0, 2048.0, 5.0


def run(folder: Path, tables: int, requests: int) -> dict[str, Any]:
    """One plan in a process of its own; the estate is written by another, so that its memory does not count."""
    file = folder / f"{tables}.graph"
    if not file.exists():
        subprocess.run([sys.executable, "-m", "tests.benchmarks.plan_estate", str(file), str(tables)], check=True)
    command = [sys.executable, "-m", "tests.benchmarks.plan_run", str(file), str(tables), str(requests)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main() -> None:
    """Run, print a table or JSON, and fail where a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--tables", type=int, nargs="+", default=[2_500, 5_000, 10_000])
    parser.add_argument("--requests", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        many = [run(Path(folder), n, given.requests) for n in given.tables]
        one = run(Path(folder), max(given.tables), 1)
    print(json.dumps({"many": many, "one": one}, indent=2) if given.json else told(many, one))
    broken = [r for r in many if _quiet(r) > LIMIT_S or r["process_mib"] > LIMIT_MIB]
    if broken or _quiet(one) > LIMIT_ONE_S:
        raise SystemExit("a limit is broken: 30 s and 2 GiB for many requests, 5 s for one")


def _quiet(row: dict[str, Any]) -> float:
    """The processor's seconds, as they would be where the loop takes its usual time; never more than were measured."""
    return float(row["cpu_s"]) * min(1.0, QUIET_LOOP_S / row["loop_s"])


def told(many: list[dict[str, Any]], one: dict[str, Any]) -> str:
    """The result for people."""
    counts = dict.fromkeys(("tables", "columns", "requests", "copies", "steps"), "{:,}")
    seconds = dict.fromkeys(
        ("load_s", "follow_s", "keys_s", "build_s", "write_s", "total_s", "cpu_s", "loop_s"), "{:.2f}"
    )
    form = {**counts, "plan_mb": "{:.1f}", **seconds, "inventory_mib": "{:.0f}", "process_mib": "{:.0f}"}
    parts = [table([*many, one], form)]
    first, last = many[0], many[-1]
    if first is not last:
        size, time = last["tables"] / first["tables"], last["cpu_s"] / first["cpu_s"]
        parts.append(f"{size:.1f} times the tables take {time:.1f} times the processor's time")
    return "\n\n".join(parts)


if __name__ == "__main__":
    main()
