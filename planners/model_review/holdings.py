"""What a table holds of persons, and whether a key finds it: one side of a review, dataset by dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from pii_tracer.lineage.graph.edges import Edge, Subtype
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Carries, DatasetId
from pii_tracer.model.key_location import Standing
from planners.locate.composite_key_lineage import ways_of
from planners.locate.edge_effects import Anonymisers, value_edges
from planners.locate.identifier_traces import ColumnCarriage
from planners.locate.key_location import Carriage, follow
from planners.locate.match_completeness import usable
from planners.locate.sql.spark_functions import parse
from planners.locate.sql.whole_numbers import NotComputable
from planners.locate.tag_propagation import RECORD_KEY
from planners.model_review.subject_selection import Followed

KEYED = frozenset({Carries.KEY, Carries.COMPUTED_KEY, Carries.BRIDGE})
_RANDOM = frozenset({"rand", "random", "randn", "uuid", "newid", "gen_random_uuid", "generate_uuid", "uuid_string",
                     "shuffle", "monotonically_increasing_id", "randstr", "uniform"})  # fmt: skip
_MOMENT = frozenset({"currenttimestamp", "currentdate", "currenttime", "now", "unix_timestamp", "getdate", "sysdate"})
_CUTS = frozenset({"substring", "left", "right", "substr", "substring_index", "substringindex", "split_part",
                   "regexp_extract", "regexpextract"})  # fmt: skip
_WHOLE = 36
_MASKS = frozenset({"mask", "mask_first_n", "mask_last_n", "mask_hash"})
_SALTED = "it is also computed from another column (such as a salt) whose value for a person is not known"


@dataclass(frozen=True)
class Holding:
    """A table's part of one kind of person, by column. hidden: columns that cannot be computed again, and why.

    plain: identifiers that stand there readable. hashed: masked, and computable. aggregated: kept by an aggregate, such
    as `collect_list(email)`. keys: columns that find the rows. mixed: where somebody else can stand than the row's own
    person.
    """

    carries: Carries
    plain: frozenset[str]
    hashed: frozenset[str]
    hidden: Mapping[str, str]
    aggregated: frozenset[str]
    keys: tuple[str, ...]
    mixed: frozenset[str]
    path: tuple[DatasetId, ...]
    reason: str

    @property
    def keyed(self) -> bool:
        return self.carries in KEYED

    @property
    def identifiers(self) -> frozenset[str]:
        """Every column into which an identifier goes."""
        return self.plain | self.hashed | self.hidden.keys() | self.aggregated

    @property
    def personal(self) -> bool:
        """Whether rows of persons are in it, by lineage."""
        return self.carries not in (Carries.NONE, Carries.AGGREGATE) or bool(self.identifiers)


def holdings(graph: LineageGraph, followed: Followed, anonymisers: Anonymisers) -> dict[DatasetId, Holding]:
    """What each dataset downstream of a subject holds; its own tables included."""
    found = follow(graph, followed.source, followed.subject, anonymisers, None, followed.further, followed.spots)
    return {dataset: _holding(graph, dataset, found) for dataset in found}


def _holding(graph: LineageGraph, dataset: DatasetId, found: Mapping[DatasetId, Carriage]) -> Holding:
    carriage = found[dataset]
    edges = value_edges(graph.edges_into(dataset))
    plain, hashed = _standing(carriage, Standing.IDENTIFYING), _standing(carriage, Standing.PSEUDONYMOUS)
    aggregated = frozenset(e.target.column for e in edges if _keeps_in_aggregate(e, found.get(e.source.dataset)))
    hidden = {}
    for name, column in carriage.columns.items():
        why = None if name in aggregated else _why_hidden(name, column, edges)
        if why is not None and not (why == _SALTED and name in plain):  # put together, and readable
            hidden[name] = why
    keys: tuple[str, ...] = ()
    carries = carriage.carries
    if carries in KEYED:
        ways = dict.fromkeys(name for term in carriage.terms for name, _ in ways_of(term))
        keys = tuple(name for name in ways if not _is_shortened(carriage.columns.get(name)))
        if ways and not keys:  # it finds other persons' rows, too
            carries = Carries.IDENTIFIERS if plain - hidden.keys() else Carries.UNKNOWN
    apart = frozenset(hidden) | aggregated
    return Holding(
        carries,
        plain - apart,
        hashed - plain - apart,
        hidden,
        aggregated,
        keys,
        frozenset(carriage.mixed),
        carriage.hops,
        carriage.reason,
    )


def _is_shortened(column: ColumnCarriage | None) -> bool:
    """Whether a key is cut to a number of letters in every row, so that other persons have the same."""
    traces = column.traces if column else ()
    return bool(traces) and all(_shortens(trace.expression) for trace in traces)


@lru_cache(maxsize=20_000)
def _shortens(expression: str) -> bool:
    """Whether the whole key goes into the value nowhere, and a part of it does. What is only asked for is no value."""
    try:
        tree = parse(expression)
    except NotComputable:
        return False
    values = [column for column in tree.find_all(exp.Column) if column.find_ancestor(exp.Predicate) is None]
    return bool(values) and all(_is_cut(column) for column in values)


def _is_cut(column: exp.Column) -> bool:
    above = column.parent
    while above is not None:
        if isinstance(above, exp.Left | exp.Right) and not _is_long(above.expression):
            return True
        length = above.args.get("length") if isinstance(above, exp.Substring) else None
        if length is not None and not _is_long(length):
            return True
        above = above.parent
    return False


def _is_long(length: exp.Expression) -> bool:
    """Whether so many letters are a whole key: a UUID has 36."""
    return isinstance(length, exp.Literal) and length.is_int and int(length.this) >= _WHOLE


def _standing(carriage: Carriage, standing: Standing) -> frozenset[str]:
    return frozenset(
        name
        for name, witnesses in carriage.tags.items()
        if any(w.tag.standing is standing and w.tag.category != RECORD_KEY for w in witnesses)
    )


def _keeps_in_aggregate(edge: Edge, source: Carriage | None) -> bool:
    """Whether an aggregate keeps an identifier's value; hashes of it count, counts do not."""
    if edge.subtype is not Subtype.AGGREGATION or edge.masking or source is None:
        return False
    readable = _standing(source, Standing.IDENTIFYING) | _standing(source, Standing.PSEUDONYMOUS)
    return edge.source.column in readable


