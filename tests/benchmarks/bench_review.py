"""How long `pii-tracer review` takes on invented dbt projects, as a process of its own. Run: `make bench-review`.

A model of each project loses its key; the whole project is read and followed on both sides, whatever changed.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pii_tracer.model.errors import ExitCode
from tests.model_review.changes import HARMFUL
from tests.model_review.dbt_project import ESTATE, write_project
from tests.model_review.repositories import Repo

MODELS = (100, 500, 2_000)
MOST_SECONDS = 30
"""For 500 models, on two cores."""
ROOT = Path(__file__).parents[2]


def measured(models: int, folder: Path) -> float:
    """Seconds of one review, with the start of Python."""
    repo = Repo(folder / str(models))
    write_project(repo.root, models)
    repo.commit()
    next(change for change in HARMFUL if change.kind == "key-dropped").edit(repo.root)
    estate = folder / "pii-tracer.yaml"
    estate.write_text(ESTATE)
    command = [sys.executable, "-m", "pii_tracer.cli.main", "review", "--base", "main", "--estate", str(estate)]
    began = time.perf_counter()
    done = subprocess.run(command, cwd=repo.root, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    taken = time.perf_counter() - began
    if done.returncode != ExitCode.POLICY_DENIED:
        raise SystemExit(f"the dropped key was not denied: exit {done.returncode}")
    return taken


def main() -> None:
    """Print a table; end with an error where 500 models take too long."""
    with tempfile.TemporaryDirectory() as folder:
        taken = {models: measured(models, Path(folder)) for models in MODELS}
    print("| models | seconds |\n|---|---|")
    for models, seconds in taken.items():
        print(f"| {models:,} | {seconds:.1f} |")
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(f"\nmemory of the largest: {most} MiB; load {os.getloadavg()[0]:.1f}; cores {os.cpu_count()}")
    if taken[500] > MOST_SECONDS:
        raise SystemExit(f"500 models took longer than {MOST_SECONDS} seconds")


if __name__ == "__main__":
    main()
