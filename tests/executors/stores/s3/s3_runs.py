"""A whole run on a bucket: discovered, planned, run by the real runner with a journal, killed where a test says so."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from executors.stores.s3.executor import S3Executor
from executors.value_search_protocol import Finds
from pii_tracer.app.execution.executor_value_search import ScanFinder
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.stores.s3.archive_versions import (
    ClientFactory,
    discover_archives,
    iter_version_bytes,
    s3_clients,
)
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.plan import Copy, ErasurePlan
from pii_tracer.model.waivers import MarkKey
from pii_tracer.review.sealed_person_values import KeyRing
from pii_tracer.run.journal import Journal
from pii_tracer.run.run_state import RunState
from pii_tracer.run.runner import run
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.byte_search import verify_objects
from pii_tracer.verify.verdicts import ByteVerdict
from tests.planners.smalllake import Lake
from tests.run.fakes import FakeLease, Killed
from tests.s3support import estate
from tests.waivers import MARKS

PERSON = "1234567890"
OTHERS = ("2", "77", "1234567891")
_SETS = (KeySet(name="user.uid", origin="users.uid", weak=False, values=(("subj_R", PERSON),)),)
KEYS = KeyRing(_SETS)
PREFIX = "archive/payments/"
_CHANGES = frozenset({"put_object", "delete_objects", "abort_multipart_upload", "restore_object"})


def body(*users: str) -> bytes:
    """Parquet with one row per user."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"uid": pa.array([int(u) for u in users], pa.int64()), "n": [*users]}), sink)
    return sink.getvalue()


def users(data: bytes) -> list[str]:
    return [str(value) for value in pq.read_table(io.BytesIO(data)).column("uid").to_pylist()]


@dataclass
class Now:
    """A clock that a test moves."""

    offset: timedelta = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(timezone.utc) + self.offset


@dataclass
class Deadly:
    """The real clients; the process dies before or after the n-th call that changes something."""

    clients: ClientFactory
    left: int | None = None
    calls: list[str] = field(default_factory=list)

    def __call__(self, region: str | None) -> Any:
        client = self.clients(region)
        outer = self

        class Watched:
            def __getattr__(self, name: str) -> Any:
                real = getattr(client, name)
                return outer._deadly(name, real) if name in _CHANGES else real

        return Watched()

    def _deadly(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(**request: Any) -> Any:
            self._tick()
            self.calls.append(name)
            answer = real(**request)
            self._tick()
            return answer

        return call

    def _tick(self) -> None:
        if self.left is not None:
            if self.left == 0:
                raise Killed
            self.left -= 1


@dataclass
class Bucket:
    """An archive of `prod.a` on a server."""

    endpoint_url: str
    name: str
    prefix: str = PREFIX
    windows: dict[str, Any] = field(default_factory=lambda: {"restore_hours": 0})
    now: Now = field(default_factory=Now)
    more: dict[str, Any] = field(default_factory=dict)
    prices: dict[str, Any] = field(default_factory=dict)
    routed: ClientFactory | None = None
    base: Path = Path()

    @property
    def clients(self) -> ClientFactory:
        return self.routed or s3_clients(self.estate)

    @property
    def estate(self) -> Estate:
        archive = {"name": "a", "of": "prod.a", "bucket": self.name, "prefix": self.prefix, "format": "parquet"}
        return estate(self.endpoint_url, [archive | self.more], windows=self.windows, prices=self.prices)

    def plan(self) -> ErasurePlan:
        """Only the S3 steps of a plan for the tables and this archive; their order among each other stays."""
        found, gaps = discover_archives(self.estate, self.clients, self.base)
        assert gaps == ()
        plan = Lake(objects=found).plan(as_of=self.now() - timedelta(hours=1))
        assert plan.applyable, plan.gaps
        kept = {s.id for s in plan.steps if s.executor == "s3"}
        steps = [
            s.model_copy(update={"depends_on": tuple(d for d in s.depends_on if d in kept)})
            for s in plan.steps
            if s.id in kept
        ]
        copies = {s.copy_ for s in steps}
        update = {"steps": tuple(steps), "copies": tuple(c for c in plan.copies if c.id in copies)}
        return plan.model_copy(update=update)

    def attempt(self, plan: ErasurePlan, journal: Path, deadly: Deadly | None = None) -> RunState | None:
        """One process; None when it died."""
        context = Context(self.estate, KEYS, self.now)
        executor = S3Executor(context, deadly or self.clients)
        try:
            return run(plan, {"s3": executor}, Journal.open(journal, self.now), clock=self.now, lease=FakeLease())
        except Killed:
            return None

    def verdict(self, copy: Copy, written: dict[tuple[str, str], str] | None = None) -> ByteVerdict:
        """Every version decoded and searched, by the verifier's own reading."""
        bucket, _, prefix = copy.location.removeprefix("s3://").partition("/")
        others = {tuple(place) for place in copy.facts.get("of_others", ())}
        versions = iter_version_bytes(self.clients(None), bucket, prefix, self.now(), written, unwanted=others)
        return verify_objects(copy, build_patterns(_SETS), versions)


@dataclass(frozen=True)
class Context:
    """The execution context as far as S3 needs it."""

    estate: Estate
    keyring: KeyRing
    now: Callable[[], datetime]
    told: Callable[[str], Sequence[Mapping[str, Any]]] = lambda step: ()
    finds: Finds = ScanFinder
    marks: MarkKey = MARKS

    @property
    def everything(self) -> tuple[KeySet, ...]:
        return self.keyring.key_sets

    def nobodys(self, copy: Copy | None) -> Mapping[str, frozenset[str]]:
        return {}

    def holds(self, text: str) -> bool:
        return self.finds(self.everything).in_text(text)
