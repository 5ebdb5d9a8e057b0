"""Requests to S3, read from WSGI, and answers in its words."""

from __future__ import annotations

import base64
import hashlib
import html
import io
import re
import secrets
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from typing import Any

Headers = list[tuple[str, str]]


StartResponse = Callable[..., Any]


def body_of(environ: dict[str, Any]) -> bytes:
    """Read the request's body and put it back for moto."""
    body: bytes = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    return body


def retention_over(environ: dict[str, Any]) -> bool:
    """S3 takes no upload that asks for a retention which is over; moto does, and keeps locks by the real clock."""
    told = environ.get("HTTP_X_AMZ_OBJECT_LOCK_RETAIN_UNTIL_DATE")
    return told is not None and datetime.fromisoformat(told.replace("Z", "+00:00")) <= datetime.now(timezone.utc)


def checksum_holds(environ: dict[str, Any]) -> bool:
    """S3 refuses a body that is not what `x-amz-checksum-sha256` says; moto takes it."""
    told = environ.get("HTTP_X_AMZ_CHECKSUM_SHA256")
    if told is None or "aws-chunked" in environ.get("HTTP_CONTENT_ENCODING", ""):
        return True
    return bool(told == base64.b64encode(hashlib.sha256(body_of(environ)).digest()).decode())


def objects_of(body: bytes) -> list[tuple[str, str | None]]:
    found = []
    for item in re.findall(rb"<Object>(.*?)</Object>", body, re.DOTALL):
        key = re.search(rb"<Key>(.*?)</Key>", item, re.DOTALL)
        version = re.search(rb"<VersionId>(.*?)</VersionId>", item)
        found.append((html.unescape(key[1].decode()) if key else "", version[1].decode() if version else None))
    return found


def answer(start_response: StartResponse, status: str, body: bytes, content_type: str) -> Iterable[bytes]:
    headers = [
        ("Content-Type", content_type),
        ("Content-Length", str(len(body))),
        ("x-amz-request-id", secrets.token_hex(8).upper()),
    ]
    start_response(status, headers)
    return [body]


def error(start_response: StartResponse, status: str, code: str, message: str) -> Iterable[bytes]:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return answer(start_response, status, body.encode(), "application/xml")
