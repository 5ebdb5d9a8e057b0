"""Verification by rows, with code of its own: nothing is shared with the executors, and no key stands in SQL text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial, reduce
from typing import TYPE_CHECKING

from pii_tracer.common.plurals import counted
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.model.datasets import (
    KeySet,
    Match,
    MatchTerm,
)
from pii_tracer.model.errors import ScanError
from pii_tracer.model.number_keys import spelled
from pii_tracer.model.plan import Copy, Mask, Mention
from pii_tracer.verify.formats.base import State
from pii_tracer.verify.key_texts import element_text, leaf, named, present
from pii_tracer.verify.list_elements import flagged as flagged_elements
from pii_tracer.verify.list_elements import without
from pii_tracer.verify.row_hashes import WAY, is_same_way, row_hash
from pii_tracer.verify.table_states import states
from pii_tracer.verify.verdicts import (
    Baseline,
    Bystanders,
    RowVerdict,
    StateBaseline,
    StateRows,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_FLAG = "__pii_tracer_person"
_NO_ZSTD = "native zStandard library not available"
"""Hadoop's ZStandardCodec, as packages of PySpark have it."""


class Verifier:
    """Reads copies through one Spark session. `keys` hold values: they go to Spark as rows, never as text."""

    def __init__(self, spark: SparkSession, keys: Iterable[KeySet]) -> None:
        self._spark = spark
        self._keys: Mapping[str, KeySet] = {k.name: k for k in keys}
        self._spelled: dict[str, list[str]] = {}
        self._frames: dict[str, DataFrame] = {}

    def reads_through(self, spark: SparkSession) -> bool:
        """Whether this is its session."""
        return spark is self._spark

    def rows(self, copy: Copy, before: Baseline | None = None) -> RowVerdict:
        """Count the rows with the persons in every state of a copy; where a hold keeps columns, those that hold more.

        before: the copy's baseline, where there is one: all key columns were there then.

        Raises:
            ScanError: the copy has no match, or its current state cannot be read.
        """
        match = _wanted(copy)
        result = []
        for state in self._states(copy):
            try:
                result.append(self._count(state, match, copy.mask, before))
            except ScanError:
                raise
            except Exception as error:  # Spark raises py4j and Java errors of many kinds for a state that is gone
                if state.kept:
                    todo = "repair the table, or run `pii-tracer doctor`, because nothing is proved without its rows"
                    raise _unreadable(state, copy, error, todo) from None
                reason = f"cannot be read any more: {type(error).__name__}"
                result.append(StateRows(state=state.name, rows=None, reason=reason))
        return RowVerdict(copy_id=copy.id, states=tuple(result))

    def baseline(self, copy: Copy, before: Baseline | None = None) -> Baseline:
        """Count everybody and sum up the other people's rows: the current state, every branch and tag.

        before: as for `rows`.

        Raises:
            ScanError: a state cannot be read, the copy has no match, or rows of which a hold keeps some columns would
                be nobody's without the others.
        """
        _wanted(copy)
        result = []
        for state in self._states(copy):
            if not state.kept:
                continue
            try:
                result.append(self._sum(state, copy, before))
            except ScanError:
                raise
            except Exception as error:
                raise _unreadable(state, copy, error, "repair the table before the erasure") from None
        return Baseline(copy_id=copy.id, states=tuple(result))

    def _states(self, copy: Copy) -> Iterator[State]:
        try:
            yield from states(self._spark, copy)
        except ScanError:
            raise
        except Exception as error:  # as for states: the engines' errors are of many kinds, and may quote
            raise ScanError(
                f"copy {copy.id} cannot be read: {type(error).__name__}",
                where=copy.table or copy.location,
                todo="check whether the copy still exists, with this name and its metadata. If not, plan again",
            ) from None

    def _count(self, state: State, match: Match, mask: Mask | None, before: Baseline | None) -> StateRows:
        frame = state.load()
        terms = present(frame, match)
        if state.kept and len(terms) != len(match.terms):
            if not _may_lack(state, frame, before):
                raise _missing(state, match, terms)
            if not terms:
                return StateRows(state=state.name, rows=0)
        if not terms:
            reason = "none of the key columns is in this state"
            return StateRows(state=state.name, rows=None, reason=reason)
        flagged = self._flag(state, frame, terms).where(f"`{_FLAG}`")
        if mask is None:
            return StateRows(state=state.name, rows=int(flagged.count()))
        return self._more_than_held(state, flagged, mask)

    def _more_than_held(self, state: State, rows: DataFrame, mask: Mask) -> StateRows:
        from pyspark.sql import functions as f

        names = {name.lower() for name in rows.columns}
        there = [name for name in mask.columns if name.lower() in names]
        if state.kept and len(there) != len(mask.columns):
            raise ScanError(
                f"a column that was to become NULL is missing in the {state.name} state",
                where=", ".join(sorted(set(mask.columns) - set(there))),
                todo="plan again, because the schema changed",
            )
        more = reduce(lambda a, b: a | b, (named(name).isNotNull() for name in there), f.lit(False))
        row = rows.agg(f.count(f.lit(1)).alias("held"), f.count_if(more).alias("more")).collect()[0]
        return StateRows(state=state.name, rows=row["more"], held=row["held"])

    def _sum(self, state: State, copy: Copy, before: Baseline | None) -> StateBaseline:
        from pyspark.sql import functions as f

        match, mask, frame = _wanted(copy), copy.mask, state.load()
        there = present(frame, match)
        if len(there) != len(match.terms) and not _may_lack(state, frame, before):
            raise _missing(state, match, there)
        terms = present(frame, copy.match) if copy.match else ()
        for mention in copy.mentions:
            frame = self._cleared(state, frame, mention)
        columns = sorted(name for name in frame.columns if not name.startswith("_hoodie_"))
        _refuse_other_way(state, frame, before)
        kept = {name.lower() for name in mask.kept} if mask else set()
        flagged = self._flag(state, frame, terms)
        lasting = self._flag(state, frame, tuple(t for t in terms if t.column.lower() in kept)) if mask else None
        row = flagged.agg(
            f.count(f.lit(1)).alias("total"),
            f.count_if(f.col(_FLAG)).alias("person"),
            *_sums(f.when(~f.col(_FLAG), row_hash(flagged, columns, state.loose))),
        ).collect()[0]
        held = None
        if lasting is not None:
            held = self._held(state, lasting, [c for c in columns if c.lower() in kept], row["person"])
        return StateBaseline(
            state=state.name,
            rows_total=row["total"],
            rows_person=row["person"],
            checksum=f"{row['sum']}:{row['xor']}",
            held=held,
            way=WAY,
        )

    def _cleared(self, state: State, frame: DataFrame, mention: Mention) -> DataFrame:
        """The rows as they shall be: with NULL where a column names the person in somebody else's row, and without
        the person's elements in lists and maps."""
        from pyspark.sql import functions as f

        terms = present(frame, mention.match)
        flagged = self._flag(state, frame, terms)
        gone = {name.lower() for name in mention.mask.columns}
        columns = [
            f.when(~f.col(_FLAG), named(name)).alias(name) if name.lower() in gone else named(name)
            for name in frame.columns
        ]
        cleared = flagged.select(*columns)
        for term in terms:
            if term.within is not None:
                text = partial(element_text, term, state.written)
                cleared = without(self._spark, cleared, term, text, self._texts(term))
        return cleared

    def _held(self, state: State, lasting: DataFrame, kept: list[str], rows: int) -> str:
        """The sum over what stays of the persons' rows, which must be found by what stays of them."""
        from pyspark.sql import functions as f

        mine = lasting.where(f"`{_FLAG}`")
        row = mine.agg(f.count(f.lit(1)).alias("rows"), *_sums(row_hash(mine, kept, state.loose))).collect()[0]
        if row["rows"] != rows:
            raise ScanError(
                f"{counted(rows - row['rows'], 'row')} in the {state.name} state can be found only by columns that "
                "would become NULL: nobody would then know whose the held values are",
                todo="add a column that finds these rows to the hold, then plan again",
            )
        return f"{row['sum']}:{row['xor']}"

    def _flag(self, state: State, frame: DataFrame, terms: tuple[MatchTerm, ...]) -> DataFrame:
        """The frame with one more column: whether the row is a person's."""
        from pyspark.sql import functions as f

        marks = []
        # a key that is itself a text with a fraction is compared as it is, too
        ways = [(term, written) for term in terms for written in dict.fromkeys((state.written, False))]
        for number, (term, written) in enumerate(ways):
            key, mark = f"__pii_tracer_key_{number}", f"__pii_tracer_mark_{number}"
            marks.append(mark)
            if term.within is not None:
                text = partial(element_text, term, written)
                frame = flagged_elements(self._spark, frame, term, text, self._texts(term), mark)
                continue
            keys = self._frame(term).select(f.col("k").alias(key), f.lit(True).alias(mark))
            frame = frame.join(f.broadcast(keys), leaf(term, written) == f.col(key), "left").drop(key)
        flag = reduce(lambda a, b: a | b, (f.coalesce(f.col(mark), f.lit(False)) for mark in marks), f.lit(False))
        return frame.withColumn(_FLAG, flag).drop(*marks)

    def _texts(self, term: MatchTerm) -> list[str]:
        if term.key_set not in self._spelled:
            self._spelled[term.key_set] = sorted(spelled(self._key_set(term)))
        return self._spelled[term.key_set]

    def _frame(self, term: MatchTerm) -> DataFrame:
        """The texts of a term's key set, in the column `k`."""
        if term.key_set not in self._frames:
            rows = [(value,) for value in self._texts(term)]
            self._frames[term.key_set] = frame_of_rows(self._spark, rows, "k string")
        return self._frames[term.key_set]

    def _key_set(self, term: MatchTerm) -> KeySet:
        try:
            return self._keys[term.key_set]
        except KeyError:
            raise ScanError(f"the plan has no key set `{term.key_set}`", todo="make the plan again") from None


