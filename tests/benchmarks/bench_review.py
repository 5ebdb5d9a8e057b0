"""How long `pii-tracer review` takes on invented dbt projects, as a process of its own. Run: `make bench-review`.

A model of each project loses its key; the whole project is read and followed on both sides, whatever changed. Then the
changes of `tests.model_review.changes` are applied to the project of 500 models, each alone: each verdict has to be that
which is planted, in time.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from pii_tracer.model.errors import ExitCode
from tests.model_review.changes import HARMFUL, HARMLESS, Planted
from tests.model_review.dbt_project import ESTATE, write_project
from tests.model_review.repositories import Repo

MODELS = (100, 500, 2_000)
PLANTED_IN = 500
MOST_SECONDS = 30
"""For so many models, on two cores."""
ROOT = Path(__file__).parents[2]


def project(models: int, folder: Path) -> Repo:
    """An invented project in a repository of its own, without a change."""
    repo = Repo(folder / str(models))
    write_project(repo.root, models)
    return repo.commit()


@dataclass(frozen=True)
class Reviewed:
    """One review: seconds with the start of Python, seconds of the processor, and whether it says what is planted."""

    seconds: float
    processor: float
    right: bool


def processor() -> float:
    """What the processes that ended have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def reviewed(repo: Repo, planted: Planted, estate: Path) -> Reviewed:
    """A review of one change."""
    repo.clean()
    planted.edit(repo.root)
    command = [sys.executable, "-m", "pii_tracer.cli.main", "review", "--base", "main", "--estate", str(estate)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    began, before = time.perf_counter(), processor()
    done = subprocess.run(
        [*command, "--format", "json"], cwd=repo.root, env=environment, check=False, stdout=subprocess.PIPE
    )
    taken, used = time.perf_counter() - began, processor() - before
    wanted = ExitCode.POLICY_DENIED if planted.kind and planted.severity == "error" else ExitCode.DONE
    found = [(f["severity"], f["kind"], f["file"], f["line"]) for f in json.loads(done.stdout)["findings"]]
    told = [(planted.severity, planted.kind, *planted.where)] if planted.where else []
    return Reviewed(taken, used, (done.returncode, found) == (wanted, told))


def main() -> None:
    """Print tables; end with an error where a verdict is wrong, or a review of 500 models takes too long."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        estate = folder / "pii-tracer.yaml"
        # without a retention class, which new tables would lack
        estate.write_text(ESTATE.replace("retention:\n  pii_days: 7\n", ""))
        dropped = next(change for change in HARMFUL if change.kind == "key-dropped")
        found = {models: reviewed(project(models, folder), dropped, estate) for models in MODELS}
        print("| models | seconds | of the processor |\n|---|---|---|")
        for models, one in found.items():
            print(f"| {models:,} | {one.seconds:.1f} | {one.processor:.1f} |", flush=True)
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
        print(f"\nmemory of the largest: {most} MiB; load {os.getloadavg()[0]:.1f}; cores {os.cpu_count()}")
        print(f"\n| change of {PLANTED_IN} models | seconds | of the processor | as planted |\n|---|---|---|---|")
        repo, each = Repo(folder / str(PLANTED_IN)), []
        for planted in (*HARMFUL, *HARMLESS):
            one = reviewed(repo, planted, estate)
            print(f"| {planted.name} | {one.seconds:.1f} | {one.processor:.1f} | {'yes' if one.right else 'NO'} |")
            each.append(one)
        longest = max(one.seconds for one in each)
        print(f"\nlongest: {longest:.1f} s; load {os.getloadavg()[0]:.1f}")
    if not all(one.right for one in (*found.values(), *each)):
        raise SystemExit("a verdict is not that which is planted")
    if max(longest, found[PLANTED_IN].seconds) > MOST_SECONDS:
        raise SystemExit(f"a review of {PLANTED_IN} models took longer than {MOST_SECONDS} seconds")


if __name__ == "__main__":
    main()
