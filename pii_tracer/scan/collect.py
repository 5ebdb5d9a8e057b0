"""Collects the hits of one file while decoders feed it text, numbers, bounds and raw bytes. Keeps no value."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from pii_tracer.scan.forms import Patterns, Term
from pii_tracer.scan.hits import Form, Hit

WINDOW = 16 * 1024 * 1024
_NAMED = re.compile(rb"([\w.`]{1,128}?)`?(?:#\d+L?)?\s*=\s*\"?'?\Z")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_JSON_DEPTH = 40


class Collector:
    """Hits and unread reasons of one file."""

    def __init__(self, patterns: Patterns) -> None:
        self.patterns = patterns
        self._counts: Counter[tuple[str, Form, str, str | None]] = Counter()
        self._reasons: dict[str, None] = {}

    def add(self, key_set: str, form: Form, where: str, column: str | None, count: int = 1) -> None:
        """Count a hit. The column's label may come from data: a value in it is masked."""
        label = self.patterns.mask(column) if column else None
        self._counts[(key_set, form, where, label)] += count

    def unread(self, reason: str) -> None:
        """Note that a part of the file could not be searched. Never with content of the file in the reason."""
        self._reasons[reason] = None

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the file is not wholly searched."""
        return tuple(self._reasons)

    def hits(self) -> tuple[Hit, ...]:
        """The hits, sorted."""
        items = sorted(self._counts.items(), key=lambda item: (item[0][0], item[0][2], item[0][3] or "", item[0][1]))
        return tuple(
            Hit(key_set=name, form=form, where=where, column=column, weak=self.patterns.is_weak(name), count=count)
            for (name, form, where, column), count in items
        )

    def raw(self, data: bytes | memoryview, where: str, column: str | None = None) -> None:
        """Search any bytes for strong values, in windows that overlap by the longest pattern."""
        view, position = memoryview(data), 0
        while position < len(view):
            window = bytes(view[position : position + WINDOW + self.patterns.overlap])
            for (name, form), count in self.patterns.raw(window).items():
                self.add(name, form, where, column, count)
            position += WINDOW

    def terms(self, text: bytes, *, tiny: bool = False) -> Counter[Term]:
        """What stands in a piece of text, weak values included."""
        found = self.patterns.raw(text)
        found.update((m.key_set, m.form) for m in self.patterns.bounded(text, tiny=tiny))
        return found

    def text(self, text: str | bytes, where: str, column: str | None = None, *, tiny: bool = False) -> None:
        """Search text. A weak number behind `name=` is taken to belong to that column when no other is known."""
        data = _encode(text)
        for (name, form), count in self.patterns.raw(data).items():
            self.add(name, form, where, column, count)
        for match in self.patterns.bounded(data, tiny=tiny):
            owner = column
            if owner is None and (named := _NAMED.search(data[max(0, match.start - 160) : match.start])):
                owner = named.group(1).decode("utf-8", "replace").strip("`")
            self.add(match.key_set, match.form, where, owner)

    def number(self, value: int | float | Decimal, where: str, column: str | None) -> None:
        """Compare a typed number with the key values that are whole numbers."""
        if isinstance(value, float) and not (math.isfinite(value) and value.is_integer()):
            return
        if isinstance(value, Decimal) and not (value.is_finite() and value == value.to_integral_value()):
            return
        for name in self.patterns.ints.get(int(value), ()):
            self.add(name, Form.NUMBER, where, column)

    def string(self, value: str, where: str, column: str | None) -> None:
        """Search a text cell: as JSON where it holds JSON, so that hits get the member's name, and as text."""
        found = self.terms(value.encode("utf-8", "surrogateescape"))
        for name in self.patterns.cells.get(value.strip(), ()):
            if all(name != seen for seen, _ in found):
                found[(name, Form.TEXT)] += 1
        if found or self.patterns.has_tiny:
            inner = Collector(self.patterns)
            for label, leaf in json_leaves(value):
                inner.leaf(leaf, where, f"{column or ''}.{label}" if label != "$" else column)
            self.merge(inner)
            for (name, form), count in found.items():
                if name not in inner.seen:
                    self.add(name, form, where, column, count)

    def leaf(self, value: Any, where: str, column: str | None) -> None:
        """One scalar of any type."""
        if value is None or isinstance(value, bool):
            return
        if isinstance(value, str):
            self.string(value, where, column)
        elif isinstance(value, (int, float, Decimal)):
            self.number(value, where, column)
        elif isinstance(value, (bytes, bytearray, memoryview)):
            self.binary(bytes(value), where, column)
        else:
            self.string(str(value), where, column)

    def binary(self, value: bytes, where: str, column: str | None) -> None:
        """A binary cell: strong values anywhere in it, weak ones only when it is nothing but the text."""
        self.raw(value, where, column)
        try:
            text = value.decode()
        except UnicodeDecodeError:
            return
        for name in self.patterns.cells.get(text, ()):
            if self.patterns.is_weak(name):
                self.add(name, Form.TEXT, where, column)

    def cell(self, value: Any, where: str, column: str | None) -> None:
        """A value of any shape: structs, maps and lists are walked; map keys count as data."""
        if isinstance(value, dict):
            for key, item in value.items():
                self.leaf(key, where, f"{column}.key" if column else None)
                self.cell(item, where, f"{column}.{member(key)}" if column else member(key))
        elif isinstance(value, (list, tuple, set, frozenset)):
            for item in value:
                self.cell(item, where, column)
        else:
            self.leaf(value, where, column)

    def bound(self, value: Any, where: str, column: str | None) -> None:
        """A minimum or maximum, which a format may have cut."""
        self.leaf(value, where, column)
        if isinstance(value, str):
            for name in self.patterns.prefixes(value):
                self.add(name, Form.PREFIX, where, column)

    @property
    def seen(self) -> frozenset[str]:
        """Key sets with a hit."""
        return frozenset(key[0] for key in self._counts)

    def merge(self, other: Collector, *, unless_seen_in: Collector | None = None) -> None:
        """Take over another's hits; those of key sets that a third has seen already are left out."""
        known = unless_seen_in.seen if unless_seen_in else frozenset()
        self._counts.update({key: count for key, count in other._counts.items() if key[0] not in known})
        self._reasons.update(other._reasons)


def _encode(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")


def json_leaves(text: str) -> Iterator[tuple[str, Any]]:
    """Members of a text that is a JSON object or array, labelled `$.member`; nothing when it is not JSON.

    Whole numbers keep all their digits; others come as Decimal.
    """
    if text.lstrip()[:1] not in ("{", "["):
        return
    try:
        parsed = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        return
    yield from _leaves(parsed, "$", 0)


def member(key: Any) -> str:
    """A member's name for a label. A key that is no plain name may be somebody's data, so it is not repeated."""
    return key if isinstance(key, str) and _PLAIN.match(key) else "*"


def _leaves(value: Any, label: str, depth: int) -> Iterator[tuple[str, Any]]:
    if depth > _JSON_DEPTH:
        yield label, json.dumps(value, default=str)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield f"{label}.(key)", key
            yield from _leaves(item, f"{label}.{member(key)}", depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, label, depth + 1)
    else:
        yield label, value
