"""One reading: the answer to "if somebody asked today, could you?", made from facts and the reading before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.config.laws import Law
from pii_tracer.model.errors import ExitCode
from pii_tracer.readiness.canaries import CanarySearch, canary_findings
from pii_tracer.readiness.earliest_proof_day import Keeper, Provable, late, provable
from pii_tracer.readiness.estate_drift import drift, last_known
from pii_tracer.readiness.estate_snapshot import Coverage, EstateState, TableFacts
from pii_tracer.readiness.findings import Finding, FindingKind, Level, dated
from pii_tracer.readiness.score import Score, score

NO_COST = (
    "prices apply to files that hold a person, and a reading plans for nobody: `pii-tracer estimate` gives bounds from"
    " listings alone, and a plan its own cost"
)


class Answer(StrEnum):
    """unknown: nothing is known against a plan, and places were not asked."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Cost:
    """What erasing one person costs: where nobody is found, as expected, and where the person is in every file.
    at_least: not everything could be estimated."""

    low: float
    expected: float
    high: float
    currency: str
    at_least: bool


class TrendPoint(msgspec.Struct, frozen=True):
    """One line of the trend. state, digest: file of the reading's state beside the trend, and its SHA-256."""

    number: int
    at: str
    score: int
    ready: bool
    tables: int
    blocking: int
    warnings: int
    provable_on: str | None
    state: str
    digest: str


@dataclass(frozen=True)
class Given:
    """What a reading is made from. gaps: findings that planning would have, whoever asks."""

    estate: str
    now: datetime
    state: EstateState
    gaps: Sequence[Finding] = ()
    keepers: Sequence[Keeper] = ()
    held: Sequence[Keeper] = ()
    laws: Mapping[str, Law] = field(default_factory=dict)
    canaries: CanarySearch = field(default_factory=CanarySearch)


@dataclass(frozen=True)
class Readiness:
    """The answer. tables: with their coverage. trend: earlier readings, oldest first, without this one. cost: None
    where it was not asked for."""

    estate: str
    number: int
    at: datetime
    since: datetime | None
    score: Score
    findings: tuple[Finding, ...]
    tables: tuple[TableFacts, ...]
    provable: Provable
    canaries: CanarySearch
    trend: tuple[TrendPoint, ...] = ()
    cost: Cost | None = None

    @property
    def answer(self) -> Answer:
        """Whether a plan made now would be complete and in time, as far as this reading can see."""
        if self.of_level(Level.BLOCKING):
            return Answer.NO
        return Answer.UNKNOWN if self.of_level(Level.UNKNOWN) else Answer.YES

    @property
    def ready(self) -> bool:
        """Whether the answer is yes."""
        return self.answer is Answer.YES

    @property
    def exit_code(self) -> ExitCode:
        """0 where the answer is yes, 3 otherwise."""
        return ExitCode.DONE if self.ready else ExitCode.INCOMPLETE

    def of_level(self, level: Level) -> tuple[Finding, ...]:
        """The findings of one weight."""
        return tuple(finding for finding in self.findings if finding.level is level)

    def coverage(self) -> dict[str, Counter[str]]:
        """By owner, how many tables have which coverage."""
        found: dict[str, Counter[str]] = {}
        for table in self.tables:
            found.setdefault(table.owner, Counter())[table.coverage.value] += 1
        return dict(sorted(found.items()))

    def point(self, state: str, digest: str) -> TrendPoint:
        """This reading as a line of the trend."""
        on = self.provable.on
        return TrendPoint(
            number=self.number,
            at=self.at.isoformat(),
            score=self.score.points,
            ready=self.ready,
            tables=len(self.tables),
            blocking=len(self.of_level(Level.BLOCKING)),
            warnings=len(self.of_level(Level.WARNING)),
            provable_on=on.isoformat() if on else None,
            state=state,
            digest=digest,
        )

    def as_json(self) -> dict[str, Any]:
        """The final object (docs/readiness.md)."""
        on, by = self.provable.on, self.provable.decided_by
        return {
            "estate": self.estate,
            "reading": self.number,
            "at": self.at.isoformat(),
            "since": self.since.isoformat() if self.since else None,
            "ready": self.ready,
            "answer": self.answer.value,
            "score": self.score.points,
            "parts": {p.name: {"good": p.good, "of": p.all, "points": round(p.points, 1)} for p in self.score.parts},
            "coverage": {
                "by_owner": {owner: dict(counts) for owner, counts in self.coverage().items()},
                "tables": [
                    {
                        "table": t.name,
                        "owner": t.owner,
                        "coverage": t.coverage.value,
                        "columns": len(t.columns),
                        "explained": t.explained,
                        "keys": list(t.keys),
                    }
                    for t in self.tables
                ],
            },
            "provable": {
                "on": on.isoformat() if on else None,
                "decided_by": {"where": by.where, "owner": by.owner, "reason": by.reason} if by else None,
                "laws": [
                    {"law": a.law, "article": a.article, "deadline": a.deadline.isoformat(), "met": a.met}
                    for a in self.provable.laws
                ],
                "held": [
                    {"where": k.where, "reason": k.reason, "until": k.until.isoformat() if k.until else None}
                    for k in self.provable.held
                ],
            },
            "canaries": [
                {
                    "name": c.name,
                    "subject": c.subject,
                    "in_source": c.in_source,
                    "places": [{"where": p.where, "owner": p.owner, "arrival": p.arrival.value} for p in c.places],
                }
                for c in self.canaries.canaries
            ],
            "not_looked_at": list(self.canaries.not_looked_at),
            "cost": asdict(self.cost) if self.cost else None,
            "cost_left_out": None if self.cost else NO_COST,
            "findings": [finding_json(finding) for finding in self.findings],
            "trend": [{"reading": p.number, "at": p.at, "score": p.score, "ready": p.ready} for p in self.trend],
        }


