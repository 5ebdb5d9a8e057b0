"""Texts without any sign with which an escape, a joint, an end of a line or an unseen sign begins.

Most cells that hold a key are such texts. Searches that look only behind these signs leave them out.
"""

from __future__ import annotations

PLAIN_SIGNS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@._-"


def are_all(text: bytes) -> bool:
    """Whether a text has no other signs."""
    return not text.translate(None, PLAIN_SIGNS)
