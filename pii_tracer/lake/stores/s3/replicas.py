"""Where buckets' own rules copy objects to, as the rules are now; nothing is listed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from botocore.exceptions import BotoCoreError, ClientError

from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.stores.s3.bucket_settings import touches
from pii_tracer.lake.stores.s3.object_versions import ClientFactory, region_of

_NO_RULES = frozenset({"ReplicationConfigurationNotFoundError", "NotImplemented"})
"""A store without the operation cannot have rules for it."""


def replicas_of(clients: ClientFactory, bucket: str, prefix: str) -> Iterator[str]:
    """The buckets to which rules copy a prefix, or once did: from bucket to bucket, disabled rules too.

    Raises:
        botocore.exceptions.ClientError, BotoCoreError: a bucket's rules cannot be read; those found before count.
    """
    seen, waiting = {bucket}, [bucket]
    while waiting:
        for target in _targets(clients, waiting.pop(0), prefix):
            if target not in seen:
                seen.add(target)
                waiting.append(target)
                yield target


def readable_replicas(clients: ClientFactory, bucket: str, prefix: str) -> list[str]:
    """As `replicas_of`, sorted, as far as the rules can be read. For guesses: planning tells which cannot."""
    found: list[str] = []
    with suppress(ClientError, BotoCoreError):
        found.extend(replicas_of(clients, bucket, prefix))
    return sorted(found)


def _targets(clients: ClientFactory, bucket: str, prefix: str) -> list[str]:
    try:
        client = clients(region_of(clients(None), bucket))
        answer = client.get_bucket_replication(Bucket=bucket)
    except (ClientError, BotoCoreError) as error:
        if error_code(error) in _NO_RULES:
            return []
        raise
    rules = (answer.get("ReplicationConfiguration") or {}).get("Rules", ())
    # `arn:aws:s3:::name`
    return sorted({str(r["Destination"]["Bucket"]).rpartition(":")[2] for r in rules if touches(r, prefix)})
