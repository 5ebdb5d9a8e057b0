"""A worker that dies costs one test: the run ends, no other test is left out, and the last lines say what happened."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).parents[2]
DIES = """
import os, signal
from pathlib import Path
import pytest

def die():
    os.kill(os.getpid(), signal.SIGKILL)

@pytest.mark.parametrize("number", range(4))
def test_it(number):
    if number == {at} and {when}:
        Path(__file__ + '.died').touch()
        die()
"""
CONFTEST = "from tests.conftest import pytest_xdist_make_scheduler\n"


def test_a_dead_worker_costs_the_test_at_which_it_always_dies(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_always.py").write_text(DIES.format(at=1, when=True))
    (tmp_path / "test_never.py").write_text(DIES.format(at=1, when=False))
    # the last one of its file: with a single test left, a worker waits for a next one
    (tmp_path / "test_once.py").write_text(DIES.format(at=3, when="not Path(__file__ + '.died').exists()"))
    words = ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "-p", "no:cacheprovider", "-p", "no:randomly"]
    command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", ".", *words, "."]
    environment = {"PYTHONPATH": str(REPO), "PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert "1 failed, 11 passed" in done.stdout, done.stdout + done.stderr
    assert "FAILED test_always.py::test_it[1]" in done.stdout
    assert done.stdout.count("a worker died at test_always.py::test_it[1]") == 2
    assert done.stdout.count("a worker died at test_once.py::test_it[3]") == 1