def compare(before: Baseline, after: Baseline) -> Bystanders:
    """What became of the other people's rows. A branch or tag that is gone counts with all its rows as lost.

    Where a hold keeps columns, the persons' own rows and what is held in them count as well.
    """
    now = {state.state: state for state in after.states}
    lost, added, equal, missing = 0, 0, True, []
    for state in before.states:
        found = now.get(state.state)
        if found is None:
            missing.append(state.state)
            lost += state.rows_other
            equal = equal and not state.rows_other
            continue
        lost += max(0, state.rows_other - found.rows_other)
        added += max(0, found.rows_other - state.rows_other)
        if state.held is not None:
            lost += max(0, state.rows_person - found.rows_person)
            equal = equal and (found.rows_person, found.held) == (state.rows_person, state.held)
        equal = equal and found.rows_other == state.rows_other and found.checksum == state.checksum
    return Bystanders(
        copy_id=before.copy_id, lost=lost, equal=equal and not missing, missing=tuple(missing), added=added
    )


def _wanted(copy: Copy) -> Match:
    """Wherever a row can name the persons."""
    if copy.places is None or not copy.places.terms:
        raise ScanError(
            f"copy {copy.id} has no rows that could be identified",
            where=copy.table or copy.location,
            todo="verify the copy by its bytes (the step of a rebuilt copy compares it with its source)",
        )
    return copy.places


