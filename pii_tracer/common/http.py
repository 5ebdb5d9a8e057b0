"""Asks servers over HTTP(S): within a time and a size, whole or not at all, and silent about secrets where that fails.

No redirection is followed: credentials go to the server that was named, and to no other. What is meant for this machine
goes to no proxy.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from email.message import Message
from errno import EHOSTUNREACH, ENETUNREACH
from http.client import HTTPException
from ipaddress import ip_address
from socket import gaierror
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import BaseHandler, HTTPRedirectHandler, ProxyHandler, Request, build_opener


class NoAnswer(Exception):
    """Its text goes on behind the server's name, and holds nothing that was sent or that the server said.

    status: of HTTP, None where no whole answer came. said: the beginning of what a server refused with, for who looks
    for its codes; it is never shown. retry_after: seconds that the server wants to be left alone, where it says so.
    unsent: whether no server can have received the request.
    """

    def __init__(
        self,
        what: str,
        status: int | None = None,
        said: bytes = b"",
        retry_after: float | None = None,
        *,
        unsent: bool = False,
    ) -> None:
        super().__init__(what)
        self.status = status
        self.said = said
        self.retry_after = retry_after
        self.unsent = unsent


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def ask(
    url: str,
    *,
    seconds: float,
    limit: int | None,
    method: str | None = None,
    query: Mapping[str, Any] | None = None,
    body: bytes | Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    handlers: Sequence[BaseHandler] = (),
    believe: Callable[[int, Message], None] = lambda status, headers: None,
) -> bytes:
    """The whole answer to one request. limit: bytes of it; None where its status says all, and nothing of it is read.
    method: GET, with a body POST, unless said otherwise.

    A body that is no bytes goes as JSON. handlers: of TLS and proxies, where they are not urllib's own. believe: gets
    status and headers of each answer, refusals among them, and raises `NoAnswer` where it is nobody's who may answer.

    Raises:
        NoAnswer: refused, redirected, silent for so many seconds, cut off, too large, or no address of HTTP.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise NoAnswer("is not reached by http or https")
    given = {"Accept": "*/*", **({} if body is None or isinstance(body, bytes) else _JSON), **(headers or {})}
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    if _is_loopback_in_the_clear(url):
        handlers = (ProxyHandler({}), *handlers)
    try:
        whole_url = url + ("?" + urlencode(query) if query else "")
        request = Request(whole_url, data=data, headers=given, method=method)  # noqa: S310 (the scheme was looked at)
        with build_opener(_Stay, *handlers).open(request, timeout=seconds) as answer:
            believe(answer.status, answer.headers)
            if limit is None:
                return b""
            found: bytes = answer.read(limit + 1)
            whole = answer.length in (None, 0)
    except HTTPError as error:
        believe(error.code, error.headers)
        after = error.headers.get("Retry-After", "")
        wait = float(after) if after.isdecimal() else None
        raise NoAnswer(f"refused: HTTP {error.code}", error.code, _said(error), wait) from None
    except (URLError, HTTPException, OSError, ValueError) as error:
        cause = error.reason if isinstance(error, URLError) else error
        unsent = isinstance(error, URLError) and _is_unsent(cause)  # errors while an answer is awaited are none
        raise NoAnswer(f"does not answer: {type(cause).__name__}", unsent=unsent) from None
    if len(found) > limit or not whole:
        raise NoAnswer("gave an answer that is cut off, or too large to be read")
    return found


def patiently(once: Callable[[], bytes], busy: Collection[int], pause: Callable[[float], None]) -> bytes:
    """The answer to a request that is sent again while the server says it is busy.

    once: sends the request. busy: the statuses that say so. pause: waits so many seconds: those that the server names,
    or 1, 2, 4 …, and at most 32.

    Raises:
        NoAnswer: refused, or busy to the last of six tries.
    """
    for attempt in range(_TRIES - 1):
        try:
            return once()
        except NoAnswer as error:
            if error.status not in busy:
                raise
            pause(min(_LONGEST_WAIT, error.retry_after or 2.0**attempt))
    return once()


def _is_loopback_in_the_clear(url: str) -> bool:
    """Whether a proxy would read what is meant for this machine alone."""
    parts = urlsplit(url)
    try:
        return parts.scheme == "http" and ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return parts.hostname == "localhost"


def _is_unsent(cause: object) -> bool:
    """Whether there was no connection on which anything could be sent. A timeout may come after the sending."""
    return isinstance(cause, (ConnectionRefusedError, gaierror)) or (
        isinstance(cause, OSError) and cause.errno in (EHOSTUNREACH, ENETUNREACH)
    )


def _said(error: HTTPError) -> bytes:
    try:
        with error:
            return bytes(error.read(_MOST_SAID))
    except (HTTPException, OSError):
        return b""


def basic(pair: str | None) -> dict[str, str]:
    """The header for `user:password`; none without them."""
    return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()} if pair else {}


def bearer(token: str | None) -> dict[str, str]:
    """The header for a token; none without one."""
    return {"Authorization": f"Bearer {token}"} if token else {}


_MOST_SAID = 1 << 16
_TRIES = 6
_LONGEST_WAIT = 32.0
_JSON = {"Content-Type": "application/json"}
