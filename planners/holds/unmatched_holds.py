"""Holds that name no copy: why, as their gaps say it."""

from __future__ import annotations

import re

from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.legal_holds import Hold, HoldKind
from pii_tracer.model.locations import is_s3, object_uri
from pii_tracer.model.plan import Copy, Gap
from planners.copies.classification import Recognised
from planners.holds.held_copies import cited
from planners.step_drafts import is_named, slug

_BY_PLACE = re.compile(r"\w+\.`(.+)`")
"""A place as Spark names a table without a catalog: parquet.`/folder/of/files`."""


def why_nothing(hold: Hold, name: str, found: Recognised) -> str:
    """Why a name keeps nothing. A person keeps whole datasets, and no part of one; a hold keeps what it names, and
    nothing around it or in it."""
    if hold.kind is HoldKind.OWN_REQUEST:
        wholes = {i.copy.table or i.copy.location for i in found.items if _is_part(name, i.copy)}
        if wholes:
            return f"it is a part of {min(wholes)}, of which a person can keep only the whole"
    elif near := sorted({i.copy.table or i.copy.location for i in found.items if _overlap(name, i.copy.location)}):
        return f"it is not the name of {near[0]}, with which it has files in common: name that"
    return "nothing in the inventory has this name or place"


def unmatched(hold: Hold, name: str, why: str) -> Gap:
    return Gap(
        id=f"gap-hold_unmatched-{slug(hold.id)}-{slug(name)}",
        dataset=None,
        kind=GapKind.HOLD_UNMATCHED,
        reason=f"the hold {hold.id} names {name}, and {why}: data that it should keep may be erased{_way_out(hold)}",
        evidence=cited(hold),
    )


def _is_part(name: str, copy: Copy) -> bool:
    """Whether a name is that of a column of a copy, or of a place in it."""
    return any(is_named(name[:end], copy) for end, letter in enumerate(name) if end and letter in "./")


def _overlap(name: str, location: str) -> bool:
    """Whether a place that a hold names is that of a copy, lies in it, or around it."""
    mine, theirs = _folder(name), _folder(location)
    return "/" in mine.rstrip("/") and (mine.startswith(theirs) or theirs.startswith(mine))


def _folder(name: str) -> str:
    """A place with one slash at its end, however it is written."""
    by_place = _BY_PLACE.fullmatch(name)
    place = by_place[1] if by_place else name
    if is_s3(place):  # in any of its schemes
        bucket, _, key = place.partition("://")[2].partition("/")
        place = object_uri(bucket, key)
    return f"{place.rstrip('/')}/"


def _way_out(hold: Hold) -> str:
    if hold.kind is not HoldKind.OWN_REQUEST:
        return ""
    return "; if the name is wrong, `pii-tracer requests narrow REQUEST --take-back` it and `--keep` the right one"
