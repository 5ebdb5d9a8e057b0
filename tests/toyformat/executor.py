"""The steps of toy tables, as they run."""

from __future__ import annotations

from pathlib import Path

from executors.context import ExecutionContext
from executors.formats.plain_files.row_match import is_persons
from pii_tracer.model.errors import RunError
from pii_tracer.model.number_keys import spellings
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import Check, Outcome, Progress
from tests.toyformat.tables import Toy, open_toy, write_toy
from tests.toyformat.vocabulary import TOY_DELETE_ROWS


class ToyExecutor:
    """TOY_DELETE_ROWS and TOY_REMOVE_OLD."""

    name = "toy"

    def __init__(self, ctx: ExecutionContext) -> None:
        self._ctx = ctx

    def check(self, step: Step, copy: Copy | None) -> None:
        if copy is None or copy.match is None:
            raise RunError("the step does not say whose rows go", where=step.id, todo="plan again")

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        table = _table(step)
        if step.action is not TOY_DELETE_ROWS:
            old = table.old_files
            for file in old:
                file.unlink()
            return Outcome({"files_removed": len(old)})
        gone = self._persons(table, copy)
        if gone:
            write_toy(table.folder, [row for row in table.rows() if row not in gone], table.columns)
        return Outcome({"rows_deleted": len(gone)})

    def verify(self, step: Step, copy: Copy | None) -> Check:
        table = _table(step)
        left = self._persons(table, copy) if step.action is TOY_DELETE_ROWS else table.old_files
        return Check(not left, (f"{len(left)} are left",) if left else ())

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        return Progress.DONE if self.verify(step, copy).ok else Progress.NOT_STARTED

    def _persons(self, table: Toy, copy: Copy | None) -> list[dict[str, object]]:
        assert copy is not None
        assert copy.match is not None
        names = {term.key_set for term in copy.match.terms}
        keys = {name: spellings(value for _, value in self._ctx.keyring.key_set(name).values) for name in names}
        return [row for row in table.rows() if is_persons(row, copy.match, keys)]


def _table(step: Step) -> Toy:
    return open_toy(Path(step.parameters["location"]))
