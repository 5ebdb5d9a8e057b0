"""Places in HDFS: what reading their files showed, in the gap's words. Nothing there is erased yet."""

from __future__ import annotations

from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.model.plan import Gap
from planners.copies.scan_evidence import HdfsEvidence
from planners.step_drafts import slug

_SHOWN = 5


def hdfs_gap(gap: InventoryGap, seen: HdfsEvidence | None) -> Gap:
    """The gap of a place. Its id says what was seen, so that no waiver of a place without the person covers one with
    them.
    """
    if seen is None:
        state, told = "unseen", ["it was not looked into"]
    else:
        left = seen.unread or seen.beyond
        state = "person" if seen.holders else "unread" if left else "digits" if seen.in_digits else "clean"
        told = _told(seen)
    unread = seen.unread if seen else ()
    more = [f"{len(unread) - _SHOWN} more"] if len(unread) > _SHOWN else []
    return Gap(
        id=f"gap-{gap.kind}-{state}-{slug(gap.evidence.removeprefix('hdfs://'))}",
        dataset=gap.dataset,
        kind=gap.kind,
        reason="; ".join([gap.reason, *told]),
        evidence="; ".join([gap.evidence, *unread[:_SHOWN], *more]),
    )


def _told(seen: HdfsEvidence) -> list[str]:
    told = [f"{seen.holders:,} of {seen.files:,} file(s) hold the person: in {', '.join(seen.places)}"]
    if not seen.holders:
        told = [f"of {seen.files:,} file(s), no value that cannot be mistaken was found in what could be read"]
    if seen.unread:
        told.append(f"{len(seen.unread):,} file(s) could not be read, or not wholly")
    if seen.beyond:
        told.append(f"{seen.beyond:,} file(s) that metadata there names lie outside of the estate's places in HDFS")
    if seen.in_digits:
        told.append(f"{seen.in_digits:,} file(s) hold digits of a short key and nothing else of the person")
    short = "a short number is not told from other numbers by bytes" if seen.short else None
    told.append(short or "rows that only other keys tell as the person's are not known by bytes")
    return told
