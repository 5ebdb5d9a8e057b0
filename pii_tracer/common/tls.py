"""Which servers are trusted over TLS: those for whose certificate the system's store, or a named file, vouches."""

from __future__ import annotations

import ssl
from functools import lru_cache


class NoCertificates(Exception):
    """A file that is to hold certificates does not, or cannot be read."""


@lru_cache(maxsize=8)
def trusting(ca: str | None) -> ssl.SSLContext:
    """What connects by TLS; certificates and names of hosts are always compared. ca: a file of PEM certificates, which
    are then all that count; None: the system's store.

    Raises:
        NoCertificates: there are none in the file.
    """
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ValueError):
        raise NoCertificates from None