def _unreadable(state: State, copy: Copy, error: Exception, todo: str) -> ScanError:
    """Of an error that may quote the table's cells: its kind, and what it is known to mean."""
    why = type(error).__name__
    if _NO_ZSTD in str(error):
        why = "this Spark has no Hadoop library for zstd text files"
        todo = "use a Hadoop with its native library, or ask the owner to write the files as .gz; then plan again"
    return ScanError(
        f"the {state.name} state of copy {copy.id} cannot be read: {why}", where=copy.table or copy.location, todo=todo
    )


def _may_lack(state: State, frame: DataFrame, before: Baseline | None) -> bool:
    """Whether key columns that are not there say no more than that no row has a key in them.

    Of files without a schema that is so where the baseline had the columns; a folder without any rows has no schema.
    """
    return state.loose and (before is not None or frame.isEmpty())


def _refuse_other_way(state: State, frame: DataFrame, before: Baseline | None) -> None:
    """Sums that were made in another way say nothing of these rows.

    Raises:
        ScanError: the baseline has such a sum of this state.
    """
    ways = [told.way for told in before.states if told.state == state.name] if before else []
    if not all(is_same_way(frame, state.loose, way) for way in ways):
        raise ScanError(
            f"the baseline of the {state.name} state is of an earlier version of pii-tracer, which did not see all"
            " changes in lists, maps and structs. Finish this run with that version",
            todo="apply the run again with the version that began it",
        )


def _missing(state: State, match: Match, present: tuple[MatchTerm, ...]) -> ScanError:
    return ScanError(
        f"a key column is missing in the {state.name} state",
        where=", ".join(sorted({t.label() for t in match.terms} - {t.label() for t in present})),
        todo="plan again, because the schema changed",
    )


def _sums(hashes: Column) -> tuple[Column, Column]:
    """`sum` and `xor` over rows' hashes, independent of their order."""
    from pyspark.sql import functions as f

    return (
        f.coalesce(f.sum(hashes.cast("decimal(38,0)")), f.lit(0)).alias("sum"),
        f.coalesce(f.bit_xor(hashes), f.lit(0)).alias("xor"),
    )
