"""The account of the stand-ins for Azure Storage, and the signature that each of its requests has to carry.

https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from email.message import Message

from tests.azure.blob_state import Refused

ACCOUNT = "shimaccount"
KEY = base64.b64encode(b"a key of a stand-in, and of nothing else").decode()
_STANDARD = (
    *("Content-Encoding", "Content-Language", "Content-Length", "Content-MD5", "Content-Type", "Date"),
    *("If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range"),
)


def refuse_unsigned(method: str, path: str, query: Mapping[str, str], headers: Message) -> None:
    """Refuse a request without the account's signature. path: as it was sent, in percent escapes."""
    given = headers.get("Authorization")
    if given is None:
        raise Refused(401, "NoAuthenticationInformation")
    if not hmac.compare_digest(given, signature(method, path, query, headers)):
        raise Refused(403, "AuthenticationFailed")


def signature(method: str, path: str, query: Mapping[str, str], headers: Message | Mapping[str, str]) -> str:
    """What the account's key makes of a request."""
    lines = [headers.get(name) or "" for name in _STANDARD]
    lines[2] = "" if lines[2] == "0" else lines[2]
    own = sorted((n.lower(), v.strip()) for n, v in headers.items() if n.lower().startswith("x-ms-"))
    resource = f"/{ACCOUNT}{path}" + "".join(f"\n{n.lower()}:{v}" for n, v in sorted(query.items()))
    text = "\n".join([method, *lines, *(f"{n}:{v}" for n, v in own), resource])
    mark = base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()
    return f"SharedKey {ACCOUNT}:{mark}"
