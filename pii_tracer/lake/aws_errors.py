"""What AWS's services have in common: how their refusals are told."""

from __future__ import annotations

from collections.abc import Mapping


def error_code(error: Exception) -> str:
    """The code of a refusal alone, or the kind of a failure without an answer: messages can repeat outside values.

    Only botocore's `ClientError` has an answer that is a mapping.
    """
    answer = getattr(error, "response", None)
    if isinstance(answer, Mapping):
        return str(answer.get("Error", {}).get("Code") or "unknown")
    return type(error).__name__
