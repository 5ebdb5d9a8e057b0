"""Every test that docs/runs.md names exists."""

from __future__ import annotations

import re
from pathlib import Path

REPO = Path(__file__).parents[2]


def test_the_fault_table_names_tests_that_exist() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (REPO / "docs" / "runs.md").read_text())
    assert len(named) > 25
    for file, name in named:
        assert re.search(rf"^(def {name}\(|{name} = )", (REPO / file).read_text(), re.MULTILINE), (file, name)
