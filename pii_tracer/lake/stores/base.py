"""What every store of objects answers, whoever runs it, and how it says that it cannot.

A store holds bytes by key. Keys are names and nothing else: no key is inside another, and `/` is a letter. A store that
has no folders of its own, as S3, takes any key; one that lies in a file system refuses those that are no names there.

Whatever a store refuses, or cannot be asked, is an error and never an empty answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pii_tracer.model.errors import EstateError

if TYPE_CHECKING:
    from pii_tracer.config.estate_file import Estate
    from pii_tracer.lake.inventory import ObjectVersion, Upload


class StoreError(EstateError):
    """A store refused, or could not be asked. code: its own word for why, without its message."""

    def __init__(self, what: str, code: str, *, where: str, todo: str | None = None) -> None:
        super().__init__(f"{what}: {code}", where=where, todo=todo)
        self.code = code


class Absent(StoreError):
    """There is no object under the key now."""


class Changed(StoreError):
    """The condition of a write does not hold, so that nothing was written."""


class Content(NamedTuple):
    """Bytes of an object, and the mark of what stood there when they were read: another mark, another object."""

    data: bytes
    etag: str


EMPTY_PAGES = 300
"""Pages without entries in a row after which a listing counts as one without an end."""


class PagesSeen:
    """Notices a listing without an end: a page was there before, whatever token led to it, or all pages are empty."""

    def __init__(self) -> None:
        self._seen = set[tuple[object, ...]]()
        self._empty = 0

    def too_many_empty(self, entries: int) -> bool:
        """Whether a page ends a row of empty ones that is too long. entries: how many the page has."""
        self._empty = 0 if entries else self._empty + 1
        return self._empty > EMPTY_PAGES

    def again(self, *first: object) -> bool:
        """Whether a page began with the same entry. From now on one did."""
        known = first in self._seen
        self._seen.add(first)
        return known


class ObjectStore(Protocol):
    """A store of objects. Every method raises `StoreError` when the store refuses or does not answer in time."""

    @classmethod
    def at(cls, estate: Estate, place: str, region: str | None = None) -> tuple[ObjectStore, str]:
        """The store in which a place lies, and what the keys of everything in the place begin with, letter by letter.

        region: where the store is, when the estate's own region is not meant.

        Raises:
            EstateError: the place names no store, or the estate file does not say how it is reached.
        """

    @property
    def name(self) -> str:
        """The store as a URI without a slash at its end; `{name}/{key}` is an object's."""

    def read(self, key: str, at_most: int) -> Content:
        """The first bytes of what stands under a key now, `at_most` of them.

        Raises:
            Absent: nothing stands there.
            StoreError: refused, or the bytes broke off.
        """

    def put_if_absent(self, key: str, data: bytes, media_type: str) -> str:
        """Write an object where none is; returns its mark. Of two who try at once, one succeeds.

        Raises:
            Changed: something stands there.
            StoreError: refused, or no answer came: whether it was written is unknown.
        """

    def put_if_unchanged(self, key: str, data: bytes, media_type: str, etag: str) -> str:
        """Write over what has a mark; returns the new one. Of two who try at once, one succeeds.

        Raises:
            Changed: something else stands there, or nothing.
            StoreError: as `put_if_absent`.
        """

    def versions(self, prefix: str) -> Iterator[ObjectVersion]:
        """Every version and delete marker whose key begins so, to the end of the listing; the current ones say so.

        A store without versions has each object once. What is deleted and can still be had back is not listed.

        Raises:
            StoreError: refused, or the listing has no end that can be relied on; some may have been given before.
        """

    def uploads(self, prefix: str) -> Iterator[Upload]:
        """Every upload that was begun and not ended, whose key begins so; none where the store cannot have any.

        Raises:
            StoreError: as `versions`.
        """

    def delete_version(self, key: str, version_id: str) -> None:
        """Delete one version, or one delete marker, for good. One that is not there is deleted already.

        Raises:
            StoreError: refused; a version under a hold is.
        """
