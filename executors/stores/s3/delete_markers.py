"""Delete markers: the newest one of a key hides what stands behind it, so it is the last of its key to go.

A GET without a version id answers from the newest version, or 404 where that is a delete marker; to remove the marker
is how S3 undeletes an object (https://docs.aws.amazon.com/AmazonS3/latest/userguide/DeleteMarker.html).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pii_tracer.lake.inventory import ObjectVersion

BEHIND = (
    "an old version still exists below its delete marker: without the marker, the deleted object would be live again"
)


def hiding(markers: Iterable[ObjectVersion], staying: Iterable[ObjectVersion]) -> list[ObjectVersion]:
    """Those of the markers behind which one of `staying` stands, as they were listed.

    A marker that is not the newest counts, too: what is in front of it may go later. Of two with the same time (a
    listing can tell seconds only) the version is taken for the older one.
    """
    versions: dict[str, list[ObjectVersion]] = defaultdict(list)
    for version in staying:
        if not version.delete_marker:
            versions[version.key].append(version)
    return [m for m in markers if any(_behind(v, m) for v in versions.get(m.key, ()))]


def _behind(version: ObjectVersion, marker: ObjectVersion) -> bool:
    return marker.latest or (not version.latest and version.modified <= marker.modified)
