"""What comes of a run: verdicts joined, deletion log, attestation, report, and the final object."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pii_tracer import __version__
from pii_tracer.cli.applying import Ran, now
from pii_tracer.cli.runs import RunFolder
from pii_tracer.cli.verifying import read_verdicts
from pii_tracer.errors import ExitCode, ProofError
from pii_tracer.files import write_atomic
from pii_tracer.journal import Kind, Record
from pii_tracer.proof.attest import Proven, attest
from pii_tracer.proof.deletion_log import DeletionLog, Entry, EntryState
from pii_tracer.proof.leaves import Erased, ScopeFile
from pii_tracer.review.keys import generate, load_private
from pii_tracer.runner import State
from pii_tracer.verify.verdict import ByteVerdict, RunVerdict

_TOOLS = ("pyspark", "delta-spark", "pyiceberg", "deltalake", "hudi", "sqlglot", "openlineage-python")


def conclude(ran: Ran) -> dict[str, Any]:
    """Write everything that a run leaves, and return the final object (a stable interface, see docs/commands.md)."""
    from pii_tracer.cli.runview import run_view
    from reports.run_html import render_run_html

    verdict = read_verdicts(ran.folder.verdicts, ran.loaded.plan.copies)
    elsewhere = ran.verification.elsewhere() if ran.state.state is State.COMPLETE else ()
    log = _deletion_log(ran, verdict)
    attestation = _attest(ran, verdict, elsewhere)
    view = run_view(ran, verdict, elsewhere, log, attestation)
    write_atomic(ran.folder.report, render_run_html(view, ran.loaded.plan).encode())
    write_atomic(ran.folder.path / "view.json", view.model_dump_json(by_alias=True, indent=1).encode())
    result = {
        "plan_id": ran.state.plan_id,
        "state": ran.state.state.value,
        "copies_total": len(view.counted),
        "copies_erased": view.erased,
        "copies_exempt": view.exempt,
        "beyond_total": len(view.beyond),
        "beyond_erased": sum(copy.state.value == "erased" for copy in view.beyond),
        "residue": [r.model_dump(by_alias=True) for r in view.residue],
        "unverified": list(verdict.unverified),
        "rows_erased": view.rows_erased,
        "bystander_rows_lost": view.bystander_rows_lost,
        "waiting_until": ran.state.waiting_until.isoformat() if ran.state.waiting_until else None,
        "failed": [{"step": f.step, "reason": f.reason, "next": f.todo} for f in ran.state.failed],
        "drift": [vars(item) for item in ran.state.drift],
        "never_started": list(ran.state.never_started),
        "deletion_log": str(log.path),
        "attestation": str(attestation) if attestation else None,
        "report": str(ran.folder.report),
    }
    data = (json.dumps(result, indent=2, sort_keys=True) + "\n").encode()
    write_atomic(ran.folder.result, data)
    if ran.info.result:
        write_atomic(Path(ran.info.result), data)
    return result


def exit_code(result: dict[str, Any]) -> ExitCode:
    """The exit code of a final object; what is left of a person outranks everything else."""
    if result["residue"]:
        return ExitCode.RESIDUE
    return {
        State.COMPLETE: ExitCode.DONE,
        State.WAITING: ExitCode.WAITING,
        State.BLOCKED: ExitCode.DRIFT,
        State.PARTIAL: ExitCode.PARTIAL,
    }[State(result["state"])]


def show_result(folder: RunFolder, result: dict[str, Any], fmt: str) -> None:
    """The final object on stdout, for people or for machines."""
    if fmt == "json":
        print(json.dumps(result, sort_keys=True))
        return
    from rich.console import Console

    from reports.closing import print_closing
    from reports.views import RunView

    view = RunView.model_validate_json((folder.path / "view.json").read_bytes())
    console = Console(highlight=False)
    print_closing(view, console)
    for failed in result["failed"]:
        console.print(f"failed: {failed['step']}: {failed['reason']}", markup=False)
        if failed["next"]:
            console.print(f"    next: {failed['next']}", markup=False)
    for item in result["drift"]:
        console.print(f"drift: {item['copy']}: {item['kind']}", markup=False)
        console.print(f"    expected: {item['expected']}\n    found:    {item['found']}", markup=False)


def rows_deleted(records: Sequence[Record]) -> dict[str, int]:
    """Rows of the persons that each step deleted, from the journal."""
    found = {}
    for record in records:
        facts = record.facts.get("facts")
        if record.kind is Kind.STEP_RESULT and isinstance(facts, dict):
            rows = facts.get("rows_deleted", facts.get("rows_dropped"))
            if isinstance(rows, int):
                found[str(record.facts["step"])] = rows
    return found


def step_facts(records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """The facts of each step's result."""
    return {str(r.facts["step"]): dict(r.facts.get("facts") or {}) for r in records if r.kind is Kind.STEP_RESULT}


