"""The server of the pages: uvicorn, bound before anything is read."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from pii_tracer.app.settings import Settings
from pii_tracer.app.state_views.overview import StateViews
from pii_tracer.common.unexpected_errors import place_of
from pii_tracer.http_api.asgi_server import listening, run_until_told
from pii_tracer.web.application import application

__all__ = ["is_loopback", "listening", "serve_pages"]
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches an address that a socket is bound to."""
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def serve_pages(
    settings: Settings,
    plans: Sequence[Path],
    at: socket.socket,
    names: Sequence[str],
    token: str | None,
    tell: Callable[[str], None],
) -> None:
    """Answer until the process is told to end. names: of hosts, beside those of loopback, that requests may name."""
    hosts = LOOPBACK | {name.lower() for name in names}
    views = StateViews(settings, plans)
    # large plans take seconds to read: the first page need not wait for all of them
    threading.Thread(target=_read_ahead, args=(views, tell), daemon=True).start()
    run_until_told(application(views, hosts, token, tell), at)


def _read_ahead(views: StateViews, tell: Callable[[str], None]) -> None:
    try:
        views.overview()
    except Exception as error:  # a page that needs it says more
        tell(f"unexpected {type(error).__name__} at {place_of(error)}")
