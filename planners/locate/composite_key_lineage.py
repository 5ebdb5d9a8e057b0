"""A key of several columns along the lineage: it is where all of its columns are, and nowhere else.

Each column is followed by itself. User 17 without the tenant is somebody in every tenant. So a statement that leaves a
column of the key out, puts an expression around one, or fills one column with two of them, loses the whole key. Whether
the columns of a row are of one person is decided as for all identifiers: where a statement joins persons with others
(`planners.locate.sql.joins`), its rows are nobody's to delete.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product

from sqlglot import exp

from pii_tracer.config.subjects import Subject
from pii_tracer.model.datasets import Access, Column
from pii_tracer.model.number_keys import EXACT
from planners.locate.identifier_traces import ColumnCarriage, Trace
from planners.locate.sql.column_expressions import shown
from planners.locate.sql.column_types import is_number
from planners.locate.sql.relation_rows import PersonKeys
from planners.locate.sql.spark_functions import INPUT, is_plain, parse
from planners.locate.sql.whole_numbers import NotComputable

Place = tuple[str, Trace]
"""A column, and what stands in it."""

_LETTER = re.compile(r"[^\W\d_]")
_MOST = 16
"""Ways to read one key in a row that has its columns several times: more are not looked at."""


def whole_keys(columns: dict[str, ColumnCarriage], key: Sequence[str]) -> dict[str, ColumnCarriage]:
    """What a statement brings, where a key of several columns that is not whole counts as lost.

    key: the origins of its columns; empty for a key of one.
    """
    found = {trace.origin for column in columns.values() for trace in _usable(column, key)}
    if not any(trace.origin in key for column in columns.values() for trace in column.traces):
        return columns
    whole = found.issuperset(key)
    return {name: _kept(column, key, whole=whole) for name, column in columns.items()}


def _usable(column: ColumnCarriage, key: Collection[str]) -> list[Trace]:
    """The columns of the key that stand in a column as they are, each at a place of its own."""
    there: dict[object, set[str]] = defaultdict(set)
    for trace in column.traces:
        if trace.origin in key:
            there[trace.access].add(trace.origin)
    return [t for t in column.traces if t.origin in key and len(there[t.access]) == 1 and is_plain(t.expression)]


def _kept(column: ColumnCarriage, key: Collection[str], *, whole: bool) -> ColumnCarriage:
    kept = set(_usable(column, key)) if whole else set()
    gone = {t for t in column.traces if t.origin in key and t not in kept}
    if not gone:
        return column
    lost = frozenset(t.origin for t in gone)
    mixed = column.mixed or any(t.mixed or t.mention for t in gone)
    return replace(column, traces=column.traces - gone, lost=column.lost | lost, mixed=mixed)


def person_keys(subject: Subject) -> PersonKeys:
    """What tells a person's rows: the key, or all columns of it together, and keys of rows."""
    if subject.several_columns:
        return PersonKeys(subject.row_keys, frozenset(subject.several_columns))
    return PersonKeys(frozenset({subject.key, *subject.row_keys}))


def said(term: Place) -> str:
    """`column = expression`, for people; of a key of several columns all of them."""
    name, trace = term
    if trace.beside:
        return " and ".join((name, *(column for column, _ in trace.beside))) + f" = {trace.origin}"
    return f"{name} = {shown(trace.expression, trace.origin)}"


def ways_of(term: Place) -> tuple[tuple[str, tuple[Access, ...]], ...]:
    """The columns that a term looks at, with the ways into them."""
    name, trace = term
    return tuple((column, one.access) for column, one in ((name, trace), *trace.beside))


def is_several(terms: Iterable[Place]) -> bool:
    """Whether a term looks at several columns together."""
    return any(trace.beside for _, trace in terms)


def lacking(columns: Mapping[str, ColumnCarriage], key: Sequence[str]) -> tuple[str, ...]:
    """The columns of the key that do not come, where another one does; none where no column does."""
    come = {origin for column in columns.values() for origin in column.lost | {t.origin for t in column.traces}}
    return tuple(origin for origin in key if origin not in come) if come.intersection(key) else ()


