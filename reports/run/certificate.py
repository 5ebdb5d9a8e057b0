"""The certificate for people: one printable page, made from a verified attestation alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pii_tracer.model.canonical_json import parse_time
from pii_tracer.model.errors import ProofError
from pii_tracer.model.plan import digest_of
from reports.rendering import render_html

_LINES, _LINE = 12, 88
"""Room for names on one page of A4: lines, and characters of a line."""
_PERSONS = 6


@dataclass(frozen=True)
class Certificate:
    """What the page says. Every value is the attestation's own, but for `attestation`, `signer` and `stamped_at`.

    persons: (request id, keyed reference, law). gone: names of what was erased. files, scope: number of files that were
    searched, digest of their list. compared: copies in which everybody else's rows were compared, before against after.
    attestation: digest of the envelope. signer: id of the key that signed it. stamped_at: the time stamp authority's
    time, where there is one and it was verified.
    """

    persons: tuple[tuple[str, str, str], ...]
    plan_id: str
    plan_digest: str
    gone: tuple[str, ...]
    steps: int
    approvals: int
    files: int
    compared: int
    scope: str
    at: datetime
    root: str
    leaves: int
    history: int
    authority: str | None
    stamped_at: datetime | None
    tool: str
    not_proved: tuple[str, ...]
    attestation: str
    signer: str

    @property
    def shown(self) -> tuple[str, ...]:
        """What of `gone` has room on the page, the copies first; the attestation lists all."""
        found: list[str] = []
        left = _LINES
        for name in self.gone:
            short = name if len(name) <= 2 * _LINE else f"{name[: _LINE - 1]}…{name[-_LINE:]}"
            left -= -(-len(short) // _LINE)
            if left < 0:
                break
            found.append(short)
        return tuple(found)

    @property
    def persons_shown(self) -> tuple[tuple[str, str, str], ...]:
        """Those of `persons` that have room on the page."""
        return self.persons[:_PERSONS]


def certificate(
    statement: Mapping[str, Any], envelope: bytes, signer: str, stamped_at: datetime | None = None
) -> Certificate:
    """The certificate of an attestation whose signature and evidence were verified.

    Args:
        statement: the in-toto statement out of `envelope`.

    Raises:
        ProofError: something of the persons stays, by right or by waiver; nothing was looked at; or another form.
    """
    try:
        said = statement["predicate"]
        if said["others"]["rows_lost"] or said["others"]["changed"]:
            raise ProofError("there is no certificate: rows of other people were lost", todo="see the run's report")
        if said["exceptions"]:
            first, count = said["exceptions"][0], len(said["exceptions"])
            raise ProofError(
                f"there is no certificate: something stays, or was not verified ({count} exception(s);"
                f" the first is {first['kind']} {first['what']}: {first['why']})",
                todo="tell the person what stays and why; the report lists it",
            )
        made = Certificate(
            persons=tuple((r["id"], r["subject"], r["law"]) for r in said["requests"]),
            plan_id=said["plan"]["id"],
            plan_digest=said["plan"]["digest"],
            gone=tuple(_names(statement["subject"])),
            steps=len(said["steps"]),
            approvals=len(said["approvals"]),
            files=said["scope"]["files"],
            compared=said["others"]["compared"],
            scope=said["scope"]["digest"],
            at=parse_time(said["scope"]["at"]),
            root=said["merkle"]["root"],
            leaves=said["merkle"]["leaves"],
            history=said["log"]["size"],
            authority=said["timestamp"]["authority"],
            stamped_at=stamped_at,
            tool=said["tools"].get("pii-tracer", "unknown"),
            not_proved=tuple(said["not_proved"]),
            attestation=digest_of(envelope),
            signer=signer,
        )
    except (KeyError, TypeError, AttributeError, ValueError):
        raise ProofError("the attestation does not have the form it must have", todo="attest the run again") from None
    if not (made.persons and made.files and made.steps and made.approvals):
        raise ProofError("there is no certificate: the attestation is about nothing", todo="attest the run again")
    return made


def render_certificate(made: Certificate) -> str:
    """One self-contained page for A4 (inline style, no script, no request)."""
    return render_html("certificate.html.j2", made=made)


def _names(subjects: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(subject["name"]) for subject in subjects]
