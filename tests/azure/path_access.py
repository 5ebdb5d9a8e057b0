"""Owners and access lists of the stand-in for Azure Storage, and the headers of a path that are no bytes.

https://learn.microsoft.com/azure/storage/blobs/data-lake-storage-access-control and
https://learn.microsoft.com/rest/api/storageservices/datalakestoragegen2/path/update (`setAccessControl`).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from email.message import Message
from email.utils import format_datetime, parsedate_to_datetime

from tests.azure.blob_state import Refused, State

_ENTRY = re.compile(r"(user|group|mask|other):([A-Za-z0-9$-]*):([r-][w-][x-])")
CONTENT = {
    "x-ms-content-type": "Content-Type",
    "x-ms-content-disposition": "Content-Disposition",
    "x-ms-content-language": "Content-Language",
    "x-ms-content-encoding": "Content-Encoding",
    "x-ms-cache-control": "Cache-Control",
}


def entries(acl: str) -> dict[tuple[str, str], str]:
    """The entries of an access list, by kind and identity: each once, and the three of the owner, group and others."""
    found: dict[tuple[str, str], str] = {}
    for text in acl.split(","):
        entry = _ENTRY.fullmatch(text)
        if entry is None or (entry[1] in ("mask", "other") and entry[2]) or (entry[1], entry[2]) in found:
            raise Refused(400, "InvalidAccessControlList")
        found[entry[1], entry[2]] = entry[3]
    if not {("user", ""), ("group", ""), ("other", "")} <= set(found):
        raise Refused(400, "InvalidAccessControlList")
    if any(identity for _, identity in found) and ("mask", "") not in found:
        raise Refused(400, "InvalidAccessControlList")
    return found


def permissions(state: State) -> str:
    """As the service writes them: where the list has more than three entries, the mask stands for the group."""
    found = entries(state.acl)
    middle = found.get(("mask", ""), found["group", ""])
    return found["user", ""] + middle + found["other", ""] + "+" * (len(found) > 3)


def shown(state: State) -> dict[str, str]:
    """Headers of a path that say who may do what."""
    return {"x-ms-owner": state.owner, "x-ms-group": state.group, "x-ms-permissions": permissions(state)}


def set_access(state: State, headers: Message) -> None:
    """Path Update, `setAccessControl`. Whether the mark of the path changes is not documented: here it does not."""
    acl, mode = headers.get("x-ms-acl"), headers.get("x-ms-permissions")
    if mode is not None:
        raise Refused(400, "InvalidHeaderValue" if acl is not None else "UnsupportedHeader")
    if acl is not None:
        entries(acl)
        state.acl = acl
    state.owner, state.group = headers.get("x-ms-owner") or state.owner, headers.get("x-ms-group") or state.group


def inherited(state: State, parent: State) -> None:
    """A new path gets the default list of its directory, and that directory's group."""
    state.group = parent.group
    if parent.default_acl:
        state.acl = parent.default_acl
        state.default_acl = parent.default_acl if state.folder else ""


def created(state: State, headers: Message) -> None:
    """What Path Create says of a new file beside its bytes."""
    state.metadata |= _properties(headers.get("x-ms-properties") or "")
    state.headers |= {mine: headers[name] for name, mine in CONTENT.items() if headers.get(name)}
    state.context = headers.get("x-ms-encryption-context") or ""
    if headers.get("x-ms-expiry-option") is not None:
        if headers["x-ms-expiry-option"] != "Absolute":
            raise Refused(400, "InvalidHeaderValue")
        state.expires = parsedate_to_datetime(headers["x-ms-expiry-time"])


def beside(state: State) -> Mapping[str, str]:
    """Headers of a path that are neither bytes nor access."""
    found = {"x-ms-encryption-context": state.context, "x-ms-encryption-scope": state.scope}
    found |= {"x-ms-expiry-time": format_datetime(state.expires, usegmt=True)} if state.expires else {}
    return {name: value for name, value in found.items() if value}


def _properties(text: str) -> dict[str, str]:
    try:
        pairs = (pair.partition("=") for pair in filter(None, text.split(",")))
        return {name.strip(): base64.b64decode(value, validate=True).decode() for name, _, value in pairs}
    except (binascii.Error, UnicodeDecodeError):
        raise Refused(400, "InvalidHeaderValue") from None
