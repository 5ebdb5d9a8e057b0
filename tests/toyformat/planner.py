"""How a person leaves toy tables: out of the rows of now, then the files of former versions go."""

from __future__ import annotations

from planners.formats.base import FormatPlanner
from planners.step_drafts import CopyDraft, Draft, StepWriter
from tests.toyformat.vocabulary import TOY_DELETE_ROWS, TOY_REMOVE_OLD


class ToyPlanner(FormatPlanner):
    """Plans for toy tables."""

    executors = frozenset({"toy"})
    runs_on_spark = False

    def table_steps(self, item: CopyDraft) -> tuple[Draft, ...]:
        steps = StepWriter.of_table(item.copy, "toy")
        steps.add(
            TOY_DELETE_ROWS,
            "the rows of now are written again without the person's",
            verification="no row of the person is in the current version",
            irreversible=False,
        )
        steps.add(TOY_REMOVE_OLD, "old files hold the rows", verification="one file is left", retained=True)
        return tuple(steps.drafts)
