"""Holds that name no copy: why, as their gaps say it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress

from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.legal_holds import Hold, HoldKind
from pii_tracer.model.locations import is_remote, remote_place, without_file_scheme
from pii_tracer.model.plan import Copy, Gap
from planners.copies.classification import Recognised
from planners.holds.held_copies import cited
from planners.step_drafts import is_named, slug, whole_list

_BY_PLACE = re.compile(r"\w+\.`(.+)`")
"""A place as Spark names a table without a catalog: parquet.`/folder/of/files`."""


def unmatched_name(hold: Hold, name: str, found: Recognised) -> Gap:
    """A name that keeps nothing. A person keeps whole datasets, and no part of one; a hold keeps what it names, and
    nothing around it or in it."""
    if hold.kind is HoldKind.OWN_REQUEST:
        near = [i.copy for i in found.items if _is_part(name, i.copy)]
        why = "it is a part of {}, and a person can keep only the whole of it"
    else:
        near = [i.copy for i in found.items if _overlap(name, i.copy.location)]
        why = "it is not the name of {}, but shares files with it: use that name"
    if not near:
        return unmatched(hold, name, "nothing in the inventory has this name or place")
    first, *more = sorted({copy.table or copy.location for copy in near})
    told = f"{first} and {len(more):,} more" if more else first
    return unmatched(hold, name, why.format(told), {f"{copy.id} {copy.location}" for copy in near})


def unmatched(hold: Hold, name: str, why: str, near: Iterable[str] = ()) -> Gap:
    """near: all copies that the hold may mean. Who waives the gap answers for these, and for none that comes later."""
    reason = f"the hold {hold.id} names {name}, and {why}: data that it should keep may be erased{_way_out(hold)}"
    return Gap(
        id=f"gap-hold_unmatched-{slug(hold.id)}-{slug(name)}",
        dataset=None,
        kind=GapKind.HOLD_UNMATCHED,
        reason=reason,
        evidence=cited(hold),
        seen=whole_list(reason, near),
    )


def _is_part(name: str, copy: Copy) -> bool:
    """Whether a name is that of a column of a copy, or of a place in it."""
    return any(is_named(name[:end], copy) for end, letter in enumerate(name) if end and letter in "./")


def _overlap(name: str, location: str) -> bool:
    """Whether a place that a hold names is that of a copy, lies in it, or around it."""
    by_place = _BY_PLACE.fullmatch(name)
    folders, theirs = map(_folder, without_file_scheme(by_place[1] if by_place else name)), _folder(location)
    return any(
        ("/" in mine[:-1] or mine == "/") and (mine.startswith(theirs) or theirs.startswith(mine)) for mine in folders
    )


def _folder(place: str) -> str:
    """A place with one slash at its end, in any spelling of its store."""
    if is_remote(place):
        with suppress(EstateError):  # no name of a bucket: no copy lies there
            place = remote_place(place)
    return f"{place.rstrip('/')}/"


def _way_out(hold: Hold) -> str:
    if hold.kind is not HoldKind.OWN_REQUEST:
        return ""
    return "; if the name is wrong, run `pii-tracer requests narrow REQUEST --take-back WRONG_NAME --keep RIGHT_NAME`"
