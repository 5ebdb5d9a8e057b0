"""What AWS KMS says of keys: state, date of deletion, replicas, grants.

A key is gone when KMS does not know it any more; until then its deletion can be cancelled
(https://docs.aws.amazon.com/kms/latest/developerguide/deleting-keys.html). A primary key waits for its replicas
(https://docs.aws.amazon.com/kms/latest/developerguide/multi-region-keys-delete.html).
"""

from __future__ import annotations

from typing import Any

from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.keys.key_facts import KmsKey
from pii_tracer.model.errors import EstateError

GONE = "Deleted"
"""Our word for a key that KMS does not know any more; all other states are KMS's."""
PENDING = frozenset({"PendingDeletion", "PendingReplicaDeletion"})


def kms_client(region: str, endpoint_url: str | None) -> Any:
    """A client; credentials come from the environment, as boto3 finds them."""
    import boto3

    return boto3.client("kms", region_name=region, endpoint_url=endpoint_url)


def kms_key(key_id: str, region: str, endpoint_url: str | None) -> KmsKey:
    """The state of a key and of all its replicas. For a replica, that of its primary: they share the key material.

    Raises:
        EstateError: KMS refuses to tell, or is not reached.
    """
    key, told = _described(key_id, region, endpoint_url)
    family = told.get("MultiRegionConfiguration") if told.get("MultiRegion") else None
    if family is None:
        return key
    primary = family["PrimaryKey"]
    if primary["Arn"] != key.key_id:
        return kms_key(primary["Arn"], primary["Region"], endpoint_url)
    others = [r for r in family["ReplicaKeys"] if r["Arn"] != key.key_id]
    replicas = (_described(r["Arn"], r["Region"], endpoint_url)[0] for r in others)
    return key.model_copy(update={"replicas": tuple(r for r in replicas if r.state != GONE)})


def _described(key_id: str, region: str, endpoint_url: str | None) -> tuple[KmsKey, dict[str, Any]]:
    from botocore.exceptions import BotoCoreError, ClientError

    client = kms_client(region, endpoint_url)
    try:
        told: dict[str, Any] = client.describe_key(KeyId=key_id)["KeyMetadata"]
        grants = sum(len(p["Grants"]) for p in client.get_paginator("list_grants").paginate(KeyId=told["Arn"]))
    except ClientError as error:
        code = error_code(error)
        if code == "NotFoundException":
            return KmsKey(key_id=key_id, region=region, state=GONE), {}
        raise EstateError(f"KMS does not show a key's state: {code}", where=key_id, todo=_RIGHTS) from None
    except BotoCoreError as error:
        raise EstateError(f"KMS does not answer: {type(error).__name__}", where=key_id, todo=_RIGHTS) from None
    key = KmsKey(
        key_id=told["Arn"],
        region=region,
        state=told["KeyState"],
        deletion_date=told.get("DeletionDate"),
        grants=grants,
    )
    return key, told


_RIGHTS = (
    "grant the run kms:DescribeKey and kms:ListGrants on the key, in its region and in the regions of its replicas"
)
