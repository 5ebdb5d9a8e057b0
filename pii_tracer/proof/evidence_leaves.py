"""What is hashed into a proof: evidence leaves with a nonce each, and the verifier's scope.

The nonce keeps anybody who sees only a leaf's hash from guessing its content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.canonical_json import canonical
from pii_tracer.model.datasets import Frozen
from pii_tracer.proof.open_requests import OpenRequest, open_leaves
from pii_tracer.proof.untrusted_json import canonical_object, split_lines
from pii_tracer.run.journal import Kind, Record


class ScopeFile(Frozen):
    """One file that the verifier decoded and found nothing in. sha256: hex, of the bytes it read."""

    path: str
    sha256: str


class Erased(Frozen):
    """Something that is gone: an object, file or copy. sha256: hex, of its bytes before, where known."""

    copy_id: str
    uri: str
    version_id: str | None = None
    sha256: str | None = None


class ReservedKind(StrEnum):
    """Why something is not called erased. confirmed: a person said by name what was done there. waived: a named person
    accepted a gap, and nobody said that anything was done. sealed: its key is gone."""

    HOLD = "hold"
    EXEMPTION = "exemption"
    CONFIRMED = "confirmed"
    WAIVED = "waived"
    SEALED = "sealed"
    UNVERIFIED = "unverified"


class Reserved(Frozen):
    """An exception: something that stays, or that nobody proved. what: id of the copy or gap. until: RFC 3339."""

    kind: ReservedKind
    what: str
    why: str
    who: str | None = None
    until: str | None = None


def evidence_leaves(
    records: Iterable[Record], still: Iterable[OpenRequest], erased: Iterable[Erased], nonce: Callable[[], str]
) -> tuple[bytes, ...]:
    """One canonical line for each verified step, each request that stays open, and each erased thing."""
    contents: list[dict[str, Any]] = [
        {"kind": "step", "step": r.facts["step"], "record": r.hash, "facts": r.facts.get("facts", {})}
        for r in records
        if r.kind is Kind.STEP_VERIFIED
    ]
    contents += open_leaves(still)
    contents += [{"kind": "erased", **item.model_dump()} for item in erased]
    return tuple(canonical({**content, "nonce": nonce()}) for content in contents)


def bodies_in(leaves: bytes) -> list[dict[str, Any]]:
    """What a file of leaves says, in its order, without lines that are no leaves."""
    return [body for body in map(canonical_object, split_lines(leaves)) if body is not None]


def nonces_in(leaves: bytes) -> list[str]:
    """The nonces of a file of leaves, in its order."""
    return [str((canonical_object(line) or {}).get("nonce", "")) for line in split_lines(leaves)]


def scope_lines(scope: Iterable[ScopeFile]) -> tuple[bytes, ...]:
    """One canonical line for each file, sorted by path."""
    return tuple(canonical(item.model_dump()) for item in sorted(scope, key=lambda item: (item.path, item.sha256)))


def lines_digest(lines: Iterable[bytes]) -> str:
    """`sha256:…` over lines, each with its newline."""
    found = hashlib.sha256()
    for line in lines:
        found.update(line + b"\n")
    return "sha256:" + found.hexdigest()
