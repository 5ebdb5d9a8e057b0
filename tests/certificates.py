"""Certificates of servers for tests, signed by an authority of their own."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from http.server import ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

HOST = "localhost"
PASSWORD = "of-tests"
"""Of the stores that Java reads."""


@dataclass(frozen=True)
class Authority:
    """Who signs certificates in tests. ca: its own certificate; server: certificate and key of `localhost`, in one file;
    store: the same for Java."""

    ca: Path
    server: Path
    store: Path
    trust: Path

    @classmethod
    def made(cls, folder: Path, name: str = "tests") -> Authority:
        """A new one, with its files in a folder."""
        now = datetime.now(timezone.utc)
        key, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"CA of {name}")])

        def signed(subject: x509.Name, public: ec.EllipticCurvePublicKey, authority: bool) -> x509.Certificate:
            made = x509.CertificateBuilder(issuer, subject, public, x509.random_serial_number())
            made = made.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=1))
            made = made.add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            if not authority:
                names = [x509.DNSName(HOST), x509.IPAddress(ip_address("127.0.0.1"))]
                made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
            return made.sign(key, hashes.SHA256())

        root = signed(issuer, key.public_key(), authority=True)
        host = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
        leaf = signed(host, own.public_key(), authority=False)
        one = cls(*(folder / f"{name}.{end}" for end in ("ca.pem", "server.pem", "p12", "trust.p12")))
        pem, locked = serialization.Encoding.PEM, serialization.BestAvailableEncryption(PASSWORD.encode())
        one.ca.write_bytes(root.public_bytes(pem))
        plain = own.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        one.server.write_bytes(plain + leaf.public_bytes(pem))
        one.store.write_bytes(pkcs12.serialize_key_and_certificates(b"server", own, leaf, [root], locked))
        trusted = [pkcs12.PKCS12Certificate(root, b"ca")]
        one.trust.write_bytes(pkcs12.serialize_java_truststore(trusted, locked))
        return one


def secured(server: ThreadingHTTPServer, certificate: Path | None) -> ThreadingHTTPServer:
    """A server that speaks TLS if it has a certificate."""
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    return server
