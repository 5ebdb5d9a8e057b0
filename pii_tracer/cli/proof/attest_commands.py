"""`attest` and `report`: proof, checked alone, and the report written again."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pii_tracer.app.execution.run_folder import RunFolder, choose_run, evidence_of
from pii_tracer.cli.options import format_option, state_option
from pii_tracer.cli.proof.trail_command import trail
from pii_tracer.model.errors import (
    ExitCode,
    ProofError,
    ResidueFound,
    RunError,
    UsageError,
    Waiting,
)

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

    from pii_tracer.proof.findings import Report
    from pii_tracer.review.dsse import PublicKey

F = TypeVar("F", bound=Callable[..., Any])


@click.group()
def attest() -> None:
    """The attestation of an erasure. A complete run writes it by itself; `verify` checks one, offline."""


attest.add_command(trail)


def _file(name: str, text: str, **more: Any) -> Callable[[F], F]:
    return click.option(name, type=click.Path(path_type=Path), help=text, **more)


_KEY = _file("--key", "the attester's public key (PEM); again where it was changed", required=True, multiple=True)


def _bytes(path: Path) -> bytes:
    from pii_tracer.proof.untrusted_json import read_limited

    try:
        return read_limited(path)
    except OSError:
        raise UsageError("the file is missing", where=str(path), todo="name the right one") from None


def _public(path: Path) -> PublicKey:
    from pii_tracer.review.trusted_keys import public_key

    return public_key(_bytes(path), str(path))


def _approver(path: Path) -> PublicKey:
    from pii_tracer.review import trusted_keys

    return trusted_keys.approver_key(_bytes(path), str(path))


def _certificates(path: Path) -> list[Certificate]:
    from pii_tracer.proof.rfc3161_timestamps import load_certificates

    return load_certificates(path)


def _stamped_at(stamp: bytes, envelope: bytes, roots: list[Certificate]) -> datetime:
    from pii_tracer.proof.rfc3161_timestamps import verify_stamp

    return verify_stamp(stamp, envelope, roots)


def _tell(report: Report, fmt: str) -> int:
    """Findings on stdout, and what was not looked at beside them: nobody shall believe that it was."""
    from reports.escape import visible

    if fmt == "json":
        found = [{"check": f.check.value, "message": f.message} for f in report.findings]
        click.echo(json.dumps({"holds": not found, "findings": found, "notes": list(report.notes)}, indent=2))
    else:
        for finding in report.findings:
            click.echo(f"✘ {finding.check.value}: {visible(finding.message)}")
        for note in report.notes:
            click.echo(f"  note: {visible(note)}")
        count = len(report.findings)
        click.echo("everything holds" if not count else f"{count} finding(s): do not rely on it")
    return int(ExitCode.ERROR if report.findings else ExitCode.DONE)


@attest.command()
@click.argument("attestation", type=click.Path(path_type=Path))
@_file("--evidence", "evidence folder  [default: beside the attestation]")
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

    With a trail or access logs, every deleted object version is also bound to the record of its deletion.
    """
    from pii_tracer.proof.attestation_verifier import Given, verify_attestation
    from pii_tracer.proof.findings import Report
    from pii_tracer.proof.publishing import stamp_of

    if (trail is None) != (trail_keys is None):
        raise UsageError("a trail is checked with its public keys", todo="give both --trail and --trail-keys")
    for folder in (trail, access_logs):
        if folder is not None and not folder.is_dir():
            raise UsageError("the folder is missing", where=str(folder), todo="name the right one")
    envelope, evidence = _bytes(attestation), evidence or evidence_of(attestation)
    previous = previous or _sibling(attestation, envelope)
    stamp = stamp or (stamp_of(attestation) if stamp_of(attestation).exists() else None)
    given = Given(
        approvers=[_approver(path) for path in approver_key] or None,
        previous=_bytes(previous) if previous else None,
        log=_bytes(log) if log else None,
        stamp=_bytes(stamp) if stamp else None,
        authority=_certificates(authority) if authority else None,
    )
    report = verify_attestation(envelope, evidence, [_public(path) for path in key], given)
    if trail or access_logs:
        # only evidence that holds says what was deleted; otherwise its findings come first
        if not report.findings:
            from pii_tracer.proof.cloudtrail.deletion_binding import check_trail

            logs = check_trail(evidence, trail, _bytes(trail_keys) if trail_keys else b"", access_logs)
            report = Report(logs.findings, (*report.notes, *logs.notes))
    else:
        report = Report(
            report.findings,
            (*report.notes, "not checked: deletions on S3 (neither a trail nor access logs were given)"),
        )
    return _tell(report, fmt)


