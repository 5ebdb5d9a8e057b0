"""One runner a plan, for machines that share no disk: an object in a store that is written on conditions only.

- It is made where nothing is, and changed where nobody else changed it: of two who try at once the store takes one
  (https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html of S3). A store that takes writes whose
  condition does not hold is found out before the lease is touched, and refused.
- Its holder writes it anew all the time. Who wants it watches: when it has not changed for `silence_seconds` by the
  watcher's own monotonic clock, its holder is dead or cut off. No clock is compared with that of another machine.
- A runner that was frozen finds out at its next record, because `check` is such a write itself.
- A write whose answer was lost is recognised by the number that its runner drew by lot.
- It holds the head of the run's journal: a state folder that lacks that record (another machine's, an old copy) would
  do again what was done, and is refused.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Protocol

from pydantic import Field, ValidationError

from pii_tracer.lake.stores.base import Absent, Changed, Content, ObjectStore, StoreError
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import Refused
from pii_tracer.run.journal import Clock

BEAT_SECONDS = 15.0
SILENCE_SECONDS = 90.0
_WATCH_SECONDS = 1.0
_MAX_BYTES = 64 * 1024
_JSON = "application/json"
_READS = 4  # before the last one
_WRITES = 4  # one, and again where an earlier write of our own came in between


class History(Protocol):
    """What the lease needs of a journal: its head, and whether it holds a record."""

    @property
    def head(self) -> str:
        """Hash of the last record."""

    def holds(self, head: str) -> bool:
        """Whether a record with this hash stands in it (`GENESIS` always does)."""


class StoreHolder(Frozen):
    """The lease object. nonce: drawn for each taking; beat: counts its writes; head: of the journal by then."""

    pid: int
    host: str
    since: datetime
    token: int = Field(ge=1)
    nonce: str
    beat: int = 0
    head: str
    silence_seconds: float = Field(gt=0, le=3600)
    released: bool = False


class _Unreachable(Refused):
    """The store gave no answer that tells what stands there."""


@dataclass(frozen=True)
class _Seen:
    holder: StoreHolder
    etag: str


@dataclass(frozen=True)
class LeaseObject:
    """The object of one plan's lease, and the conditional requests on it."""

    store: ObjectStore
    key: str

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.store.name}/{self.key}"

    def read(self) -> _Seen | None:
        """What stands there now (stores read what was written last); None where nothing does.

        Raises:
            Refused: it cannot be read, or is not a lease.
        """
        try:
            found = self._content()
            return _Seen(StoreHolder.model_validate_json(found.data), found.etag)
        except Absent:
            return None
        except StoreError as error:
            raise self._unreachable(error) from None
        except ValidationError:
            raise Refused(
                "the lease cannot be read, so it is unknown who runs this plan",
                where=self.name,
                todo="make sure that no process runs this plan, then delete the object",
            ) from None

    def _content(self) -> Content:
        """Bytes and mark. Its holder writes it all the time, so that it may change while it is read."""
        for _ in range(_READS):
            with contextlib.suppress(Changed):
                return self.store.read(self.key, _MAX_BYTES + 1)
        return self.store.read(self.key, _MAX_BYTES + 1)

    def write(self, holder: StoreHolder, etag: str | None) -> str | None:
        """Replace what has this etag (None: make it); returns the new etag, or None when somebody else was there.

        Raises:
            Refused: the store does not answer.
        """
        tries = 0
        while True:
            tries += 1
            try:
                return self._put(self.key, _bytes(holder), etag)
            except StoreError as error:
                seen = self.read()
                if seen is not None and seen.holder == holder:
                    return seen.etag  # it worked, and its answer was lost
                if seen is not None and seen.holder.nonce == holder.nonce and tries < _WRITES:
                    etag = seen.etag  # ours still, at most by an earlier write of our own that came through late
                    continue
                if isinstance(error, Changed):
                    return None
                raise self._unreachable(error) from None

    def refuse_a_store_without_conditions(self) -> None:
        """Try on an object of its own that writes are refused when their condition does not hold.

        Raises:
            Refused: one of them was taken, or the store does not answer.
        """
        key = f"{self.key}.probe-{secrets.token_hex(8)}"
        try:
            first = self._put(key, b"1", None)
            ignored = [
                name
                for name, etag in (("If-None-Match", None), ("If-Match", f'"{secrets.token_hex(16)}"'))
                if not self._is_refused(key, etag)
            ]
            if not ignored:
                self._put(key, b"2", first)
        except StoreError as error:
            raise self._unreachable(error) from None
        finally:
            self._remove(key)
        if ignored:
            raise Refused(
                f"this store accepts writes whose condition is false ({', '.join(ignored)}): the store cannot "
                "prevent two runners at once",
                where=self.store.name,
                todo="name a store with conditional writes under `lease`, or leave `lease` out and use one machine",
            )

    def _is_refused(self, key: str, etag: str | None) -> bool:
        try:
            self._put(key, b"x", etag)
        except Changed:
            return True
        return False

    def _put(self, key: str, body: bytes, etag: str | None) -> str:
        if etag:
            return self.store.put_if_unchanged(key, body, _JSON, etag)
        return self.store.put_if_absent(key, body, _JSON)

    def _remove(self, key: str) -> None:
        """Every version of a probe. What may not be deleted stays: it is a few bytes that mean nothing."""
        with contextlib.suppress(StoreError):
            for version in self.store.versions(key):
                self.store.delete_version(version.key, version.version_id)

    def _unreachable(self, error: StoreError) -> _Unreachable:
        return _Unreachable(
            f"the lease cannot be confirmed: {error.code}",
            where=error.where or self.name,
            todo=error.todo or "check the store, the credentials and the network, then resume",
        )


