"""The persons' keys as files that Hive reads: in the estate's scratch folder, for as long as a statement needs them."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from typing_extensions import Self

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.stores.base import Absent, StoreError
from pii_tracer.lake.stores.hdfs.webhdfs import client_at, joined
from pii_tracer.model.errors import RunError
from pii_tracer.model.locations import hdfs_location

FRONT = "pii-tracer-keys-"
"""How the name of each such folder begins."""
_UNFINISHED, _WHOLE = "_keys", "keys"
"""Hive reads no file whose name begins like the first."""


class KeyFiles:
    """The files of one statement. folder: of them alone, which no other run has."""

    def __init__(self, estate: Estate, folder: str) -> None:
        place = hdfs_location(folder)
        self._client, self._folder = client_at(estate, place), place.path
        self.place = str(place)

    @classmethod
    def new(cls, estate: Estate, scratch: str) -> Self:
        """In a folder that never was there. scratch: the folder that the estate file names for them."""
        return cls(estate, joined(scratch, FRONT + secrets.token_hex(16)))

    @contextmanager
    def holding(self, keys: Mapping[str, Iterable[str]]) -> Iterator[Mapping[str, str]]:
        """Inside, each key set has a folder with its values, of which the place is given by the key set's name. All of
        it is removed afterwards.
        """
        places, texts = {}, {name: lines(name, values) for name, values in sorted(keys.items())}
        try:
            with self._refusals():
                for number, (name, text) in enumerate(texts.items()):
                    folder = joined(self._folder, str(number))
                    self._write(folder, text)
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

    def _write(self, folder: str, text: bytes) -> None:
        """Hive reads a file when all of it is there: a line that is cut can be the key of somebody else."""
        unfinished = joined(folder, _UNFINISHED)
        self._client.create(unfinished, text)
        if self._client.status(unfinished).size != len(text):
            raise RunError(
                "a file with keys was not written completely", where=self.place, todo="run `pii-tracer resume`"
            )
        self._client.rename(unfinished, joined(folder, _WHOLE), overwrite=False)

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
            todo = "allow the run's user to write and delete in this folder, then run `pii-tracer resume`"
            raise RunError(f"the scratch folder for keys: {error.code}", where=self.place, todo=todo) from None


def lines(key_set: str, values: Iterable[str]) -> bytes:
    """Keys as a file has them: in base64, since lines of text cannot have every character.

    Raises:
        RunError: one is no text that Hive can have. It is not quoted.
    """
    try:
        return b"".join(base64.b64encode(value.encode()) + b"\n" for value in sorted(values))
    except UnicodeEncodeError:
        raise RunError(
            f"a key of `{key_set}` contains half of a character (an unpaired surrogate), which Hive cannot store",
            todo="erase the rows of this key by hand, or correct the key, then plan again",
        ) from None
