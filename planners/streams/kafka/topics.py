"""Kafka topics: who is in them, and how the person leaves each kind.

Compacted: a tombstone for each key whose newest record is the person's, then the cleaner is made to run. Kept for a
time: wait, where that ends before the deadline; otherwise delete a prefix, where the owner declares that it may go, or
write the topic again without the person, which needs its producers stopped. What cannot be told apart is a gap and
blocked, never guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from pii_tracer.common.plurals import counted
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.kafka import Topic
from pii_tracer.config.subjects import Subject
from pii_tracer.lake.inventory import Inventory, TableState, TopicState
from pii_tracer.lake.streams.kafka.records import KEY, VALUE
from pii_tracer.model.datasets import (
    Carries,
    CopyKind,
    FieldAccess,
    Format,
    JsonAccess,
    KeyPart,
    Match,
    MatchTerm,
    Strategy,
)
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import (
    Copy,
    Examined,
    Found,
    Gap,
    PlannedColumn,
)
from planners.copies.classification import Recognised
from planners.copies.scan_evidence import TopicEvidence
from planners.gaps.copy_gaps import not_certain
from planners.gaps.keys_of_several_columns import not_compared_place
from planners.locate.composite_key_lineage import whole_terms
from planners.locate.identifier_traces import Trace
from planners.locate.key_location import Carriage, field_name
from planners.locate.match_completeness import usable
from planners.locate.sql.spark_functions import is_plain
from planners.locate.subject_survey import Survey, World
from planners.locate.tag_propagation import categories_of
from planners.step_drafts import (
    CopyDraft,
    slug,
)
from planners.streams.kafka.prefix_deletion import (
    CLOCK_SLACK,
    cut,
    prefix_facts,
)
from planners.streams.kafka.steps import DELETE_DELAY

BROKER_SLACK = timedelta(minutes=15)
"""Brokers look for ended retention every `log.retention.check.interval.ms`: five minutes unless set otherwise."""


@dataclass(frozen=True)
class Place:
    """A declared place in the records, and an identifier that stands there. shared: values others have too."""

    term: MatchTerm
    trace: Trace
    shared: int


def topic_match(found: Survey, state: TopicState, inventory: Inventory) -> Match | None:
    """How the persons' records are found in a topic; None where no declared place holds an identifier."""
    places = _chosen(_places(found, state, inventory))
    terms = sorted({p.term for p in places}, key=lambda t: (t.label(), t.key_set))
    return Match(terms=tuple(terms)) if terms else None


def _origin(state: TopicState, inventory: Inventory) -> TableState | None:
    return next((t for t in inventory.tables if t.table == state.declared.of), None)


def _places(found: Survey, state: TopicState, inventory: Inventory) -> list[Place]:
    origin = _origin(state, inventory)
    carriage = found.carriages.get(origin.dataset) if origin else None
    if carriage is None:
        return []
    standing = [
        (KeyPart(column=part, access=(JsonAccess(path=path),) if path else (), type="string"), trace)
        for part, declared in ((KEY, state.declared.key), (VALUE, state.declared.value))
        for path, column in (declared.places() if declared else {}).items()
        for trace in _standing(carriage, column)
    ]
    return [*_single(found, standing), *_whole(found, standing)]


def _single(found: Survey, standing: list[tuple[KeyPart, Trace]]) -> Iterator[Place]:
    for part, trace in standing:
        derived = found.derived.get((trace.origin, trace.expression))
        if derived is not None and not derived.blind:
            yield Place(MatchTerm(**dict(part), key_set=derived.keys.name), trace, derived.shared)


def _whole(found: Survey, standing: list[tuple[KeyPart, Trace]]) -> list[Place]:
    """Where all columns of a key of several stand in a record: in its key, in its value; in both together only where
    neither has all of them, since key and value can name two persons.
    """
    key = found.subject.several_columns
    known = [(str(n), trace) for n, (_, trace) in enumerate(standing) if usable(trace) and not trace.mention]
    places = []
    for name, trace in whole_terms(known, found.subject.key, key) if key else ():
        derived = found.derived.get((trace.origin, trace.expression))
        if derived is not None and not derived.blind:
            first, *beside = (standing[int(number)][0] for number in (name, *(column for column, _ in trace.beside)))
            term = MatchTerm(**dict(first), key_set=derived.keys.name, beside=tuple(beside))
            places.append(Place(term, trace, derived.shared))
    return [place for place in places if len(set(place.term.columns)) == 1] or places


