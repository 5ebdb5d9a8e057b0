"""Preparing the search for many persons: the processor's time and the most memory of a process for each number.

    python -m tests.benchmarks.bench_persons [--persons N …]

Each person has five values: a number, an e-mail address, a phone, a name and a hash. No file is read.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.value_forms import Patterns
from tests.benchmarks.bench_lineage import table
from tests.benchmarks.graph_engines import memory

FIRST = 9_000_000_000
VALUES: dict[str, Callable[[int], str]] = {
    "user_id": lambda n: f"{FIRST + n}",
    "email": lambda n: f"person{n}@example.com",
    "phone": lambda n: f"+9190{n:08d}",
    "name": lambda n: f"Asha Rao{n * 7919 % 100_003}",
    "hash": lambda n: hashlib.sha256(f"{FIRST + n}".encode()).hexdigest(),
}


def key_sets(persons: int) -> list[KeySet]:
    """The values of so many persons."""
    return [
        KeySet(name=name, origin=name, weak=False, values=tuple((f"subj_{n:016x}", make(n)) for n in range(persons)))
        for name, make in VALUES.items()
    ]


def measured(persons: int) -> dict[str, Any]:
    """Seconds and memory of this process."""
    sought, begin = key_sets(persons), time.process_time()
    Patterns(sought)
    return {"persons": persons, "cpu_s": time.process_time() - begin, "process_mib": memory("VmHWM")}


def main() -> None:
    """Run each number in a process of its own, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--persons", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        print(json.dumps(measured(given.one)))
        return
    command = [sys.executable, "-m", "tests.benchmarks.bench_persons", "--one"]
    runs = [subprocess.run([*command, str(n)], check=True, capture_output=True, text=True) for n in given.persons]
    rows = [json.loads(run.stdout) for run in runs]
    print(table(rows, {"persons": "{:,}", "cpu_s": "{:.1f}", "process_mib": "{:.0f}"}))


if __name__ == "__main__":
    main()
