"""What may be told of an error that nobody foresaw: its kind and a line of ours. Its words can quote the data."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

DEBUG = "PII_TRACER_DEBUG"
"""Environment variable: where it is set, the trace is shown, with the engine's words."""
_HOME = Path(__file__).resolve().parents[2]
_OURS = ("pii_tracer", "planners", "executors", "reports")


def place_of(error: BaseException) -> str:
    """The last line of ours that the error came through: `executors/stores/s3/step_base.py, line 234`."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(_HOME) and path.relative_to(_HOME).parts[0] in _OURS:
            return f"{path.relative_to(_HOME).as_posix()}, line {frame.lineno}"
    return "unknown"


def how_to_see(command: str = "") -> str:
    """What to do next, in words. command: to run again for the trace; the same again where it is empty."""
    again = f"`{DEBUG}=1 {command}`" if command else f"{DEBUG}=1"
    return f"`pii-tracer doctor`; {again} shows the engine's words (they can hold data)"


def shows_trace() -> bool:
    """Whether whoever runs this wants traces."""
    return bool(os.environ.get(DEBUG))


def was_interrupted(error: BaseException) -> bool:
    """Whether an error came up while somebody stopped the command: cleaning up can fail, and must not hide the stop."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, KeyboardInterrupt):
            return True
        seen = seen.__context__
    return False


def show_trace(error: BaseException) -> None:
    """The trace on stderr, where it is wanted: an error that is caught would otherwise never be seen whole."""
    if shows_trace():
        traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)
