"""Kerberos as a client, by GSSAPI: tickets of the user's cache or keytab, which the system's library finds.

SPNEGO for HTTP (RFC 4559), the bare mechanism for SASL (RFC 4752). No ticket is passed on (no delegation), the server
has to prove itself, too, and nothing of a ticket is in an error.
"""

from __future__ import annotations

import importlib
from typing import Any, NoReturn

PRINCIPAL = r"^[A-Za-z0-9._$-]+(/[A-Za-z0-9._-]+)?@[A-Za-z0-9._-]+$"
"""A user's or a service's, with its realm."""
SPNEGO, KERBEROS = "1.3.6.1.5.5.2", "1.2.840.113554.1.2.2"
"""Mechanisms, by their numbers."""
_FLAGS = ("mutual_authentication", "replay_detection", "out_of_sequence_detection", "confidentiality", "integrity")
_KINDS = {
    -1765328377: ("NoService", "the realm does not know the service: write the server's name as the realm has it"),
    -1765328347: ("ClockSkew", "set this machine's clock: it differs from the realm's"),
    -1765328228: ("NoKdc", "the realm's KDC does not answer: check krb5.conf and the network"),
    -1765328230: ("NoKdc", "krb5.conf and the DNS name no KDC of the realm"),
}
_KINIT = "run `kinit {}`, or name its keytab in KRB5_CLIENT_KTNAME; then run the command again"
_EXPIRED = frozenset({-1765328352, -1765328189, -1765328243})
"""Minor codes (krb5_err.et): an expired ticket, and a cache without one."""


class NoTicket(Exception):
    """code: one word for why. todo: what the user does."""

    def __init__(self, code: str, todo: str) -> None:
        super().__init__(code)
        self.code = code
        self.todo = todo


def _library() -> Any:
    try:
        return importlib.import_module("gssapi")
    except (ImportError, OSError):
        raise NoTicket("NoLibrary", "pip install 'pii-tracer[kerberos]' and the library of Kerberos") from None


def _ticket(gss: Any, principal: str) -> Any:
    return gss.Credentials(name=gss.Name(principal, gss.NameType.kerberos_principal), usage="initiate")


def seconds_left(principal: str) -> int:
    """How long the ticket of a principal holds; one is fetched where there is a keytab.

    Raises:
        NoTicket: there is none, or it has expired, or the library is missing.
    """
    gss = _library()
    try:
        return int(_ticket(gss, principal).lifetime)
    except gss.exceptions.GSSError:
        raise NoTicket("NoTicket", _KINIT.format(principal)) from None


class Handshake:
    """With one server, from its first message on."""

    def __init__(self, principal: str, service: str, host: str, mechanism: str = SPNEGO) -> None:
        """principal: whose ticket; of nobody else's, even if there is one.

        Raises:
            NoTicket: the library is missing, or there is no ticket that holds.
        """
        self._gssapi = _library()
        self._principal = principal
        self._place = (service, host)
        self._hidden = mechanism == SPNEGO
        try:
            self._context = self._new(mechanism)
        except self._gssapi.exceptions.GSSError as error:
            self._raise(error, no_ticket=True)

    def _new(self, mechanism: str) -> Any:
        gss = self._gssapi
        return gss.SecurityContext(
            name=gss.Name("@".join(self._place), gss.NameType.hostbased_service),
            creds=_ticket(gss, self._principal),
            mech=gss.OID.from_int_seq(mechanism),
            flags=[getattr(gss.RequirementFlag, flag) for flag in _FLAGS],
            usage="initiate",
        )

    def step(self, said: bytes | None = None) -> bytes:
        """What to send next. said: the server's last message.

        Raises:
            NoTicket: the ticket does not hold, or the server is not the one that it says it is.
        """
        try:
            return bytes(self._context.step(said) or b"")
        except self._gssapi.exceptions.GSSError as error:
            self._raise(error if said else self._bare(error), no_ticket=False)

    def _bare(self, error: Any) -> Any:
        """The error of Kerberos itself: SPNEGO has a number of its own in its place."""
        if self._hidden:
            try:
                self._new(KERBEROS).step()
            except self._gssapi.exceptions.GSSError as bare:
                return bare
        return error

    @property
    def proved(self) -> bool:
        """Whether both sides have shown who they are."""
        return bool(self._context.complete)

    def unwrap(self, message: bytes) -> bytes:
        """What a message of the server's holds (RFC 4752). Raises NoTicket: it is none."""
        try:
            return bytes(self._context.unwrap(message).message)
        except self._gssapi.exceptions.GSSError as error:
            self._raise(error, no_ticket=False)

    def wrap(self, message: bytes, *, encrypt: bool) -> bytes:
        """A message, signed, and encrypted where asked for."""
        return bytes(self._context.wrap(message, encrypt).message)

    def fits(self, most: int, *, encrypt: bool) -> int:
        """Bytes of the longest message that is no more than so many bytes when it is wrapped."""
        return max(1, int(self._context.get_wrap_size_limit(most, encrypt)))

    def _raise(self, error: Any, *, no_ticket: bool) -> NoReturn:
        """The library's texts name files and realms; its numbers are enough."""
        minor = int(error.min_code)
        minor -= (1 << 32) if minor >= 1 << 31 else 0
        expired = isinstance(error, self._gssapi.exceptions.ExpiredCredentialsError)
        if no_ticket or expired or minor in _EXPIRED:
            raise NoTicket("NoTicket", _KINIT.format(self._principal)) from None
        code, todo = _KINDS.get(minor, ("NoHandshake", "see whether `kvno` gets a ticket for this server"))
        raise NoTicket(code, todo) from None
