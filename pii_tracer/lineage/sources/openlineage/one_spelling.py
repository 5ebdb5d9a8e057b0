"""One spelling for all names of a dataset that events use, and the names that could be one dataset."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations

from pii_tracer.lineage.dataset_names import Identities, is_place
from pii_tracer.lineage.naming_schemes import Key, key_of, may_be_one, rough_key
from pii_tracer.lineage.sources.openlineage.event_parsing import Id
from pii_tracer.model.datasets import DatasetId

_FILE = re.compile(
    r"(?P<folder>.+)/[^/]+\.(?:parquet|orc|avro|csv|tsv|json|jsonl|ndjson|arrow)(?:\.(?:gz|bz2|zst|snappy|lz4|xz))?",
    re.IGNORECASE,
)
_PART = re.compile(r"(?P<folder>.+)/(?:part-(?:r-|m-)?\d{5}[^/]*|\d{6}_\d+)")
"""What an engine calls the files of a table: such a one is no dataset by itself."""
_DATE = re.compile(r"(?P<folder>.+)/\d{4}/\d{2}(?:/\d{2}(?:/\d{2})?)?")


class OneSpelling:
    """Names with one key are one dataset: under the name a catalog has, or else the first by its text.

    doubtful: datasets that could be one under two names, and are not proved to be.
    """

    def __init__(self, identities: Identities, named: Iterable[Id]) -> None:
        self._identities = identities
        normal = {identities.normal(*id_) for id_ in named}
        self._folders = {_key(dataset) for dataset in normal | identities.roots}
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
        self.doubtful = self._doubtful(normal)

    def of(self, id_: Id) -> DatasetId:
        """The dataset of a name."""
        normal = self._identities.normal(*id_)
        return self._one.get(normal, normal)

    def _doubtful(self, normal: Iterable[DatasetId]) -> list[tuple[DatasetId, DatasetId]]:
        """Pairs of datasets. Catalogs tell apart what they name themselves."""
        roots = self._identities.roots
        alike: dict[Key, set[DatasetId]] = defaultdict(set)
        for dataset in {self._one.get(d, d) for d in normal} | roots:
            alike[rough_key(*_key(dataset))].add(dataset)
        pairs = {
            (one, other)
            for several in alike.values()
            for one, other in combinations(sorted(several), 2)
            if not (one in roots and other in roots) and may_be_one(_key(one), _key(other))
        }
        known = set().union(*alike.values())
        for file in known - roots:
            inside = _FILE.fullmatch(file.name) if is_place(file) else None
            folder = file.model_copy(update={"name": inside["folder"]}) if inside else file
            if folder != file and folder in known:
                pairs.add((folder, file))
        return sorted(pairs)

    def _key(self, dataset: DatasetId) -> Key:
        """The key. Of a folder of one day (`t/2024/01/01`), and of a file that an engine named, it is the key of the
        folder above, where that is a dataset."""
        key = _key(dataset)
        if not is_place(dataset) or dataset in self._identities.roots:
            return key
        within = _DATE.fullmatch(key[1]) or _PART.fullmatch(key[1])
        above = (key[0], within["folder"]) if within else key
        return above if above in self._folders else key


def _key(dataset: DatasetId) -> Key:
    return key_of(dataset.namespace, dataset.name)
