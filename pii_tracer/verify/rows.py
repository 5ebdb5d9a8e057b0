"""Verification by rows, with code of its own: nothing is shared with the executors, and no key stands in SQL text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING

from pii_tracer.errors import ScanError
from pii_tracer.model import FieldAccess, KeySet, Match, MatchTerm
from pii_tracer.plan import Copy
from pii_tracer.verify.states import State, states
from pii_tracer.verify.verdict import Baseline, Bystanders, RowVerdict, StateBaseline, StateRows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_FLAG = "__pii_tracer_person"


class Verifier:
    """Reads copies through one Spark session. `keys` hold values: they go to Spark as rows, never as text."""

    def __init__(self, spark: SparkSession, keys: Iterable[KeySet]) -> None:
        self._spark = spark
        self._keys: Mapping[str, KeySet] = {k.name: k for k in keys}

    def rows(self, copy: Copy) -> RowVerdict:
        """Count the persons' rows in every state of a copy.

        Raises:
            ScanError: the copy has no match, or its current state cannot be read.
        """
        match = _match(copy)
        result = []
        for state in states(self._spark, copy):
            try:
                result.append(self._count(state, match))
            except ScanError:
                raise
            except Exception as error:  # Spark raises py4j and Java errors of many kinds for a state that is gone
                if state.kept:
                    raise ScanError(
                        f"the {state.name} state of copy {copy.id} cannot be read: {type(error).__name__}",
                        where=copy.table or copy.location,
                        todo="mend the table, or run `pii-tracer doctor`; without reading it nothing is proved",
                    ) from None
                reason = f"cannot be read any more: {type(error).__name__}"
                result.append(StateRows(state=state.name, rows=None, reason=reason))
        return RowVerdict(copy_id=copy.id, states=tuple(result))

    def baseline(self, copy: Copy) -> Baseline:
        """Count everybody and sum up the other people's rows: the current state, every branch and tag.

        Raises:
            ScanError: a state cannot be read, or the copy has no match.
        """
        match = _match(copy)
        result = []
        for state in states(self._spark, copy):
            if not state.kept:
                continue
            try:
                result.append(self._sum(state, match))
            except ScanError:
                raise
            except Exception as error:
                raise ScanError(
                    f"the {state.name} state of copy {copy.id} cannot be read: {type(error).__name__}",
                    where=copy.table or copy.location,
                    todo="mend the table before it is erased from",
                ) from None
        return Baseline(copy_id=copy.id, states=tuple(result))

    def _count(self, state: State, match: Match) -> StateRows:
        frame = state.load()
        terms = _present(frame, match)
        if state.kept and len(terms) != len(match.terms):
            raise _missing(state, match, terms)
        if not terms:
            reason = "none of the key columns is in this state"
            return StateRows(state=state.name, rows=None, reason=reason)
        flagged = self._flag(frame, terms)
        return StateRows(state=state.name, rows=flagged.where(f"`{_FLAG}`").count())

    def _sum(self, state: State, match: Match) -> StateBaseline:
        from pyspark.sql import functions as f

        frame = state.load()
        terms = _present(frame, match)
        if len(terms) != len(match.terms):
            raise _missing(state, match, terms)
        columns = sorted(name for name in frame.columns if not name.startswith("_hoodie_"))
        flagged = self._flag(frame, terms)
        other = f.when(~f.col(_FLAG), _row_hash(flagged, columns))
        row = flagged.agg(
            f.count(f.lit(1)).alias("total"),
            f.count_if(f.col(_FLAG)).alias("person"),
            f.coalesce(f.sum(other.cast("decimal(38,0)")), f.lit(0)).alias("sum"),
            f.coalesce(f.bit_xor(other), f.lit(0)).alias("xor"),
        ).collect()[0]
        return StateBaseline(
            state=state.name,
            rows_total=row["total"],
            rows_person=row["person"],
            checksum=f"{row['sum']}:{row['xor']}",
        )

    def _flag(self, frame: DataFrame, terms: tuple[MatchTerm, ...]) -> DataFrame:
        """The frame with one more column: whether the row is a person's."""
        from pyspark.sql import functions as f

        marks = []
        for number, term in enumerate(terms):
            key, mark = f"__pii_tracer_key_{number}", f"__pii_tracer_mark_{number}"
            values = sorted({value for _, value in self._key_set(term).values})
            keys = self._spark.createDataFrame([(value,) for value in values], f"`{key}` string")
            keys = keys.withColumn(mark, f.lit(True))
            frame = frame.join(f.broadcast(keys), _leaf(term) == f.col(key), "left").drop(key)
            marks.append(mark)
        flag = reduce(lambda a, b: a | b, (f.coalesce(f.col(mark), f.lit(False)) for mark in marks))
        return frame.withColumn(_FLAG, flag).drop(*marks)

    def _key_set(self, term: MatchTerm) -> KeySet:
        try:
            return self._keys[term.key_set]
        except KeyError:
            raise ScanError(f"there is no key set `{term.key_set}`", todo="make the plan again") from None


