"""Entra ID on loopback: the endpoint of a managed identity, which gives tokens, and what the stand-in for Azure Storage
does with them.

https://learn.microsoft.com/azure/app-service/overview-managed-identity#rest-endpoint-reference and
https://learn.microsoft.com/azure/role-based-access-control/built-in-roles/storage. The page of Get
Account Information names keys and signatures alone (https://learn.microsoft.com/rest/api/storageservices/get-account-information).
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from tests.azure.blob_state import Refused
from tests.servers import served

CHALLENGE = (
    "Bearer authorization_uri=https://login.invalid/tenant/oauth2/authorize resource_id=https://storage.azure.com"
)
OWNER, CONTRIBUTOR, READER = "Storage Blob Data Owner", "Storage Blob Data Contributor", "Reader"


@dataclass
class Entra:
    """roles: those of the identity on the account. seconds: how long a token is valid. given: all tokens so far. until:
    by token, when it ends. locked: nobody gets a token.
    """

    roles: set[str] = field(default_factory=lambda: {OWNER, READER})
    seconds: int = 86_400
    given: list[str] = field(default_factory=list)
    until: dict[str, float] = field(default_factory=dict)
    header: str = field(default_factory=lambda: secrets.token_hex(8))
    locked: bool = False

    def token(self) -> dict[str, str]:
        """A new token."""
        made = f"token.of.tests.{secrets.token_hex(16)}"
        self.given.append(made)
        self.until[made] = time.time() + self.seconds
        return {"access_token": made, "expires_on": str(int(self.until[made])), "token_type": "Bearer"}

    def end(self) -> None:
        """No token that was given is valid any more, whatever it says of itself."""
        self.until.clear()

    def refuse(self, method: str, query: Mapping[str, str], headers: Message) -> None:
        """Refuse a request without a valid token, or that none of the roles allows."""
        kind, _, token = (headers.get("Authorization") or "").partition(" ")
        if not kind:
            raise Refused(401, "NoAuthenticationInformation")
        if kind != "Bearer" or self.until.get(token, 0) <= time.time():
            raise Refused(401, "InvalidAuthenticationInfo")
        asked = query.get("restype"), query.get("comp")
        if asked == ("account", "properties"):
            raise Refused(403, "AuthorizationFailure")
        if asked == ("service", "properties"):
            allowed = READER in self.roles
        elif query.get("action") == "setAccessControl" or _beyond_contributor(method, query, headers):
            allowed = OWNER in self.roles
        else:
            allowed = bool(self.roles & {OWNER, CONTRIBUTOR})
        if not allowed:
            raise Refused(403, "AuthorizationPermissionMismatch")


def _beyond_contributor(method: str, query: Mapping[str, str], headers: Message) -> bool:
    """What needs `blobs/tags/read`, `blobs/tags/write` or `blobs/deleteBlobVersion/action`
    (https://learn.microsoft.com/rest/api/storageservices/authorize-with-azure-active-directory).
    """
    listed = "tags" in query.get("include", "").split(",")
    return (
        listed or query.get("comp") == "tags" or "x-ms-tags" in headers or (method == "DELETE" and "versionid" in query)
    )


@contextmanager
def identity(entra: Entra) -> Iterator[str]:
    """The address of the endpoint that gives tokens to who knows the header."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            query = dict(parse_qsl(urlsplit(self.path).query))
            good = self.headers.get("X-IDENTITY-HEADER") == entra.header and not entra.locked
            good = good and query.get("resource") == "https://storage.azure.com"
            body = json.dumps(entra.token() if good else {"statusCode": 400, "message": "no"}).encode()
            self.send_response(200 if good else 400)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with served(server):
        yield f"http://127.0.0.1:{server.server_port}/msi/token"
