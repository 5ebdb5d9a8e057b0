"""The suppression list: whom a backfill, a RESTORE or a replay must not bring back, as keyed references only.

Nobody can read a person out of it. Whoever has a key and the estate's secret can ask whether it is on the list: a
loader before it writes, `pii-tracer recheck` long after the run. The list is a file in the estate's state folder.
"""

from __future__ import annotations

import fcntl
import json
import operator
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from pathlib import Path

from pydantic import Field, TypeAdapter, ValidationError

from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import RunError
from pii_tracer.review.sealed_person_values import EstateKey

FILE = "suppression.jsonl"


class Entry(Frozen):
    """One value of one key set (`customer.user_id`), by its reference.

    subject: keyed reference of the person. recheck_on: when somebody should look whether the person is back.
    key_check: of the estate key that made the references; empty in lists of older versions. open: the plan left
    something of the person, who is not erased: loaders hold the rows back all the same, and `recheck` looks for no such
    person.
    """

    key_set: str
    reference: str
    subject: str
    plan_id: str
    since: datetime
    recheck_on: datetime
    key_check: str = ""
    open: bool = Field(default=False, exclude_if=operator.not_)


_ENTRIES = TypeAdapter(tuple[Entry, ...])


class SuppressionList:
    """The list as it is in its file. Entries are only ever added: who was erased stays erased."""

    def __init__(self, path: Path, key: EstateKey) -> None:
        self._path, self._key = path, key

    def __repr__(self) -> str:
        return f"SuppressionList({self._path})"

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, sorted by key set and reference.

        Raises:
            RunError: the file is broken, or another estate key made it; nobody may take that for an empty list.
        """
        try:
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            return ()
        try:
            entries = _ENTRIES.validate_json(b"[" + b",".join(line.strip() or b"," for line in lines) + b"]")
        except ValidationError:
            raise RunError(
                "the suppression list is broken", where=str(self._path), todo="restore it from a backup"
            ) from None
        if not {e.key_check for e in entries} <= {"", self._key.check}:
            raise RunError(
                "the suppression list was made with a different estate key, so it would find no person",
                where=str(self._path),
                todo="use the estate key with which these persons were erased",
            )
        return entries

    @cached_property
    def _known(self) -> dict[tuple[str, str], Entry]:
        return {(e.key_set, e.reference): e for e in self.entries}

    @cached_property
    def key_sets(self) -> frozenset[str]:
        """Names of the key sets that have entries."""
        return frozenset(e.key_set for e in self.entries)

    def find(self, key_set: str, value: str) -> Entry | None:
        """The entry of a value, or None when it may be loaded."""
        if key_set not in self.key_sets:
            return None
        return self._known.get((key_set, self._key.suppression(key_set, value)))

    def has(self, wanted: Iterable[tuple[str, str]]) -> bool:
        """Whether all these values (key set, value) are on the list."""
        return all(self.find(key_set, value) is not None for key_set, value in wanted)

    def extended(
        self, values: Iterable[tuple[str, str, str]], *, plan_id: str, since: datetime, recheck_on: datetime
    ) -> SuppressionList:
        """The list with these values (key set, keyed reference of the person, value) too, in its file.

        The file is read again under a lock, since runs of other plans write to it, and replaced whole. A value that is
        on the list already gets the newer dates.
        """
        with self._locked():
            return SuppressionList(self._path, self._key)._written(values, plan_id, since, recheck_on)

    def open_of(self, plan_id: str, persons: Collection[str]) -> None:
        """Say in the file which entries of a plan are of persons (keyed references) whom it did not erase: of these and
        of no others."""
        if not self._path.exists():
            return
        with self._locked():
            known = SuppressionList(self._path, self._key).entries
            said = [
                entry
                if entry.plan_id != plan_id or entry.open == (entry.subject in persons)
                else entry.model_copy(update={"open": entry.subject in persons})
                for entry in known
            ]
            if said != list(known):
                self._write(said)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _write(self, entries: Iterable[Entry]) -> None:
        lines = [json.dumps(entry.model_dump(mode="json"), sort_keys=True) + "\n" for entry in entries]
        write_atomic(self._path, "".join(lines).encode(), mode=0o600)

    def _written(
        self, values: Iterable[tuple[str, str, str]], plan_id: str, since: datetime, recheck_on: datetime
    ) -> SuppressionList:
        found, check = dict(self._known), self._key.check
        for key_set, subject, value in values:
            reference = self._key.suppression(key_set, value)
            found[key_set, reference] = Entry(
                key_set=key_set,
                reference=reference,
                subject=subject,
                plan_id=plan_id,
                since=since,
                recheck_on=recheck_on,
                key_check=check,
            )
        entries = tuple(found[key] for key in sorted(found))
        self._write(entries)
        now = SuppressionList(self._path, self._key)
        now.entries = entries
        return now
