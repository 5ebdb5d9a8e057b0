"""What a long command tells while it works: live on a terminal, plain lines elsewhere. Always on stderr."""

from __future__ import annotations

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

    Every finished step leaves one line with its seconds. On a terminal the running one shows a spinner; otherwise
    nothing moves. Colour is the console's business (NO_COLOR is obeyed). Names may come from outside: they are shown
    with their invisible characters escaped.

    Args:
        stage_total: how many stages there will be, to number them (`[2/5]`).
        console: for tests; by default stderr.
    """

    def __init__(self, stage_total: int | None = None, *, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._total = stage_total
        self._stage = 0
        self._current: tuple[str, str, float] | None = None
        self._live: Live | None = None

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
            self._live = Live(
                Spinner(
                    "dots", Text(f"{visible(name)}  {visible(detail)}".rstrip(), overflow="ellipsis", no_wrap=True)
                ),
                console=self._console,
                transient=True,
                refresh_per_second=8,
            )
            self._live.start()

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
        if self._current is None:
            return
        name, detail, begun = self._current
        self._current = None
        took = wording.span(timedelta(seconds=time.monotonic() - begun))
        line = Text.assemble((f"  {mark} ", colour), name)
        if detail:
            line.append(f"  {detail}", style="dim")
        self._print(line.append(f"  {took}", style="dim"))

    def _print(self, line: Text) -> None:
        self._console.print(line, soft_wrap=not self._console.is_terminal)
