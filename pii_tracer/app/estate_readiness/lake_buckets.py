"""The buckets that tables lie in: what each keeps of what is replaced or deleted there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pii_tracer.app.estate_readiness.estate_facts import Named, days_setting, lock_setting
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.monitoring.readiness import NO_OWNER, ReadinessSettings
from pii_tracer.lake.inventory import Inventory, RemotePlace
from pii_tracer.model.locations import object_uri
from pii_tracer.readiness.estate_snapshot import UNKNOWN, PlaceFacts

if TYPE_CHECKING:
    from pii_tracer.lake.stores.s3.bucket_settings import KeptByBucket


def bucket_facts(estate: Estate, inventory: Inventory, named: Named) -> Iterator[PlaceFacts]:
    """Each bucket in S3 with places of tables, asked for its settings now."""
    places: dict[str, list[RemotePlace]] = {}
    for place in inventory.remote if estate.s3 is not None else ():
        places.setdefault(place.location.bucket, []).append(place)
    if not places:
        return
    from pii_tracer.lake.stores.s3.archive_versions import s3_clients
    from pii_tracer.lake.stores.s3.bucket_settings import kept_by_bucket

    clients = s3_clients(estate)
    for bucket, mine in sorted(places.items()):
        name = object_uri(bucket, "")
        kept = kept_by_bucket(clients, bucket, [place.location.prefix for place in mine])
        yield settings_of(named.mask(name), _owner(name, mine, named.rules), kept)


def settings_of(name: str, owner: str, kept: KeptByBucket) -> PlaceFacts:
    """The facts of one bucket. What it refuses to tell is not known."""
    from pii_tracer.lake.stores.s3.bucket_settings import LIFECYCLE, OBJECT_LOCK

    settings = {
        "default retention": UNKNOWN if OBJECT_LOCK in kept.refused else lock_setting(kept.default_retention),
        "lifecycle expiry of old versions": UNKNOWN if LIFECYCLE in kept.refused else days_setting(kept.old_versions),
    }
    return PlaceFacts(name, owner, kept.versioned, settings)


def _owner(name: str, places: Sequence[RemotePlace], rules: ReadinessSettings) -> str:
    """Who is named for the bucket; or else for all that lies there, where that is one."""
    owners = {rules.owner_of(*place.tables, str(place.location)) for place in places}
    owner = rules.owner_of(name)
    return owners.pop() if owner == NO_OWNER and len(owners) == 1 else owner
