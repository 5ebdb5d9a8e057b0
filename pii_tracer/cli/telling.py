"""Values of the persons in names and texts that a plan would show to everybody: masked where nothing rests on them,
refused where something does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from pii_tracer.config import Estate, Request
from pii_tracer.errors import ConfigError, PlanError
from pii_tracer.inventory import UNKNOWN_FILE, Inventory, ObjectVersion
from pii_tracer.plan import ErasurePlan, Waiver
from pii_tracer.scan.beside import search_beside
from pii_tracer.scan.collect import Collector
from pii_tracer.scan.forms import Patterns
from pii_tracer.scan.tree import name_tells

if TYPE_CHECKING:
    from pii_tracer.estate.s3_versions import S3Client

_TELLING = re.compile(rb"[0-9@%]")


def refuse_telling_texts(
    requests: Sequence[Request], reason: str | None, planner: str, waivers: Mapping[str, Waiver], patterns: Patterns
) -> None:
    """Raise `ConfigError` when people wrote a value of the persons into what a plan shows to everybody."""
    written = [(f"the id of request {number}", r.id) for number, r in enumerate(requests, 1)]
    written += [("--reason", reason or ""), ("--planner", planner)]
    written += [(f"the waiver of {gap}", text) for gap, w in sorted(waivers.items()) for text in (w.who, w.why)]
    for where, text in written:
        looked = Collector(patterns)
        looked.text(text, where)
        if looked.hits():
            raise ConfigError(
                "a value of the person stands in a text that goes into the plan, which holds none",
                where=where,
                todo="write it without the person's key, name or address",
            )


def telling_objects(inventory: Inventory, patterns: Patterns) -> dict[str, int]:
    """How many object names hold a value of the persons, by place; places without such names are not in it."""
    found = {}
    for objects in inventory.objects:
        names = {v.key for v in objects.versions} | {u.key for u in objects.uploads}
        telling = sum(name_tells(name, patterns) for name in names)
        if telling:
            found[objects.location] = telling
    for vault in inventory.vaults:
        telling = sum(name_tells(archive.description, patterns) for archive in vault.archives)
        if telling:
            found[vault.location] = telling
    return found


MOST_HEADS = 10_000
"""Current objects of an archive up to which planning looks at what stands beside their bytes: two requests for each."""
_WORKERS = 8


def telling_beside(estate: Estate, inventory: Inventory, patterns: Patterns) -> dict[str, int]:
    """How many current objects hold an unmistakable value in metadata, headers or tags, by place.

    Not of archives with more than `MOST_HEADS` objects, of those that go whole, nor of objects that refuse the look:
    the rewrite looks at each before it writes.
    """
    found = {}
    for objects in inventory.objects:
        current = [v for v in objects.versions if v.latest and not v.delete_marker]
        if objects.delete_whole is not None or not 0 < len(current) <= MOST_HEADS:
            continue
        from pii_tracer.estate.s3 import s3_clients

        client = s3_clients(estate)(objects.region)
        with ThreadPoolExecutor(_WORKERS) as pool:
            telling = sum(pool.map(partial(_tells, client, objects.bucket, patterns), current))
        if telling:
            found[objects.location] = telling
    return found


def _tells(client: S3Client, bucket: str, patterns: Patterns, version: ObjectVersion) -> bool:
    from botocore.exceptions import BotoCoreError, ClientError

    from pii_tracer.estate.s3_versions import tags_of

    try:
        answer = client.head_object(Bucket=bucket, Key=version.key, VersionId=version.version_id)
        tags = tags_of(client, bucket, version.key, version.version_id)
    except (ClientError, BotoCoreError):
        return False
    hits, _ = search_beside(answer, tags, patterns)
    return any(not hit.weak for hit in hits)


def masked_paths(inventory: Inventory, patterns: Patterns) -> dict[str, str]:
    """Paths of files of no table whose names hold a value of the persons, as the plan may show them."""
    lone = (gap.evidence for gap in inventory.gaps if gap.kind == UNKNOWN_FILE)
    return {path: shown for path in lone if (shown := patterns.mask(path)) != path}


def refuse_telling_plan(plan: ErasurePlan, patterns: Patterns) -> None:
    """Raise `PlanError` when a name from the estate (a folder, a table) would show a person's value to every reader.

    A value of letters alone can be a word of the plan's own, or of a table's name: `payments` is a username, too.
    """
    data = plan.to_bytes()
    for terms, start, end in patterns.occurrences(data):
        if not _TELLING.search(data, start, end):
            continue
        low, high = data.rfind(b'"', 0, start) + 1, data.find(b'"', end)
        raise PlanError(
            f"a name in the estate holds a value of {terms[0][0]}, and the plan would show it to everybody",
            where=patterns.mask(data[low:high].decode("utf-8", "replace"))[:300],
            todo="give the table, folder or column another name, then plan again (hazard F2)",
        )