def whole_terms(places: Sequence[Place], name: str, key: Sequence[str]) -> Iterator[Place]:
    """Every way to read the key out of a row: its first column, with the others beside it.

    places: what stands in the row, as can be found again. name: what the whole key is called.
    """
    of_each = [[place for place in places if place[1].origin == origin] for origin in key]
    for (column, first), *others in islice(product(*of_each), _MOST):
        traces = (first, *(trace for _, trace in others))
        yield (
            column,
            Trace(
                origin=name,
                access=first.access,
                expression=together([trace.expression for trace in traces]),
                mixed=any(trace.mixed for trace in traces),
                partial=any(trace.partial for trace in traces),
                beside=tuple(others),
            ),
        )


_APART = "; "
"""Between the expressions over the columns of a key, which are plain: none of them holds this."""


def together(expressions: Sequence[str]) -> str:
    """What was done to a key of several columns, as one text; as it stands where nothing was done to any."""
    return INPUT if all(expression == INPUT for expression in expressions) else _APART.join(expressions)


def each_of(expression: str, number: int) -> list[str]:
    """The expressions over each of so many columns, from `together`."""
    return [INPUT] * number if expression == INPUT else expression.split(_APART)


def shared_values(
    columns: Mapping[str, ColumnCarriage], names: Collection[str], source: Iterable[Column], subject: Subject
) -> set[str]:
    """Columns that hold an identifier in several forms, of which one person's may equal another's in another form.

    After `id UNION id + 1`, 11 is person 11 and person 10; in `coalesce(order_id, user_id)` it is an order and a
    person. source: the columns of the subject's table, with types.
    """
    keys = {subject.key, *subject.row_keys}
    kinds = {column.name.lower(): column.type.lower() for column in source}
    found: set[str] = set()
    for name in names:
        forms: dict[tuple[str, tuple[Access, ...], str], set[str]] = defaultdict(set)
        for trace in columns[name].traces if name in columns else ():
            for among, form in _forms(trace.expression, kinds.get(trace.origin.lower(), "")):
                among_what, of = ("", trace.origin) if trace.origin in keys else (trace.origin, "")
                forms[among_what, trace.access, among].add(f"{of} {form}")
        found |= {name for told in forms.values() if len(told) > 1}
    return found


def _forms(expression: str, kind: str) -> Iterator[tuple[str, str]]:
    """What is done to an identifier, but for spelling, and among which values one of it may equal another's.

    Cryptographic hashes equal only hashes of their kind. What has letters beside the identifier equals no number.
    """
    try:
        node = _unspelled(parse(expression))
    except NotComputable:
        yield from ((among, expression) for among in (_PLAIN, _LETTERED))
        return
    form = _written(node)
    if isinstance(node, exp.MD5 | exp.SHA | exp.SHA2):
        yield f"{node.key} {node.text('length')}", form
        return
    lettered = any(isinstance(part, exp.Literal) and _LETTER.search(part.name) for part in _joined(node))
    if not lettered:
        yield _PLAIN, form
    if lettered or not (is_number(kind) and kind not in EXACT and isinstance(node, _OF_NUMBERS)):
        yield _LETTERED, form


_PLAIN, _LETTERED = "plain", "lettered"
_OF_NUMBERS = (exp.Column, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
"""What makes numbers of numbers."""


def _unspelled(node: exp.Expression) -> exp.Expression:
    """Without what only spells a value in another way."""
    while isinstance(node, exp.Cast | exp.Paren | exp.Lower | exp.Upper | exp.Trim) and not node.expression:
        node = node.this
    return node


def _joined(node: exp.Expression) -> list[exp.Expression]:
    """The parts that a text is put together from; none of another value."""
    if type(node) is exp.Concat:  # CONCAT_WS is derived from it
        parts = node.expressions
    elif isinstance(node, exp.DPipe):
        parts = [node.this, node.expression]
    else:
        return []
    return [inner for part in parts for inner in _joined(_unspelled(part)) or [_unspelled(part)]]


def _written(node: exp.Expression) -> str:
    """One text for all spellings of a form."""
    if isinstance(node, exp.MD5 | exp.SHA | exp.SHA2):
        return f"{node.key}({_written(_unspelled(node.this))})"
    return " || ".join(map(_written, _joined(node))) or node.sql("spark")
