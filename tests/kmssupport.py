"""AWS KMS for tests: moto's, made as strict as KMS where moto lies.

moto decrypts with keys that are disabled or pending deletion, keeps keys for ever after their date, and deletes a
primary key whose replicas still stand. The rules here are from
https://docs.aws.amazon.com/kms/latest/developerguide/key-state.html and
https://docs.aws.amazon.com/kms/latest/developerguide/multi-region-keys-delete.html.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import boto3
import pytest
from moto.core import DEFAULT_ACCOUNT_ID
from moto.kms import models
from moto.kms.exceptions import NotFoundException
from moto.server import ThreadedMotoServer

from pii_tracer.lake.keys.envelope import key_wrapping

REGION, OTHER_REGION = "ap-south-1", "eu-central-1"
_UNUSABLE = {
    "Disabled": "DisabledException",
    "PendingDeletion": "KMSInvalidStateException",
    "PendingReplicaDeletion": "KMSInvalidStateException",
}

_PATCHED = (
    "decrypt",
    "generate_data_key",
    "schedule_key_deletion",
    "describe_key",
    "cancel_key_deletion",
    "disable_key",
    "enable_key",
)


@dataclass
class StrictKms:
    """A running server. `now` is its clock, which tests move."""

    endpoint: str
    now: datetime

    def client(self, region: str = REGION) -> Any:
        return boto3.client("kms", region_name=region, endpoint_url=self.endpoint)

    def key(self, **more: Any) -> str:
        """ARN of a new key."""
        return str(self.client().create_key(**more)["KeyMetadata"]["Arn"])

    def source(self, key_id: str) -> key_wrapping.Kms:
        return key_wrapping.Kms(key_id, REGION, self.endpoint)

    def advance(self, **time: int) -> None:
        """Let time pass: keys whose date has come are gone, replicas before their primary."""
        self.now += timedelta(**time)
        for backend in _backends():
            for key_id, key in list(backend.keys.items()):
                if key.key_state == "PendingDeletion" and key.deletion_date <= _naive(self.now):
                    del backend.keys[key_id]
        for backend in _backends():
            for key in backend.keys.values():
                if key.key_state == "PendingReplicaDeletion" and not _replicas(key):
                    key.key_state, key.deletion_date = "PendingDeletion", _naive(self.now + key.window)


def _naive(moment: datetime) -> datetime:
    """moto reckons in UTC without a zone."""
    return moment.astimezone(timezone.utc).replace(tzinfo=None)


def _backends() -> list[Any]:
    return [models.kms_backends[DEFAULT_ACCOUNT_ID][region] for region in (REGION, OTHER_REGION)]


def _replicas(key: Any) -> list[Any]:
    if not key.multi_region or key.arn != key.multi_region_configuration["PrimaryKey"]["Arn"]:
        return []
    return [k for b in _backends() for i, k in b.keys.items() if i == key.id and k.arn != key.arn]


@contextmanager
def strict_kms() -> Iterator[StrictKms]:
    """Start a server with the shim around moto's backend."""
    patch = pytest.MonkeyPatch()
    for name, value in {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": REGION,
    }.items():
        patch.setenv(name, value)
    server = ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    running = StrictKms(f"http://{host}:{port}", datetime.now(timezone.utc))
    backend = models.KmsBackend
    plain = {name: getattr(backend, name) for name in _PATCHED}

    def usable(self: Any, key_id: str) -> None:
        key = self.keys.get(self.any_id_to_key_id(key_id))
        if key is None:
            raise NotFoundException(f"Key '{key_id}' does not exist")
        if key.key_state in _UNUSABLE:
            raise _refusal(_UNUSABLE[key.key_state], key.arn)

    def decrypt(
        self: Any, ciphertext_blob: bytes, encryption_context: dict[str, str], key_id: str | None = None
    ) -> Any:
        arn = plain["decrypt"](self, ciphertext_blob, encryption_context, key_id)[1]
        usable(self, arn)
        return plain["decrypt"](self, ciphertext_blob, encryption_context, key_id)

    def generate(self: Any, key_id: str, *more: Any, **named: Any) -> Any:
        usable(self, key_id)
        return plain["generate_data_key"](self, key_id, *more, **named)

    def schedule(self: Any, key_id: str, pending_window_in_days: int) -> Any:
        key = self.keys[self.any_id_to_key_id(key_id)]
        if key.key_state.startswith("Pending"):
            raise _refusal("KMSInvalidStateException", key.arn)
        plain["schedule_key_deletion"](self, key.id, pending_window_in_days)
        key.window = timedelta(days=pending_window_in_days)
        ends = running.now + key.window
        key.deletion_date = _naive(ends)
        if _replicas(key):
            key.key_state = "PendingReplicaDeletion"
        return ends.timestamp()

    def describe(self: Any, key_id: str) -> Any:
        if self.any_id_to_key_id(key_id) not in self.keys:
            raise NotFoundException(f"Key '{key_id}' does not exist")
        return plain["describe_key"](self, key_id)

    def by_any_name(name: str) -> Callable[[Any, str], Any]:
        """KMS takes ARNs here, too, and moto only ids."""
        return lambda self, key_id: plain[name](self, self.any_id_to_key_id(key_id))

    strict = {
        "decrypt": decrypt,
        "generate_data_key": generate,
        "schedule_key_deletion": schedule,
        "describe_key": describe,
    }
    for name in _PATCHED:
        patch.setattr(backend, name, strict.get(name) or by_any_name(name))
    key_wrapping._client.cache_clear()
    try:
        yield running
    finally:
        server.stop()
        patch.undo()
        key_wrapping._client.cache_clear()


def _refusal(code: str, arn: str) -> Exception:
    from moto.core.exceptions import JsonRESTError

    error: Callable[..., JsonRESTError] = JsonRESTError
    return error(code, f"{arn} is not in a state for this")
