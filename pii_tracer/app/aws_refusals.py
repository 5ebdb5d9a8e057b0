"""What AWS refuses while a copy is looked at, as our own error."""

from __future__ import annotations

from contextlib import AbstractContextManager

from pii_tracer.lake.stores.aws import refusals_as
from pii_tracer.model.errors import ScanError


def unreadable(what: str, where: str, todo: str) -> AbstractContextManager[None]:
    """Raises `ScanError` with the refusal's code."""
    return refusals_as(ScanError, what, where=where, todo=todo)