@dataclass
class StoreLease:
    """A lease that is held and kept alive by a thread. Use as a context manager, or call `release`."""

    place: LeaseObject
    history: History
    holder: StoreHolder
    etag: str
    took_over: StoreHolder | None
    _ended: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @property
    def token(self) -> int:
        """The fencing token of this taking; grows by one with each."""
        return self.holder.token

    @classmethod
    def acquire(
        cls,
        place: LeaseObject,
        history: History,
        clock: Clock,
        *,
        token_above: int = 0,
        beat_seconds: float = BEAT_SECONDS,
        silence_seconds: float = SILENCE_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> StoreLease:
        """Take the lease; one whose holder is silent is taken over after watching it for as long as it says.

        token_above: the highest token that the journal knows, so that tokens grow although somebody deletes the object.

        Raises:
            Refused: somebody holds it and lives (says who), the store has no conditional writes or does not answer,
                or the journal here is not the one of the run.
        """
        place.refuse_a_store_without_conditions()
        seen = place.read()
        if seen is not None and not seen.holder.released:
            seen = _watch(place, seen, sleep, monotonic)
        if seen is not None and not history.holds(seen.holder.head):
            raise Refused(
                f"the run has steps that this state folder does not know, done by {_words(seen.holder)}",
                where=place.name,
                todo="resume with the state folder of that runner; if that folder is lost, plan again",
            )
        holder = StoreHolder(
            pid=os.getpid(),
            host=socket.gethostname(),
            since=clock(),
            token=max(seen.holder.token if seen else 0, token_above) + 1,
            nonce=secrets.token_hex(16),
            head=history.head,
            silence_seconds=silence_seconds,
        )
        etag = place.write(holder, seen.etag if seen else None)
        if etag is None:
            now = place.read()
            raise _held(now.holder if now else None, place)
        lease = cls(place, history, holder, etag, seen.holder if seen and not seen.holder.released else None)
        lease._thread = threading.Thread(target=lease._beat, args=(beat_seconds,), daemon=True)
        lease._thread.start()
        return lease

    def check(self) -> None:
        """Write the lease anew, on the condition that it is still ours.

        Raises:
            Refused: it was taken over, or the store does not answer: nobody knows whose it is.
        """
        with self._lock:
            if not self._ended:
                holder = self.holder.model_copy(update={"beat": self.holder.beat + 1, "head": self.history.head})
                etag = self.place.write(holder, self.etag)
                if etag is not None:
                    self.holder, self.etag = holder, etag
                    return
            self._ended = True
        raise Refused(
            "this run stops, because another runner now has the lease of its plan",
            where=self.place.name,
            todo="wait until the other runner has ended; run `pii-tracer status` to see it",
        )

    def _beat(self, seconds: float) -> None:
        while not self._stop.wait(seconds):
            try:
                self.check()
            except _Unreachable:
                continue  # the runner is told by its own check; the store may answer again
            except Refused:
                return

    def release(self) -> None:
        """Give the lease back. Calling it twice does nothing."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            if self._ended:
                return
            self._ended = True
            beat = self.holder.beat + 1
            last = self.holder.model_copy(update={"beat": beat, "head": self.history.head, "released": True})
            with contextlib.suppress(Refused):  # then it falls silent, which says the same a little later
                self.place.write(last, self.etag)

    def __enter__(self) -> StoreLease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _watch(
    place: LeaseObject, seen: _Seen, sleep: Callable[[float], None], monotonic: Callable[[], float]
) -> _Seen | None:
    """What may be taken: the lease when it has not changed for as long as its holder promised to write it within, or
    what its holder left when it gave it back meanwhile.

    Raises:
        Refused: it changed: somebody holds it and lives.
    """
    begin = monotonic()
    while monotonic() - begin < seen.holder.silence_seconds:
        sleep(min(_WATCH_SECONDS, seen.holder.silence_seconds))
        now = place.read()
        if now is None or now.holder.released:
            return now
        if now.etag != seen.etag:
            raise _held(now.holder, place)
    return seen


def who_holds(place: LeaseObject) -> str | None:
    """Who holds the lease in a store, in words; None where nobody does. For people: takes and promises nothing.

    A runner that died leaves its lease: only whoever watches it for a while can tell.
    """
    try:
        seen = place.read()
    except Refused as error:
        return f"unknown: {error.what}"
    return _words(seen.holder) if seen and not seen.holder.released else None


def _bytes(holder: StoreHolder) -> bytes:
    return json.dumps(holder.model_dump(mode="json"), sort_keys=True).encode()


def _words(holder: StoreHolder) -> str:
    return f"process {holder.pid} on {holder.host}, since {holder.since.isoformat()}"


def _held(holder: StoreHolder | None, place: LeaseObject) -> Refused:
    who = _words(holder) if holder else "another process"
    return Refused(
        f"this plan is already being run by {who}",
        where=place.name,
        todo="wait for it; a runner that is gone is silent and is taken over",
    )
