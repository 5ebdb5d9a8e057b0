"""What a long command tells while it works: live on a terminal, plain lines elsewhere. Always on stderr."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from reports import wording
from reports.escape import visible


class Progress:
    """Use as a context manager; `stage` opens a part of the work, `step` names what runs now and closes the one before.

    Every finished step leaves one line with its seconds. The running one shows on a terminal a spinner and its seconds
    so far, and elsewhere a line every `quiet` seconds: nothing works long without a word. Colour is the console's
    business (NO_COLOR is obeyed). Names may come from outside: they are shown with their invisible characters escaped.

    Args:
        stage_total: how many stages there will be, to number them (`[2/5]`).
        console: for tests; by default stderr.
        quiet: the longest time without a line, in seconds.
    """

    def __init__(self, stage_total: int | None = None, *, console: Console | None = None, quiet: float = 20.0) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._total = stage_total
        self._stage = 0
        self._current: tuple[str, str, float] | None = None
        self._live: Live | None = None
        self._quiet = quiet
        self._beat: threading.Event | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close("✗" if kind else "✓", "red" if kind else "green")

    def stage(self, title: str) -> None:
        """Open a stage; the running step, if any, is finished."""
        self._close("✓", "green")
        self._stage += 1
        number = f"[{self._stage}/{self._total}] " if self._total else ""
        self._print(Text.assemble((number, "dim"), (visible(title), "bold")))

    def step(self, name: str, detail: str = "") -> None:
        """Begin a step; the one before is finished."""
        self._close("✓", "green")
        self._current = (visible(name), visible(detail), time.monotonic())
        if self._console.is_terminal:
            spinner = Spinner("dots")
            self._live = Live(
                get_renderable=lambda: self._running(spinner),
                console=self._console,
                transient=True,
                refresh_per_second=8,
            )
            self._live.start()
        else:
            self._beat = threading.Event()
            threading.Thread(target=self._tell_on, args=(self._beat, self._current), daemon=True).start()

    def _running(self, spinner: Spinner) -> Spinner:
        name, detail, begun = self._current or ("", "", time.monotonic())
        told = "  ".join(filter(None, (name, detail, _since(begun))))
        spinner.update(text=Text(told, overflow="ellipsis", no_wrap=True))
        return spinner

    def _tell_on(self, ended: threading.Event, step: tuple[str, str, float]) -> None:
        """Say from time to time that a step goes on."""
        name, detail, begun = step
        while not ended.wait(self._quiet):
            line = Text.assemble(("  … ", "dim"), name)
            self._print(line.append("  " + "  ".join(filter(None, (detail, f"{_since(begun)} so far"))), style="dim"))

    def done(self, detail: str = "") -> None:
        """Finish the running step, with what came of it (`12 files`); without a step, say it as a line."""
        if self._current is None:
            if detail:
                self._print(Text.assemble(("  ✓ ", "green"), visible(detail)))
            return
        name, before, begun = self._current
        self._current = (name, visible(detail) or before, begun)
        self._close("✓", "green")

    def stop(self, why: str) -> None:
        """The running step ends and is not done: it failed, or waits."""
        if self._current is None:
            self.warn(why)
            return
        name, _, begun = self._current
        self._current = (name, visible(why), begun)
        self._close("!", "bold yellow")

    def warn(self, message: str) -> None:
        """A fact that someone can act on; the running step goes on."""
        self._print(Text.assemble(("  ! ", "bold yellow"), visible(message)))

    def _close(self, mark: str, colour: str) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._beat is not None:
            self._beat.set()
            self._beat = None
        if self._current is None:
            return
        name, detail, begun = self._current
        self._current = None
        took = _since(begun)
        line = Text.assemble((f"  {mark} ", colour), name)
        if detail:
            line.append(f"  {detail}", style="dim")
        self._print(line.append(f"  {took}", style="dim"))

    def _print(self, line: Text) -> None:
        self._console.print(line, soft_wrap=not self._console.is_terminal)


def _since(begun: float) -> str:
    return wording.span(timedelta(seconds=time.monotonic() - begun))
