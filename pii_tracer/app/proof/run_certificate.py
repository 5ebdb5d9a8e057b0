"""The certificate of a run for people: one printable page. Refused while anything is open or stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pii_tracer.app.execution.run_folder import RunFolder, choose_run
from pii_tracer.app.proof.attestation_checks import proof_of_request
from pii_tracer.app.proof.proof_check_inputs import attester_key, authority_certificates, file_bytes, stamped_at
from pii_tracer.model.errors import ProofError, ResidueFound, RunError, Waiting

if TYPE_CHECKING:
    from pii_tracer.proof.findings import About
    from pii_tracer.proof.requests_tree.request_proof import RequestProof
    from pii_tracer.review.dsse import PublicKey


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
        Refused: the run's folder was moved, copied or put back from a copy.
    """
    from pii_tracer.app.pdf import print_pdf
    from pii_tracer.common.atomic_files import write_atomic
    from pii_tracer.review.dsse import keyid
    from reports.run.certificate import Checked, render_certificate
    from reports.run.certificate import certificate as make

    folder = choose_run(state, run, unfinished=False)
    folder.info()  # a copy knows nothing of what was found since
    refuse_unfinished(folder, folder.last_result() or {}, request)
    of = None if request is None else proof_of_request(folder, request)
    held = held_attestation(folder, key, authority, of)
    checked = folder.attestation if request is None else folder.proof_of(request)
    seen = Checked(held.about.requests, held.envelope, keyid(held.public), checked.name, held.stamped_at)
    page = render_certificate(make(held.statement, seen))
    path = out or (checked.with_suffix(".html") if request else folder.attestation.with_name("certificate.html"))
    write_atomic(path, page.encode())
    yield path
    if pdf:
        print_pdf(page, pdf)
        yield pdf


@dataclass(frozen=True)
class HeldAttestation:
    """An attestation that holds. envelope: its bytes. public: the key that signed it. stamped_at: the time stamp
    authority's time, where there is one and it was verified."""

    statement: Mapping[str, Any]
    about: About
    envelope: bytes
    public: PublicKey
    stamped_at: datetime | None


def held_attestation(
    folder: RunFolder, key: Path | None, authority: Path | None, of: RequestProof | None = None
) -> HeldAttestation:
    """The attestation of a run, checked with all of its evidence. of: about this request alone.

    Raises:
        ProofError: it does not hold.
        UsageError: a file is missing.
    """
    from pii_tracer.proof.attestation_issuing import stamp_of
    from pii_tracer.proof.attestation_verifier import Given, verify_attestation
    from pii_tracer.proof.attester_keys import public_file
    from pii_tracer.review.dsse import unseal

    attestation = folder.attestation
    envelope, public = file_bytes(attestation), attester_key(key or public_file(folder.state))
    stamp = file_bytes(stamp_of(attestation)) if stamp_of(attestation).exists() else None
    roots = authority_certificates(authority) if authority else None
    report = verify_attestation(envelope, folder.evidence, [public], Given(stamp=stamp, authority=roots), of)
    if report.findings or report.about is None:
        found = "; ".join(f"{finding.check}: {finding.message}" for finding in report.findings[:1])
        raise ProofError(
            f"there is no certificate: the attestation does not hold ({found})",
            where=str(attestation),
            todo="`pii-tracer attest verify` names everything that does not hold",
        )
    stamped = stamped_at(stamp, envelope, roots) if stamp and roots else None
    return HeldAttestation(unseal(envelope, [public]).statement, report.about, envelope, public, stamped)


def refuse_unfinished(folder: RunFolder, result: Mapping[str, Any], request: str | None) -> None:
    """Raise where there can be no certificate by the run's final object. Exit codes as of the run itself: residue 9,
    waiting 8, partial 7.

    Raises:
        ResidueFound, Waiting, RunError: the run is not complete.
        ProofError: not everything was looked at, or the run was not attested.
    """
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
