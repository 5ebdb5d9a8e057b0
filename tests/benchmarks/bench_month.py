"""A month of requests, day by day, through the request store: which deadlines are kept, and what each day costs.

    python -m tests.benchmarks.bench_month [--a-day N] [--days N] [--capacity N …]

Every morning the list of the last day is taken in, the forecast is read, and one plan is made for those who are due
first. Its run is proved after as many days as the policy says. The store, the choice, the policy and the laws are the
real ones. Plans and runs are simulated: the estate holds nobody. `--capacity` is the number of persons of one plan.

At the end the deadlines that were kept are compared with the most that anybody could keep who knew the whole month from
the beginning (a maximum flow from requests to plans); and those that were missed with what the forecasts said.
"""

from __future__ import annotations

import argparse
import csv
import random
import resource
import tempfile
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import networkx as nx

from pii_tracer.app.intake import due_requests_plan
from pii_tracer.app.intake.due_requests_plan import forecast_requests, plan_due
from pii_tracer.app.intake.request_lists import add_requests
from pii_tracer.app.intake.request_store import due_by, store_of
from pii_tracer.app.settings import Settings
from pii_tracer.config.laws import laws_of
from pii_tracer.intake.run_results import CameTo, settle
from pii_tracer.intake.state_changes import begin
from tests.benchmarks.bench_requests import SUBJECT
from tests.cli.small import declared
from tests.review.plans import plan

FIRST = datetime(2026, 8, 1, 6, tzinfo=timezone.utc)
TAKES = timedelta(days=9)
LAWS = {"GDPR": 60, "UK-GDPR": 15, "CCPA": 15, "LGPD": 10}
"""Of a hundred requests; LGPD gives 15 days, CCPA 45, the others a month."""


@dataclass
class Month:
    """What happened. asked: when a request came in and when it is due; planned: when its plan was made; named: whom a
    forecast called late before a plan was made for them."""

    asked: dict[str, tuple[datetime, datetime]] = field(default_factory=dict)
    planned: dict[str, datetime] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    spent: Counter[str] = field(default_factory=Counter)
    worst: dict[str, float] = field(default_factory=dict)

    def timed(self, what: str, began: float) -> None:
        """Seconds of the processor since then."""
        took = time.process_time() - began
        self.spent[what] += took  # type: ignore[assignment]
        self.worst[what] = max(took, self.worst.get(what, 0.0))

    @property
    def late(self) -> set[str]:
        """Requests whose run was proved after their deadline."""
        return {name for name, at in self.planned.items() if at + TAKES > self.asked[name][1]}


def lived(a_day: int, days: int, capacity: int, base: Path) -> Month:
    """Live the days, and those after them until nobody waits."""
    (base / "pii-tracer.yaml").write_text(declared("w", {"app.users": "delta"}) + SUBJECT)
    batches = f"{{every_hours: 24, takes_days: {TAKES.days}}}"
    (base / "policy.yaml").write_text(f"version: 1\nmax_persons: {capacity}\nbatches: {batches}\n")
    settings = Settings(base / "pii-tracer.yaml", base / "state")
    store, due, month, drawn = store_of(settings), due_by(laws_of(())), Month(), random.Random(7)
    running: list[tuple[datetime, str, tuple[str, ...]]] = []
    now = FIRST
    while len(month.planned) < a_day * days:
        day = (now - FIRST).days
        if day < days:
            rows = [_row(drawn, now) for _ in range(a_day)]
            file = base / f"{day}.csv"
            with file.open("w", newline="") as out:
                csv.writer(out).writerows(
                    [("id", "key", "law", "received"), *((f"R{day}-{n}", *r) for n, r in enumerate(rows))]
                )
            began = time.process_time()
            taken = add_requests(settings, file, given={"subject": "user"}, now=now)
            month.timed("take a list in", began)
            assert (taken.added, taken.refused) == (a_day, 0), taken
            for n, (_, law, received) in enumerate(rows):
                moment = datetime.fromisoformat(received)
                month.asked[f"R{day}-{n}"] = moment, due(law, moment)
        began = time.process_time()
        for batch in forecast_requests(settings, as_of=now).batches:
            month.named.update(one.id for one in batch.late)
        month.timed("forecast", began)
        began = time.process_time()
        planned = plan(plan_id=f"plan-{day:012x}", complete=True, applyable=True)
        with (
            patch.object(due_requests_plan, "plan", _simulated(planned)),
            patch.object(due_requests_plan, "moment", _clock(now)),
        ):
            found = plan_due(settings, as_of=now)
        month.timed("choose and mark", began)
        assert found.marked or not found.requests
        began = time.process_time()
        begin(store, found.requests, planned.plan_id, now)
        running.append((now + TAKES, planned.plan_id, found.requests))
        for ends, plan_id, names in running:
            if ends == now:
                answered = CameTo(proofs=dict.fromkeys(names, f"proof of {plan_id}"), due=due)
                settle(store, plan_id, _always(answered), now)
        month.timed("begin and end runs", began)
        month.planned.update(dict.fromkeys(found.requests, now))
        now += timedelta(days=1)
    return month


def _row(drawn: random.Random, now: datetime) -> tuple[str, str, str]:
    [law] = drawn.choices(list(LAWS), list(LAWS.values()))
    received = now - timedelta(seconds=drawn.randrange(86_400))
    return str(drawn.randrange(10**15)), law, received.isoformat()


def _always(answered: CameTo) -> Callable[[Sequence[str]], CameTo]:
    return lambda mine: answered


def _clock(now: datetime) -> Any:
    return lambda text: now


def _simulated(plan: Any) -> Any:
    return lambda *args, **options: SimpleNamespace(plan=plan, reasons={})


def most_kept(month: Month, capacity: int) -> int:
    """The most deadlines that could be kept by somebody who knows who will ask."""
    mornings = sorted(set(month.planned.values()))
    classes = Counter(
        (bisect_left(mornings, received), bisect_right(mornings, due - TAKES)) for received, due in month.asked.values()
    )
    graph = nx.DiGraph()
    for (first, behind), number in classes.items():
        graph.add_edge("requests", (first, behind), capacity=number)
        for morning in range(first, behind):
            graph.add_edge((first, behind), morning, capacity=number)
    for morning in range(len(mornings)):
        graph.add_edge(morning, "kept", capacity=capacity)
    return int(nx.maximum_flow_value(graph, "requests", "kept")) if graph.has_node("requests") else 0


def main() -> None:
    """Print one part for each capacity."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--a-day", type=int, default=10_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--capacity", type=int, nargs="+", default=[12_000, 4_000])
    given = parser.parse_args()
    for capacity in given.capacity:
        with tempfile.TemporaryDirectory() as folder:
            month = lived(given.a_day, given.days, capacity, Path(folder))
        kept, most = len(month.asked) - len(month.late), most_kept(month, capacity)
        print(
            f"{given.a_day:,} requests a day for {given.days} days, {capacity:,} persons a plan, {TAKES.days} days a run:"
        )
        print(f"  {kept:,} of {len(month.asked):,} deadlines kept; the most that anybody could keep: {most:,}")
        unnamed = month.late - month.named
        print(f"  {len(month.late):,} late, {len(unnamed):,} of them not named by a forecast before")
        for what, spent in month.spent.items():
            print(f"  {what:20} {spent:8.1f} s of the processor, {month.worst[what]:6.1f} s on the worst day")
        assert kept == most
        assert not unnamed
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
