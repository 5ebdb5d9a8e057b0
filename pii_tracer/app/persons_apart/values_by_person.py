"""The persons' values searched with a name for each person, so that a hit says whose value it is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.value_forms import Patterns, build_patterns

if TYPE_CHECKING:
    from pii_tracer.scan.parquet_decryption_keys import FileKeys

_BETWEEN = "\x1f"
"""Between the name of a key set and a person's reference."""


class ValuesByPerson:
    """The same search as of all together. It is prepared when somebody asks for the first time."""

    def __init__(self, key_sets: Sequence[KeySet], file_keys: FileKeys | None) -> None:
        self._key_sets, self._file_keys = key_sets, file_keys

    @cached_property
    def patterns(self) -> Patterns:
        """Patterns of a key set for each person."""
        return build_patterns([one for keys in self._key_sets for one in _each(keys)], self._file_keys)


def _each(keys: KeySet) -> Iterable[KeySet]:
    values: dict[str, list[tuple[str, str]]] = {}
    for reference, value in keys.values:
        values.setdefault(reference, []).append((reference, value))
    for reference, mine in values.items():
        name = f"{keys.name}{_BETWEEN}{reference}"
        yield keys.model_copy(update={"name": name, "values": tuple(mine)})


def whose(names: Iterable[str], key_sets: Collection[str]) -> frozenset[str]:
    """References of the persons in names of such key sets. key_sets: the names of those that count."""
    parts = (name.rpartition(_BETWEEN) for name in names)
    return frozenset(reference for key_set, _, reference in parts if key_set in key_sets)


def key_set_of(name: str) -> str:
    """The key set that a person's own one is a part of."""
    return name.rpartition(_BETWEEN)[0]
