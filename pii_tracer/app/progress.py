"""To whom long work tells how far it is."""

from __future__ import annotations

from typing import Protocol


class Shows(Protocol):
    """Progress of long work (`reports.progress.Progress`)."""

    def stage(self, title: str) -> None: ...

    def step(self, name: str, detail: str = "") -> None: ...

    def stop(self, why: str) -> None: ...

    def warn(self, message: str) -> None: ...


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