def _sibling(attestation: Path, envelope: bytes) -> Path | None:
    """The attestation before this one, where it lies in its own run's folder beside this run's."""
    from pii_tracer.model.plan import digest_of
    from pii_tracer.proof.attestation_verifier import previous_of

    digest, plan = previous_of(envelope) or ("", "")
    if not plan or Path(plan).name != plan or plan in (".", ".."):
        return None
    own = attestation.resolve().parent
    runs = own.parent.parent.parent if own.parent.name == "requests" else own.parent
    there = [p for name in ("", "requests/*/") for p in sorted((runs / plan).glob(f"{name}attestation*.json"))]
    others = [p for p in there if p != attestation.resolve()]
    # where none is that one, the run's own is given all the same: then it was changed, and the check says so
    return next((p for p in others if digest_of(_bytes(p)) == digest), others[0] if others else None)


@attest.command()
@click.argument("run", required=False)
@state_option
@click.option("--object", "uri", help="an object that was erased, as the attestation names it")
@click.option("--step", help="a step of the plan")
@click.option("--leaf", type=int, help="the number of a leaf, from 0")
@_file("--out", "file to write  [default: proofs/leaf-NUMBER.json in the run's folder]")
def prove(run: str | None, state: Path, uri: str | None, step: str | None, leaf: int | None, out: Path | None) -> int:
    """Write the proof of one object, step or leaf of a RUN: a small file that needs none of the others."""
    from pii_tracer.common.atomic_files import write_atomic
    from pii_tracer.proof.inclusion_proof import prove as prove_leaf

    if sum(item is not None for item in (uri, step, leaf)) != 1:
        raise UsageError("name one thing to prove", todo="use one of --object, --step and --leaf")
    folder = choose_run(state, run, unfinished=False)
    leaves = _bytes(folder.evidence / "leaves.jsonl")
    proof = prove_leaf(_bytes(folder.attestation), leaves, uri=uri, step=step, index=leaf)
    path = out or folder.path / "proofs" / f"leaf-{proof.index:06}.json"
    write_atomic(path, proof.to_bytes())
    click.echo(str(path))
    return int(ExitCode.DONE)


@attest.command("verify-object")
@click.argument("proof", type=click.Path(path_type=Path))
@_file("--attestation", "the attestation that the proof is about", required=True)
@_KEY
@format_option("text", "json")
def verify_object(proof: Path, attestation: Path, key: tuple[Path, ...], fmt: str) -> int:
    """Check the PROOF of one object, with the attestation and without any other leaf."""
    from pii_tracer.proof.findings import Report
    from pii_tracer.proof.inclusion_proof import verify_object as check

    return _tell(Report(check(_bytes(proof), _bytes(attestation), [_public(path) for path in key])), fmt)


