"""The server of the request store."""

from __future__ import annotations

import socket
from collections.abc import Callable

from pii_tracer.app.intake.request_store import store_of
from pii_tracer.app.settings import Settings
from pii_tracer.http_api.asgi_server import listening, run_until_told
from pii_tracer.http_api.request_api import application

__all__ = ["listening", "serve"]


def serve(settings: Settings, at: socket.socket, token: str, tell: Callable[[str], None]) -> None:
    """Answer until the process is told to end. Raises as `store_of`, before anything is answered."""
    store_of(settings)
    run_until_told(application(settings, token, tell), at)
