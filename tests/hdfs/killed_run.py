"""A command of pii-tracer whose process is gone after so many requests that write: `python -m … 4 apply …`."""

from __future__ import annotations

import os
import sys

import pytest

from pii_tracer.cli.main import run
from tests.hdfs.running import Killed, killed_after

GONE = 77
"""With what the process ends."""

if __name__ == "__main__":
    calls, *words = sys.argv[1:]
    try:
        with killed_after(pytest.MonkeyPatch(), int(calls)):
            os._exit(run(words))
    except Killed:
        os._exit(GONE)
