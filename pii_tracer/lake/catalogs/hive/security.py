"""How a connection to a metastore is secured: by Kerberos, by TLS, by both, or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pii_tracer.common.kerberos import KERBEROS, Handshake, NoTicket
from pii_tracer.common.tls import NoCertificates, trusting
from pii_tracer.config.catalogs import Catalog

_SERVICE = "hive"


@dataclass(frozen=True)
class Security:
    """principal: whose ticket is shown; service: the first part of the metastore's own principal. ca: as `trusting`."""

    principal: str | None = None
    service: str = _SERVICE
    tls: bool = False
    ca: str | None = None

    @classmethod
    def of(cls, catalog: Catalog) -> Security:
        """As the estate file says."""
        return cls(catalog.kerberos, catalog.kerberos_service or _SERVICE, catalog.tls, catalog.ca)

    def transport(self, socket: Any, host: str) -> Any:
        """What Thrift speaks through, on an open socket of Thrift's.

        Raises:
            NoTicket, OSError: the metastore is not who it says it is, or does not take the ticket.
        """
        from thrift.transport.TTransport import TBufferedTransport

        if self.tls:
            try:
                socket.handle = trusting(self.ca).wrap_socket(socket.handle, server_hostname=host)
            except NoCertificates:
                raise NoTicket("NoCertificates", "set `ca` to a PEM file with certificates") from None
        if self.principal is None:
            return TBufferedTransport(socket)
        from pii_tracer.lake.catalogs.hive.sasl import SaslTransport

        made = SaslTransport(socket, Handshake(self.principal, self.service, host, KERBEROS))
        made.negotiate()
        return made


OPEN = Security()
"""Neither Kerberos nor TLS."""


def way_out(error: Exception, security: Security) -> str:
    """What to do about a metastore that cannot be asked."""
    if isinstance(error, NoTicket):
        return f"{error.code}: {error.todo}"
    if type(error).__name__ == "SSLCertVerificationError":
        return "set `ca` to the file with the CA of the server's certificate"
    missing = [] if security.principal else ["set `kerberos: USER@REALM` if it uses Kerberos"]
    missing += [] if security.tls else ["set `tls: true` if it uses TLS"]
    return "correct `uri`" + (f", or add {' and '.join(missing)}" if missing else ", `kerberos` or `tls`")
