"""What catalogs themselves keep of tables, searched for the persons: comments, properties, statistics, partitions."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.catalogs.base import Capability
from pii_tracer.lake.catalogs.registry import catalog_of, catalogs_that
from pii_tracer.scan.decode.table_metadata import digests_of_parts, walk
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.value_forms import Patterns
from planners.copies.scan_evidence import CatalogEvidence


def telling_catalogs(
    estate: Estate, base: Path, patterns: Patterns, say: Callable[[str], None]
) -> tuple[CatalogEvidence, ...]:
    """Of every catalog that tells its texts: the tables and namespaces that hold a value of the persons, or were not
    read. A short number counts where it is a bound, or a partition, of a column that is called as the key is.

    Raises:
        EstateError: a catalog's client library is not installed.
    """
    found, tells = [], partial(_tells, patterns)
    for name, catalog in catalogs_that(estate, Capability.TEXTS).items():
        say(f"searching what the catalog {name} keeps of its tables")
        adapter = catalog_of(catalog.type)
        places: dict[str, dict[str, None]] = {}
        unread: dict[str, dict[str, None]] = {}
        texts: dict[str, set[str]] = defaultdict(set)
        for text in adapter.texts(name, catalog, base):
            title = patterns.mask(".".join((f"catalog {name}", *text.parts)))
            if text.unread:
                unread.setdefault(title, {})[f"{text.place} ({text.unread})"] = None
            if tells(text.document):
                places.setdefault(title, {})[text.place] = None
                # an old version of a table repeats the same text in another place
                for part in digests_of_parts(text.document, tells):
                    shown = repr((text.parts, part)).encode("utf-8", "replace")
                    texts[title].add(hashlib.sha256(shown).hexdigest())
        for title in sorted({*places, *unread}):
            if title in places:
                say(f"{title} holds the persons in what the catalog keeps of it")
            told = tuple(places.get(title, ())), tuple(unread.get(title, ()))
            found.append(CatalogEvidence(title, *told, adapter.text_remedy, frozenset(texts[title])))
    return tuple(found)


def _tells(patterns: Patterns, document: Any) -> bool:
    keys = {key_set.name: key_set.origin.rpartition(".")[2].lower() for key_set in patterns.key_sets}
    collector = Collector(patterns)
    walk(document, collector, "catalog")
    return any(not hit.weak or (hit.column or "").lower() == keys[hit.key_set] for hit in collector.hits())
