"""Clients of AWS's services, and their refusals as our own errors: who asks AWS for something needs no more of boto3.

boto3 takes long to import, so it is imported when something is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pii_tracer.lake.aws_errors import error_code
from pii_tracer.model.errors import PiiTracerError


def aws_client(service: str, region: str, endpoint_url: str | None = None) -> Any:
    """A client of a service (`kms`, `glue`, …); credentials are found as boto3 finds them."""
    import boto3

    return boto3.client(service, region_name=region, endpoint_url=endpoint_url)  # type: ignore[call-overload]


def has_credentials() -> bool:
    """Whether boto3 finds credentials. Nobody is asked whether they are good for anything."""
    import boto3

    return boto3.Session().get_credentials() is not None


@contextmanager
def refusals_as(kind: type[PiiTracerError], what: str, *, where: str, todo: str) -> Iterator[None]:
    """Turns what AWS refuses, or cannot be asked, into an error of ours: `what`, and AWS's code for why.

    where, todo: of the error; `todo` says what to grant. AWS's message is left out: it can repeat outside values.

    Raises:
        PiiTracerError: of that kind.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise kind(f"{what}: {error_code(error)}", where=where, todo=todo) from None
