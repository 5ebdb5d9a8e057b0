"""Rows that a match finds and that speak of somebody else: deleting them would lose another person's data.

A family has one phone: such a value finds rows of people whom the source does not know. The other identifiers of the
row then differ. A key that the estate file declares may be another system's number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pii_tracer.model.datasets import Match
from planners.copies.person_rows import looked_at, rows_together, theirs
from planners.copies.scan_evidence import Contradicted
from planners.gaps.unexplained_short_numbers import are_keys, known_keys
from planners.locate.subject_survey import Survey

if TYPE_CHECKING:
    import pyarrow as pa

_TELLING_DIGITS = 7


def found_by_one_alone(table: pa.Table, match: Match, found: Survey) -> frozenset[Contradicted]:
    """Rows that one kind of identifier finds, and in which another one is filled with what the persons do not have.

    Where two kinds find a row, a third one that differs is a former value of the same person.
    """
    terms = [term for term in match.terms if not term.beside]
    origins = {term: found.key_sets[term.key_set].origin for term in terms}
    if len({*origins.values()}) < 2:
        return frozenset()
    known = {t: {bare(value) for _, value in found.key_sets[t.key_set].values} - {""} for t in terms}
    counts: Counter[tuple[str, str]] = Counter()
    for batch in rows_together(table, match, found.key_sets):
        for row in _matched(batch, match, found):
            hits = [t for t in terms if bare(row[t.label()]) in known[t]]
            by, told = {origins[t] for t in hits}, {t.label() for t in hits}
            other = {t.label() for t in terms if origins[t] not in by and bare(row[t.label()])} - told
            if len(by) == 1:
                counts.update((label, min(by)) for label in other)
    return frozenset(Contradicted(column, origin, rows) for (column, origin), rows in counts.items())


def strange(values: Collection[str], key_set: str, found: Survey) -> bool:
    """Whether a column that is declared as the key holds mostly values that are no keys of the source.

    An address, a UUID or a digest is the same one wherever it stands.
    """
    made = found.key_sets[key_set]
    coincides = found.coincide[made.origin, made.expression or "x"]
    return coincides and not found.keys.unseen and bool(values) and not are_keys(values, known_keys(found, key_set))


_NUMBER = re.compile(r"[+-]?\d+(?:\.0*)?")


def of_another_kind(values: Collection[str], key_set: str, found: Survey) -> bool:
    """Whether a column that is declared as the key holds no number, and each key of the source is one: it can find
    nobody, today or later.
    """
    known = known_keys(found, key_set)
    numbers = bool(known) and not found.keys.unseen and all(map(_NUMBER.fullmatch, known))
    return numbers and bool(values) and not any(_NUMBER.fullmatch(value.strip()) for value in values)


def _matched(batch: pa.RecordBatch, match: Match, found: Survey) -> Iterator[Mapping[str, str]]:
    """The texts of each row that the match finds, by label of the term; empty where there is none."""
    mine, looked = theirs(batch, match, found.key_sets), looked_at(batch, match)
    if mine is None or looked is None:
        return
    cells = {term.label(): texts.filter(mine).to_pylist() for term, texts in looked.items()}
    for row in zip(*cells.values(), strict=True):
        yield {label: text or "" for label, text in zip(cells, row, strict=True)}


def of_somebody_else(batches: Iterable[pa.RecordBatch], match: Match, found: Survey) -> frozenset[Contradicted]:
    """Rows that a declared key finds, with an identifier of somebody else of the source and none of the persons'."""
    import pyarrow as pa

    identifiers = [i.column for i in found.subject.identifiers]
    mine = {bare(value) for origin in identifiers for _, value in found.keys.base.get(origin, ())}
    others: set[str] | None = None
    keys = ", ".join(sorted({term.label() for term in match.terms}))
    counts: Counter[str] = Counter()
    for batch in batches:
        rows = theirs(batch, match, found.key_sets)
        if rows is None:
            continue
        texts = [name for name, kind in zip(batch.schema.names, batch.schema.types, strict=True) if _is_text(kind)]
        for row in pa.Table.from_batches([batch.filter(rows).select(texts)]).to_pylist():
            cells = {name: bare(text) for name, text in row.items() if text and _telling(text)}
            if not cells or not mine.isdisjoint(cells.values()):
                continue
            if others is None:
                others = {bare(v) for origin in identifiers for v in found.keys.others.get(origin, ())} - mine
            counts.update(name for name, text in cells.items() if text in others)
    return frozenset(Contradicted(column, keys, rows) for column, rows in counts.items())


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _telling(text: str) -> bool:
    """Whether a text can be an address or a number that a person has alone."""
    return "@" in text or sum(map(str.isdigit, text)) >= _TELLING_DIGITS


def bare(text: str) -> str:
    """A value without what is written in several ways: case, blanks, and the signs between digits of a phone."""
    kept = "@._-" if "@" in text else ""
    return "".join(sign for sign in text.casefold() if sign.isalnum() or sign in kept)
