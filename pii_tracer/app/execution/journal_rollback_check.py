"""What else knows of a run: a journal that lacks what they tell was cut off, lost or put back from an old copy.

The end file beside the journal (`journal_truncation`) notices a cut by itself; this is for where both were put back.
Everything that is compared is written after the record it tells of, so a crash never makes one of them know more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.errors import JournalError
from pii_tracer.model.plan import ErasurePlan, digest_of
from pii_tracer.proof.deletions.deletion_log import log_in
from pii_tracer.proof.storage_change_witness import BEFORE
from pii_tracer.run.journal import Kind, Record, read_journal
from pii_tracer.run.journal_truncation import RESTORE


def refuse_gone(folder: RunFolder, consumed: bool) -> None:
    """Refuse to begin anew what has begun. To be asked before the journal is opened, which makes it.

    consumed: whether the approval was used up by this run; its journal was there before that.

    Raises:
        JournalError: the run began, and its journal is not there.
    """
    if folder.journal.exists():
        return
    trace = "its approval is used up" if consumed else next(_begun(folder), None)
    if trace is not None:
        raise JournalError(
            f"the run has started, but its journal is missing: {trace}", where=str(folder.journal), todo=RESTORE
        )


def begun_with(folder: RunFolder, plan_digest: str) -> frozenset[str]:
    """Digests of the approvals with which the run of a plan began; none where it did not begin.

    That its approval is used up is no proof of it: that is a file with a name in it.

    Raises:
        JournalError: the journal is broken.
    """
    starts = (r.facts for r in read_journal(folder.journal)[0] if r.kind is Kind.RUN_STARTED)
    return frozenset(
        str(one) for facts in starts if facts.get("plan_digest") == plan_digest for one in facts.get("approvals") or ()
    )


def refuse_unlike(folder: RunFolder, state: Path, plan: ErasurePlan, records: Sequence[Record]) -> None:
    """Refuse a journal that knows less than the run's other files, before anything is added to any of them.

    state: the state folder, with the deletion log.

    Raises:
        JournalError: says which record is missing, and who knows of it.
        ProofError: the deletion log lacks rows, or a row was changed.
    """
    if plan.steps and not any(record.kind is Kind.STEP_INTENT for record in records):
        trace = next(_begun(folder), None)
        if trace is not None:
            empty = "" if records else " is empty: it"
            raise _lacks(folder, f"the journal{empty} knows of no step that began, and {trace}")
    known = {record.hash for record in records}
    for missing in (
        *_by_the_log(state, plan, known),
        *_by_the_results(folder, known),
        *_by_the_events(folder.events, records),
    ):
        raise _lacks(folder, f"a record of the journal is missing: {missing}")


def _lacks(folder: RunFolder, what: str) -> JournalError:
    return JournalError(what, where=str(folder.journal), todo=RESTORE)


def _begun(folder: RunFolder) -> Iterator[str]:
    """Files that no run leaves before its first step has begun."""
    for path in (folder.attestation, folder.evidence):
        if path.exists():
            yield f"there is its {path.name}"
    for copy in sorted(folder.verdicts.glob("*.json")):
        yield f"there is its verdict {copy.name}"
    for place in sorted((folder.path / BEFORE).glob("*")):
        yield f"files were hashed before its first act ({place.name})"


def _by_the_log(state: Path, plan: ErasurePlan, known: set[str]) -> Iterator[str]:
    log = log_in(state, plan.estate)
    if log is None:
        return
    for deed in log.deeds(plan.plan_id):
        if deed.evidence not in known:
            about = f"step {deed.step_id}" if deed.step_id else f"the run, for {deed.copy_id or 'its search'}"
            yield f"the deletion log has one of {iso(deed.run_at)} about {about}, {deed.state.value} ({deed.evidence})"


def _by_the_results(folder: RunFolder, known: set[str]) -> Iterator[str]:
    head = (folder.last_result() or {}).get("journal_head")
    if head is not None and head not in known:
        yield f"the run's result was written behind it ({head})"
    for seq, line in enumerate(_lines(folder.evidence / "journal.jsonl")):
        if digest_of(line) not in known:
            yield f"the evidence has record {seq} ({folder.evidence})"
            return


def _by_the_events(file: Path, records: Sequence[Record]) -> Iterator[str]:
    """An event has the time of the record that it was made from."""
    times = {iso(record.time) for record in records}
    for number, line in enumerate(_lines(file)):
        try:
            raw = json.loads(line)
            at, about = str(raw["eventTime"]), f"{raw['eventType']} of {raw['job']['name']}"
        except (ValueError, LookupError, TypeError, RecursionError):
            continue  # what it was nobody can tell; it says nothing against the journal
        if at not in times:
            yield f"event {number} of the run ({file}) has one of {at}, {about}"
            return


def _lines(file: Path) -> list[bytes]:
    """Whole lines; none where there is no file."""
    try:
        return file.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
