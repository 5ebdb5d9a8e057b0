"""Leave a tag to its table's own maintenance, and look that it is gone: a setting deletes nothing by itself.

A tag that is older than its `max-ref-age-ms` goes with the next expiry of snapshots
(https://iceberg.apache.org/docs/latest/branching/#historical-tags); whoever runs that is not this tool.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from executors.context import ExecutionContext
from executors.engine.sql_names import quote_table, string_literal
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Step
from pii_tracer.model.timestamps import instant
from pii_tracer.run.executor_protocol import Check, Outcome, Progress

_LOOK_AGAIN = timedelta(hours=6)


@dataclass(frozen=True)
class AwaitingRef:
    """One ICEBERG_AWAIT_REF step."""

    ctx: ExecutionContext
    step: Step

    def check(self) -> None:
        """Raise `RunError` when the tag is another one now, or stays for ever: waiting would be in vain."""
        there = self._there()
        if there is not None and (there[0] != self.step.parameters["at"] or there[1] is None):
            raise RunError(
                f"the {self._name} changed after the plan was made: it was moved, or has no maximum age any more",
                where=self.step.parameters["table"],
                todo="make a new plan, which rewrites it",
            )

    def run(self) -> Outcome:
        """Wait for the date; after it, look every few hours until `give_up`.

        Raises:
            RunError: the tag is still there when the plan gives up.
        """
        ref = self.step.parameters["ref"]
        if self._there() is None:
            return Outcome({"ref": ref, "lapsed": True})
        until, give_up = (instant(self.step.parameters[key]) for key in ("until", "give_up"))
        now = self.ctx.now()
        if now >= give_up:
            raise RunError(
                f"the {self._name} still exists, although the table's maintenance should have removed it",
                where=self.step.parameters["table"],
                todo="run the maintenance job, or make a new plan, which rewrites the tag",
            )
        return Outcome({"ref": ref, "lapsed": False}, waiting_until=max(until, min(now + _LOOK_AGAIN, give_up)))

    def verify(self) -> Check:
        """There is no such tag."""
        left = self._there() is not None
        return Check(not left, (f"the {self._name} still exists",) if left else ())

    def probe(self) -> Progress:
        """Waiting changes nothing; it is over or not."""
        return Progress.PARTIAL if self._there() is not None else Progress.DONE

    @property
    def _name(self) -> str:
        return f"{self.step.parameters['kind']} {self.step.parameters['ref']}"

    def _there(self) -> tuple[str, int | None] | None:
        """The tag's snapshot and the age it may have, in milliseconds; None where there is no such tag."""
        table, name = quote_table(self.step.parameters["table"]), string_literal(self.step.parameters["ref"])
        query = f"SELECT snapshot_id, max_reference_age_in_ms FROM {table}.refs WHERE name = {name}"
        row = self.ctx.spark.sql(query).first()
        return None if row is None else (str(row[0]), row[1])