def _standing(carriage: Carriage, name: str) -> list[Trace]:
    """What stands in a column of a topic's table, or in a field of a struct of it (`contact.email`)."""
    return [
        trace
        for column, known in sorted(carriage.columns.items())
        for trace in known.traces
        if field_name(column, trace.access) == name and all(isinstance(step, FieldAccess) for step in trace.access)
    ]


def origins_in(found: Survey, state: TopicState, inventory: Inventory) -> set[str]:
    """The source's columns that stand at the declared places of a topic's records."""
    origin = _origin(state, inventory)
    carriage = found.carriages.get(origin.dataset) if origin else None
    parts = [part.places() for part in (state.declared.key, state.declared.value) if part]
    columns = {column for part in parts for column in part.values()}
    origins = {trace.origin for c in columns for trace in (_standing(carriage, c) if carriage else ())}
    whole = found.subject.several_columns
    return origins | {found.subject.key} if whole and origins.issuperset(whole) else origins


def _chosen(places: list[Place]) -> list[Place]:
    """Identifiers that are the person's alone; shared ones only where there is no other (a gap then says so)."""
    return [p for p in places if not p.shared] or places


def topic_copies(found: Survey, world: World, estate: Estate, as_of: datetime, due: datetime) -> Recognised:
    """Sort the inventory's topics into copies, gaps and examined ones, as `recognise` does with tables."""
    items: list[CopyDraft] = []
    gaps: list[Gap] = []
    examined: list[Examined] = []
    origins: list[CopyDraft] = []
    for state in world.inventory.topics:
        seen = world.topics.get((found.subject.name, state.location))
        if seen is None:
            gaps.append(_gap(state, GapKind.NOT_SCANNED, "the topic was not read", "no evidence"))
            continue
        if _origin(state, world.inventory) is None:
            reason = f"the table {state.declared.of}, whose rows it is declared to carry, was not found"
            gaps.append(_gap(state, GapKind.UNKNOWN_TABLE, reason, "the estate file, `kafka`"))
        places = _places(found, state, world.inventory)
        if not any(place.term.beside for place in places):
            gaps += not_compared_place(found, "the topic", state.location, state.dataset)
        unsure = _not_certain(found, state, world.inventory)
        gaps += unsure
        case = _Case(found, world, estate, as_of, due, state, seen, places)
        if not (seen.of_person or seen.strong or seen.elsewhere or seen.unread or unsure):
            examined.append(_clean(found.subject, state, places, seen))
            origins += [_copy(case)[0]] if places else []
            continue
        item, against = _copy(case)
        items.append(item)
        gaps += against
    return Recognised(tuple(items), tuple(gaps), tuple(examined), tuple(origins))


def _not_certain(found: Survey, state: TopicState, inventory: Inventory) -> list[Gap]:
    """Declared places whose values are not certain for some of the persons: by them nobody can look."""
    origin = _origin(state, inventory)
    carriage = found.carriages.get(origin.dataset) if origin else None
    parts = [part.places() for part in (state.declared.key, state.declared.value) if part]
    columns = sorted({column for part in parts for column in part.values()})
    gaps = {}
    for column in columns:
        for trace in _standing(carriage, column) if carriage else ():
            derived = found.derived.get((trace.origin, trace.expression))
            if derived is not None and derived.unsure:
                gap = not_certain(state.dataset, slug(state.location.removeprefix("kafka://")), column, trace, derived)
                gaps[gap.id] = gap
    return [gaps[g] for g in sorted(gaps)]


def _clean(subject: Subject, state: TopicState, places: list[Place], seen: TopicEvidence) -> Examined:
    carries = _carries(subject, places) if places else Carries.NONE
    reason = f"the person was not found in {counted(seen.records, 'record')}, each decoded completely"
    return Examined(dataset=state.dataset, table=state.dataset.name, carries=carries, reason=reason)


@dataclass(frozen=True)
class _Case:
    """One topic that holds something of the person, or could."""

    found: Survey
    world: World
    estate: Estate
    as_of: datetime
    due: datetime
    state: TopicState
    seen: TopicEvidence
    places: list[Place]

    @property
    def subject(self) -> Subject:
        return self.found.subject

    @property
    def topic(self) -> Topic:
        return self.state.declared


