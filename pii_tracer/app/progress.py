"""To whom long work tells how far it is."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from pii_tracer.common.work_facts import NO_FACTS, Facts


class Shows(Protocol):
    """Progress of long work: the public interface (docs/python-api.md)."""

    def stage(self, title: str) -> None: ...

    def step(self, name: str, detail: str = "") -> None: ...

    def stop(self, why: str) -> None: ...

    def warn(self, message: str) -> None: ...


@runtime_checkable
class Watches(Protocol):
    """Hears facts beside what is shown, for logs, traces and metrics (`reports.watch.watch.Watch`)."""

    def stage(self, title: str) -> None: ...

    def step(self, name: str, detail: str = "", facts: Facts = NO_FACTS) -> None: ...

    def stop(self, why: str, facts: Facts = NO_FACTS) -> None: ...

    def warn(self, message: str) -> None: ...

    def about(self, facts: Facts) -> None:
        """What everything that follows is about, such as the plan."""

    def over(self, facts: Facts = NO_FACTS) -> None:
        """The running step is done, with these counts. It is shown until the next one begins."""


class Silent:
    """Tells nobody."""

    def stage(self, title: str) -> None:
        """Nothing."""

    def step(self, name: str, detail: str = "") -> None:
        """Nothing."""

    def stop(self, why: str) -> None:
        """Nothing."""

    def warn(self, message: str) -> None:
        """Nothing."""


SILENT: Shows = Silent()


class _WithoutFacts:
    """Tells one who only shows, and leaves the facts out."""

    def __init__(self, show: Shows) -> None:
        self._show = show

    def stage(self, title: str) -> None:
        self._show.stage(title)

    def step(self, name: str, detail: str = "", facts: Facts = NO_FACTS) -> None:
        self._show.step(name, detail)

    def stop(self, why: str, facts: Facts = NO_FACTS) -> None:
        self._show.stop(why)

    def warn(self, message: str) -> None:
        self._show.warn(message)

    def about(self, facts: Facts) -> None:
        """Nothing."""

    def over(self, facts: Facts = NO_FACTS) -> None:
        """Nothing."""


def with_facts(show: Shows) -> Watches:
    """The same listener, for work that has facts to tell."""
    return show if isinstance(show, Watches) else _WithoutFacts(show)
