"""What looking at one table in S3 gave, of whatever format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from botocore.exceptions import BotoCoreError, ClientError

from pii_tracer.aws import error_code
from pii_tracer.errors import EstateError
from pii_tracer.estate.found import Found
from pii_tracer.locations import S3Location


@dataclass(frozen=True)
class Looked:
    """One table. title: what people know it by. against: why nothing is erased in it, as far as it tells by itself.

    reads: folders outside of its own in which files of it lie, or are to lie.
    """

    title: str
    location: S3Location
    against: str | None = None
    found: Found | None = None
    reads: frozenset[S3Location] = frozenset()


def guarded(table: Looked, look: Callable[[], Looked]) -> Looked:
    """What a look gives; where it fails, the table with the reason. table: as it is known without one."""
    try:
        return look()
    except EstateError as error:
        against = error.what
    except (ClientError, BotoCoreError) as error:
        against = f"S3 does not tell what keeps deleted objects there ({error_code(error)})"
    except OSError as error:
        against = f"S3 refuses to show it ({str(error).rpartition(': ')[2]})"
    return replace(table, against=table.against or against)
