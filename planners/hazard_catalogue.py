"""The catalogue of places where an erased person's bytes survive. Plans name these ids.

Those of table formats stand with the formats' planners; here are those of stores, streams, keys and engines.
"""

from __future__ import annotations

from functools import cache

from planners.formats.registry import format_planners
from planners.hazards import Basis, Hazard, hazard

_TESTED, _DOC = Basis.TESTED, Basis.DOCUMENTED


@cache
def catalogue() -> tuple[Hazard, ...]:
    """Every known hazard: those of the installed table formats, and those of the systems around them."""
    of_formats = dict.fromkeys(one for _, planner in format_planners() for one in planner.hazards)
    return (*of_formats, *_AROUND)


_AROUND = (
    hazard(
        "F5",
        "spark",
        "the state of a streaming query: keys and aggregates of rows, in its checkpoint",
        "its owner lets the watermark drop it or begins a new checkpoint; a gap until no state holds the person",
        _TESTED,
    ),
    hazard("S1", "s3", "noncurrent versions behind a delete marker", "delete by version id", _TESTED),
    hazard(
        "S2",
        "s3",
        "replicas: deletes of a version never replicate",
        "delete the versions in every destination",
        _TESTED,
    ),
    hazard(
        "S3",
        "s3",
        "Object Lock and legal holds",
        "a delete step of its own, not before the date; a legal hold is a gap",
        _TESTED,
    ),
    hazard("S4", "s3", "Batch Operations has no delete", "DeleteObjects in batches of 1,000", _DOC),
    hazard(
        "S5",
        "s3",
        "archive classes: no rewrite in place",
        "restore, rewrite, archive again, delete old versions",
        _TESTED,
    ),
    hazard(
        "S6",
        "s3",
        "Glacier vaults: archives have only ids, and a fetched one can be read on for a day after its deletion",
        "fetch, rewrite, delete by the inventory's ids; done when a later inventory does not list them",
        _TESTED,
    ),
    hazard("S7", "s3", "unfinished multipart uploads", "list and abort", _TESTED),
    hazard("S8", "s3", "inventories and access logs that name the objects", "the inventory says where they are", _DOC),
    hazard(
        "K1",
        "kafka",
        "the active segment of a compacted topic, and the key in a lingering tombstone",
        "tombstone, roll the segment by an aborted transaction, wait for the cleaner, read the log back",
        _TESTED,
    ),
    hazard(
        "K2",
        "kafka",
        "a topic that is not compacted: no record can be deleted by itself",
        "wait for retention where it ends in time; otherwise rewrite the topic without the person, or delete a prefix",
        _TESTED,
    ),
    hazard(
        "K3",
        "kafka",
        "a consumer that never saw the tombstone keeps the person in its own state",
        "tombstones leave only after every consumer group has read past them",
        _TESTED,
    ),
    hazard(
        "K4",
        "kafka",
        "follower replicas, which no client reads",
        "cleaned by the same settings, a minute longer; a gap to waive by name, since no run can see it",
        _TESTED,
    ),
    hazard(
        "K5",
        "kafka",
        "records before a partition's first offset, where DeleteRecords cut within a segment: it stays as a whole",
        "roll the segment, delete up to where it ended, wait until the broker has removed it",
        _TESTED,
    ),
    hazard(
        "B1",
        "backups",
        "backups that only their owner reaches, and what is restored from them later",
        "the owner acts, confirms it and names the evidence; look again after every restore",
        _DOC,
    ),
    hazard(
        "X1",
        "keys",
        "readers that opened a person's data key before it was destroyed",
        "not complete before the longest cache lifetime is over; then reading is tried",
        _TESTED,
    ),
    hazard(
        "X2",
        "keys",
        "a KMS key that is pending deletion, with its replicas and grants",
        "pending until KMS does not know it any more; a cancelled deletion fails the step",
        _TESTED,
    ),
    hazard(
        "C1",
        "lakefs",
        "commits of every branch, and of branches that are gone, for the longest retention of any that names an object",
        "rewrite every head, lower the rules as far as the deadline asks, wait for the collector, look, put them back",
        _TESTED,
    ),
    hazard("E1", "spark", "event logs that hold SQL literals", "no value in SQL text, ever", _TESTED),
    hazard(
        "C2",
        "catalog",
        "every branch, tag and old commit of a Nessie catalog reads files of its own time, and no engine removes any",
        "erase on every branch, move tags, then remove what no reference reaches",
        _TESTED,
    ),
    hazard("M1", "catalog", "files of a dropped or renamed table", "discovery walks folders, not names", _TESTED),
)
