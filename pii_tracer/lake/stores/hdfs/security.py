"""How servers of HDFS know whom they talk to: by a name that is taken on trust, or by Kerberos; and by TLS.

Kerberos is shown to a NameNode alone. A DataNode gets the token that the NameNode puts into its address for this one
request. Neither goes through a proxy.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any
from urllib.parse import SplitResult, urlsplit
from urllib.request import BaseHandler, HTTPSHandler, ProxyHandler

from pii_tracer.common.http import NoAnswer, ask
from pii_tracer.common.kerberos import Handshake
from pii_tracer.common.tls import NoCertificates, trusting

_NEGOTIATE = "negotiate"
_REFUSALS = frozenset({401, 403})
"""Statuses of a server that takes no ticket, or not this one."""


@dataclass(frozen=True)
class Security:
    """principal: whose ticket is shown; without one, HDFS takes the user's name on trust. ca: a file with the
    certificates of who may sign the servers' (PEM); without one, the system's store counts.
    """

    principal: str | None = None
    ca: str | None = None

    def named(self, user: str) -> Mapping[str, str]:
        """What an address says of the user: with Kerberos nothing."""
        return {} if self.principal else {"user.name": user}

    def ask(self, url: str, *, ticket: bool, **more: Any) -> bytes:
        """As `http.ask`. ticket: whether the address is a NameNode's own, which may be shown one.

        Raises:
            NoAnswer: also where a server does not prove that it is the NameNode.
            NoTicket: there is no ticket to show.
        """
        handlers: list[BaseHandler] = []
        if self.principal:
            handlers.append(ProxyHandler({}))
        if url.startswith("https:"):
            try:
                handlers.append(HTTPSHandler(context=trusting(self.ca)))
            except NoCertificates:
                raise NoAnswer("NoCertificates") from None
        if not self.principal or not ticket:
            return ask(url, handlers=handlers, **more)
        shake = Handshake(self.principal, "HTTP", str(urlsplit(url).hostname))
        shown = base64.b64encode(shake.step()).decode()
        headers = {**more.pop("headers", {}), "Authorization": f"Negotiate {shown}"}
        return ask(url, handlers=handlers, headers=headers, believe=lambda *seen: _believe(shake, *seen), **more)


ON_TRUST = Security()
"""A user's name, and no file of certificates."""


def _believe(shake: Handshake, status: int, headers: Message) -> None:
    """Raises NoAnswer: the server does not show that it has the service's key. Nothing that it said is then kept."""
    for offered in headers.get_all("WWW-Authenticate", ()):
        scheme, _, token = offered.partition(" ")
        if scheme.lower() == _NEGOTIATE and token.strip():
            try:
                shake.step(base64.b64decode(token.strip(), validate=True))
            except ValueError:
                break
    if not shake.proved:
        raise NoAnswer("NoTicketTaken" if status in _REFUSALS else "NotProved", status)


def is_trusted_target(url: str, name_node: str) -> bool:
    """Whether a NameNode may send a request to this address: it is one of HTTP, and over TLS where the NameNode's is.

    Whichever DataNode it names is believed. An address with a user and password in it is none.
    """
    try:
        parts: SplitResult = urlsplit(url)
        reachable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    kept = parts.scheme == "https" if name_node.startswith("https:") else parts.scheme in ("http", "https")
    return kept and reachable and "@" not in parts.netloc
