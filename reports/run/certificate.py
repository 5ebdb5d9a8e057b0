"""The certificate: a plain page for the person, and what auditors need after it. From a verified attestation alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pii_tracer.model.canonical_json import parse_time
from pii_tracer.model.errors import ProofError
from pii_tracer.model.plan import digest_of
from reports.html_templates import render_html
from reports.run.certificate_remains import Qualification, may_stay, remains

_LINES, _LINE = 12, 88
"""Room for names on one page of A4: lines, and characters of a line."""
_PERSONS = 6
_ANSWERED = {"confirmed": "", "waived": "waived: ", "unverified": "nobody could look at it: "}
"""Kinds of exceptions for which a named person answers, and what is said in front of the reason."""


@dataclass(frozen=True)
class Checked:
    """What a check of an attestation came to. persons: (request id, keyed reference, law) of those it was found to be
    about. envelope: its bytes. signer: id of the key that signed it. file: name of what was checked. stamped_at: the
    time stamp authority's time, where there is one and it was verified."""

    persons: tuple[tuple[str, str, str], ...]
    envelope: bytes
    signer: str
    file: str = "attestation.json"
    stamped_at: datetime | None = None


@dataclass(frozen=True)
class Certificate:
    """What the page says. Every value is the attestation's own, but for those of `Checked`.

    persons: (request id, keyed reference, law). gone: names of what was erased. qualified: what limits that, all of it.
    files, scope: number of files that were searched, digest of their list. compared: copies in which everybody else's
    rows were compared, before against after; worked_on: copies that steps are about. attestation: digest of the
    envelope. file: what to check. known: files of the scope with the bytes of an earlier search, which were not decoded
    again; known_since: when the first bytes were read that were not read or not decoded again; known_by_store: objects
    of these that were not read, as their store says which they are. chunks_left: column chunks of Parquet that were not
    decoded, since none of the values fits in their shape; in_parts: objects of which such pages were not read, as their
    store says that they are the same; some of them may be in `known`. still: requests of the same run that stay
    open. asked: requests that the attestation is about.
    """

    persons: tuple[tuple[str, str, str], ...]
    plan_id: str
    plan_digest: str
    gone: tuple[str, ...]
    qualified: tuple[Qualification, ...]
    steps: int
    approvals: int
    files: int
    known: int
    known_since: datetime | None
    known_by_store: int
    chunks_left: int
    in_parts: int
    compared: int
    worked_on: int
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
    file: str
    still: int
    asked: int

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
    def remains(self) -> tuple[str, ...]:
        """What stays, or was not proved, for the person."""
        return remains(self.qualified, "you" if len(self.persons) == 1 else "these persons")

    @property
    def may_stay(self) -> bool:
        """Whether the page must not say that nothing more was found."""
        return may_stay(self.qualified)

    @property
    def among_others(self) -> bool:
        """Whether the run erased other persons as well: what it erased is then not told by number to one of them."""
        return self.asked > len(self.persons)

    @property
    def persons_shown(self) -> tuple[tuple[str, str, str], ...]:
        """Those of `persons` that have room on the page."""
        return self.persons[:_PERSONS]


def certificate(statement: Mapping[str, Any], checked: Checked) -> Certificate:
    """The certificate of an attestation whose signature and evidence were verified.

    Args:
        statement: the in-toto statement out of the envelope.

    Raises:
        ProofError: something of the persons stays readable, by right or because nobody answers for it; nothing was
            looked at; or another form.
    """
    try:
        said = statement["predicate"]
        if said["others"]["rows_lost"] or said["others"]["changed"]:
            raise ProofError(
                "no certificate: rows of other people were lost",
                todo="restore the rows that the run's report lists",
            )
        reading = said["scope"].get("reading", {})
        qualified = tuple(_qualification(e, said["steps"]) for e in said["exceptions"])
        made = Certificate(
            persons=checked.persons,
            plan_id=said["plan"]["id"],
            plan_digest=said["plan"]["digest"],
            gone=tuple(_gone(statement["subject"], said["plan"]["digest"])),
            qualified=qualified,
            steps=len(said["steps"]),
            approvals=len(said["approvals"]),
            files=said["scope"]["files"],
            known=reading.get("before", 0),
            known_since=parse_time(reading["oldest"]) if reading.get("oldest") else None,
            known_by_store=reading.get("by_store", 0),
            chunks_left=reading.get("left", 0),
            in_parts=reading.get("in_parts", 0),
            compared=said["others"]["compared"],
            worked_on=len({step["copy"] for step in said["steps"] if step["copy"]}),
            scope=said["scope"]["digest"],
            at=parse_time(said["scope"]["at"]),
            root=said["merkle"]["root"],
            leaves=said["merkle"]["leaves"],
            history=said["log"]["size"],
            authority=said["timestamp"]["authority"],
            stamped_at=checked.stamped_at,
            tool=said["tools"].get("pii-tracer", "unknown"),
            not_proved=tuple(said["not_proved"]),
            attestation=digest_of(checked.envelope),
            signer=checked.signer,
            file=checked.file,
            still=said["open"]["requests"] if "open" in said else 0,
            asked=said["requests"]["count"],
        )
    except (KeyError, TypeError, AttributeError, ValueError):
        raise ProofError(
            "the attestation does not have a valid form", todo="run `pii-tracer resume`, which attests the run"
        ) from None
    if not (made.persons and made.files and made.steps and made.approvals):
        raise ProofError(
            "no certificate: the attestation covers no data", todo="run `pii-tracer resume`, which attests the run"
        )
    return made


def _qualification(exception: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> Qualification:
    """An exception as the page tells it.

    Raises:
        ProofError: it is of a kind that leaves the person readable, or that nobody answers for.
    """
    kind, what, why, who = (exception[part] for part in ("kind", "what", "why", "who"))
    if kind == "sealed":
        # the last step about the copy is the look at it, and that comes after its key was gone everywhere
        times = [parse_time(step["verified_at"]) for step in steps if step["copy"] == what]
        return Qualification(kind, what, why, since=max(times))
    if kind in _ANSWERED and who:
        return Qualification(kind, what, _ANSWERED[kind] + why, who=who, until=exception["until"])
    raise ProofError(
        f"no certificate: data remains, or was not verified ({kind} {what}: {why})",
        todo="inform the person which data remains and why; the report lists it",
    )


def render_certificate(made: Certificate) -> str:
    """One self-contained file for A4 (inline style, no script, no request): a page for the person, then the rest."""
    return render_html("certificate.html.j2", made=made)


def _gone(subjects: Sequence[Mapping[str, Any]], plan: str) -> list[str]:
    """What was erased; where nothing was left to erase, the attestation is about the plan alone."""
    return [str(s["name"]) for s in subjects if f"sha256:{s.get('digest', {}).get('sha256')}" != plan]
