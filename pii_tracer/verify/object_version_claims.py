"""Which copy looks at which version of an object. What exists now decides, never what the plan once found there.

An archive without old versions at planning has no copy that stands for them. Whatever has become one since (an object
that was written over, or deleted, or whose deletion failed) is then the archive's own.
"""

from __future__ import annotations

from collections.abc import Iterable

from pii_tracer.model.datasets import CopyKind
from pii_tracer.model.locations import object_prefix
from pii_tracer.model.plan import Copy, Step


def looks_at(copy: Copy, copies: Iterable[Copy], *, latest: bool) -> bool:
    """Whether a version in the copy's place is for it to look at. copies: all of the plan.

    Each version in a place is for at least one of its copies, whichever these are; what a hold keeps is left to the
    copy that is held.
    """
    if copy.kind is CopyKind.ARCHIVE:
        return latest or not _shares_with(copy, CopyKind.OBJECT_VERSION, copies)
    if copy.kind is CopyKind.OBJECT_VERSION:
        return not latest or not _shares_with(copy, CopyKind.ARCHIVE, copies)
    return True


def counts_uploads(copy: Copy, copies: Iterable[Copy]) -> bool:
    """Whether unfinished uploads in the copy's place keep it from being clean; one copy of a place answers for them."""
    return copy.kind is not CopyKind.OBJECT_VERSION or not _shares_with(copy, CopyKind.ARCHIVE, copies)


def _shares_with(copy: Copy, kind: CopyKind, copies: Iterable[Copy]) -> bool:
    return any(other.kind is kind and other.location == copy.location for other in copies)


def named_versions(steps: Iterable[Step], copy: Copy) -> set[tuple[str, str]]:
    """Object versions (key, id) that the steps of a copy name, most of them to delete: none of these may be there and
    not be listed."""
    place = object_prefix(copy.location)
    bucket = place.bucket if place else None
    mine = (s.parameters for s in steps if s.copy_ == copy.id and bucket and s.parameters.get("bucket") == bucket)
    return {(item["key"], item["version_id"]) for own in mine for item in own.get("versions", ())}