def compare(before: Baseline, after: Baseline) -> Bystanders:
    """What became of the other people's rows. A branch or tag that is gone counts with all its rows as lost."""
    now = {state.state: state for state in after.states}
    lost, equal, missing = 0, True, []
    for state in before.states:
        found = now.get(state.state)
        if found is None:
            missing.append(state.state)
            lost += state.rows_other
            equal = equal and not state.rows_other
            continue
        lost += max(0, state.rows_other - found.rows_other)
        equal = equal and found.rows_other == state.rows_other and found.checksum == state.checksum
    return Bystanders(copy_id=before.copy_id, lost=lost, equal=equal and not missing, missing=tuple(missing))


def _match(copy: Copy) -> Match:
    if copy.match is None or not copy.match.terms:
        raise ScanError(
            f"copy {copy.id} has no rows that could be told apart",
            where=copy.table or copy.location,
            todo="verify it by its bytes; a rebuilt copy is compared with its source by its own step",
        )
    return copy.match


def _present(frame: DataFrame, match: Match) -> tuple[MatchTerm, ...]:
    """Terms whose column this state has (an older state may lack it)."""
    names = {name.lower() for name in frame.columns}
    return tuple(term for term in match.terms if term.column.lower() in names)


def _missing(state: State, match: Match, present: tuple[MatchTerm, ...]) -> ScanError:
    return ScanError(
        f"a key column is missing in the {state.name} state",
        where=", ".join(sorted({t.column for t in match.terms} - {t.column for t in present})),
        todo="the plan is for another schema: make it again",
    )


def _leaf(term: MatchTerm) -> Column:
    """The compared value as text."""
    from pyspark.sql import functions as f

    leaf = f.col("`" + term.column.replace("`", "``") + "`")
    for access in term.access:
        if isinstance(access, FieldAccess):
            leaf = leaf.getField(access.name)
        else:
            if any("'" in part for part in access.path):  # Spark's JSON paths cannot name it: it would match nothing
                raise ScanError("a JSON member with a quote in its name cannot be compared", where=term.label())
            path = "$" + "".join(f"['{part}']" for part in access.path)
            leaf = f.get_json_object(leaf, path)
    return leaf.cast("string")


def _row_hash(frame: DataFrame, columns: list[str]) -> Column:
    """64 bits over all columns and over which of them are NULL (the hash itself steps over NULLs).

    Maps have no hash in Spark, so a column with a map inside goes in as JSON.
    """
    from pyspark.sql import functions as f

    kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    parts, nulls = [], []
    for name in columns:
        column = f.col("`" + name.replace("`", "``") + "`")
        parts.append(f.to_json(column) if "map<" in kinds[name] else column)
        nulls.append(f.when(column.isNull(), f.lit("1")).otherwise(f.lit("0")))
    return f.xxhash64(*parts, f.concat(*nulls))
