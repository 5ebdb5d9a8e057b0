"""Where approvals lie, who has signed a plan, and with which key one signs."""

from __future__ import annotations

import base64
import glob
import json
from datetime import datetime
from pathlib import Path
from typing import Any

from pii_tracer.common.atomic_files import read_bounded
from pii_tracer.config.estate_file import Estate, Policy
from pii_tracer.model.errors import NotApproved, ReviewError, UsageError
from pii_tracer.review.approval import holding
from pii_tracer.review.dsse import PrivateKey, pae, strict_json
from pii_tracer.review.plan_file import LoadedPlan
from pii_tracer.review.policy_rules import Signer
from pii_tracer.review.ssh_signatures import armoured, load_signer
from pii_tracer.review.trusted_keys import load_private, load_trusted
from planners.step_drafts import short_digest, slug

MAX_BYTES = 1024 * 1024
"""An approval is one small statement."""


def approval_files(plan_file: Path) -> list[Path]:
    """The approvals beside a plan, by name."""
    stem = glob.escape(plan_file.name.removesuffix(".plan.json"))
    return sorted(plan_file.parent.glob(stem + ".approval-*.json"))


def approval_path(plan_file: Path, approver: str, role: str) -> Path:
    """Where an approval is written: that of the same person in the same role is replaced, any other one stays.

    Raises:
        NotApproved: a file that would be replaced is no approval.
    """
    stem = plan_file.name.removesuffix(".plan.json") + f".approval-{slug(approver)}"
    for path in (plan_file.with_name(f"{stem}{ending}.json") for ending in ("", f"-{slug(role)}")):
        if not path.exists() or _signed_by(path) == (approver, role):
            return path
    # another person's name makes the same file name: `Meera/Iyer` and `Meera Iyer`
    own = plan_file.with_name(f"{stem}-{short_digest(json.dumps([approver, role]))}.json")
    if _signed_by(path) is not None and (not own.exists() or _signed_by(own) == (approver, role)):
        return own
    raise NotApproved(
        "the file has the name of this approval, but is not an approval",
        where=str(path),
        todo="move this file away, then approve again",
    )


def _signed_by(path: Path) -> tuple[Any, Any] | None:
    """Who says to have signed, and in which role; None where the file is no approval."""
    try:
        said = strict_json(base64.b64decode(strict_json(read_approval(path))["payload"]))["predicate"]
        return said["approver"], said["role"]
    except (ReviewError, ValueError, KeyError, TypeError):
        return None


def read_approval(path: Path) -> bytes:
    """An approval's bytes. Raises `NotApproved` when it cannot be read."""
    try:
        return read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise NotApproved(
            f"an approval cannot be read: {error.strerror or type(error).__name__}",
            where=str(path),
            todo="name the right file",
        ) from None


def signers(
    loaded: LoadedPlan,
    plan_file: Path,
    trusted: Path,
    policy: Policy,
    policy_digest: str,
    production: bool,
    now: datetime,
) -> tuple[Signer, ...]:
    """Who has signed, from the approvals beside a plan. Raises `NotApproved` when one of them does not hold."""
    found = holding(
        loaded,
        [read_approval(path) for path in approval_files(plan_file)],
        load_trusted(trusted),
        policy,
        policy_digest=policy_digest,
        production=production,
        now=now,
    )
    return tuple(Signer(a.predicate.approver, a.predicate.role) for a in found)


def signing_key(pem: Path | None, ssh: Path | None) -> PrivateKey:
    """The key to sign with.

    Raises:
        UsageError: none or both were named.
        ReviewError: it cannot be read.
    """
    if pem is not None and ssh is None:
        return load_private(pem)
    if ssh is None or pem is not None:
        raise UsageError(
            "an approval needs exactly one signing key", todo="give `--key KEY.pem` or `--ssh-key FILE`, not both"
        )
    return load_signer(ssh)


def refuse_unsigned(estate: Estate, key_file: Path | None) -> None:
    """Refuse an approval without a signature where it would not count.

    Raises:
        UsageError: the estate is not `local`, or a key was named as well.
    """
    if key_file is not None:
        raise UsageError(
            "`--unsigned` cannot be combined with a key", todo="leave out `--unsigned` or the option for the key"
        )
    if estate.environment != "local":
        raise UsageError(
            (
                "unsigned approvals are accepted only if `environment` is `local`; in this estate it is "
                f"`{estate.environment}`"
            ),
            todo="sign with `--key KEY.pem` or `--ssh-key ~/.ssh/id_ed25519`",
        )


def detached(envelope: bytes) -> dict[str, bytes]:
    """For an approval by an SSH key: the signed bytes (`.signed`) and their signature as ssh-keygen reads it."""
    raw = strict_json(envelope)
    signatures = [base64.b64decode(s["sig"]) for s in raw["signatures"] if s["keyid"].startswith("SHA256:")]
    if not signatures:
        return {}
    signed = pae(raw["payloadType"], base64.b64decode(raw["payload"]))
    return {".signed": signed, ".signed.sig": armoured(signatures[0])}
