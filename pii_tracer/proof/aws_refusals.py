"""Asking AWS for what a proof needs: a refusal is told with its code and with what to grant."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pii_tracer.lake.aws_errors import error_code
from pii_tracer.model.errors import ProofError

T = TypeVar("T")


def asked(call: Callable[[], T], service: str, *, where: str, todo: str) -> T:
    """What a call answers.

    Raises:
        ProofError: the service refuses, or is not reached.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return call()
    except (ClientError, BotoCoreError) as error:
        raise ProofError(f"{service} refuses: {error_code(error)}", where=where, todo=todo) from None
