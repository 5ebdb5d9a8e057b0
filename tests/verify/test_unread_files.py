"""What is said of a file whose bytes could not be had."""

from __future__ import annotations

import re
from pathlib import Path

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.stores.stored_files import unread_file

ROOT = Path(__file__).parents[2]


def test_an_error_that_the_system_did_not_number_is_named_by_its_kind() -> None:
    patterns = build_patterns([KeySet(name="id", origin="id", weak=False, values=(("s", "4417700102"),))])
    assert unread_file("a.csv", TimeoutError("no answer"), patterns).unread == (
        "a temporary copy of it cannot be created: TimeoutError",
    )


def test_no_message_can_end_in_none() -> None:
    """An `OSError` that only has a text has no `strerror`."""
    sources = (file for part in ("pii_tracer", "planners", "executors") for file in (ROOT / part).rglob("*.py"))
    bare = re.compile(r"\berror\.strerror\b(?! or )")
    assert [str(file) for file in sources if bare.search(file.read_text(encoding="utf-8"))] == []
