"""How an attestation comes to stand: evidence, envelope, time stamp, log, and only then under its name.

The line in the log is the act. A crash before it leaves nothing that counts; a crash after it leaves an envelope that
`recover` puts in its place, so that no line of the log is ever without its attestation.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pii_tracer.common.atomic_files import sync_folder, write_atomic
from pii_tracer.model.plan import digest_of
from pii_tracer.proof.attestation import Attestation
from pii_tracer.proof.attestation_log import AttestationLog, History, log_line

Stamp = Callable[[bytes], bytes]
Make = Callable[[History], Attestation]


def stamp_of(envelope: Path) -> Path:
    """Where the time stamp of an attestation lies: beside it."""
    return envelope.with_suffix(".tsr")


def _pending(envelope: Path) -> Path:
    return envelope.with_name(envelope.name + ".pending")


def publish(
    make: Make,
    envelope: Path,
    evidence: Path,
    log: AttestationLog,
    plan_id: str,
    stamp: Stamp | None = None,
) -> None:
    """Make the attestation of a run over the log's lines, and let it stand.

    Raises:
        ProofError: as `make` and `stamp` do, or a broken log; nothing stands then.
    """
    with log.locked() as lines:
        made = make(History(lines))
        made.write_evidence(evidence)
        if envelope.exists():
            _keep(envelope)
        write_atomic(_pending(envelope), made.envelope)
        if stamp is not None:
            write_atomic(_pending(stamp_of(envelope)), stamp(made.envelope))
        log.append(log_line(made.envelope, plan_id))
        _rename(envelope)


def recover(envelope: Path, log: AttestationLog, plan_id: str) -> None:
    """Finish what a crash interrupted: an envelope whose line stands in the log gets its name, any other goes."""
    if not _pending(envelope).exists():
        return
    with log.locked() as lines:
        if log_line(_pending(envelope).read_bytes(), plan_id) in lines:
            _rename(envelope)
        else:
            _pending(stamp_of(envelope)).unlink(missing_ok=True)
            _pending(envelope).unlink()


def _keep(envelope: Path) -> None:
    """An attestation that another one of the same run will take the place of stays: its line stands in the log."""
    data = envelope.read_bytes()
    name = f"{envelope.stem}-{digest_of(data).removeprefix('sha256:')[:12]}{envelope.suffix}"
    kept = envelope.with_name(name)
    write_atomic(kept, data)
    stamp = stamp_of(envelope)
    if stamp.exists():
        write_atomic(stamp_of(kept), stamp.read_bytes())
        stamp.unlink()


def _rename(envelope: Path) -> None:
    stamp = stamp_of(envelope)
    if _pending(stamp).exists():
        _pending(stamp).replace(stamp)
    _pending(envelope).replace(envelope)
    sync_folder(envelope.parent)
