"""What AWS's services have in common: how their refusals are told."""

from __future__ import annotations


def error_code(error: Exception) -> str:
    """The code of a refusal alone, or the kind of a failure without an answer: messages can repeat outside values."""
    from botocore.exceptions import ClientError

    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code") or "unknown")
    return type(error).__name__
