"""What every request passes, before any page is made: host, method, token; and what every answer carries.

Host: a page of somebody else can have its own name point to this address (DNS rebinding), and its scripts would then
read these pages as if they were its own. Only names that the server is known by are answered.
"""

from __future__ import annotations

import base64
import binascii
import hmac

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing from other hosts, nothing inline, no frame around the page."""
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """The application behind its guard. hosts: names of `Host` that are answered. token: None where none is asked."""

    def __init__(self, pages: ASGIApp, hosts: frozenset[str], token: str | None) -> None:
        self._pages = pages
        self._hosts = hosts
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; whatever is no HTTP is closed."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refused = self._refusal(scope)
        await (refused or self._pages)(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        named = headers.getlist("host")
        if len(named) != 1 or host_name(named[0]) not in self._hosts:
            return PlainTextResponse("this server is not known by that name: see --known-as\n", 421)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("these pages change nothing: GET and HEAD only\n", 405, {"allow": "GET, HEAD"})
        if self._token is not None and not _has(headers.getlist("authorization"), self._token):
            asked = {"www-authenticate": 'Basic realm="pii-tracer", charset="UTF-8"'}
            return PlainTextResponse("give the token: as bearer token, or as the password of any user\n", 401, asked)
        return None


def host_name(header: str) -> str:
    """The name of a `Host` header without its port, in lower case; empty where it is none."""
    name = header.strip().lower()
    if name.startswith("["):
        inside, closed, port = name[1:].partition("]")
        return inside if closed and (not port or _is_port(port)) else ""
    name, colon, digits = name.partition(":")
    return name.removesuffix(".") if not colon or _is_port(colon + digits) else ""


def _is_port(text: str) -> bool:
    return text[0] == ":" and text[1:].isascii() and text[1:].isdigit()


def _has(given: list[str], token: str) -> bool:
    if len(given) != 1:
        return False
    kind, _, word = given[0].partition(" ")
    if kind.lower() == "basic":
        try:
            word = base64.b64decode(word, validate=True).decode().partition(":")[2]
        except (binascii.Error, ValueError):
            return False
    elif kind.lower() != "bearer":
        return False
    return hmac.compare_digest(word.strip().encode("utf-8", "surrogateescape"), token.encode())
