"""What a store refuses to tell a verification: unverified, unless a named person waived that refusal in the plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import without_scheme
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.verify.verdicts import ByteVerdict


@dataclass(frozen=True)
class Refused:
    """An operation of S3 that was refused, and the refusal's code."""

    operation: str
    code: str


def waived(plan: ErasurePlan, location: str) -> tuple[str, ...]:
    """What a place refused at planning and a named person waived, as the gaps tell it: `bucket NAME: OPERATION CODE`.

    location: `s3://bucket/prefix`.
    """
    place = without_scheme(location).rstrip("/")
    return tuple(
        gap.evidence
        for gap in plan.gaps
        if gap.kind == GapKind.S3_SETTING
        and gap.waiver is not None
        and gap.dataset is not None
        and f"{without_scheme(gap.dataset.namespace)}/{gap.dataset.name}".rstrip("/") == place
    )


def with_refused(verdict: ByteVerdict, refused: Iterable[Refused], known: Iterable[str]) -> ByteVerdict:
    """The verdict on a place that does not tell everything. known: refusals that somebody waived (`waived`)."""
    for item in refused:
        told = f"{verdict.root}: {item.operation} is rejected ({item.code}), so its answer is unknown"
        name = "not_asked" if any(f": {item.operation} " in evidence for evidence in known) else "unverified"
        verdict = verdict.model_copy(update={name: (*getattr(verdict, name), told)})
    return verdict
