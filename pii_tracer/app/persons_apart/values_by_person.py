"""The persons' values searched with a name for each person, so that a hit says whose value it is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.forms.short_number_split import named_parts
from pii_tracer.scan.hits import key_set_in, name_for, person_in
from pii_tracer.scan.key_boundaries import KeyColumns
from pii_tracer.scan.value_forms import Patterns, build_patterns

if TYPE_CHECKING:
    from pii_tracer.scan.parquet_decryption_keys import FileKeys


class ValuesByPerson:
    """The same search as of all together. It is prepared when somebody asks for the first time."""

    def __init__(self, key_sets: Sequence[KeySet], file_keys: FileKeys | None) -> None:
        self._key_sets, self._file_keys = key_sets, file_keys

    @cached_property
    def patterns(self) -> Patterns:
        """Patterns of a key set for each person."""
        return build_patterns([one for keys in self._key_sets for one in _each(keys)], self._file_keys)


class PartOfPatterns(Patterns):
    """Patterns of some of a plan's values, or of each person's apart. Columns are compared, left out and named as with
    the patterns of all, and all values are masked in texts."""

    def __init__(self, key_sets: Iterable[KeySet], whole: Patterns) -> None:
        """Raises `ScanError` as `Patterns` does."""
        super().__init__(key_sets, whole.file_keys)
        self._whole = whole
        self._parts: dict[str, list[str]] = {}
        for found in self.key_sets:
            self._parts.setdefault(key_set_in(found.name), []).append(found.name)

    def mask(self, text: str) -> str:
        """As `Patterns.mask`, by all values of the plan."""
        return self._whole.mask(text)

    def comparing(self, keys: KeyColumns) -> Patterns:
        """As `Patterns.comparing`."""
        return super().comparing(keys.naming(self._parts))

    def leaving_out(self, not_keys: Mapping[str, Collection[str]]) -> Patterns:
        """As `Patterns.leaving_out`."""
        return super().leaving_out(named_parts(not_keys, self._parts))


def each_person(key_sets: Iterable[KeySet]) -> tuple[KeySet, ...]:
    """The key sets, with a part for each person. Keys of several columns stay whole: rows are compared by them, and no
    bytes."""
    return tuple(part for keys in key_sets for part in ((keys,) if keys.columns else _each(keys)))


def without_persons(key_sets: Iterable[KeySet], persons: Collection[str]) -> tuple[KeySet, ...]:
    """The key sets without the values of some persons (keyed references)."""
    return tuple(
        keys.model_copy(update={"values": tuple(pair for pair in keys.values if pair[0] not in persons)})
        for keys in key_sets
    )


def _each(keys: KeySet) -> Iterator[KeySet]:
    values: dict[str, list[tuple[str, str]]] = {}
    for reference, value in keys.values:
        values.setdefault(reference, []).append((reference, value))
    for reference, mine in values.items():
        yield keys.model_copy(update={"name": name_for(keys.name, reference), "values": tuple(mine)})


def whose(names: Iterable[str], key_sets: Collection[str]) -> frozenset[str]:
    """References of the persons in names of such key sets. key_sets: the names of those that count."""
    found = (person_in(name) for name in names if key_set_in(name) in key_sets)
    return frozenset(reference for reference in found if reference is not None)