def _copy(case: _Case) -> tuple[CopyDraft, list[Gap]]:
    state, seen = case.state, case.seen
    match = topic_match(case.found, state, case.world.inventory)
    strategy, lapse, why = _strategy(case, match)
    origin = _origin(state, case.world.inventory)
    carriage = case.found.carriages.get(origin.dataset) if origin else None
    own = case.found.carriages.get(state.dataset)
    hops = own.hops if own else (*(carriage.hops if carriage else ()), state.dataset)
    parts = ((VALUE, case.topic.value), (KEY, case.topic.key))
    copy = Copy(
        id="c-topic-" + slug(state.location.removeprefix("kafka://")),
        kind=CopyKind.TOPIC,
        dataset=state.dataset,
        table=None,
        location=state.location,
        format=Format.KAFKA,
        carries=_carries(case.subject, case.places),
        strategy=strategy,
        columns=_columns(case),
        lineage=tuple(hop.name for hop in hops),
        reason=f"of {counted(seen.records, 'record')} of {case.topic.of}, the person's: {seen.of_person}; {why}",
        match=match,
        other_keys=tuple(sorted(f"{name}.$.{path}" for name, part in parts if part for path in part.other)),
        found=Found(
            files_scanned=len(state.offsets),
            files_with_person=len(state.offsets) if seen.of_person or seen.strong else 0,
            rows=seen.of_person,
            bytes=seen.bytes,
            unread=seen.unread,
        ),
        facts={"cluster": state.cluster, "topic": case.topic.name}
        | (prefix_facts(state, seen) if strategy is Strategy.DELETE_PREFIX else {}),
    )
    upstream = hops[-2] if len(hops) > 1 else None
    item = CopyDraft(
        copy=copy, topic=state, lapse=lapse, carriage=carriage, upstream=str(upstream) if upstream else None
    )
    return item, _against(case, strategy, why)


def _carries(subject: Subject, places: list[Place]) -> Carries:
    """The best rung of the ladder of `planners.locate.key_location` that the chosen places reach."""
    origins = {(p.trace.origin, bool(p.trace.beside) or is_plain(p.trace.expression)) for p in _chosen(places)}
    if (subject.key, True) in origins:
        return Carries.KEY
    if (subject.key, False) in origins:
        return Carries.COMPUTED_KEY
    if any(origin in subject.row_keys and plain for origin, plain in origins):
        return Carries.BRIDGE
    return Carries.IDENTIFIERS if origins else Carries.UNKNOWN


def _columns(case: _Case) -> tuple[PlannedColumn, ...]:
    category = {case.subject.key: case.subject.key_category, **categories_of(case.subject)}
    places = ((part, p.trace.origin) for p in case.places for part in p.term.parts)
    found = {PlannedColumn(name=KeyPart.label(part), category=category[origin]) for part, origin in places}
    return tuple(sorted(found, key=lambda c: (c.name, c.category)))


def _strategy(case: _Case, match: Match | None) -> tuple[Strategy, datetime | None, str]:
    """The strategy, when retention alone has removed the person, and why."""
    topic, seen, settings = case.topic, case.seen, case.state.settings
    if match is None:
        return Strategy.BLOCKED, None, "no declared field contains an identifier of the person"
    if seen.unread:
        return Strategy.BLOCKED, None, f"records are not as declared: {'; '.join(seen.unread)}"
    if settings.get("remote.storage.enable") == "true":
        return Strategy.BLOCKED, None, "segments in tiered storage are not supported yet"
    if case.state.compacted:
        if topic.key is None:
            return Strategy.BLOCKED, None, "a compacted topic without a declared key of its records"
        whole = [set(term.columns) for term in match.terms if term.beside]
        if whole and {KEY} not in whole:
            why = (
                "compacted, but the records' key does not have all key columns: a tombstone would also delete "
                "records of other people"
            )
            return Strategy.BLOCKED, None, why
        if int(settings.get("min.compaction.lag.ms", "0")) > 0:
            return (
                Strategy.BLOCKED,
                None,
                ("min.compaction.lag.ms protects new records from the cleaner: set it to 0 first"),
            )
        return Strategy.TOMBSTONE, None, "compacted: a tombstone for each of their keys, then the cleaner runs"
    lapse = lapse_of(case.state, seen, case.as_of)
    if lapse is not None and lapse <= case.due:
        return Strategy.LET_LAPSE, lapse, f"retention removes them by {lapse:%Y-%m-%d %H:%M} UTC"
    late = f"ends on {lapse:%Y-%m-%d}, after the deadline" if lapse else "does not end, or cannot be dated"
    if DELETE_DELAY not in settings:
        return Strategy.BLOCKED, None, f"retention {late}, and the broker does not show its {DELETE_DELAY}"
    if topic.prefix is not None and seen.until:
        strategy, why = cut(topic.prefix, seen, late, case.as_of)
        return strategy, None, why
    return _rewritten(case, late)


