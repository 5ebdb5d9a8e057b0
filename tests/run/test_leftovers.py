"""What a writer leaves that was killed in the middle: taken away later, and nothing else with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pii_tracer.common.atomic_files import sweep_temporaries
from pii_tracer.lineage.graph.graph_file import load, save
from tests.lineage.graphs import graph_of

DIES = """
import os, signal, sys
from pathlib import Path
Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
from pii_tracer.common.atomic_files import write_atomic
write_atomic(Path(sys.argv[1]), b"half")
"""


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """The file that a killed process has left."""
    died = subprocess.run([sys.executable, "-c", DIES, str(tmp_path / "lineage.graph")], check=False)
    assert died.returncode == -9
    (found,) = tmp_path.iterdir()
    return found


def age(path: Path, seconds: float) -> None:
    now = path.stat().st_mtime
    os.utime(path, (now - seconds, now - seconds))


def test_the_next_harvest_takes_away_what_a_killed_one_left(left: Path) -> None:
    file = left.parent / "lineage.graph"
    age(left, 7200)
    save(graph_of(("/a", "/b")), file)
    assert [path.name for path in left.parent.iterdir()] == [file.name]
    load(file)


def test_what_may_still_be_written_stays(left: Path) -> None:
    sweep_temporaries(left.parent)
    assert left.exists(), "a minute ago: another machine may share the folder"
    mine = left.with_name(f".lineage.graph.{os.getpid()}.tmp")
    mine.write_bytes(b"being written")
    age(mine, 7200)
    age(left, 7200)
    sweep_temporaries(left.parent)
    assert (mine.exists(), left.exists()) == (True, False)


@pytest.mark.parametrize("name", ["lineage.graph", ".tmp", "x.1.tmp", ".x.tmp", ".x.1.tmp.bak", ".x.-1.tmp"])
def test_other_files_are_nobodys_leftovers(tmp_path: Path, name: str) -> None:
    other = tmp_path / name
    other.write_bytes(b"theirs")
    folder = tmp_path / ".folder.1.tmp"
    folder.mkdir()
    target = tmp_path / "target"
    target.write_bytes(b"x")
    (tmp_path / ".link.99999999.tmp").symlink_to(target)
    age(other, 7200)
    sweep_temporaries(tmp_path)
    sweep_temporaries(tmp_path / "nowhere")
    assert other.exists()
    assert folder.is_dir()
    assert target.exists()
