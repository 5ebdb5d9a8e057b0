"""Which worker runs which file, and what becomes of the tests of a worker that dies.

pytest-xdist 3.8 gives them to another, and runs the one at which it died again and again, as often as workers may be
replaced. Where a single test is left in the end, its worker waits for a next one, or for the word that none comes, which
is never said: the whole run hangs (LoadScopeScheduling.remove_node, ._reschedule).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

__all__ = ["ByFile"]

TOGETHER = re.compile(
    r"tests/sample_lineage/test_(build|plan)\.py|tests/lake/(formats/test_folders|stores/test_s3_lake_hudi|test_\w+)\.py"
)
"""Files that share a dear fixture: one worker takes those of a folder, or each worker would build an estate of its own."""


class ByFile(LoadFileScheduling):
    """`--dist loadfile` that ends when workers die.

    Native code of others (Arrow, delta-rs, hudi-rs) runs in every worker, and a crash of it need not be of the test that
    runs just then. So that test is tried once more, by another worker, and the run's last lines name it. If its worker
    dies again, it has failed.
    """

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        self.died_at: list[str] = []

    def remove_node(self, node: WorkerController) -> str | None:
        """Take a worker out; gives the test that has failed thereby, if one has."""
        units = self.assigned_work.pop(node)
        at = next((test for unit in units.values() for test, done in unit.items() if not done), None)
        if at is None:
            return None
        failed = at in self.died_at
        self.died_at.append(at)
        if failed:
            next(unit for unit in units.values() if at in unit)[at] = True
        self.workqueue.update({file: unit for file, unit in units.items() if not all(unit.values())})
        for other in self.assigned_work:
            self._reschedule(other)
        return at if failed else None

    def _split_scope(self, nodeid: str) -> str:
        """The file of a test; the room, for files that go together."""
        file = super()._split_scope(nodeid)
        return "/".join(file.split("/")[:2]) if TOGETHER.fullmatch(file) else file

    def _reschedule(self, node: WorkerController) -> None:
        """Give a worker the next file, and tell it when there is none. It begins no test until it knows of a next one."""
        if node not in self.registered_collections:
            return  # it has just begun, and asks when it knows its tests
        super()._reschedule(node)
        while self.workqueue and not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            self._assign_work_unit(node)
        if not self.workqueue and not node.shutting_down:
            node.shutdown()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Name the tests at which workers died."""
        for test in self.died_at:
            terminalreporter.write_line(f"a worker died at {test}", red=True)
