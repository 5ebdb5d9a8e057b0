"""Many persons in one plan, from the request store to their proofs, by the commands that people use.

    python -m tests.benchmarks.bench_storm [--persons N …] [--rows N] [--folder DIR] [--until STAGE]

For each number of persons an estate of its own is written: a source and a copy in Delta, a copy in Iceberg, a folder of
Parquet, and a copy of that folder which no lineage knows. Each command is a process of its own; its processor time and
memory are those of all its processes, Spark's included. At the end this program itself compares every row of others.

With a folder the benchmark can be stopped between two stages, and goes on with the next one when it is started again.
A run that was stopped is resumed; its numbers are then those of all its parts that ended by themselves.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.storm_estate import StormEstate

_PAUSE = 0.2
_TICK = os.sysconf("SC_CLK_TCK")
PLAN_FILE_MIB = 5.0
TIMES = 3.0


@dataclass
class Used:
    """What a process and all below it took: seconds by the clock and of processors, the most memory at one time."""

    wall_s: float = 0.0
    mib: float = 0.0
    cpu: dict[int, float] = field(default_factory=dict)

    def look(self, root: int) -> None:
        """Add what the processes have used until now. Those that ended count as they were last seen."""
        children: dict[int, list[int]] = {}
        for path in Path("/proc").iterdir():
            if path.name.isdigit():
                try:
                    parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
                except OSError:
                    continue
                children.setdefault(parent, []).append(int(path.name))
        mine, memory = [root], 0
        for pid in mine:
            mine += children.get(pid, [])
            try:
                told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            self.cpu[pid] = (int(told[11]) + int(told[12])) / _TICK
            memory += int(told[21]) * os.sysconf("SC_PAGE_SIZE")
        self.mib = max(self.mib, memory / 2**20)


@dataclass
class Stages:
    """What the stages in a folder took, written down after each, so that none is done twice."""

    base: Path

    @property
    def _file(self) -> Path:
        return self.base / "stages.json"

    @property
    def done(self) -> dict[str, dict[str, float]]:
        """Seconds and MiB by the stage's name."""
        return json.loads(self._file.read_text()) if self._file.exists() else {}

    def run(self, name: str, *words: str, output: Path | None = None) -> None:
        """Run a command, unless it was run before, and print what it took. It stops the benchmark where it fails."""
        if name not in self.done:
            used, seconds = _measured(self.base, words, output)
            took = {"cpu": sum(used.cpu.values()), "wall": seconds, "mib": used.mib}
            self._file.write_text(json.dumps({**self.done, name: took}))
        took = self.done[name]
        print(
            f"  {name:12} {took['cpu']:8.1f} s of processors  {took['wall']:8.1f} s by the clock  {took['mib']:7,.0f} MiB",
            flush=True,
        )


def _measured(base: Path, words: Sequence[str], output: Path | None) -> tuple[Used, float]:
    where = [] if words[0] == "resume" else ["--estate", "pii-tracer.yaml"]
    command = [sys.executable, "-m", "pii_tracer.cli.main", *words, *where, "--state", "state"]
    used, began = Used(), time.perf_counter()
    with (base / "log.txt").open("ab") as log, (output or base / "log.txt").open("ab") as out:
        process = subprocess.Popen(command, cwd=base, stdout=out, stderr=log, env=_environment())
        over = threading.Event()

        def watch() -> None:
            while not over.wait(_PAUSE):
                used.look(process.pid)

        watcher = threading.Thread(target=watch)
        watcher.start()
        code = process.wait()
        over.set()
        watcher.join()
    if code:
        raise SystemExit(f"`pii-tracer {words[0]}` ended with {code}; see {base / 'log.txt'}")
    return used, time.perf_counter() - began


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}


LAST = ("requests add", "plan", "approve", "apply")


def storm(base: Path, rows: int, persons: int, until: str) -> tuple[float, float, bool]:
    """Erase the persons. Gives seconds of processors and by the clock, and whether the targets but the time are met."""
    estate = StormEstate(base, rows, persons)
    if not (base / "list.csv").exists():  # which is written last
        estate.write()
    load = os.getloadavg()[0]
    print(f"{persons:,} persons, {rows:,} rows a table (load {load:.1f})", flush=True)
    stages, asked = Stages(base), LAST[: LAST.index(until) + 1]
    given = ["--subject", "user", "--law", "GDPR", "--received", (base / "received").read_text()]
    stages.run("requests add", "requests", "add", "list.csv", *given)
    if "plan" in asked:
        immediate = ["--retention", "immediate", "--reason", "the storm"]
        stages.run("plan", "plan", "--requests", *immediate, "--out", "storm.plan.json")
        size = (base / "storm.plan.json").stat().st_size / 2**20
        print(f"  plan file {size:.2f} MiB", flush=True)
    if "approve" in asked:
        signed = ["--approver", "Dr. Sen", "--role", "privacy officer", "--reason", "right", "--unsigned"]
        stages.run("approve", "approve", "storm.plan.json", *signed)
    if "apply" not in asked:
        raise SystemExit(0)
    if (base / "state/runs").exists() and "apply" not in stages.done:
        (base / "result.json").unlink(missing_ok=True)
        stages.run("apply", "resume", "--format", "json", output=base / "result.json")
    else:
        stages.run("apply", "apply", "storm.plan.json", "--result", "result.json")
    after = [took for name, took in stages.done.items() if name != "requests add"]
    took = sum(one["wall"] for one in after)
    result = json.loads((base / "result.json").read_text())
    harmed = estate.lost_or_changed()
    counted = subprocess.run(
        [sys.executable, "-m", "pii_tracer.cli.main", "requests", "list", "--in-state", "received", "--format", "json",
         "--estate", "pii-tracer.yaml", "--state", "state"],
        cwd=base, env=_environment(), check=True, capture_output=True,
    )  # fmt: skip
    erased = json.loads(counted.stdout)["counts"]["erased"]
    written = sum(path.stat().st_size for path in (base / "state").rglob("*") if path.is_file()) / 2**20
    print(
        f"  plan file {size:.2f} MiB; state folder {written:,.0f} MiB; residue {len(result['residue'])}; rows of others"
        f" lost or changed {sum(harmed.values())}; requests erased {erased:,}; {took:.1f} s from plan to proof",
        flush=True,
    )
    met = size <= PLAN_FILE_MIB and not result["residue"] and not any(harmed.values()) and erased == persons
    return sum(one["cpu"] for one in after), took, met


def main() -> int:
    """Run every number of persons. Exits with 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--persons", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="keep the estates in this folder, and go on there")
    parser.add_argument("--until", choices=LAST, default=LAST[-1], help="stop after this stage of the first number")
    given = parser.parse_args()
    times, all_met = [], True
    with tempfile.TemporaryDirectory() as name:
        for persons in given.persons:
            base = (given.folder or Path(name)).resolve() / f"{persons}-of-{given.rows}"
            base.mkdir(parents=True, exist_ok=True)
            cpu, took, met = storm(base, given.rows, persons, given.until)
            times.append((took, cpu))
            all_met &= met
    ratio, of_cpu = (last / first for last, first in zip(times[-1], times[0], strict=True))
    print(
        f"{given.persons[-1]:,} persons / {given.persons[0]:,}: {ratio:.2f} x the time (target <= {TIMES:.0f}),"
        f" {of_cpu:.2f} x the processor time"
    )
    return 0 if all_met and ratio <= TIMES else 1


if __name__ == "__main__":
    sys.exit(main())
