"""Who tells a fact, before it becomes evidence: a place in a file, or all runs of a job that say the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Literal

import msgspec

from pii_tracer.lineage.graph.edges import Evidence

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def micros(text: str) -> int | None:
    """Microseconds since 1970 of an ISO 8601 time (UTC where it names no zone); None where it is no time."""
    try:
        moment = msgspec.convert(text, datetime)
    except msgspec.ValidationError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def iso(at: int) -> str | None:
    """A time in one spelling; None for 0, which stands for `unknown`."""
    if not at:
        return None
    text = (_EPOCH + timedelta(microseconds=at)).isoformat(timespec="microseconds").removesuffix("+00:00")
    return text.rstrip("0").rstrip(".") + "Z"


@dataclass(frozen=True)
class Proof:
    """first and last: (microseconds, where), so that they do not depend on the order of reading.

    runs: how many runs it stands for; 0 for a place in a file, which is never united with another one.
    """

    source: Literal["openlineage", "sql", "unity"]
    job: str
    first: tuple[int, str]
    last: tuple[int, str]
    runs: int = 0

    @property
    def where(self) -> str:
        return self.first[1]

    @property
    def key(self) -> tuple[str, str, str]:
        """Proofs of one key are united."""
        return self.source, self.job, "" if self.runs else self.where

    def joined(self, other: Proof) -> Proof:
        """Both, of one key and of different runs."""
        return Proof(
            self.source,
            self.job,
            min(self.first, other.first),
            max(self.last, other.last),
            self.runs + other.runs,
        )

    def evidence(self) -> Evidence:
        """As the graph keeps it."""
        return Evidence(
            source=self.source,
            where=self.where,
            job=self.job or None,
            at=iso(self.last[0]),
            last=self.last[1] if self.last[1] != self.where else None,
            runs=max(1, self.runs),
        )


def in_file(where: str, job: str) -> Proof:
    """A statement of a file."""
    return Proof("sql", job, (0, where), (0, where))


def united(proofs: Iterable[Proof]) -> tuple[Proof, ...]:
    """One proof a key; equal ones count once."""
    found: dict[tuple[str, str, str], Proof] = {}
    for proof in dict.fromkeys(proofs):
        known = found.get(proof.key)
        found[proof.key] = proof if known is None or known == proof else known.joined(proof)
    return tuple(found.values())
