"""`attest` and `report`: proof, checked alone, and the report written again."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pii_tracer.cli.runs import choose_run
from pii_tracer.cli.settings import format_option, state_option
from pii_tracer.errors import ExitCode, UsageError


@click.group()
def attest() -> None:
    """The attestation of an erasure. A complete run writes it by itself; `verify` checks one, offline."""


@attest.command()
@click.argument("attestation", type=click.Path(path_type=Path))
@click.option("--evidence", type=click.Path(path_type=Path), help="evidence folder  [default: beside the attestation]")
@click.option(
    "--key", "key_file", required=True, type=click.Path(path_type=Path), help="the attester's public key (PEM)"
)
@click.option(
    "--approver-key", "approvers", multiple=True, type=click.Path(path_type=Path), help="public keys of approvers"
)
@format_option("text", "json")
def verify(attestation: Path, evidence: Path | None, key_file: Path, approvers: tuple[Path, ...], fmt: str) -> int:
    """Check an attestation and its evidence: signature, plan, approvals, journal chain, Merkle root, scope."""
    from pii_tracer.proof.verifier import verify_attestation
    from pii_tracer.review.keys import public_key

    for path in (attestation, key_file, *approvers):
        if not path.exists():
            raise UsageError("the file is missing", where=str(path), todo="name the right one")
    findings = verify_attestation(
        attestation.read_bytes(),
        evidence or attestation.parent / "evidence",
        public_key(key_file.read_bytes(), str(key_file)),
        [public_key(p.read_bytes(), str(p)) for p in approvers] or None,
    )
    if fmt == "json":
        click.echo(json.dumps([{"check": f.check.value, "message": f.message} for f in findings], indent=2))
    else:
        for finding in findings:
            click.echo(f"✘ {finding.check.value}: {finding.message}")
        click.echo("everything holds" if not findings else f"{len(findings)} finding(s): do not rely on it")
    return int(ExitCode.ERROR if findings else ExitCode.DONE)


@click.command()
@click.argument("run", required=False)
@state_option
@click.option("--out", type=click.Path(path_type=Path), help="file to write  [default: the run's report.html]")
@click.option("--log", "log_csv", type=click.Path(path_type=Path), help="also export the deletion log as CSV")
def report(run: str | None, state: Path, out: Path | None, log_csv: Path | None) -> int:
    """Write the report of a RUN again, from what it left; without one, of the newest."""
    from pii_tracer.files import write_atomic
    from pii_tracer.proof.deletion_log import DeletionLog
    from pii_tracer.review.planfile import load_plan
    from reports.run_html import render_run_html
    from reports.views import RunView

    folder = choose_run(state, run, unfinished=False)
    view_file = folder.path / "view.json"
    if not view_file.exists():
        raise UsageError("the run has not come to an end yet", where=str(folder.path), todo="`pii-tracer resume`")
    view = RunView.model_validate_json(view_file.read_bytes())
    path = out or folder.report
    write_atomic(path, render_run_html(view, load_plan(Path(folder.info().plan_file)).plan).encode())
    click.echo(str(path))
    if log_csv:
        DeletionLog(state / "deletion_log.sqlite", view.estate).export_csv(log_csv)
        click.echo(str(log_csv))
    return int(ExitCode.DONE)
