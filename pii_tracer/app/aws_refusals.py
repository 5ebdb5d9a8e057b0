"""What AWS refuses while a copy is looked at, as our own error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pii_tracer.lake.aws_errors import error_code
from pii_tracer.model.errors import ScanError


@contextmanager
def unreadable(what: str, where: str, todo: str) -> Iterator[None]:
    """Raises `ScanError` with the refusal's code."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise ScanError(f"{what}: {error_code(error)}", where=where, todo=todo) from None
