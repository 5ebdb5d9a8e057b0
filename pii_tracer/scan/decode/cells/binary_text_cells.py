"""Binary cells that are text, as raw tables keep the messages of Kafka: weak and short values count in them, too."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pii_tracer.scan.hits import name_for_short

if TYPE_CHECKING:
    from pii_tracer.scan.hit_collector import Collector

_FRAME = re.compile(rb"\0.{4}(?=[\[{\"])", re.DOTALL)
"""What a schema registry puts before a message in JSON: a zero byte and the number of the schema
(https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format)."""
_LINES = dict.fromkeys(map(ord, "\t\n\r"), " ")


def search_message(cell: bytes, where: str, column: str | None, collector: Collector) -> None:
    """Search what a binary cell says as text for values that are not searched for in any bytes."""
    frame = _FRAME.match(cell)
    try:
        text = cell[frame.end() if frame else 0 :].decode()
    except UnicodeDecodeError:
        return
    if not text.translate(_LINES).isprintable():
        return
    found = collector.inner()
    found.search_file = None
    found.string(text, where, column, known=False)
    hits = found.hits()
    anywhere = {name for name, _ in collector.patterns.ended(cell, text=False)[0]} if hits else set[str]()
    for hit in hits:
        is_part = hit.weak and not collector.patterns.is_weak(hit.key_set)
        if (name := name_for_short(hit.key_set) if is_part else hit.key_set) not in anywhere:
            collector.add(name, hit.form, where, hit.column, hit.count)
