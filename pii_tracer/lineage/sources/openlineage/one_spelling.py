"""One spelling for all names of a dataset that events use."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from pii_tracer.lineage.dataset_names import Identities, is_place
from pii_tracer.lineage.naming_schemes import Key, key_of
from pii_tracer.lineage.sources.openlineage.event_parsing import Id
from pii_tracer.model.datasets import DatasetId

_DATE = re.compile(r"(?P<folder>.+)/\d{4}/\d{2}(?:/\d{2}(?:/\d{2})?)?")


class OneSpelling:
    """Names with one key are one dataset: under the name a catalog has, or else the first by its text."""

    def __init__(self, identities: Identities, named: Iterable[Id]) -> None:
        self._identities = identities
        normal = {identities.normal(*id_) for id_ in named}
        known = {_key(dataset) for dataset in normal | identities.roots}
        self._folders = known
        groups: dict[Key, set[DatasetId]] = defaultdict(set)
        for dataset in normal:
            groups[self._key(dataset)].add(dataset)
        roots: dict[Key, set[DatasetId]] = defaultdict(set)
        for dataset in identities.roots:
            roots[_key(dataset)].add(dataset)
        self._one: dict[DatasetId, DatasetId] = {}
        for key, found in groups.items():
            catalogs = roots.get(key, set())
            if len(catalogs) > 1:  # catalogs tell them apart
                continue
            plain = {dataset for dataset in found if _key(dataset) == key and "$" not in dataset.name}
            chosen = min(catalogs or plain or found)
            self._one.update(dict.fromkeys(found - identities.roots, chosen))

    def of(self, id_: Id) -> DatasetId:
        """The dataset of a name."""
        normal = self._identities.normal(*id_)
        return self._one.get(normal, normal)

    def _key(self, dataset: DatasetId) -> Key:
        """The key; of a folder of one day (`t/2024/01/01`) that of the folder above, where that is a dataset."""
        key = _key(dataset)
        day = _DATE.fullmatch(key[1]) if is_place(dataset) and dataset not in self._identities.roots else None
        above = (key[0], day["folder"]) if day else key
        return above if above in self._folders else key


def _key(dataset: DatasetId) -> Key:
    return key_of(dataset.namespace, dataset.name)
