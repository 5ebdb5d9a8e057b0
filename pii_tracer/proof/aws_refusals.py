"""Asking AWS for what a proof needs: a refusal is told with its code and with what to grant."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pii_tracer.lake.stores.aws_clients import refusals_as
from pii_tracer.model.errors import ProofError

T = TypeVar("T")


def asked(call: Callable[[], T], service: str, *, where: str, todo: str) -> T:
    """What a call answers.

    Raises:
        ProofError: the service refuses, or is not reached.
    """
    with refusals_as(ProofError, f"{service} refuses", where=where, todo=todo):
        return call()
