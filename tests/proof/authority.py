"""A time stamp authority on this machine: `openssl ts` behind HTTP on loopback."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from tests.servers import served

_CONFIG = """
[req]
distinguished_name = name
[name]
[root]
basicConstraints = critical,CA:true
keyUsage = critical,keyCertSign
[stamping]
basicConstraints = critical,CA:false
keyUsage = critical,digitalSignature
extendedKeyUsage = critical,timeStamping
[tsa]
default_tsa = authority
[authority]
serial = {folder}/serial
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
accuracy = secs:1
ess_cert_id_alg = sha256
"""


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def make_authority(folder: Path) -> Path:
    """Keys and certificates of an authority; returns its root certificate (PEM)."""
    folder.mkdir(parents=True)
    (folder / "conf").write_text(_CONFIG.format(folder=folder))
    (folder / "serial").write_text("01")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-config", "conf")
    _openssl(
        folder, "req", "-x509", *key, "-extensions", "root", "-subj", "/CN=Root", "-keyout", "ca.key", "-out", "ca.pem"
    )
    _openssl(folder, "req", *key, "-subj", "/CN=Stamps", "-keyout", "tsa.key", "-out", "tsa.csr")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "conf", "-extensions", "stamping")
    _openssl(folder, "x509", "-req", "-in", "tsa.csr", *signed, "-days", "2", "-out", "tsa.pem")
    return folder / "ca.pem"


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The authority's URL while it answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["Content-Type"] != "application/timestamp-query":
                self.send_error(415)
                return
            (folder / "query").write_bytes(query)
            signer = ("-inkey", "tsa.key", "-signer", "tsa.pem")
            _openssl(folder, "ts", "-reply", "-config", "conf", "-queryfile", "query", *signer, "-out", "reply")
            answer = (folder / "reply").read_bytes()
            self.send_response(200)
            self.send_header("Content-Type", "application/timestamp-reply")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    with served(server):
        yield f"http://127.0.0.1:{server.server_port}/"