@attest.command()
@click.argument("run", required=False)
@state_option
@_file("--key", "the attester's public key (PEM)  [default: keys/attest.pem.pub in the state folder]")
@_file("--authority", "certificate of the time stamp authority (PEM)")
@click.option("--request", help="only about one request of a plan that answers several")
@_file("--out", "page to write  [default: certificate.html beside the attestation]")
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
    from pii_tracer.app.pdf import print_pdf
    from pii_tracer.common.atomic_files import write_atomic
    from pii_tracer.proof.attestation_verifier import Given, verify_attestation
    from pii_tracer.proof.attester_keys import public_file
    from pii_tracer.proof.publishing import stamp_of
    from pii_tracer.review.dsse import keyid, unseal
    from reports.run.certificate import certificate as make
    from reports.run.certificate import render_certificate

    folder = choose_run(state, run, unfinished=False)
    _refuse_unfinished(folder)
    attestation = _about(folder, request)
    envelope, public = _bytes(attestation), _public(key or public_file(state))
    stamp = _bytes(stamp_of(attestation)) if stamp_of(attestation).exists() else None
    roots = _certificates(authority) if authority else None
    given = Given(stamp=stamp, authority=roots)
    findings = verify_attestation(envelope, evidence_of(attestation), [public], given).findings
    if findings:
        raise ProofError(
            f"there is no certificate: the attestation does not hold ({findings[0].check}: {findings[0].message})",
            where=str(attestation),
            todo="`pii-tracer attest verify` names everything that does not hold",
        )
    stamped_at = _stamped_at(stamp, envelope, roots) if stamp and roots else None
    page = render_certificate(make(unseal(envelope, [public]).statement, envelope, keyid(public), stamped_at))
    path = out or attestation.with_name("certificate.html")
    write_atomic(path, page.encode())
    click.echo(str(path))
    if pdf:
        print_pdf(page, pdf)
        click.echo(str(pdf))
    return int(ExitCode.DONE)


def _about(folder: RunFolder, request: str | None) -> Path:
    """The attestation of a run, or of one of its requests.

    Raises:
        UsageError: the run has none for this request.
    """
    from pii_tracer.proof.attestation_verifier import requests_of

    if request is None:
        return folder.attestation
    several = sorted(path.name for path in (folder.path / "requests").glob("*") if path.is_dir())
    if request in several:
        return folder.attestation_of(request)
    if requests_of(_bytes(folder.attestation)) == (request,):
        return folder.attestation
    known = ", ".join(requests_of(_bytes(folder.attestation)))
    raise UsageError(f"the run answers no request `{request}`", where=str(folder.path), todo=f"name one of: {known}")


def _refuse_unfinished(folder: RunFolder) -> None:
    """Exit codes as of the run itself: residue 9, waiting 8, partial 7."""
    result = folder.last_result() or {}
    where = str(folder.path)
    if result.get("residue"):
        raise ResidueFound("there is no certificate: the person was found after the erasure", where=where)
    if result.get("state") == "waiting":
        raise Waiting("there is no certificate: the run waits", where=where, todo="`pii-tracer resume` when it is time")
    if result.get("state") != "complete":
        raise RunError("there is no certificate: the run is not complete", where=where, todo="`pii-tracer resume`")
    counted = sum(int(result.get(f"copies_{how}", 0)) for how in ("erased", "confirmed", "exempt"))
    if result.get("unverified") or counted != result.get("copies_total", 0):
        raise ProofError("there is no certificate: not every copy was looked at", where=where, todo="see the report")
    if not folder.attestation.exists():
        raise ProofError(
            "there is no certificate: the run was not attested", where=where, todo="see its report for what is open"
        )


@click.command()
@click.argument("run", required=False)
@state_option
@click.option("--out", type=click.Path(path_type=Path), help="file to write  [default: the run's report.html]")
def report(run: str | None, state: Path, out: Path | None) -> int:
    """Write the report of a RUN again, from what it left; without one, of the newest."""
    from pii_tracer.common.atomic_files import write_atomic
    from reports.run.run_html import render_run_html
    from reports.run.run_views import RunView

    folder = choose_run(state, run, unfinished=False)
    view_file = folder.path / "view.json"
    if not view_file.exists():
        raise UsageError("the run has not come to an end yet", where=str(folder.path), todo="`pii-tracer resume`")
    view = RunView.model_validate_json(view_file.read_bytes())
    path = out or folder.report
    write_atomic(path, render_run_html(view, folder.approved().plan).encode())
    click.echo(str(path))
    return int(ExitCode.DONE)
