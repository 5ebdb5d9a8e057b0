"""Sends a run's OpenLineage events: always to a file in its folder, and to a receiver where one is configured.

The receiver is the OpenLineage client's own matter: `OPENLINEAGE_URL`, `openlineage.yml`, `OPENLINEAGE__…`
(https://openlineage.io/docs/client/python/configuration). One that is down or slow costs the erasure nothing: sending
goes on beside it, and ends with the first failure.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openlineage.client.client import OpenLineageClient
from openlineage.client.event_v2 import RunEvent
from openlineage.client.serde import Serde
from openlineage.client.transport.noop import NoopConfig, NoopTransport

from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.model.errors import JournalError
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.run.journal import Record, write_and_sync
from pii_tracer.run.openlineage_events import RunEvents

PATIENCE = 15.0
"""Seconds that the end of a run waits for a receiver to take what is still to be sent."""


@dataclass(frozen=True)
class Sent:
    """What became of the events. told: events in the file; delivered: taken by the receiver in this process.

    receiver: kind of the client's transport, None where none is configured. problem: why sending ended early.
    """

    file: str
    told: int
    delivered: int
    receiver: str | None
    problem: str | None


def configured_client() -> OpenLineageClient | None:
    """The OpenLineage client, or None where nobody configured one (its own default would print to the console)."""
    settings = OpenLineageClient(transport=NoopTransport(NoopConfig())).config.transport or {}
    if not settings.get("type") and not os.environ.get("OPENLINEAGE_URL"):
        return None
    for name in ("openlineage", "urllib3"):  # what they say of a receiver would fill the terminal; we say it once
        logging.getLogger(name).addHandler(logging.NullHandler())
    client = OpenLineageClient()
    return None if client.transport.kind == NoopTransport.kind else client


class Sender:
    """Follows a journal. Call `follow` with all its records as often as it grows, and `finish` once."""

    def __init__(self, plan: ErasurePlan, file: Path, warn: Callable[[str], None]) -> None:
        self._file, self._warn = file, warn
        self._events = RunEvents(plan)
        self._read = 0
        self._told = 0
        self._skip = _whole_lines(file)
        self._mail = _Mail()
        self._warned = False

    def follow(self, records: Sequence[Record]) -> None:
        """Write and send the events of the records that are new. Events that stand in the file are not told again.

        Raises:
            JournalError: the file cannot be written.
        """
        for record in records[self._read :]:
            for event in self._events.feed([record]):
                self._told += 1
                if self._told > self._skip:
                    self._append(event)
                    self._mail.post(event)
        self._read = len(records)
        self._complain()

    def finish(self) -> Sent:
        """Give the receiver a moment for what is still to be sent, and say what became of the events."""
        self._mail.close()
        self._complain()
        mail = self._mail
        return Sent(str(self._file), max(self._told, self._skip), mail.delivered, mail.receiver, mail.problem)

    def _complain(self) -> None:
        if self._mail.problem and not self._warned:
            self._warned = True
            self._warn(f"lineage events are no longer sent ({self._mail.problem}); all of them are in the run's folder")

    def _append(self, event: RunEvent) -> None:
        line = json.dumps(Serde.to_dict(event), sort_keys=True, ensure_ascii=False).encode() + b"\n"
        try:
            fd = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                write_and_sync(fd, line)
            finally:
                os.close(fd)
        except OSError as error:
            raise JournalError(
                f"the run's events cannot be written: {error.strerror or type(error).__name__}",
                where=str(self._file),
                todo="check the disk and the permissions of the file, then run `pii-tracer resume`",
            ) from None


def _whole_lines(file: Path) -> int:
    """How many events stand in the file; a line that a crash tore is cut off, and told again."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return 0
    whole, newline, torn = data.rpartition(b"\n")
    if torn:
        write_atomic(file, whole + newline, mode=0o600)
    return data.count(b"\n")


class _Mail:
    """A thread of its own for the receiver. After the first failure nothing more is sent."""

    def __init__(self) -> None:
        self._queue: queue.Queue[RunEvent | None] = queue.Queue()
        self.receiver: str | None = None
        self.problem: str | None = None
        self.delivered = 0
        self._client: Any = None
        try:
            self._client = configured_client()
        except Exception as error:  # a wrong configuration must not stop an erasure
            self.problem = _what(error)
        self._thread = threading.Thread(target=self._work, name="openlineage", daemon=True)
        if self._client is not None:
            self.receiver = str(self._client.transport.kind)
            self._thread.start()

    def post(self, event: RunEvent) -> None:
        if self._client is not None and self.problem is None:
            self._queue.put(event)

    def close(self) -> None:
        if self._client is None:
            return
        self._queue.put(None)
        self._thread.join(PATIENCE)
        if self._thread.is_alive() and self.problem is None:
            self.problem = f"the receiver takes longer than {PATIENCE:.0f} s"

    def _work(self) -> None:
        while (event := self._queue.get()) is not None:
            try:
                self._client.emit(event)
                self.delivered += 1
            except Exception as error:
                self.problem = _what(error)
                return
        try:
            self._client.close(PATIENCE)
        except Exception as error:
            self.problem = _what(error)


def _what(error: Exception) -> str:
    """Its kind only: the message can hold the receiver's address with a token in it."""
    return f"the receiver failed: {type(error).__name__}"
