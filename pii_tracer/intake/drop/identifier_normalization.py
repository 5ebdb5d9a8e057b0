"""How California's DROP writes an identifier before it is hashed, and the hash.

Source: CalPrivacy, DROP's technical specifications for data brokers, "Working with the data" (1.2.0 of 2026-07-02): the
standard form as UTF-8, SHA-256, Base64. Of its six lists two are here; the others are known by name.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Mapping

_NO_DIGIT = re.compile(r"[^0-9]")
PHONE_DIGITS = 10


def email_form(value: str) -> str:
    """Without blanks around it, in small letters; dots and what follows a `+` stay."""
    return value.strip().lower()


def phone_form(value: str) -> str:
    """The last ten digits, or all where there are fewer."""
    return _NO_DIGIT.sub("", value)[-PHONE_DIGITS:]


FORMS: Mapping[str, Callable[[str], str]] = {"Email": email_form, "Phone": phone_form}
"""By list, for lists that can be matched here."""
CATEGORIES: Mapping[str, str] = {"Email": "email", "Phone": "phone"}
"""The category of a subject's identifiers that a list is about."""
LISTS = ("NDZ", "Email", "Phone", "MAID", "NameVIN", "CTVID")
"""Every list that DROP has."""


def digest_of(form: str) -> bytes:
    """SHA-256 of a standard form: 32 bytes."""
    return hashlib.sha256(form.encode()).digest()


def digest_told(text: str) -> bytes | None:
    """The 32 bytes of a hash as a list writes it; None where it is none."""
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return found if len(found) == hashlib.sha256().digest_size else None