def finding_json(finding: Finding) -> dict[str, Any]:
    """One finding for programs."""
    return {
        "id": finding.id,
        "kind": finding.kind.value,
        "gap": finding.gap,
        "level": finding.level.value,
        "where": finding.where,
        "owner": finding.owner,
        "text": finding.text,
        "next": finding.todo,
        "since": finding.since.isoformat() if finding.since else None,
        "age_days": finding.age_days,
    }


def assess(given: Given, before: EstateState | None, trend: Sequence[TrendPoint] = ()) -> tuple[Readiness, EstateState]:
    """Make the reading, and the state that the next one compares with."""
    now, state = given.now, given.state
    answer = provable(now, given.keepers, given.held, given.laws)
    found = [*given.gaps, *drift(before, state), *canary_findings(given.canaries.canaries), *late(answer)]
    since = datetime.fromisoformat(before.at) if before else None
    if since is not None and since > now:
        text = f"the previous reading is dated {before.at if before else ''}, which is after the current time"
        todo = "set the clock right: ages and deadlines of this reading follow it"
        found.append(Finding(FindingKind.CLOCK_SET_BACK, Level.WARNING, given.estate, "(this machine)", text, todo))
    findings = dated(found, before.first_seen if before else {}, now)
    first_seen = {f.id: f.since.isoformat() for f in findings if f.since}
    kept = msgspec.structs.replace(last_known(before, state), first_seen=first_seen)
    points = score(state.tables, findings, given.canaries.canaries, answer.laws)
    made = Readiness(
        estate=given.estate,
        number=state.number,
        at=now,
        since=since,
        score=points,
        findings=findings,
        tables=state.tables,
        provable=answer,
        canaries=given.canaries,
        trend=tuple(trend),
    )
    return made, kept


def counted(tables: Sequence[TableFacts]) -> dict[str, int]:
    """How many tables have which coverage."""
    found = Counter(table.coverage.value for table in tables)
    return {coverage.value: found[coverage.value] for coverage in Coverage}
