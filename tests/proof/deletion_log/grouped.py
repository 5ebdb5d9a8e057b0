"""Entries of the deletion log one by one, as tests think of them, and in groups, as the log takes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pii_tracer.proof.deletions.entries import Deed, Entry, Group, Person


def groups(entries: Iterable[Entry]) -> Iterator[Group]:
    """Each entry in a group of its own."""
    for one in entries:
        deed = Deed.model_construct(**{name: getattr(one, name) for name in Deed.model_fields})
        yield Group([deed], [Person(one.request_id, one.subject)])


def apart(groups: Iterable[Group]) -> Iterator[Entry]:
    """What groups say of each person."""
    for group in groups:
        for person in group.persons:
            for deed in group.deeds:
                yield Entry(**person._asdict(), **vars(deed))
