"""One listener of long work, which passes on what it hears: to the terminal, a log, traces."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from pii_tracer.common.work_facts import NO_FACTS, Facts
from reports.escape import visible

if TYPE_CHECKING:
    from reports.progress import Progress

DONE, FAILED = "done", "failed"


@dataclass(frozen=True)
class Piece:
    """A stage of the work, or a step of one. begun: seconds since the epoch. Names have no invisible characters."""

    name: str
    detail: str = ""
    facts: Facts = field(default_factory=dict)
    begun: float = 0.0


class Listener(Protocol):
    """Hears of each stage and each step when it begins and when it is over."""

    def about(self, facts: Facts) -> None: ...

    def begin_stage(self, stage: Piece) -> None: ...

    def end_stage(self, state: str, at: float) -> None: ...

    def begin_step(self, step: Piece) -> None: ...

    def end_step(self, step: Piece, state: str, at: float, facts: Facts, why: str = "") -> None: ...

    def warn(self, message: str) -> None: ...


class Watch:
    """Use as a context manager, like `Progress`; implements `pii_tracer.app.progress.Watches`.

    A step is over when that is said, when it stops, or when the next step or stage begins.

    Args:
        terminal: shows the work to people; None where a log takes its place.
        clock: seconds since the epoch.
    """

    def __init__(
        self, terminal: Progress | None, listeners: Sequence[Listener], clock: Callable[[], float] = time.time
    ) -> None:
        self._terminal, self._listeners, self._clock = terminal, tuple(listeners), clock
        self._stage = False
        self._step: Piece | None = None

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_stage(FAILED if kind else DONE)
        if self._terminal:
            self._terminal.__exit__(kind, error, trace)

    def about(self, facts: Facts) -> None:
        for listener in self._listeners:
            listener.about(facts)

    def stage(self, title: str) -> None:
        self._end_stage(DONE)
        self._stage = True
        if self._terminal:
            self._terminal.stage(title)
        piece = Piece(visible(title), begun=self._clock())
        for listener in self._listeners:
            listener.begin_stage(piece)

    def step(self, name: str, detail: str = "", facts: Facts = NO_FACTS) -> None:
        self._end_step(DONE, NO_FACTS)
        if self._terminal:
            self._terminal.step(name, detail)
        self._step = Piece(visible(name), visible(detail), facts, self._clock())
        for listener in self._listeners:
            listener.begin_step(self._step)

    def over(self, facts: Facts = NO_FACTS) -> None:
        """The running step is done; the terminal shows it until the next."""
        self._end_step(DONE, facts)

    def done(self, detail: str = "") -> None:
        """The running step is done, with what came of it in words."""
        self._end_step(DONE, NO_FACTS, visible(detail))
        if self._terminal:
            self._terminal.done(detail)

    def stop(self, why: str, facts: Facts = NO_FACTS) -> None:
        """The running step ends and is not done. facts: `state` says how it ended (`failed`, `waiting`)."""
        rest = {name: value for name, value in facts.items() if name != "state"}
        if self._step is None:
            self._warn(why)
        self._end_step(str(facts.get("state", FAILED)), rest, visible(why))
        if self._terminal:
            self._terminal.stop(why)

    def warn(self, message: str) -> None:
        self._warn(message)
        if self._terminal:
            self._terminal.warn(message)

    def _warn(self, message: str) -> None:
        for listener in self._listeners:
            listener.warn(visible(message))

    def _end_step(self, state: str, facts: Facts, why: str = "") -> None:
        step, self._step = self._step, None
        if step is not None:
            for listener in self._listeners:
                listener.end_step(step, state, self._clock(), facts, why)

    def _end_stage(self, state: str) -> None:
        self._end_step(state, NO_FACTS)
        if self._stage:
            self._stage = False
            for listener in self._listeners:
                listener.end_stage(state, self._clock())
