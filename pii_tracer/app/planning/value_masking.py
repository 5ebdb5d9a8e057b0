"""Values of the persons in names and texts that a plan would show to everybody: masked where nothing rests on them,
refused where something does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.common.plurals import counted
from pii_tracer.config.estate_file import Estate, Request
from pii_tracer.lake.catalog_only_partitions import PartitionedTable
from pii_tracer.lake.catalogs.registered_tables import RemoteTable
from pii_tracer.lake.inventory import Inventory, InventoryGap, ObjectSet, ObjectVersion
from pii_tracer.lake.read_result import gap, in_order
from pii_tracer.lineage.sql.text.literal_redaction import hidden, literals
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.errors import ConfigError, PersonsApart, PlanError, ReviewError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.legal_holds import Hold
from pii_tracer.model.locations import is_s3
from pii_tracer.model.number_keys import is_short_number
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.model.waivers import Waiver
from pii_tracer.scan.folder_scan import name_tells
from pii_tracer.scan.forms.pattern_automaton import TINY_DIGITS
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.hits import without_short
from pii_tracer.scan.object_metadata import search_beside
from pii_tracer.scan.value_forms import Patterns
from planners.copies.scan_evidence import BesideEvidence

if TYPE_CHECKING:
    from pii_tracer.lake.stores.s3.object_versions import S3Client

_TELLING = re.compile(rb"[0-9@%]")
_TOGETHER = 4096
"""Texts that are looked at together."""
_PEOPLES = "texts of people"
"""The kind of data that they are, for which the search is tuned apart."""


def refuse_telling_texts(
    requests: Sequence[Request],
    reason: str | None,
    planner: str,
    waivers: Mapping[str, Waiver],
    patterns: Patterns,
    out: Path | None = None,
    kept: Iterable[Hold] = (),
) -> None:
    """Raise `ConfigError` when people wrote a value of the persons into what a plan shows to everybody; `PersonsApart`
    when that is a name of what a person asked to keep."""
    _refuse_telling_wishes(kept, patterns)
    written = [(f"the id of request {number}", r.id) for number, r in enumerate(requests, 1)]
    written += [("--reason", reason or ""), ("--planner", planner), ("--out", out.name if out else "")]
    written += [(f"the waiver of {gap}", text) for gap, w in sorted(waivers.items()) for text in _said(w)]
    tells = next(_telling(written, patterns), None)
    if tells is None and out is not None and _led_by_value(out, patterns):
        tells = "--out"
    if tells is not None:
        raise ConfigError(
            "a text for the plan contains a value of the person, and a plan must not contain such values",
            where=tells,
            todo="remove the person's key, name or address from this text",
        )


def _telling(written: Sequence[tuple[str, str]], patterns: Patterns) -> Iterator[str]:
    """Where a value stands in some texts. Each is short, and there may be one for each person."""
    for first in range(0, len(written), _TOGETHER):
        some = written[first : first + _TOGETHER]
        texts = [text.encode("utf-8", "surrogateescape") for _, text in some]
        if patterns.quiet(b"\0\0".join(texts), _PEOPLES):
            continue
        patterns.expect(texts)
        yield from (where for where, text in some if _tells(text, where, patterns))


def _said(waiver: Waiver) -> tuple[str, ...]:
    task = (waiver.task.owner, waiver.task.act) if waiver.task else ()
    return (waiver.who, waiver.why, *task)


def refuse_telling_approval(approver: str, role: str, reason: str, patterns: Iterable[Patterns]) -> None:
    """Raise `ReviewError` when an approver wrote a value of the persons into what lies beside the plan for good.

    patterns: of all values, in parts.
    """
    said = {"--approver": approver, "--role": role, "--reason": reason}
    todo = "approve again without the person's key, name or address; delete the file that holds them"
    _refuse_evidence("an approval", said, patterns, todo)


def refuse_telling_word(by: str, role: str, said: str, patterns: Iterable[Patterns]) -> None:
    """Raise `ReviewError` when a value of the persons stands in a confirmation: journal and attestation repeat it.

    patterns: of all values, in parts.
    """
    todo = "confirm again without the person's key, name or address"
    _refuse_evidence("a confirmation", {"--by": by, "--role": role, "--said": said}, patterns, todo)


def _refuse_evidence(kind: str, said: Mapping[str, str], patterns: Iterable[Patterns], todo: str) -> None:
    for some in patterns:
        where = next((where for where, text in said.items() if _tells(text, where, some)), None)
        if where is not None:
            raise ReviewError(
                f"the text of {kind} contains a value of the person, and this text would be stored as evidence",
                where=where,
                todo=todo,
            )


def _led_by_value(path: Path, patterns: Patterns) -> bool:
    """Whether folders on the way to a file hold a value that cannot be mistaken: what is shown names the whole way."""
    looked = Collector(patterns)
    looked.text(str(path.parent), "--out")
    return any(not hit.weak for hit in looked.hits())


def _refuse_telling_wishes(kept: Iterable[Hold], patterns: Patterns) -> None:
    telling = [hold for hold in kept if told_in(hold.datasets, patterns)]
    if telling:
        raise PersonsApart(
            "a name of what a person asked to keep holds a value of the person, and the plan would show it",
            where=f"the hold {telling[0].id}, which is in the request store and not in the estate file",
            todo="`pii-tracer requests narrow REQUEST --take-back` the name `--keep` a folder around it; plan again",
            reasons={
                request: "a name of what the person keeps holds a value of the person, and a plan would show it"
                for hold in telling
                for request in hold.requests
            },
        )


def told_in(texts: Iterable[str], patterns: Patterns) -> bool:
    """Whether a value stands in one of some texts, in any writing."""
    return any(_tells(text, "", patterns) or name_tells(text, patterns) for text in texts)


def _tells(text: str, where: str, patterns: Patterns) -> bool:
    looked = Collector(patterns)
    looked.text(text, where)
    return bool(looked.hits())


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


def telling_beside(estate: Estate, inventory: Inventory, patterns: Patterns) -> dict[str, BesideEvidence]:
    """What stands beside the bytes of current objects, by place; places where it is nothing are not in it.

    Not of archives with more than `MOST_HEADS` objects, nor of those that go whole: the rewrite looks at each before
    it writes.
    """
    found = {}
    for objects in inventory.objects:
        current = [v for v in objects.versions if v.latest and not v.delete_marker]
        if objects.delete_whole is not None or not 0 < len(current) <= MOST_HEADS:
            continue
        from pii_tracer.lake.stores.s3.archive_versions import s3_clients

        client = s3_clients(estate)(objects.region)
        with ThreadPoolExecutor(_WORKERS) as pool:
            looked = list(pool.map(partial(_look_beside, client, objects.bucket, patterns), current))
        why = Counter(reason for _, reason in looked if reason is not None)
        telling = sum(tells for tells, _ in looked)
        if telling or why:
            first = why.most_common(1)[0][0] if why else None
            found[objects.location] = BesideEvidence(telling, why.total(), first)
    return found


def _look_beside(client: S3Client, bucket: str, patterns: Patterns, version: ObjectVersion) -> tuple[bool, str | None]:
    """Whether an object holds an unmistakable value beside its bytes, and why not all of that could be read.

    One that is gone since it was listed has nothing to read.
    """
    from pii_tracer.lake.stores.s3.version_bytes import beside

    answer, tags, refused = beside(client, bucket, version)
    hits, unread = search_beside(answer, tags, patterns)
    return any(not hit.weak for hit in hits), refused or next(iter(unread), None)


MOST_MASKED_EARLY = 100
"""Values up to which names are shown, masked, before the keys are resolved. To prepare a search for many takes long."""


def early_progress(say: Callable[[str], None], requests: Iterable[Request]) -> Callable[[str], None]:
    """The listener of what is done before the persons' keys are resolved: it hears nothing of the keys that were asked
    for, and where these are too many, no names at all.
    """
    keys: dict[str, set[tuple[str, str]]] = {}
    for request in requests:
        given = request.subject.key
        for part in given.values() if isinstance(given, dict) else (given,):
            if part.strip():
                keys.setdefault(request.subject.type, set()).add((request.id, part.strip()))
    if not keys:
        return say
    sets = [
        KeySet(
            name=name, origin=name, weak=any(is_short_number(text) for _, text in pairs), values=tuple(sorted(pairs))
        )
        for name, pairs in sorted(keys.items())
    ]
    if sum(len(one.values) for one in sets) <= MOST_MASKED_EARLY:
        return masked_progress(say, Patterns(sets))
    number = count(1)
    return lambda text: say(f"reading what exists, and its lineage: part {next(number):,}")


def masked_progress(say: Callable[[str], None], patterns: Patterns) -> Callable[[str], None]:
    """The same listener, who hears names of places without the values of the persons: progress goes to logs."""
    return lambda text: say(patterns.mask(text))


def masked_paths(inventory: Inventory, patterns: Patterns) -> dict[str, str]:
    """Paths of files that gaps name, and names of partitioned tables, that hold a value of the persons, as the plan may
    show them."""
    lone = {gap.evidence for gap in inventory.gaps}.union(*(table.names for table in inventory.partitioned))
    return {path: shown for path in lone if (shown := patterns.mask(path)) != path}


def without_telling_partitions(
    inventory: Inventory, registered: Iterable[RemoteTable], patterns: Patterns
) -> Inventory:
    """The inventory without partitions outside of their table's folder in S3 whose names hold a value of the persons,
    such as a number that looks like a day. Each is a gap that shows its name masked. registered: what catalogs name."""
    own = {str(table.location) for table in registered if table.partitions_of}
    telling = {place: shown for place in own if (shown := patterns.mask(place)) != place}
    left = telling_left(inventory, patterns)
    if not telling:
        return inventory if left == inventory.partitioned else inventory.model_copy(update={"partitioned": left})
    shared = Counter(telling.values())
    others = (one for one in inventory.gaps if not _is_about(one, telling))
    gaps = [one.model_copy(update={"reason": patterns.mask(one.reason)}) for one in others]
    gaps += [
        gap(None, GapKind.EXTERNAL_FILES, _TELLS.format(counted(n, "partition")), shown)
        for shown, n in sorted(shared.items())
    ]
    changes = {
        "tables": tuple(one for one in inventory.tables if one.location.rstrip("/") not in telling),
        "remote": tuple(one for one in inventory.remote if str(one.location) not in telling),
        "objects": tuple(one for one in inventory.objects if telling.keys().isdisjoint(_places_of(one))),
        "gaps": in_order(gaps),
        "partitioned": left,
    }
    return inventory.model_copy(update=changes)


_TELLS = "the name of the folder of {} holds a value of the person, and a plan would list it: give it another"


def telling_left(inventory: Inventory, patterns: Patterns) -> tuple[PartitionedTable, ...]:
    """The partitioned tables, with the places that are a gap for their names alone among those that are left."""
    places = {place for table in inventory.partitioned for place in table.elsewhere if is_s3(place)}
    telling = {place for place in places if patterns.mask(place) != place}
    return tuple(_with_left(table, telling) for table in inventory.partitioned)


def _with_left(table: PartitionedTable, telling: Collection[str]) -> PartitionedTable:
    more = [place for place in table.elsewhere if place in telling and place not in table.left]
    return table.model_copy(update={"left": tuple(sorted((*table.left, *more)))}) if more else table


def _is_about(found: InventoryGap, places: Collection[str]) -> bool:
    """Whether a gap is about one of some places."""
    at = f"{found.dataset.namespace}/{found.dataset.name}" if found.dataset else ""
    return at.rstrip("/") in places or found.evidence.rstrip("/") in places


def _places_of(stored: ObjectSet) -> Iterator[str]:
    """Where objects lie, and what they are replicated from."""
    yield stored.location.rstrip("/")
    yield (stored.replica_of or "").rstrip("/")


def refuse_telling_plan(plan: ErasurePlan, patterns: Patterns) -> None:
    """Raise `PlanError` when a name from the estate (a folder, a table) would show a person's value to every reader.

    A value of letters alone can be a word of the plan's own, or of a table's name: `payments` is a username, too. In a
    literal of SQL it is neither, so that there every value counts.
    """
    for _, error in _told(plan, patterns):
        raise error


def named_in_plan(plan: ErasurePlan, patterns: Patterns) -> frozenset[str]:
    """The key sets of which `refuse_telling_plan` finds a value."""
    return frozenset(name for name, _ in _told(plan, patterns))


def _told(plan: ErasurePlan, patterns: Patterns) -> Iterator[tuple[str, PlanError]]:
    yield from _told_in_literals(plan, patterns)
    data = plan.to_bytes()
    for terms, start, end in patterns.occurrences(data):
        if not _TELLING.search(data, start, end):
            continue
        low, high = data.rfind(b'"', 0, start) + 1, data.find(b'"', end)
        for name in (without_short(part) for part, _ in terms):
            yield (
                name,
                PlanError(
                    f"a name in the estate holds a value of {name}, and the plan would show it to everybody",
                    where=patterns.mask(data[low:high].decode("utf-8", "replace"))[:300],
                    todo="give the table, folder or column another name, then plan again (hazard F2)",
                ),
            )


def _told_in_literals(plan: ErasurePlan, patterns: Patterns) -> Iterator[tuple[str, PlanError]]:
    names = {copy.id: copy.table or copy.location for copy in plan.copies}
    recorded = [
        (names.get(step.copy_ or "", step.id), sql)
        for step in plan.steps
        if isinstance(sql := step.parameters.get("sql"), str)
    ]
    # names of key sets hold the expression that makes them
    recorded += [(names[c.id], term.key_set) for c in plan.copies if c.places for term in c.places.terms]
    for where, sql in recorded:
        for known in (name for text in literals(sql) for name in _named_in(text, patterns)):
            yield (
                known,
                PlanError(
                    f"a literal of recorded SQL holds a value of {hidden(known)}, and the plan would show it to"
                    " everybody",
                    where=f"the statement or expression that makes {patterns.mask(where)}",
                    todo="take the value out of the job's SQL (a table of exceptions, not a literal), then plan again",
                ),
            )


def _named_in(text: str, patterns: Patterns) -> Iterator[str]:
    """Key sets of which a value stands in a text, short ones included, and no tiny numbers."""
    data = text.encode("utf-8", "surrogateescape")
    if not (text.isdigit() and len(text) < TINY_DIGITS):  # `status = '42'` names nobody
        yield from patterns.key_sets_of_cell(text)
    yield from (without_short(terms[0][0]) for terms, _, _ in patterns.occurrences(data))
    yield from (without_short(match.key_set) for match in patterns.bounded(data))