def _deletion_log(ran: Ran, verdict: RunVerdict) -> DeletionLog:
    plan = ran.loaded.plan
    log = DeletionLog(Path(ran.info.state) / "deletion_log.sqlite", plan.estate)
    erased = set(verdict.erased)
    facts = step_facts(ran.records)
    copies = {copy.id: copy for copy in plan.copies}
    entries = []
    for record in ran.records:
        if record.kind is not Kind.STEP_VERIFIED:
            continue
        step = next(s for s in plan.steps if s.id == record.facts["step"])
        copy = copies.get(step.copy_ or "")
        if copy is None:
            continue
        known = facts.get(step.id, {})
        for request in plan.requests:
            entries.append(
                Entry(
                    request_id=request.id,
                    subject=request.subject,
                    plan_id=plan.plan_id,
                    step_id=step.id,
                    copy_id=copy.id,
                    dataset=str(copy.dataset),
                    format=copy.format,
                    action=step.action,
                    state=EntryState.ERASED if copy.id in erased else EntryState.DEFERRED,
                    snapshot_before=_text(known.get("snapshot_before")),
                    snapshot_after=_text(known.get("snapshot_after")),
                    run_at=record.time,
                    files_removed=_files_removed(known),
                    bytes_removed=sum(d.get("bytes") or 0 for d in known.get("deleted", ()) if isinstance(d, dict))
                    or None,
                    approver=", ".join(a.predicate.approver for a in ran.approvals),
                    tool_version=__version__,
                    evidence=record.hash,
                )
            )
    log.append(entries)
    return log


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _files_removed(facts: dict[str, Any]) -> int | None:
    deleted = facts.get("deleted")
    if isinstance(deleted, list):
        return len(deleted)
    if isinstance(deleted, dict):
        return sum(v for v in deleted.values() if isinstance(v, int))
    number = facts.get("files_removed", facts.get("files_rewritten"))
    return number if isinstance(number, int) else None


def _attest(ran: Ran, verdict: RunVerdict, elsewhere: Sequence[ByteVerdict]) -> Path | None:
    """The attestation of a finished run; None while anything is open or left."""
    left = [*verdict.residue, *(r for v in elsewhere for r in v.residue)]
    if ran.state.state is not State.COMPLETE or left or verdict.unverified or verdict.bystander_rows_lost:
        return None
    if _attested(ran):
        return ran.folder.attestation
    proven = Proven(
        loaded=ran.loaded,
        journal=ran.folder.journal.read_bytes(),
        approvals=[Path(p).read_bytes() for p in ran.info.approvals],
        scope=[
            ScopeFile(path=f"{c.copy_id}/{f.path}", sha256=f.sha256)
            for c in verdict.copies
            if c.bytes
            for f in c.bytes.files
        ],
        scanned_at=now(),
        erased=_erased(ran),
        tools=_tools(),
    )
    key = Path(ran.info.state) / "keys" / "attest.pem"
    if not key.exists():
        if ran.verification.estate.environment != "local":
            raise ProofError(
                "there is no key to attest with", where=str(key), todo="put the estate's Ed25519 key there"
            )
        key.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        generate(key)
    attest(proven, load_private(key), nonce=lambda: secrets.token_hex(16)).write(
        ran.folder.attestation, ran.folder.evidence
    )
    return ran.folder.attestation


def _attested(ran: Ran) -> bool:
    """Whether this very journal was attested before: a finished plan run again keeps its proof and its root."""
    kept = ran.folder.evidence / "journal.jsonl"
    return ran.folder.attestation.exists() and kept.exists() and kept.read_bytes() == ran.folder.journal.read_bytes()


def _erased(ran: Ran) -> list[Erased]:
    """Everything that is gone: each copy, each object version, each rewritten file with its hash before."""
    found = [Erased(copy_id=c.id, uri=c.location) for c in ran.loaded.plan.copies]
    facts = step_facts(ran.records)
    for step in ran.loaded.plan.steps:
        known = facts.get(step.id, {})
        bucket = step.parameters.get("bucket")
        for item in known.get("deleted", ()) if bucket else ():
            uri = f"s3://{bucket}/{item['key']}"
            found.append(
                Erased(copy_id=step.copy_ or "", uri=uri, version_id=item["version_id"], sha256=item.get("sha256"))
            )
        for item in known.get("files", ()) if isinstance(known.get("files"), list) else ():
            uri = f"{step.parameters['location']}/{item['file']}"
            found.append(Erased(copy_id=step.copy_ or "", uri=uri, sha256=item["sha256_before"]))
    return found


def _tools() -> dict[str, str]:
    found = {"pii-tracer": __version__}
    for name in _TOOLS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
