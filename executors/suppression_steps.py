"""The last act on a person: a place on the suppression list, and how Spark jobs ask it before they load."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from executors.context import Keys
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.model.errors import RunError
from pii_tracer.model.keys_as_text import has_several_columns
from pii_tracer.model.plan import Copy, Step
from pii_tracer.review.sealed_person_values import EstateKey
from pii_tracer.run.executor_protocol import Check, Outcome, Progress
from pii_tracer.run.suppression_list import SuppressionList

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SuppressionExecutor:
    """SUPPRESS. Adding twice is adding once."""

    name = "suppression"

    def __init__(self, keys: Keys, secret: EstateKey, path: Path, now: Callable[[], datetime]) -> None:
        self._keys, self._secret, self._path, self._now = keys, secret, path, now

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` when the list that is there cannot be read."""
        _ = self._list.entries

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """Put every value of the step's key sets on the list."""
        values = [(name, subject, value) for name in _names(step) for subject, value in self._keys.key_set(name).values]
        added = self._list.extended(
            values,
            plan_id=step.parameters["plan_id"],
            since=self._now(),
            recheck_on=datetime.fromisoformat(step.parameters["recheck_on"]),
        )
        return Outcome({"suppressed": len(values), "entries": len(added.entries)})

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """The list, read again from its file, knows every value."""
        known = self._list
        missing = [
            name
            for name in _names(step)
            if not known.has((name, value) for _, value in self._keys.key_set(name).values)
        ]
        return Check(not missing, tuple(f"{name} is not on the suppression list" for name in missing))

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """After a crash: the file is whole, with the values or without."""
        return Progress.DONE if self.verify(step, copy).ok else Progress.NOT_STARTED

    @property
    def _list(self) -> SuppressionList:
        return SuppressionList(self._path, self._secret)


def _names(step: Step) -> list[str]:
    names: list[str] = step.parameters["key_sets"]
    return names


def without_suppressed(
    frame: DataFrame, column: str | Sequence[str], known: SuppressionList, key_set: str
) -> DataFrame:
    """A frame without the rows of erased persons, for backfills and replays: an anti-join.

    column: a top-level column that holds values of the key set (`customer.user_id`), or of
    `customer.(tenant_id, user_id)` all columns in this order. Their distinct values come to the driver, which asks the
    list; what is found goes back as a data frame, never into a statement's text.

    Raises:
        RunError: the list has no such key set, or it is of another number of columns, so that nobody would be held
            back; or the list is broken.
    """
    from pyspark.sql import functions

    if key_set not in known.key_sets:
        raise RunError(
            f"the suppression list has no key of the key set `{key_set}`",
            todo=f"use one of: {', '.join(sorted(known.key_sets)) or 'none, because no person was erased yet'}",
        )
    columns = [column] if isinstance(column, str) else list(column)
    if has_several_columns(key_set) != (len(columns) > 1):
        raise RunError(
            f"the key set `{key_set}` has {'several columns' if len(columns) == 1 else 'one column'}",
            todo="write all columns of the key, in the key's order",
        )
    texts = [frame[name].cast("string") for name in columns]
    parts = (part for text in texts for part in (functions.length(text).cast("string"), functions.lit(":"), text))
    text = texts[0] if len(texts) == 1 else functions.concat(*parts)
    values = frame.where(text.isNotNull()).select(text.alias("k")).distinct().toLocalIterator()
    found = [(row["k"],) for row in values if known.find(key_set, row["k"]) is not None]
    if not found:
        return frame
    suppressed = frame_of_rows(frame.sparkSession, found, "k string")
    return frame.join(functions.broadcast(suppressed), text == suppressed["k"], "left_anti")
