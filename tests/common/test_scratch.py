"""What a killed process leaves is found, told and wiped; what a living one has, or somebody else, is not touched."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from executors.engine.scratch_settings import scratch_conf
from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.app.execution.run_scratch import run_scratch
from pii_tracer.app.installation_checks import _scratch
from pii_tracer.common.scratch_folders import PREFIX, leftovers, scratch_folder, wipe

_PROGRAM = """
import sys, time
from pii_tracer.common.scratch_folders import scratch_folder
folder = scratch_folder()
(folder / "blockmgr").mkdir()
(folder / "blockmgr" / "shuffle_0_0_0.data").write_text("rows of others")
print(folder, flush=True)
if sys.argv[1] == "wait":
    time.sleep(600)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "with a blank"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    return folder


def _process(how: str) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen([sys.executable, "-c", _PROGRAM, how], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_it_goes_with_its_process_and_a_killed_one_leaves_it_to_the_next(temporary: Path, tmp_path: Path) -> None:
    ended, gone = _process("end")
    assert ended.wait() == 0
    assert gone.parent == temporary
    assert not gone.exists()
    living, folder = _process("wait")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert leftovers() == ()
    assert wipe([folder]) == (folder,)
    living.send_signal(signal.SIGKILL)
    living.wait()
    assert leftovers() == (folder,)
    link = temporary / f"{PREFIX}link"
    link.symlink_to(tmp_path)
    fresh = temporary / f"{PREFIX}being-made"
    fresh.mkdir()
    told = list(_scratch(tmp_path / "no.yaml"))
    assert [(f.level.value, f.what) for f in told] == [("ok", "scratch folder")]
    assert str(folder) in told[0].detail
    assert not folder.exists()
    assert link.is_symlink()
    assert fresh.exists()
    os.utime(fresh, (0, 0))
    assert leftovers() == (fresh,)


def test_a_run_wipes_what_its_dead_runner_left_wherever_that_was(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(tmp_path / "run")
    with run_scratch(folder, {}), tempfile.NamedTemporaryFile() as file:
        assert Path(file.name).parent == scratch_folder() / "python"
        assert scratch_folder().parent == temporary
    assert tempfile.gettempdir() == str(temporary)
    living, left = _process("wait")
    living.kill()
    living.wait()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "elsewhere"))
    with run_scratch(folder, {}):
        assert not left.exists()


def test_the_engine_is_told_to_write_nowhere_else(temporary: Path, tmp_path: Path) -> None:
    home = scratch_folder()
    conf = scratch_conf({"spark.driver.extraJavaOptions": "-Xmx1g"})
    assert conf == {
        "spark.local.dir": str(home),
        "spark.driver.extraJavaOptions": f'-Xmx1g "-Djava.io.tmpdir={home}/java"',
        "spark.sql.warehouse.dir": str(home / "warehouse"),
    }
    disks = [tmp_path / "disk1", tmp_path / "disk2"]
    for disk in disks:
        disk.mkdir()
    local = scratch_conf({"spark.local.dir": ",".join(map(str, disks))})["spark.local.dir"].split(",")
    assert [Path(place).parent for place in local] == disks
    assert all(Path(place).name.startswith(PREFIX) for place in local)