def _rewritten(case: _Case, late: str) -> tuple[Strategy, datetime | None, str]:
    stopped = {w.job: w.stopped for w in case.estate.writers}
    producers = case.topic.producers
    if case.state.settings.get("message.timestamp.type") == "LogAppendTime":
        return Strategy.BLOCKED, None, f"retention {late}, and a rewrite would change timestamps that the broker sets"
    if not producers or not all(stopped[job] for job in producers):
        return (
            Strategy.BLOCKED,
            None,
            (f"retention {late}, and a rewrite requires that the producers are declared and stopped"),
        )
    return Strategy.REWRITE_TOPIC, None, f"retention {late}: rewritten without the person"


def lapse_of(state: TopicState, seen: TopicEvidence, as_of: datetime) -> datetime | None:
    """When retention has removed the segments that hold the person's last record; None where no date can be named.

    A segment takes records up to `segment.ms` after its first one and goes when its newest is `retention.ms` old
    (https://kafka.apache.org/documentation/#topicconfigs_retention.ms). Its first record lies at or before the
    person's last one, so none in it is newer than the newest record up to there and `segment.ms`.
    """
    retention = int(state.settings.get("retention.ms", "-1"))
    if (
        retention < 0
        or not {"segment.ms", "file.delete.delay.ms"} <= set(state.settings)
        or seen.rolled_after is None
        or seen.newest is None
    ):
        return None
    if _moment(seen.newest) > as_of + CLOCK_SLACK:  # it keeps its whole segment beyond every date that could be named
        return None
    waits = (state.settings[name] for name in ("segment.ms", "file.delete.delay.ms"))
    end = _moment(seen.rolled_after) + timedelta(milliseconds=retention + sum(int(wait) for wait in waits))
    return (end + BROKER_SLACK).replace(microsecond=0)


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)


def _against(case: _Case, strategy: Strategy, why: str) -> list[Gap]:
    """What stands against treating the topic as planned."""
    state, seen = case.state, case.seen
    gaps = []
    if strategy is Strategy.BLOCKED:
        gaps.append(
            _gap(state, GapKind.CANNOT_BE_PROVED, why, f"{counted(seen.records, 'record was', 'records were')} read")
        )
    if seen.elsewhere:
        reason = "records contain the person's values, but no declared field shows that they are the person's"
        gaps.append(_gap(state, GapKind.UNEXPECTED_COPY, reason, f"found in: {', '.join(sorted(seen.elsewhere))}"))
    for place in _chosen(case.places):
        if place.shared:
            reason = (
                f"{counted(place.shared, 'value')} of {place.trace.origin} cannot identify the person, because other "
                "people have the same value: records that have no other key would remain"
            )
            gaps.append(_gap(state, GapKind.SHARED_IDENTIFIER, reason, place.term.label()))
    if state.replicas > 1 and strategy is not Strategy.BLOCKED:
        reason = "the same settings clean follower replicas, but no client can read these replicas to verify it"
        gaps.append(
            _gap(state, GapKind.FOLLOWER_REPLICAS, reason, f"{counted(state.replicas, 'replica')} of each partition")
        )
    return gaps


def _gap(state: TopicState, kind: GapKind, reason: str, evidence: str) -> Gap:
    name = slug(state.location.removeprefix("kafka://"))
    return Gap(id=f"gap-{kind}-{name}", dataset=state.dataset, kind=kind, reason=reason, evidence=evidence)
