"""Whether the deletion log has every row that was added to it, the rows of a run among them."""

from __future__ import annotations

import json
from pathlib import Path

from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.model.errors import ProofError
from pii_tracer.proof.deletions.deletion_log import FILE, check_log
from pii_tracer.proof.deletions.log_chain import has_rows

HEAD = "deletion_log_head"
"""In a run's result: the log's head when its rows had been added."""


def log_fault(folder: RunFolder, estate: str) -> str | None:
    """What is wrong with the log of a run's state folder; None where it is whole, or the run has added nothing yet."""
    head, log = _head(folder), folder.state / FILE
    try:
        if head is not None or log.exists() or has_rows(log, estate):
            check_log(log, estate, head)
    except ProofError as error:
        return f"{error.what} ({error.where})"
    return None


def run_of(attestation: Path) -> RunFolder | None:
    """The run in whose folder an attestation lies, with its result."""
    folder = RunFolder(attestation.resolve().parent)
    return folder if folder.path.parent.name == "runs" and folder.result.is_file() else None


def _head(folder: RunFolder) -> str | None:
    try:
        result = json.loads(folder.result.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    head = result.get(HEAD) if isinstance(result, dict) else None
    return head if isinstance(head, str) else None
