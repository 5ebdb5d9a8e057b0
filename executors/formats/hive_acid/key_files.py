"""The persons' keys as files that Hive reads: in the estate's scratch folder, for as long as a statement needs them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.stores.base import Absent, StoreError
from pii_tracer.lake.stores.hdfs.webhdfs import client_at, joined
from pii_tracer.model.errors import RunError
from pii_tracer.model.locations import hdfs_location

_FRONT = "pii-tracer-keys-"


class KeyFiles:
    """The files of one step. scratch: the folder that the estate file names for them."""

    def __init__(self, estate: Estate, scratch: str, step: str) -> None:
        place = hdfs_location(scratch)
        self._client, self._scratch = client_at(estate, place), place.path
        self._shown = str(place)
        self._folder = joined(self._scratch, _FRONT + hashlib.sha256(step.encode()).hexdigest()[:16])

    def check(self) -> None:
        """Raise `RunError` when the scratch folder is missing, or everybody may look into it."""
        with self._refusals():
            try:
                rights = self._client.rights(self._scratch)
            except Absent:
                todo = "create it, for the run's user and Hive's alone (`hdfs dfs -mkdir`, `-chmod 770`)"
                raise RunError("the scratch folder for keys is missing", where=self._shown, todo=todo) from None
        if not rights.permission.endswith("0"):
            todo = "take the rights of all others from it (`hdfs dfs -chmod o-rwx`)"
            raise RunError("everybody may look into the scratch folder for keys", where=self._shown, todo=todo)

    @contextmanager
    def holding(self, keys: Mapping[str, Iterable[str]]) -> Iterator[Mapping[str, str]]:
        """Inside, each key set has a folder with its values, of which the place is given by the key set's name. What a
        killed run left is removed before, and all of it afterwards.

        A value stands there in base64, since lines of text cannot have every character.
        """
        self.remove()
        places = {}
        try:
            with self._refusals():
                for number, (name, values) in enumerate(sorted(keys.items())):
                    folder = joined(self._folder, str(number))
                    lines = b"".join(base64.b64encode(value.encode()) + b"\n" for value in sorted(values))
                    self._client.create(joined(folder, "keys"), lines)
                    places[name] = f"{self._client.name}{folder}"
            yield places
        finally:
            self.remove()

    def remove(self) -> None:
        """Take away what is there, for good."""
        with self._refusals():
            for folder in self._below():
                for entry in self._client.entries(folder):
                    self._client.delete(joined(folder, entry.name))
                self._client.delete(folder)
            with suppress(Absent):
                self._client.delete(self._folder)

    def left(self) -> bool:
        """Whether anything is there."""
        with self._refusals():
            try:
                self._client.status(self._folder)
            except Absent:
                return False
            return True

    def _below(self) -> list[str]:
        try:
            return [joined(self._folder, entry.name) for entry in self._client.entries(self._folder)]
        except Absent:
            return []

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            todo = "let the run's user write and delete there, then `pii-tracer resume`"
            raise RunError(f"the scratch folder for keys: {error.code}", where=self._shown, todo=todo) from None
