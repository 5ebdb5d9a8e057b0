"""One runner a plan: with real processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pii_tracer.model.errors import Refused
from pii_tracer.run.lease import Lease, who_runs

HOLDER = """
import sys
from pathlib import Path
from pii_tracer.run.lease import Lease
lease = Lease.acquire(Path(sys.argv[1]))
print(lease.token, flush=True)
sys.stdin.read()
"""


def other_process(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "1"
    return process


def test_a_second_runner_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    process = other_process(tmp_path)
    try:
        with pytest.raises(Refused, match=f"process {process.pid} on "):
            Lease.acquire(tmp_path)
        assert str(who_runs(tmp_path)).startswith(f"process {process.pid} on ")
        with pytest.raises(Refused):  # said or not: who lives is not taken over
            Lease.acquire(tmp_path, take_over=True)
    finally:
        process.kill()
        process.communicate()
    assert who_runs(tmp_path) is None
    with Lease.acquire(tmp_path) as lease:
        assert lease.token == 2
        assert lease.took_over is not None
        assert lease.took_over.pid == process.pid


def test_tokens_grow_and_a_released_lease_is_free(tmp_path: Path) -> None:
    with Lease.acquire(tmp_path) as lease:
        lease.check()
        assert lease.token == 1
    with pytest.raises(Refused, match="now has the lease"):
        lease.check()
    with Lease.acquire(tmp_path) as lease:
        assert (lease.token, lease.took_over) == (2, None)
    lease.release()
    assert who_runs(tmp_path) is None


def test_a_frozen_runner_finds_out_that_it_was_overtaken(tmp_path: Path) -> None:
    frozen = Lease.acquire(tmp_path)
    (tmp_path / "runner.lock").unlink()  # what keeps two apart is gone: the token still tells
    with Lease.acquire(tmp_path) as second:
        assert second.token == 2
        with pytest.raises(Refused, match="another runner now has the lease"):
            frozen.check()
        frozen.release()
        second.check()


def test_another_hosts_lease_needs_a_persons_word(tmp_path: Path) -> None:
    elsewhere = Lease.acquire(tmp_path, host="elsewhere")
    assert " on elsewhere, since " in str(who_runs(tmp_path))
    (tmp_path / "runner.lock").unlink()  # a lock that this host cannot see
    with pytest.raises(Refused, match="elsewhere"):
        Lease.acquire(tmp_path, host="here")
    with Lease.acquire(tmp_path, host="here", take_over=True) as lease:
        assert lease.token == 2
    elsewhere.release()


def test_an_unreadable_lease_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "lease.json").write_text("{")
    assert str(who_runs(tmp_path)).startswith("unknown: ")
    with pytest.raises(Refused, match="cannot be read"):
        Lease.acquire(tmp_path)
