"""uvicorn over an application, without its own log, which would hold addresses that clients sent."""

from __future__ import annotations

import socket
from typing import Any

import uvicorn

from pii_tracer.model.errors import UsageError

_LONGEST_IDLE = 5


def listening(host: str, port: int) -> socket.socket:
    """A socket that clients can connect to; port 0 takes a free one.

    Raises:
        UsageError: the address cannot be taken.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise UsageError(
            f"the address cannot be listened on: {error.strerror or type(error).__name__}",
            where="--listen",
            todo="name another one",
        ) from None


def run_until_told(application: Any, at: socket.socket) -> None:
    """Answer on the socket until the process is told to end. application: of ASGI."""
    config = uvicorn.Config(
        application,
        log_config=None,
        log_level="critical",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_keep_alive=_LONGEST_IDLE,
    )
    uvicorn.Server(config).run(sockets=[at])
