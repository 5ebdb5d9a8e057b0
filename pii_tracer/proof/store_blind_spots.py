"""What no verification can notice: things that a store keeps and does not list. An attestation names these stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pii_tracer.model.locations import is_hdfs, is_object_place, is_s3
from pii_tracer.model.plan import ErasurePlan

ANYWHERE = "tables, branches and topics that a catalog or server does not list to the role that asked"


@dataclass(frozen=True)
class _Store:
    """A kind of store. of: whether a place is on it. unlisted: what it may keep and not list."""

    of: Callable[[str], bool]
    unlisted: str


_STORES = (
    _Store(
        is_s3, "object versions and unfinished uploads that a bucket keeps and does not list to the role that asked"
    ),
    _Store(lambda place: place.startswith("kafka://"), "records that brokers keep and give to no consumer"),
    _Store(lambda place: place.startswith("lakefs://"), "objects and commits that lakeFS keeps and does not list"),
    _Store(is_hdfs, "blocks that a DataNode has not removed yet, trash and snapshots that HDFS hides from the user"),
    _Store(
        is_object_place,
        "versions, deleted bytes and unfinished uploads that an object store keeps and does not list to the account"
        " that asked",
    ),
    _Store(lambda place: place.startswith("glacier://"), "archives that are newer than the vault's newest inventory"),
)


def unlisted(plan: ErasurePlan, not_asked: Iterable[str] = ()) -> list[str]:
    """What is not proved since it can only be known from a listing, with the stores that it is about.

    not_asked: what stores refused to tell, as the verdicts say (`ByteVerdict.not_asked`).
    """
    places = {copy.location for copy in plan.copies}
    places |= {f"{item.dataset.namespace}/{item.dataset.name}" for item in plan.examined}
    found = [ANYWHERE]
    places |= {f"{gap.dataset.namespace}/{gap.dataset.name}" for gap in plan.gaps if gap.dataset}
    for store in _STORES:
        if named := sorted({_root(place) for place in places if store.of(place)}):
            found.append(f"{store.unlisted} ({', '.join(named)})")
    return [*found, *(f"not asked, as a named person allowed: {told}" for told in dict.fromkeys(not_asked))]


def _root(place: str) -> str:
    """The bucket, broker, server or region of a place."""
    scheme, _, rest = place.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"