def _why_hidden(name: str, column: ColumnCarriage, edges: tuple[Edge, ...]) -> str | None:
    """Why the value cannot be computed again, or stands for several people; None where it can."""
    lost = bool(column.lost) or any(not usable(trace) for trace in column.traces)
    texts = sorted({e.expression for e in edges if e.target.column.lower() == name.lower() and e.expression})
    if lost:
        return next(
            (why for text in texts if (why := _cause(text, known=False))),
            "no step can compute its function",
        )
    cut = [why for trace in column.traces if (why := _cause(trace.expression, known=True))]
    return cut[0] if cut and len(cut) == len(column.traces) else None


@lru_cache(maxsize=20_000)
def _cause(expression: str, *, known: bool) -> str | None:
    """What in an expression keeps its value from being computed again. known: its functions are, only cuts count."""
    try:
        tree = parse(expression)
    except NotComputable:
        return None
    names = {_name(node) for node in tree.find_all(exp.Func)}
    cut = names & _CUTS
    if known:
        cuts = f"it is truncated ({', '.join(sorted(cut))}), so other persons can have the same value"
        return cuts if cut else None
    if names & _RANDOM:
        return "it uses a random value"
    if names & _MOMENT:
        return "it depends on the moment at which it runs"
    if names & _MASKS:
        return "it is masked, and several persons have the same masked value"
    if len({(column.table, column.name) for column in tree.find_all(exp.Column)}) > 1:
        return _SALTED
    if cut:
        return f"it is truncated ({', '.join(sorted(cut))})"
    unknown = sorted(node.name.lower() for node in tree.find_all(exp.Anonymous))
    return f"the function `{unknown[0]}` is not known" if unknown else None


def _name(node: exp.Func) -> str:
    return str(node.name if isinstance(node, exp.Anonymous) else node.key).lower()
