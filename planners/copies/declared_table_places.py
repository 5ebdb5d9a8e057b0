"""Where a table's columns stand besides its folder: archives, vaults, topics and repositories declared to be of it.

What is known of a column of the table is known there, too. A store with such places of its own is named here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pii_tracer.config.kafka import RecordFormat, RecordPart, Topic
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lake.streams.kafka.records import KEY, VALUE
from pii_tracer.model.datasets import DatasetId

_ELEMENT, _MAP_KEY = "*", "key"


@dataclass(frozen=True)
class Carrier:
    """A place with rows of a table. of: the table, as the estate file names it.

    called: what files or records call one of the table's columns there. It is given the column, and what the table's
    own files call it.
    """

    of: str
    dataset: DatasetId
    location: str
    called: Callable[[str, Sequence[str]], tuple[str, ...]]


def carriers(inventory: Inventory) -> Iterator[Carrier]:
    """Every place of an inventory that is declared to be of a table, but folders that are the table."""
    bare = {f"{state.location}/" for state in inventory.tables if state.in_objects}
    for objects in inventory.objects:
        if objects.location not in bare:
            yield Carrier(objects.of, objects.dataset, objects.location, _as_in_the_table)
    for vault in inventory.vaults:
        yield Carrier(vault.declared.of, vault.dataset, vault.location, _as_in_the_table)
    for repository in inventory.lakefs:
        yield Carrier(repository.declared.of, repository.dataset, repository.location, _as_in_the_table)
    for topic in inventory.topics:
        yield Carrier(topic.declared.of, topic.dataset, topic.location, _in_records(topic.declared))


def _as_in_the_table(column: str, labels: Sequence[str]) -> tuple[str, ...]:
    return tuple(labels)


def _in_records(topic: Topic) -> Callable[[str, Sequence[str]], tuple[str, ...]]:
    """By the places that the estate file declares: a column without one is in no known place."""

    def called(column: str, labels: Sequence[str]) -> tuple[str, ...]:
        parts = ((KEY, topic.key), (VALUE, topic.value))
        return tuple(sorted(label for name, part in parts if part for label in _declared(name, part, column)))

    return called


def _declared(name: str, part: RecordPart, column: str) -> Iterator[str]:
    for path, declared in part.places().items():
        if declared.lower() == column.lower() and _stands_alone(part, path):
            yield f"{name}.$.{'.'.join(path)}" if path else name


def _stands_alone(part: RecordPart, path: Sequence[str]) -> bool:
    """Whether nothing else in a record has the label of this path.

    A scan calls every member with an odd name `*`, and keys of maps in Avro and Protobuf `key`. Of Protobuf it searches
    the bytes besides, which name no member.
    """
    if part.format is RecordFormat.PROTOBUF:
        return False
    return _ELEMENT not in path and (part.format is not RecordFormat.AVRO or _MAP_KEY not in path[-1:])
