"""`attest` and `report`: proof, checked alone, and the report written again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pii_tracer.cli.options import format_option, state_option
from pii_tracer.cli.proof.answer_commands import answer, verify_answer
from pii_tracer.cli.proof.trail_download_command import trail
from pii_tracer.model.errors import ExitCode

if TYPE_CHECKING:
    from pii_tracer.proof.findings import About, Report

_SHOWN = 5

F = TypeVar("F", bound=Callable[..., Any])


@click.group()
def attest() -> None:
    """The attestation of an erasure. A complete run writes it by itself; `verify` checks one, offline."""


attest.add_command(trail)
attest.add_command(answer)
attest.add_command(verify_answer)


def _file(name: str, text: str, **more: Any) -> Callable[[F], F]:
    return click.option(name, type=click.Path(path_type=Path), help=text, **more)


_KEY = _file("--key", "the attester's public key (PEM); again where it was changed", required=True, multiple=True)


def _tell(report: Report, fmt: str) -> int:
    """Findings on stdout, and what was not looked at beside them: nobody shall believe that it was."""
    from pii_tracer.common.plurals import counted
    from reports.escape import visible

    if fmt == "json":
        found = [{"check": f.check.value, "message": f.message} for f in report.findings]
        told = {"about": asdict(report.about)} if report.about else {}
        click.echo(json.dumps({"holds": not found, **told, "findings": found, "notes": list(report.notes)}, indent=2))
    else:
        if report.about:
            click.echo("\n".join(visible(line) for line in _about(report.about)))
        for finding in report.findings:
            click.echo(f"✘ {finding.check.value}: {visible(finding.message)}")
        for note in report.notes:
            click.echo(f"  note: {visible(note)}")
        count = counted(len(report.findings), "finding")
        click.echo(f"{count}: do not rely on it" if report.findings else "everything holds")
    return int(ExitCode.ERROR if report.findings else ExitCode.DONE)


def _about(said: About) -> list[str]:
    """Whom it is about, before anything that holds or not."""
    from pii_tracer.common.plurals import counted

    requests = [f"{request} (person {subject}, {law})" for request, subject, law in said.requests[:_SHOWN]]
    more = len(said.requests) - len(requests)
    unnamed = [f"{counted(said.unnamed, 'request')} that nothing here names"] if said.unnamed else []
    exceptions = ", ".join(f"{number} {kind}" for kind, number in said.exceptions.items()) or "none"
    return [
        f"about {', '.join([*requests, *unnamed])}{f' and {more} more requests' if more else ''}",
        f"  {said.plan}, steps verified {said.first or 'never'} to {said.last or 'never'}, searched {said.searched}",
        f"  exceptions: {exceptions}",
    ]


@attest.command()
@click.argument("attestation", type=click.Path(path_type=Path))
@click.option("--request", multiple=True, help="the request that it must be about; again for each of several")
@_file("--evidence", "evidence folder  [default: beside the attestation; none for a proof of one request]")
@_KEY
@_file("--approver-key", "public keys of approvers, PEM or SSH", multiple=True)
@_file("--previous", "the attestation before this one  [default: beside this run's folder, if there]")
@_file("--log", "the estate's whole log of attestations (attestations.jsonl)")
@_file("--stamp", "the time stamp  [default: attestation.tsr beside the attestation]")
@_file("--authority", "certificate of the time stamp authority (PEM)")
@_file("--trail", "folder with a CloudTrail trail's log and digest files, as synced from its bucket")
@_file("--trail-keys", "the trail's public keys, as `aws cloudtrail list-public-keys` prints them")
@_file("--access-logs", "folder with S3 server access logs")
@format_option("text", "json")
def verify(
    attestation: Path,
    request: tuple[str, ...],
    evidence: Path | None,
    key: tuple[Path, ...],
    approver_key: tuple[Path, ...],
    previous: Path | None,
    log: Path | None,
    stamp: Path | None,
    authority: Path | None,
    trail: Path | None,
    trail_keys: Path | None,
    access_logs: Path | None,
    fmt: str,
) -> int:
    """Check an attestation and its evidence: signature, plan, approvals, journal, tree, scope, history, time stamp.

    The proof of one request (`prove --request`) is checked by itself: whether it is one that the attestation signs.
    With a trail or access logs, every deleted object version is also bound to the record of its deletion.
    """
    from pii_tracer.app.proof.attestation_checks import attest_verify

    report = attest_verify(
        attestation,
        key,
        evidence=evidence,
        approver_keys=approver_key,
        previous=previous,
        log=log,
        stamp=stamp,
        authority=authority,
        trail=trail,
        trail_keys=trail_keys,
        access_logs=access_logs,
        requests=request,
    )
    return _tell(report, fmt)


@attest.command()
@click.argument("run", required=False)
@state_option
@click.option("--request", help="a request that the run answered, with the attestation and its time stamp in the file")
@click.option("--object", "uri", help="an object that was erased, as the attestation names it")
@click.option("--step", help="a step of the plan")
@click.option("--leaf", type=int, help="the number of a leaf, from 0")
@_file("--out", "file to write  [default: in proofs/ of the run's folder]")
def prove(
    run: str | None,
    state: Path,
    request: str | None,
    uri: str | None,
    step: str | None,
    leaf: int | None,
    out: Path | None,
) -> int:
    """Write the proof of one request, object, step or leaf of a RUN: a small file that needs none of the others."""
    from pii_tracer.app.proof.attestation_checks import prove_one

    path = prove_one(state, run, uri=uri, step=step, leaf=leaf, request=request, out=out)
    click.echo(str(path))
    return int(ExitCode.DONE)


@attest.command("verify-object")
@click.argument("proof", type=click.Path(path_type=Path))
@_file("--attestation", "the attestation that the proof is about", required=True)
@_KEY
@format_option("text", "json")
def verify_object(proof: Path, attestation: Path, key: tuple[Path, ...], fmt: str) -> int:
    """Check the PROOF of one object, with the attestation and without any other leaf."""
    from pii_tracer.app.proof.attestation_checks import check_object

    return _tell(check_object(proof, attestation, key), fmt)


@attest.command()
@click.argument("run", required=False)
@state_option
@_file("--key", "the attester's public key (PEM)  [default: keys/attest.pem.pub in the state folder]")
@_file("--authority", "certificate of the time stamp authority (PEM)")
@click.option("--request", help="only about one request of a plan that answers several")
@_file("--out", "page to write  [default: certificate.html in the run's folder, of one request in its proofs/]")
@_file("--pdf", "also print it as PDF, through an installed Chromium")
def certificate(
    run: str | None,
    state: Path,
    key: Path | None,
    authority: Path | None,
    request: str | None,
    out: Path | None,
    pdf: Path | None,
) -> int:
    """Write the certificate of a RUN for people: one printable page. Refused while anything is open or stays."""
    from pii_tracer.app.proof.run_certificate import write_certificate

    for path in write_certificate(state, run, key=key, authority=authority, request=request, out=out, pdf=pdf):
        click.echo(str(path))
    return int(ExitCode.DONE)


@click.command()
@click.argument("run", required=False)
@state_option
@click.option("--out", type=click.Path(path_type=Path), help="file to write  [default: the run's report.html]")
def report(run: str | None, state: Path, out: Path | None) -> int:
    """Write the report of a RUN again, from what it left; without one, of the newest."""
    from pii_tracer.app.execution.run_report import write_report

    click.echo(str(write_report(state, run, out)))
    return int(ExitCode.DONE)
