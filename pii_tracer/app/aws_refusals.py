"""What AWS refuses while a copy is looked at, as our own error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pii_tracer.lake.stores.aws_clients import refusals_as
from pii_tracer.lake.stores.base import StoreError
from pii_tracer.model.errors import ScanError


@contextmanager
def unreadable(what: str, where: str, todo: str) -> Iterator[None]:
    """Raises `ScanError` with the refusal's code."""
    try:
        with refusals_as(ScanError, what, where=where, todo=todo):
            yield
    except StoreError as error:
        raise ScanError(f"{what}: {error.code}", where=where, todo=todo) from None
