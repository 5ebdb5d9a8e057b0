"""Features that a Delta table's protocol can name, and which of them an engine knows.

An engine that does not know one refuses the table, whether it reads or writes it (PROTOCOL.md, "Table Features").
"""

from __future__ import annotations

from collections.abc import Collection

FEATURE = "delta.feature."
"""How DDL spells a feature: before its name."""
READER_VERSION = 3
KNOWN_FEATURES = frozenset(
    {
        "allowColumnDefaults",
        "appendOnly",
        "catalogManaged",
        "catalogOwned-preview",
        "changeDataFeed",
        "checkConstraints",
        "checkpointProtection",
        "clustering",
        "columnMapping",
        "coordinatedCommits-preview",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "icebergCompatV1",
        "icebergCompatV2",
        "identityColumns",
        "inCommitTimestamp",
        "inCommitTimestamp-preview",
        "invariants",
        "rowTracking",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)
"""Table features of Delta's protocol (PROTOCOL.md, "Valid Feature Names in Table Features") that leave alone what the
log says of files, or are looked at by their own rule."""

_BEYOND = {
    "3.5": frozenset(
        {
            "catalogManaged",
            "catalogOwned-preview",
            "inCommitTimestamp-preview",
            "variantShredding-preview",
            "variantType",
        }
    )
}
"""By Spark's profile: known features for which its Delta refuses a table (3.3.3, tried). delta-rs names `variantType`
in every table that it makes with deletion vectors."""

KNOWN_TO_ALL = KNOWN_FEATURES.difference(*_BEYOND.values())
"""Features that Delta knows under every profile."""


def beyond(features: Collection[str], profile: str) -> list[str]:
    """Those that Delta does not know under a profile of Spark, sorted; what nobody here knows is among them."""
    return sorted(set(features) - (KNOWN_FEATURES - _BEYOND.get(profile, frozenset())))
