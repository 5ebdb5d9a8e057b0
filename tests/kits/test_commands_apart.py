"""The process beside a test that runs commands: one for many of them, and a new one after a kill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import commands_apart
from tests.commands_apart import end_it, run_apart


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    end_it()
    yield
    end_it()


def test_one_process_runs_all_commands_and_gives_their_exit_codes(tmp_path: Path) -> None:
    log = tmp_path / "apart.log"
    assert run_apart(["--version"], log) == 0
    [first] = commands_apart._RUNNING
    assert run_apart(["no-such-command"], log) == 2
    assert "No such command" in log.read_text()
    assert len(commands_apart._RUNNING) == 1
    assert commands_apart._RUNNING[0] is first
    end_it()
    assert first.process.poll() == 0, "it ended by itself"


def test_a_command_that_is_killed_takes_the_process_with_it(tmp_path: Path) -> None:
    log = tmp_path / "apart.log"
    assert run_apart(["--version"], log, until=lambda: True) == -9
    assert commands_apart._RUNNING == []
    assert run_apart(["--version"], log) == 0
