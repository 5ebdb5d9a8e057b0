"""The certificate of a run for people: one printable page. Refused while anything is open or stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pii_tracer.app.execution.run_folder import RunFolder, choose_run, evidence_of
from pii_tracer.app.proof.proof_files import attester_key, authority_certificates, file_bytes, stamped_at
from pii_tracer.model.errors import ProofError, ResidueFound, RunError, UsageError, Waiting


def write_certificate(
    state: Path,
    run: str | None = None,
    *,
    key: Path | None = None,
    authority: Path | None = None,
    request: str | None = None,
    out: Path | None = None,
    pdf: Path | None = None,
) -> Iterator[Path]:
    """Write the certificate of a run, and as PDF where that is named. Gives each path when it is there,
    and so does nothing before it is asked for one. Of a run that left something of some persons alone the others have
    one each.

    Raises:
        ResidueFound, Waiting, RunError: the run is not complete.
        ProofError: the attestation does not hold, or not everything was looked at.
        UsageError: there is no such run or request, or a file is missing.
    """
    from pii_tracer.app.pdf import print_pdf
    from pii_tracer.common.atomic_files import write_atomic
    from pii_tracer.proof.attestation_issuing import stamp_of
    from pii_tracer.proof.attestation_verifier import Given, verify_attestation
    from pii_tracer.proof.attester_keys import public_file
    from pii_tracer.review.dsse import keyid, unseal
    from reports.run.certificate import certificate as make
    from reports.run.certificate import render_certificate

    folder = choose_run(state, run, unfinished=False)
    _refuse_unfinished(folder, request)
    attestation = _about(folder, request)
    envelope, public = file_bytes(attestation), attester_key(key or public_file(state))
    stamp = file_bytes(stamp_of(attestation)) if stamp_of(attestation).exists() else None
    roots = authority_certificates(authority) if authority else None
    given = Given(stamp=stamp, authority=roots)
    findings = verify_attestation(envelope, evidence_of(attestation), [public], given).findings
    if findings:
        raise ProofError(
            f"there is no certificate: the attestation does not hold ({findings[0].check}: {findings[0].message})",
            where=str(attestation),
            todo="`pii-tracer attest verify` names everything that does not hold",
        )
    stamped = stamped_at(stamp, envelope, roots) if stamp and roots else None
    page = render_certificate(make(unseal(envelope, [public]).statement, envelope, keyid(public), stamped))
    path = out or attestation.with_name("certificate.html")
    write_atomic(path, page.encode())
    yield path
    if pdf:
        print_pdf(page, pdf)
        yield pdf


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
    if requests_of(file_bytes(folder.attestation)) == (request,):
        return folder.attestation
    known = ", ".join(requests_of(file_bytes(folder.attestation)))
    raise UsageError(f"the run answers no request `{request}`", where=str(folder.path), todo=f"name one of: {known}")


def _refuse_unfinished(folder: RunFolder, request: str | None) -> None:
    """Exit codes as of the run itself: residue 9, waiting 8, partial 7."""
    result = folder.last_result() or {}
    where = str(folder.path)
    still = result.get("open_requests") or []
    if still and request not in (None, *still):
        return  # the run is done for this one; what its attestation says is checked
    if still:
        raise ResidueFound(
            f"there is no certificate for all: {len(still)} of the run's requests stay open",
            where=where,
            todo="name one of the others by `--request`",
        )
    if result.get("residue"):
        raise ResidueFound("there is no certificate: the person was found after the erasure", where=where)
    if result.get("state") == "waiting":
        raise Waiting("there is no certificate: the run waits", where=where, todo="`pii-tracer resume` when it is time")
    if result.get("state") != "complete":
        raise RunError("there is no certificate: the run is not complete", where=where, todo="`pii-tracer resume`")
    counted = sum(int(result.get(f"copies_{how}", 0)) for how in ("erased", "confirmed", "exempt"))
    if result.get("unverified") or counted != result.get("copies_total", 0):
        raise ProofError(
            "there is no certificate: not every copy was verified",
            where=where,
            todo="make a new plan for the copies that the report calls unverified",
        )
    if not folder.attestation.exists():
        raise ProofError(
            "there is no certificate: the run was not attested",
            where=where,
            todo="do what the run's report lists as open, then plan again",
        )
